"""Contours of masks on an axis, and which of their pixels another contour comes near."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench_datasets.masks.engine import engine_for
from bench_datasets.masks.intervals import PART, Axis, Intervals, Ints, differ, join, spans, tidy, within

CHUNK_POINTS = 1 << 20
"""Contour pixels that are looked at one by one at a time."""

WIDE = 256
"""Columns from a pixel up to which each one is looked at; beyond, those without a contour are jumped over."""

NEVER = 1 << 62
"""A distance that no image has."""


def contours(masks: Intervals, axis: Axis) -> Intervals:
    """Contour pixels: those that differ from their neighbour to the right, below, or to the right below.

    Returns:
        Intervals none of which goes on in a second column.
    """
    if len(axis.base) > 1 or len(masks.starts) <= PART:
        return _contours(masks, axis)
    # A contour pixel depends on itself, the one below, and the two to the right of these.
    height = int(axis.heights[0])

    def needed(first: int, last: int) -> list[tuple[int, int]]:
        pairs = ((first, last + 1), (first + height, last + height + 1))
        found = [
            (np.searchsorted(masks.ends, low, "right"), np.searchsorted(masks.starts, high)) for low, high in pairs
        ]
        (low, middle), (next_low, high) = ((int(start), int(stop)) for start, stop in found)
        return [(low, high)] if next_low <= middle else [(low, middle), (next_low, high)]

    parts = []
    for first, last in spans(
        int(axis.base[0]), int(axis.bounds[-1]), lambda *span: sum(high - low for low, high in needed(*span))
    ):
        some = needed(first, last)
        own = Intervals(*(np.concatenate([bounds[low:high] for low, high in some]) for bounds in masks))
        parts.append(_touching(within(_contours(own, axis), first, last), axis))
    return Intervals(*(np.concatenate(bounds) for bounds in zip(*parts, strict=True)))


def _touching(lines: Intervals, axis: Axis) -> Intervals:
    """The same pixels of one image in fewer intervals: those that touch within a column are one."""
    starts, ends = lines
    apart = (starts[1:] > ends[:-1]) | ((starts[1:] - axis.base[0]) % axis.heights[0] == 0)
    some = np.ones(min(len(starts), 1), np.bool_)
    return Intervals(starts[np.concatenate([some, apart])], ends[np.concatenate([apart, some])])


def _contours(masks: Intervals, axis: Axis) -> Intervals:
    """Contour pixels of masks that are worked on at once."""
    row = axis.owners(masks)
    base, height = axis.base[row], axis.heights[row]
    stop = base + height * (axis.widths[row] - 1)  # where the last column begins, which has none to its right
    here = tidy(masks.starts, np.minimum(masks.ends, stop))
    right = tidy(np.maximum(masks.starts - height, base), np.minimum(masks.ends - height, stop))
    below = tidy(np.maximum(masks.starts - height - 1, base), np.minimum(masks.ends - height - 1, stop))
    changes = np.stack([masks.starts, masks.ends], axis=1).ravel()
    inner = (changes - np.repeat(base, 2)) % np.repeat(height, 2) != 0
    vertical = changes[inner]
    across, _ = axis.columns(differ(here, right))
    aslant, owner = axis.columns(differ(here, below))
    # A pixel of the bottom row has none to its right below.
    column = (aslant.starts - axis.base[owner]) // axis.heights[owner]
    bottom = axis.base[owner] + (column + 1) * axis.heights[owner] - 1
    return join(Intervals(vertical - 1, vertical), across, tidy(aslant.starts, np.minimum(aslant.ends, bottom)))


def hits(of: Intervals, near: Intervals, axis: Axis, tolerance: Ints) -> Ints:
    """Number of contour pixels within the tolerance of another contour.

    Args:
        of: the contours whose pixels are counted, as `contours` gives them.
        near: the other contours.
        axis: where they lie.
        tolerance: `(n,) int64`, pixels; the farthest that two pixels' middles may lie apart.

    Returns:
        `(n,) int64`.
    """
    if not len(of.starts) or not len(near.starts):
        return np.zeros(len(axis.base), np.int64)
    found = np.zeros(len(axis.base), np.int64)
    if engine_for().name == "numba":
        from bench_datasets.masks import contour_kernels

        of_first, near_first = (np.searchsorted(lines.starts, axis.bounds) for lines in (of, near))
        sizes = (np.ascontiguousarray(size) for size in (axis.base, axis.heights, axis.widths, tolerance))
        contour_kernels.hits(*of, of_first, *near, near_first, *sizes, 0, len(found), found)
        return found
    lengths = of.ends - of.starts
    total = np.concatenate([[0], np.cumsum(lengths)])
    for first in range(0, int(total[-1]), CHUNK_POINTS):
        number = np.arange(first, min(first + CHUNK_POINTS, int(total[-1])))
        piece = np.searchsorted(total, number, side="right") - 1
        point = of.starts[piece] + number - total[piece]
        found += _near(point, near, axis, tolerance)
    return found


def _near(point: Ints, near: Intervals, axis: Axis, tolerance: Ints) -> Ints:
    """Number of these pixels, by image, within the tolerance of a contour."""
    row = np.searchsorted(axis.base, point, side="right") - 1
    present = np.diff(np.searchsorted(near.starts, axis.bounds)) > 0
    some = present[row]
    point, row = point[some], row[some]
    found = np.zeros(len(axis.base), np.int64)
    reach = np.minimum(tolerance, axis.widths - 1)
    away = 0
    while len(point):
        # How far up and down a disk reaches, so many columns from its middle; squares below 2^53 have exact roots.
        side = np.sqrt(np.maximum(tolerance * tolerance - away * away, 0)).astype(np.int64)
        for step in (away, -away) if away else (0,):
            hit = _touched(point, row, step, side, near, axis)
            found += np.bincount(row[hit], minlength=len(found))
            point, row = point[~hit], row[~hit]
        away = away + 1 if away < WIDE else _next(point, row, away, near, axis)
        left = reach[row] >= away
        point, row = point[left], row[left]
    return found


def _next(point: Ints, row: Ints, away: int, near: Intervals, axis: Axis) -> int:
    """The least distance above `away`, in columns, at which a pixel meets a column that the other contour is in."""
    base, height = axis.base[row], axis.heights[row]
    top = point - (point - base) % height
    after = np.minimum(np.searchsorted(near.starts, top + (away + 1) * height), len(near.starts) - 1)
    before = np.maximum(np.searchsorted(near.ends, top - away * height, side="right") - 1, 0)
    offsets = np.abs(np.stack([near.starts[after] - top, near.starts[before] - top]) // height)
    return int(offsets.min(initial=NEVER, where=offsets > away))


def _touched(point: Ints, row: Ints, step: int, side: Ints, near: Intervals, axis: Axis) -> NDArray[np.bool_]:
    """Whether the other contour comes within `side` rows of a pixel, so many columns to its right."""
    base, height = axis.base[row], axis.heights[row]
    top = base + ((point - base) // height + step) * height  # the column's first pixel
    middle = point + step * height
    inside = (top >= base) & (top < base + height * axis.widths[row])
    low, high = np.maximum(middle - side[row], top), np.minimum(middle + side[row], top + height - 1)
    piece = np.searchsorted(near.starts, high, side="right") - 1
    return np.asarray(inside & (piece >= 0) & (near.ends[np.maximum(piece, 0)] > low))
