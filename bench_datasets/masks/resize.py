"""Nearest-neighbour resize of masks, pixel for pixel as Pillow does it, on the runs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bench_datasets.masks.column import MaskColumn
from bench_datasets.masks.rle import Runs
from bench_datasets.masks.status import MAX_PIXELS, MaskError

MAX_RESIZED = 2**28
"""Most pixels of a size that masks are resized to: sixteen times 16 megapixels."""


def resize(column: MaskColumn, heights: NDArray[np.int64], widths: NDArray[np.int64]) -> MaskColumn:
    """The masks at other sizes.

    Args:
        column: n masks.
        heights: `(n,) int64`, pixels.
        widths: `(n,) int64`, pixels.

    Returns:
        n masks; those that have their size already are taken over as they are. A mask is never held dense at its
        own size, so a small string that claims a huge mask costs no more than the size asked for.

    Raises:
        MaskError: a mask is unsound, or a size is not positive or above `MAX_RESIZED` pixels.

    Source: the released scorer of Falcon Perception resizes with Pillow's `NEAREST`.

    Example:
        >>> half = MaskColumn.from_dense([[[1, 0]]])
        >>> resize(half, np.array([1]), np.array([4])).decode(0)
        array([[ True,  True, False, False]])
    """
    heights, widths = np.asarray(heights, np.int64), np.asarray(widths, np.int64)
    if (heights <= 0).any() or (widths <= 0).any() or (heights * widths > MAX_PIXELS).any():
        raise MaskError("resize: expected positive heights and widths of fewer than 2^31 pixels")
    column.validate()
    same = (column.heights == heights) & (column.widths == widths)
    huge = np.flatnonzero(~same & (heights * widths > MAX_RESIZED))
    if len(huge):
        i = int(huge[0])
        raise MaskError(
            f"mask {i}: {heights[i]} x {widths[i]} pixels are too many to resize to; at most {MAX_RESIZED} are"
        )
    if same.all():
        return column
    lengths, offsets = column.runs
    parts = [
        lengths[offsets[i] : offsets[i + 1]]
        if same[i]
        else _resize_runs(
            lengths[offsets[i] : offsets[i + 1]],
            (int(column.heights[i]), int(column.widths[i])),
            (int(heights[i]), int(widths[i])),
        )
        for i in range(len(column))
    ]
    new = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    return MaskColumn.from_runs(Runs(np.concatenate(parts), new), heights, widths)


def _resize_runs(runs: NDArray[np.int64], old: tuple[int, int], new: tuple[int, int]) -> NDArray[np.int64]:
    """The runs of one mask of size `old` at size `new` (height, width)."""
    rows, columns = nearest(old[0], new[0]), nearest(old[1], new[1])
    different, copies = np.unique(columns, return_counts=True)
    # The pixels that are read, one column of the source after another, lie on a rising axis: a run's end falls
    # between two of them, and where it falls can be computed without the pixels.
    ends = np.cumsum(runs)[:-1]
    x, y = np.divmod(ends, old[0])
    k = np.searchsorted(different, x)
    hit = np.minimum(k, len(different) - 1)
    inside = different[hit] == x
    cut = np.where(inside & (k < len(different)), k * new[0] + np.searchsorted(rows, y), k * new[0])
    bounds = np.concatenate([[0], cut, [len(different) * new[0]]])
    if (copies == 1).all():
        return _tidy(np.diff(bounds))
    flat = np.repeat((np.arange(len(bounds) - 1) & 1).astype(np.bool_), np.diff(bounds))
    dense = np.repeat(flat.reshape(len(different), new[0]), copies, axis=0).ravel()
    change = np.flatnonzero(dense[1:] != dense[:-1]) + 1
    return np.diff(np.concatenate([[0] if not dense[0] else [0, 0], change, [dense.size]]))


def _tidy(runs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Runs without the zero-length ones that skipped pixels leave behind."""
    colour = np.arange(len(runs)) & 1
    kept = runs > 0
    runs, colour = runs[kept], colour[kept]
    heads = np.flatnonzero(np.concatenate([[True], colour[1:] != colour[:-1]]))
    merged = np.add.reduceat(runs, heads)
    return merged if colour[0] == 0 else np.concatenate([[0], merged])


@lru_cache(maxsize=256)
def nearest(old: int, new: int) -> NDArray[np.int64]:
    """`(new,) int64`: which of `old` pixels each of `new` takes.

    Pillow walks along the source in steps that it adds up in float64; the sum is repeated here step by step, since a
    product would land on the other side of a pixel's edge now and then.
    """
    step = old / new
    walk = np.full(new, step)
    walk[0] = step * 0.5
    index = np.minimum(np.cumsum(walk).astype(np.int64), old - 1)
    index.setflags(write=False)
    return index
