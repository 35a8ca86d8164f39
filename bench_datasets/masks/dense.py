"""Dense masks and label maps into runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pycocotools import mask as coco

from bench_datasets.masks.column import MaskColumn
from bench_datasets.masks.rle import Runs
from bench_datasets.masks.status import MAX_PIXELS, MaskError

_ENCODED_PIXELS = 2**28
"""Most pixels of a mask that pycocotools encodes; it reserves four bytes for each and does not check for them."""


def as_array(value: object) -> NDArray[Any] | None:
    """The NumPy array of an array, a tensor or an image.

    Args:
        value: a NumPy array, a tensor of PyTorch (on any device, with a gradient or without), JAX or TensorFlow, a PIL
            image, or anything else.

    Returns:
        The array with at least one dimension; `None` for any other value.

    Raises:
        MaskError: the values are of a kind that NumPy lacks (such as bfloat16).

    Example:
        >>> from PIL import Image
        >>> as_array(Image.new("1", (3, 2))).shape, as_array([1, 2])
        ((2, 3), None)
    """
    if isinstance(value, np.ndarray):
        return value if value.ndim else None
    if isinstance(value, np.generic) or not (hasattr(value, "__array__") or hasattr(value, "__array_interface__")):
        return None
    try:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except (TypeError, RuntimeError) as error:
        raise MaskError(f"expected an array that NumPy can hold, found {type(value).__name__} ({error})") from error
    return array if array.ndim else None


def one_mask(array: NDArray[Any]) -> NDArray[Any]:
    """The `(height, width)` array of one mask as a model gives it; stricter than `encode_dense`.

    Args:
        array: `(height, width)`, also with leading dimensions of 1; bool, or integers of which 0 is background and one
            other value is the mask.

    Raises:
        MaskError: the array has another shape, holds floats, or holds several values besides 0 (probabilities from 0 to
            255, or a label map).

    Example:
        >>> one_mask(np.array([[[0, 255]]], np.uint8)).shape
        (1, 2)
    """
    plane = array
    while plane.ndim > 2 and plane.shape[0] == 1:
        plane = plane[0]
    if plane.ndim != 2:
        raise MaskError(f"expected a mask as an array of (height, width), found one of shape {array.shape}")
    if plane.dtype.kind == "f":
        raise MaskError(
            f"expected a mask of bool or integers, found an array of {plane.dtype}; cut probabilities at a threshold"
            " first: mask > 0.5 (logits: mask > 0)"
        )
    if plane.dtype.kind in "iu" and plane.size and not ((plane == 0) | (plane == plane.max())).all():
        raise MaskError(
            f"expected a mask of 0 and one other value, found {len(np.unique(plane))} values; cut probabilities at a"
            " threshold (mask > 127), or make masks of a label map with bench_datasets.masks.encode_label_map"
        )
    return plane


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
    array = np.asarray(mask)
    if array.ndim == 2 and array.dtype.kind in "biu" and 0 < array.size <= _ENCODED_PIXELS:
        encoded = coco.encode(np.asfortranarray(array != 0).view(np.uint8))
        return {"size": [*map(int, array.shape)], "counts": encoded["counts"].decode("ascii")}
    runs, height, width = dense_runs(array)
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
