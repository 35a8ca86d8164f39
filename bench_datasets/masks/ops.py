"""Operations on masks: intersections, IoU, unions, boxes, non-maximum suppression.

Every function takes `MaskColumn`s, validates them, refuses masks of different sizes, and gives exact integers (or
quotients of them, correctly rounded). Groups are ragged: `offsets` `(g + 1,) int64` part a column into g groups, say
the masks of g images.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench_datasets.masks.column import MaskColumn
from bench_datasets.masks.engine import Hits, Part, engine_for, quotient
from bench_datasets.masks.status import MaskError


def pair_intersections(a: MaskColumn, b: MaskColumn) -> NDArray[np.int64]:
    """Pixels shared by aligned masks.

    Args:
        a: n masks.
        b: n masks; b[i] of the size of a[i].

    Returns:
        `(n,) int64`.

    Raises:
        MaskError: a mask is unsound, or two aligned ones differ in size.
    """
    return _pair_overlaps(a, b)[0]


def pair_iou(a: MaskColumn, b: MaskColumn) -> NDArray[np.float64]:
    """IoU of aligned masks, `(n,) float64`; 0 where both are empty. Raises as `pair_intersections`.

    Example:
        >>> a = MaskColumn.from_dense([[[1, 1, 0, 0]]]); b = MaskColumn.from_dense([[[0, 1, 1, 1]]])
        >>> pair_iou(a, b)
        array([0.25])
    """
    shared, left, right = _pair_overlaps(a, b)
    return quotient(shared, left + right - shared)


def group_intersections(a: MaskColumn, a_groups: ArrayLike, b: MaskColumn, b_groups: ArrayLike) -> NDArray[np.int64]:
    """Pixels shared by every pair within each group.

    Args:
        a: masks of g groups.
        a_groups: `(g + 1,) int64`.
        b: masks of the same g groups.
        b_groups: `(g + 1,) int64`.

    Returns:
        Flat `int64`: group k's `(n_k, m_k)` matrix in row order, one group behind the other.

    Raises:
        MaskError: a mask is unsound, or masks of one group differ in size.
    """
    left, right = _groups(a_groups, a), _groups(b_groups, b)
    _check_groups(a, left, b, right)
    return engine_for(a, b).group_intersections(a, left, b, right)


def group_hits(a: MaskColumn, a_groups: ArrayLike, b: MaskColumn, b_groups: ArrayLike) -> Hits:
    """The pairs within each group that share a pixel: what `group_intersections` gives, its zeros left out.

    Args:
        a: masks of g groups.
        a_groups: `(g + 1,) int64`.
        b: masks of the same g groups.
        b_groups: `(g + 1,) int64`.

    Raises:
        MaskError: a mask is unsound, or masks of one group differ in size.

    Example:
        >>> a = MaskColumn.from_dense([[[1, 1, 0, 0]], [[0, 0, 1, 1]]]); b = MaskColumn.from_dense([[[0, 1, 0, 0]]])
        >>> group_hits(a, [0, 2], b, [0, 1])
        Hits(left=array([0]), right=array([0]), shared=array([1]))
    """
    left, right = _groups(a_groups, a), _groups(b_groups, b)
    _check_groups(a, left, b, right)
    return engine_for(a, b).group_hits(a, left, b, right)


def intersections(a: MaskColumn, b: MaskColumn) -> NDArray[np.int64]:
    """Pixels shared by every pair of one image's masks, `(n, m) int64`. Raises as `group_intersections`."""
    flat = group_intersections(a, [0, len(a)], b, [0, len(b)])
    return flat.reshape(len(a), len(b)) if len(flat) else np.zeros((len(a), len(b)), np.int64)


def iou(a: MaskColumn, b: MaskColumn) -> NDArray[np.float64]:
    """IoU of every pair of one image's masks, `(n, m) float64`; 0 where both are empty. Raises as `intersections`."""
    shared = intersections(a, b)
    return quotient(shared, a.areas()[:, None] + b.areas()[None, :] - shared)


