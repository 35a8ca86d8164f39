"""How well outlines agree: boundary IoU and the boundary F of aligned masks, from run lengths, as exact integers.

Boundary IoU: B. Cheng, R. Girshick, P. Dollár, A. Berg, A. Kirillov, "Boundary IoU: Improving Object-Centric Image
Segmentation Evaluation", CVPR 2021. A mask's boundary region is what d erosions by a 3 x 3 square take away (beyond the
image's border there is background), with d = 2 % of the image's diagonal, rounded, at least 1.

Boundary F: F. Perazzi et al., "A Benchmark Dataset and Evaluation Methodology for Video Object Segmentation" (DAVIS),
CVPR 2016. A contour pixel is one that differs from its neighbour to the right, below, or to the right below, as far as
the image has one; it is hit if a contour pixel of the other mask lies within 0.8 % of the diagonal, rounded up.

A mask never becomes pixels: an erosion by d is an intersection of columns with their neighbours, which log2(2d + 1)
intersections of run lengths give, for many masks at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench_datasets.masks.column import MaskColumn
from bench_datasets.masks.contours import contours, hits
from bench_datasets.masks.decoded import Decoded
from bench_datasets.masks.intervals import PART, Axis, Intervals, Ints, intersect, join, overlaps, tidy
from bench_datasets.masks.rle import Runs
from bench_datasets.masks.status import MaskError

REGION_SHARE = 0.02
"""Depth of the boundary region, as a share of the image's diagonal."""

TOLERANCE_SHARE = 0.008
"""How far contours may lie apart, as a share of the image's diagonal."""

CHUNK_RUNS = 1 << 16
"""Runs and columns that are worked on at a time."""


class BoundaryCounts(NamedTuple):
    """Pixel counts of n aligned pairs for boundary IoU and boundary F, each `(n,) int64`.

    Boundary IoU is `iou_intersection / iou_union`; of the F, precision is `hit_a / total_a` and recall
    `hit_b / total_b`, if a is the prediction. A mask that fills its image has no contour.

    Attributes:
        iou_intersection: pixels shared by the two boundary regions.
        iou_union: pixels of their union.
        hit_a: contour pixels of a within the tolerance of b's contour.
        total_a: contour pixels of a.
        hit_b: contour pixels of b within the tolerance of a's contour.
        total_b: contour pixels of b.
    """

    iou_intersection: Ints
    iou_union: Ints
    hit_a: Ints
    total_a: Ints
    hit_b: Ints
    total_b: Ints


def region_depth(heights: ArrayLike, widths: ArrayLike) -> Ints:
    """Depth of the boundary region, `(n,) int64` pixels: 2 % of the diagonal, rounded (half to even), at least 1.

    Example:
        >>> region_depth([30, 750], [40, 1000])
        array([ 1, 25])
    """
    return np.maximum(np.rint(REGION_SHARE * _diagonal(heights, widths)), 1).astype(np.int64)


def contour_tolerance(heights: ArrayLike, widths: ArrayLike) -> Ints:
    """How far contours may lie apart, `(n,) int64` pixels: 0.8 % of the diagonal, rounded up.

    Example:
        >>> contour_tolerance([30, 751], [40, 1000])
        array([ 1, 11])
    """
    return np.ceil(TOLERANCE_SHARE * _diagonal(heights, widths)).astype(np.int64)


def boundary_pairs(a: MaskColumn, b: MaskColumn) -> BoundaryCounts:
    """Compare the outlines of aligned masks.

    Args:
        a: n masks, say the predictions.
        b: n masks, say the truth; b[i] of the size of a[i].

    Returns:
        Six arrays `(n,) int64`, pixels. Memory is bounded by the runs of a chunk of masks (and the columns they
        cover), whatever size they claim; the pixels of one large mask are worked on in parts.

    Raises:
        MaskError: a mask is unsound, or two aligned ones differ in size.

    Example:
        >>> a = MaskColumn.from_dense([np.pad(np.ones((4, 4), int), 2)])
        >>> b = MaskColumn.from_dense([np.pad(np.ones((4, 4), int), ((2, 2), (3, 1)))])
        >>> [int(count[0]) for count in boundary_pairs(a, b)]
        [6, 18, 16, 16, 16, 16]
    """
    if len(a) != len(b):
        raise MaskError(f"expected as many masks on both sides, got {len(a)} and {len(b)}")
    apart = np.flatnonzero((a.validate().heights != b.validate().heights) | (a.widths != b.widths))
    if len(apart):
        i = int(apart[0])
        raise MaskError(
            f"mask {i}: expected the size {b.heights[i]} x {b.widths[i]} of the mask it is compared with,"
            f" found {a.heights[i]} x {a.widths[i]}"
        )
    parts = [_compare(a.part(*span), b.part(*span)) for span in _chunks(a, b)]
    if not parts:
        return BoundaryCounts(*np.zeros((6, 0), np.int64))
    return BoundaryCounts(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def union_masks(column: MaskColumn, groups: ArrayLike, heights: ArrayLike, widths: ArrayLike) -> MaskColumn:
    """The union of each group's masks, as masks.

    Args:
        column: masks of g groups.
        groups: `(g + 1,) int64`, where each group's masks begin.
        heights: `(g,) int64`, pixels; the size of each group's masks. A group without masks has an empty union.
        widths: `(g,) int64`, likewise.

    Returns:
        g masks.

    Raises:
        MaskError: a mask is unsound or of another size than its group.

    Example:
        >>> masks = MaskColumn.from_dense([[[1, 0, 0]], [[0, 0, 1]]])
        >>> union_masks(masks, [0, 2, 2], [1, 1], [3, 3]).areas()
        array([2, 0])
    """
    offsets = np.asarray(groups, np.int64)
    height, width = np.asarray(heights, np.int64), np.asarray(widths, np.int64)
    if len(offsets) != len(height) + 1 or offsets[0] != 0 or offsets[-1] != len(column) or (np.diff(offsets) < 0).any():
        raise MaskError(f"groups: expected {len(height) + 1} rising offsets from 0 to {len(column)}, got {offsets[:8]}")
    group = np.repeat(np.arange(len(height)), np.diff(offsets))
    apart = np.flatnonzero((column.validate().heights != height[group]) | (column.widths != width[group]))
    if len(apart):
        i = int(apart[0])
        raise MaskError(
            f"mask {i}: expected the size {height[group[i]]} x {width[group[i]]} of the masks it is united with,"
            f" found {column.heights[i]} x {column.widths[i]}"
        )
    axis = Axis(height, width, gaps=np.ones(len(height), np.int64))
    total = np.concatenate([[0], np.cumsum(np.diff(column.offsets))])
    parts, first = [Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))], 0
    while first < len(column):  # about CHUNK_RUNS runs at a time: what overlaps is united before the next are laid out
        last = max(first + 1, int(np.searchsorted(total, total[first] + CHUNK_RUNS, side="right")) - 1)
        parts.append(join(axis.lay(column.part(first, last), group[first:last]), touching=True))
        first = last
    return _masks(join(*parts, touching=True), axis)


