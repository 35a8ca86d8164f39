"""Dense masks and label maps into runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench_datasets.masks.column import MaskColumn
from bench_datasets.masks.status import MAX_PIXELS, MaskError
from bench_datasets.masks.varint import Runs


def dense_runs(mask: ArrayLike) -> tuple[NDArray[np.int64], int, int]:
    """Runs, height and width of one dense mask.

    Raises:
        MaskError: not a two-dimensional bool or integer array with at least one pixel.
    """
    array = np.asarray(mask)
    if array.ndim != 2 or array.dtype.kind not in "biu":
        raise MaskError(f"mask: expected shape (height, width) of bool or integers, got {array.shape} {array.dtype}")
    if not 0 < array.size <= MAX_PIXELS:
        raise MaskError(f"mask: expected between 1 and 2^31 - 1 pixels, got {array.shape}")
    flat = (array != 0).ravel(order="F")
    change = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    bounds = np.concatenate([[0] if not flat[0] else [0, 0], change, [flat.size]])
    return np.diff(bounds), array.shape[0], array.shape[1]


def encode_dense(mask: ArrayLike) -> dict[str, Any]:
    """COCO RLE of one dense mask.

    Args:
        mask: `(height, width)` bool or integer, nonzero = foreground.

    Returns:
        `{"size": [height, width], "counts": str}`, the same string as pycocotools gives.

    Raises:
        MaskError: another shape or dtype (floats must be cut at a threshold by whoever made them).

    Example:
        >>> encode_dense(np.eye(2, dtype=bool))
        {'size': [2, 2], 'counts': '0120'}
    """
    runs, height, width = dense_runs(mask)
    column = MaskColumn.from_runs(Runs(runs, np.array([0, len(runs)])), [height], [width])
    return {"size": [height, width], "counts": column.data.tobytes().decode("ascii")}


def encode_label_map(labels: ArrayLike) -> dict[int, dict[str, Any]]:
    """COCO RLEs of every label of a map, in one pass over its pixels.

    Args:
        labels: `(height, width)` integers; 0 is void and gives no mask.

    Returns:
        A mask by label, ascending.

    Raises:
        MaskError: not a two-dimensional integer array with at least one pixel.

    Example:
        >>> list(encode_label_map(np.array([[0, 7], [7, 3]])))
        [3, 7]
    """
    array = np.asarray(labels)
    if array.ndim != 2 or array.dtype.kind not in "biu" or not 0 < array.size <= MAX_PIXELS:
        raise MaskError(f"label map: expected shape (height, width) of integers, got {array.shape} {array.dtype}")
    height, width = array.shape
    flat = array.ravel(order="F")
    starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
    ends = np.concatenate([starts[1:], [flat.size]])
    label = flat[starts]
    kept = label != 0
    starts, ends, label = starts[kept], ends[kept], label[kept]
    order = np.argsort(label, kind="stable")
    starts, ends, label = starts[order], ends[order], label[order]
    names, first = np.unique(label, return_index=True)
    if not len(names):
        return {}
    # Each segment gives a background run before it and itself; each label a last background run where one is left.
    first_of = np.zeros(len(label), np.bool_)
    first_of[first] = True
    before = np.where(first_of, starts, starts - np.concatenate([[0], ends[:-1]]))
    runs = np.stack([before, ends - starts], axis=1).ravel()
    last = np.concatenate([first[1:], [len(label)]])
    tail = flat.size - ends[last - 1]
    lengths = np.insert(runs, 2 * last[tail > 0], tail[tail > 0])
    sizes = 2 * (last - first) + (tail > 0)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = len(names)
    masks = MaskColumn.from_runs(Runs(lengths, offsets), np.full(n, height), np.full(n, width)).to_pylist()
    return {int(name): mask for name, mask in zip(names, masks, strict=True) if mask is not None}