def union_overlaps(count: int, a: Part, b: Part) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The unions of two sides, group by group.

    Args:
        count: number of groups.
        a: a column and the group `(n,) int64` of each of its masks, rising; -1 for a mask that is in none.
        b: the other side, likewise.

    Returns:
        Pixels shared by the two unions, of a's union and of b's union, each `(count,) int64`; 0 where there are none.

    Raises:
        MaskError: a mask is unsound, masks of one group differ in size, or the groups do not rise.

    Example:
        >>> masks = MaskColumn.from_dense([[[1, 1, 0]], [[0, 1, 1]], [[0, 0, 1]]])
        >>> union_overlaps(1, (masks, np.array([0, 0, -1])), (masks, np.array([-1, -1, 0])))
        (array([1]), array([3]), array([1]))
    """
    height, width = np.full(count, -1), np.full(count, -1)
    for column, group in (a, b):
        used = group >= 0
        if (np.diff(group[used]) < 0).any():
            raise MaskError("groups: expected them to rise from mask to mask, found one that falls")
        height[group[used]], width[group[used]] = column.validate().heights[used], column.widths[used]
    for column, group in (a, b):
        members = np.flatnonzero(group >= 0)
        own = group[members]
        differ = (column.heights[members] != height[own]) | (column.widths[members] != width[own])
        if differ.any():
            i = int(members[np.flatnonzero(differ)[0]])
            raise MaskError(
                f"mask {i}: expected the size {height[group[i]]} x {width[group[i]]} of the masks it is united with,"
                f" found {column.heights[i]} x {column.widths[i]}"
            )
    return engine_for(a[0], b[0]).union_overlaps(count, a, b)


def tube_intersections(
    a: MaskColumn, a_frames: ArrayLike, a_tubes: ArrayLike, b: MaskColumn, b_frames: ArrayLike, b_tubes: ArrayLike
) -> NDArray[np.int64]:
    """Pixels shared by every pair of tubes, summed over the frames of one video.

    Args:
        a: n masks, sorted by frame.
        a_frames: `(f + 1,) int64`, where each frame's masks begin.
        a_tubes: `(n,) int64`, the tube of each mask, from 0.
        b: m masks of the same f frames, likewise.
        b_frames: `(f + 1,) int64`.
        b_tubes: `(m,) int64`.

    Returns:
        `(tubes of a, tubes of b) int64`.

    Raises:
        MaskError: a mask is unsound, or masks of one frame differ in size.

    Example:
        >>> a = MaskColumn.from_dense([[[1, 1, 0]], [[0, 1, 1]]])
        >>> tube_intersections(a, [0, 1, 2], [0, 0], a, [0, 1, 2], [0, 1])
        array([[2, 2]])
    """
    left, right = _groups(a_frames, a), _groups(b_frames, b)
    _check_groups(a, left, b, right)
    of_a, of_b = np.asarray(a_tubes, np.int64), np.asarray(b_tubes, np.int64)
    for name, tubes, column in (("a_tubes", of_a, a), ("b_tubes", of_b, b)):
        if tubes.shape != (len(column),) or (len(tubes) and tubes.min() < 0):
            raise MaskError(
                f"{name}: expected the tube of each of {len(column)} masks, from 0; got {tubes.tolist()[:8]}"
            )
    return engine_for(a, b).tube_intersections(a, left, of_a, b, right, of_b)


def nms(column: MaskColumn, groups: ArrayLike, threshold: float = 0.5) -> NDArray[np.bool_]:
    """Greedy non-maximum suppression within each group, by area.

    The largest mask goes first (of equal areas the later one); a mask is dropped if its IoU with one that was kept
    is above `threshold`.

    Args:
        column: masks of g groups.
        groups: `(g + 1,) int64`.
        threshold: IoU above which (not at which) a mask is dropped, from 0 to 1.

    Returns:
        `(n,) bool`, true for the masks that stay.

    Raises:
        MaskError: a mask is unsound, masks of one group differ in size, or the threshold is none.

    Source: the released scorer of Falcon Perception (arXiv 2603.27365).

    Example:
        >>> nms(MaskColumn.from_dense([[[1, 1, 1, 0]], [[1, 1, 0, 0]], [[0, 0, 0, 1]]]), [0, 3])
        array([ True, False,  True])
    """
    if not 0 <= threshold <= 1:
        raise MaskError(f"threshold: expected an IoU from 0 to 1, got {threshold}")
    offsets = _one_size(column, groups)
    return engine_for(column).group_nms(column, offsets, threshold)


def _pair_overlaps(a: MaskColumn, b: MaskColumn) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    if len(a) != len(b):
        raise MaskError(f"expected as many masks on both sides, got {len(a)} and {len(b)}")
    if not (np.array_equal(a.heights, b.heights) and np.array_equal(a.widths, b.widths)):
        every = np.arange(len(a))
        _same_sizes(a.validate(), b.validate(), every, every)
    return engine_for(a, b).pair_overlaps(a, b)


def _groups(groups: ArrayLike, column: MaskColumn) -> NDArray[np.int64]:
    offsets = np.asarray(groups, np.int64)
    if (
        offsets.ndim != 1
        or not len(offsets)
        or offsets[0] != 0
        or offsets[-1] != len(column)
        or (np.diff(offsets) < 0).any()
    ):
        raise MaskError(f"groups: expected rising offsets from 0 to {len(column)}, got {offsets.tolist()[:8]}")
    return offsets


def _check_groups(a: MaskColumn, left: NDArray[np.int64], b: MaskColumn, right: NDArray[np.int64]) -> None:
    """As many groups on both sides, sound masks, and one size within each group that has masks on both."""
    if len(left) != len(right):
        raise MaskError(f"expected as many groups on both sides, got {len(left) - 1} and {len(right) - 1}")
    both = (np.diff(left) > 0) & (np.diff(right) > 0)
    for column, groups in ((a.validate(), left), (b.validate(), right)):
        member, group = _members(groups, both)
        _same_sizes(column, b, member, right[:-1][group])


def _members(groups: NDArray[np.int64], wanted: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The masks of the wanted groups and the group of each."""
    group = np.repeat(np.arange(len(groups) - 1), np.diff(groups))
    member = np.flatnonzero(wanted[group])
    return member, group[member]


def _one_size(column: MaskColumn, groups: ArrayLike) -> NDArray[np.int64]:
    offsets = _groups(groups, column)
    member, group = _members(offsets, np.diff(offsets) > 0)
    _same_sizes(column.validate(), column, member, offsets[:-1][group])
    return offsets


def _same_sizes(a: MaskColumn, b: MaskColumn, i: NDArray[np.int64], j: NDArray[np.int64]) -> None:
    differ = np.flatnonzero((a.heights[i] != b.heights[j]) | (a.widths[i] != b.widths[j]))
    if len(differ):
        k = int(differ[0])
        raise MaskError(
            f"mask {i[k]}: expected the size {b.heights[j[k]]} x {b.widths[j[k]]} of the masks it is compared with,"
            f" found {a.heights[i[k]]} x {a.widths[i[k]]}"
        )