def _diagonal(heights: ArrayLike, widths: ArrayLike) -> NDArray[np.float64]:
    height, width = np.asarray(heights, np.float64), np.asarray(widths, np.float64)
    return np.asarray(np.sqrt(height * height + width * width))


def _chunks(a: MaskColumn, b: MaskColumn) -> Iterator[tuple[int, int]]:
    """Spans of pairs that are processed together: of bounded size, at least one pair each."""
    cost = np.zeros(len(a), np.int64)
    for column in (a, b):
        cost += column.decoded.ends.number + column.boxes()[:, 2]
    total = np.concatenate([[0], np.cumsum(cost)])
    first = 0
    while first < len(cost):
        last = max(first + 1, int(np.searchsorted(total, total[first] + CHUNK_RUNS, side="right")) - 1)
        yield first, last
        first = last


def _compare(a: MaskColumn, b: MaskColumn) -> BoundaryCounts:
    """A chunk of pairs."""
    height, width = a.heights, a.widths
    depth = region_depth(height, width)
    depth[(height <= 2 * depth) | (width <= 2 * depth)] = 0  # nothing would be left of any mask
    axis = Axis(height, width, gaps=(2 * depth + 1) * height)
    left, right = axis.lay(a), axis.lay(b)
    of_a, of_b = _eroded(left, axis, depth), _eroded(right, axis, depth)
    both = (
        overlaps(left, right, axis)
        - overlaps(of_a, right, axis)
        - overlaps(left, of_b, axis)
        + overlaps(of_a, of_b, axis)
    )
    region_a, region_b = axis.sizes(left) - axis.sizes(of_a), axis.sizes(right) - axis.sizes(of_b)
    line_a, line_b = contours(left, axis), contours(right, axis)
    tolerance = contour_tolerance(height, width)
    return BoundaryCounts(
        both, region_a + region_b - both,
        hits(line_a, line_b, axis, tolerance), axis.sizes(line_a),
        hits(line_b, line_a, axis, tolerance), axis.sizes(line_b),
    )  # fmt: skip


def _eroded(masks: Intervals, axis: Axis, depth: Ints) -> Intervals:
    """The masks less their boundary regions; a depth of 0 stands for a mask of which nothing is left."""
    # What is left within each column: few intervals, each of which was longer than 2d.
    parts = []
    for first in range(0, max(len(masks.starts), 1), PART):
        some = Intervals(masks.starts[first : first + PART], masks.ends[first : first + PART])
        wide = depth[axis.owners(some)] > 0
        kept, row = axis.columns(Intervals(some.starts[wide], some.ends[wide]))
        parts.append(tidy(kept.starts + depth[row], kept.ends - depth[row]))
    result = Intervals(*(np.concatenate(bounds) for bounds in zip(*parts, strict=True)))
    # Windows of 1, 2, 4, ... columns to the right of each, up to 2d + 1.
    wanted, have = 2 * depth + 1, np.ones(len(depth), np.int64)
    while (have < wanted).any():
        step = np.minimum(have, wanted - have)
        shift = (step * axis.heights)[axis.owners(result)]
        result = intersect(result, Intervals(result.starts - shift, result.ends - shift))
        have += step
    shift = (depth * axis.heights)[axis.owners(result)]
    return Intervals(result.starts + shift, result.ends + shift)


def _masks(a: Intervals, axis: Axis) -> MaskColumn:
    """Intervals as masks; no two of a mask touch."""
    row, pixels = axis.owners(a), axis.heights * axis.widths
    count = np.bincount(row, minlength=len(pixels))
    last = np.cumsum(count)
    starts, ends = a.starts - axis.base[row], a.ends - axis.base[row]
    before = np.concatenate([[0], ends[:-1]])[: len(ends)]
    some = count > 0
    before[(last - count)[some]] = 0
    tail = pixels.copy()
    tail[some] -= ends[last[some] - 1]
    lengths = np.insert(np.stack([starts - before, ends - starts], axis=1).ravel(), 2 * last[tail > 0], tail[tail > 0])
    runs = Runs(lengths, np.concatenate([[0], np.cumsum(2 * count + (tail > 0))]))
    column = MaskColumn.from_runs(runs, axis.heights, axis.widths)
    none = np.zeros(len(pixels), np.int8)
    column.__dict__["decoded"] = Decoded(none, none.astype(np.bool_), given_runs=runs)
    return column
