"""The engine that is always there: pycocotools once an image, numpy for what works on the runs alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco

from bench_datasets.masks.column import MaskColumn
from bench_datasets.masks.decoded import Decoded
from bench_datasets.masks.engine import Engine, Hits, Offsets, Part, nms_order, quotient
from bench_datasets.masks.rle import decode_counts

PAIR_BYTES = 1 << 19
"""Bytes of counts that are read at a time where aligned masks are compared."""

LARGEST = 2**29
"""Pixels of the largest mask that pycocotools is given: beyond, two runs may differ by more than six characters hold,
and a negative varint of seven it misreads, or never returns from."""

AREA_BLOCK = 200
"""Masks whose areas are asked for in one call: with 256 or more, pycocotools raises under numpy 2."""

TOGETHER, PAIRS_TOGETHER = 1024, 32
"""Pairs of boxes, and aligned masks, that share a call: a call costs as much as a small mask does, and each pair of
boxes some nanoseconds. Masks that are not to be compared are given different widths, so that their boxes are all that
is looked at: pycocotools compares runs only where the sizes agree, and else uses the width as a bound alone."""

Heighted = list[tuple[int, bytes]]
"""Masks of any width: heights and strings."""

SUMMED = 1 << 22
"""Intersections that are added up at a time: so many of the largest masks are still an exact float64."""

MERGED, UNITED_RUNS = 3, 1 << 17
"""Masks of a group, both sides, up to which pycocotools' merging, mask by mask, is quicker than sorting all intervals;
and runs that are sorted at a time, of some groups or one."""

JOINED, CANDIDATES, CELLS = 1 << 16, 16, 1 << 20
"""Intervals of groups that are joined at a time; pairs that may overlap, per interval, up to which that is quicker than
pycocotools; and cells of the matrices of a chunk up to which they are summed in place."""

BOXES = 1 << 20
"""Pairs of boxes that are looked at together in a suppression."""

NMS_FIRST, NMS_BLOCK = 32, 128
"""Candidates compared in one call, few at first, as long as little is kept that would drop them: bounds the memory of a
suppression to a block times what is kept."""


class PycocotoolsEngine:
    """See `Engine`."""

    name = "pycocotools"

    def decode(self, column: MaskColumn) -> Decoded:
        """By numpy, a cache-full of strings at a time."""
        found = decode_counts(column.data, column.offsets, column.readable())
        column.blame(found.status)
        return Decoded(found.status, found.irregular, given_runs=found.runs, given_areas=found.areas)

    def words(self, column: MaskColumn, begin: Offsets) -> NDArray[np.uint32]:
        """Write the runs into the words between the headers."""
        lengths, offsets = column.runs
        words = np.empty(len(lengths) + 3 * len(column), "<u4")
        words[begin], words[begin + 1], words[begin + 2] = column.heights, column.widths, np.diff(offsets)
        of_runs = np.ones(len(words), np.bool_)
        of_runs[begin] = of_runs[begin + 1] = of_runs[begin + 2] = False
        words[of_runs] = lengths
        return words

    def pair_overlaps(self, a: MaskColumn, b: MaskColumn) -> tuple[Offsets, Offsets, Offsets]:
        """Some pairs a call; a bounded number of bytes at a time."""
        shared, left, right = (np.zeros(len(a), np.int64) for _ in range(3))
        size = (a.offsets - a.offsets[0]) + (b.offsets - b.offsets[0])
        first = 0
        while first < len(a):
            last = max(first + 1, int(np.searchsorted(size, size[first] + PAIR_BYTES, side="right")) - 1)
            some = slice(first, last)
            p, q = a.part(first, last), b.part(first, last)
            left[some], right[some] = p.areas(), q.areas()
            if _readable(p, q):
                shared[some] = np.rint(_aligned(_strings(p), _strings(q)) * left[some])
            else:
                shared[some] = _by_runs(p, q)
            first = last
        return shared, left, right

    def group_intersections(
        self, a: MaskColumn, a_groups: Offsets, b: MaskColumn, b_groups: Offsets
    ) -> NDArray[np.int64]:
        """The hits of all groups, each at its place in its group's matrix."""
        width = np.diff(b_groups)
        begin = np.concatenate([[0], np.cumsum(np.diff(a_groups) * width)])
        flat = np.zeros(int(begin[-1]), np.int64)
        hits = self.group_hits(a, a_groups, b, b_groups)
        group = np.searchsorted(a_groups, hits.left, side="right") - 1
        flat[begin[group] + (hits.left - a_groups[group]) * width[group] + hits.right - b_groups[group]] = hits.shared
        return flat

    def group_hits(self, a: MaskColumn, a_groups: Offsets, b: MaskColumn, b_groups: Offsets) -> Hits:
        """The intervals of some groups a time, joined where they overlap; pycocotools where too many do."""
        found = [Hits(*(np.zeros(0, np.int64) for _ in range(3)))]
        for first, last in _chunks(a, a_groups, b, b_groups):
            part = slice(first, last + 1)
            ours, theirs = (g[part] - g[first] for g in (a_groups, b_groups))
            i, j = int(a_groups[first]), int(b_groups[first])
            p, q = a.part(i, int(a_groups[last])), b.part(j, int(b_groups[last]))
            hits = _joined(p, ours, q, theirs)
            hits = _compared(p, ours, q, theirs) if hits is None else hits
            found.append(Hits(hits.left + i, hits.right + j, hits.shared))
        return Hits(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def group_nms(self, column: MaskColumn, groups: Offsets, threshold: float) -> NDArray[np.bool_]:
        """Greedy suppression, largest first, over the pairs whose areas and boxes allow an IoU above the threshold."""
        keep = np.ones(len(column), np.bool_)
        areas, boxes = column.areas(), column.boxes()
        rank = np.empty(len(column), np.int64)
        rank[nms_order(areas, np.repeat(np.arange(len(groups) - 1), np.diff(groups)))] = np.arange(len(column))
        total = np.concatenate([[0], np.cumsum(np.diff(groups) ** 2)])
        first, count = 0, len(groups) - 1
        while first < count:
            last = max(first + 1, int(np.searchsorted(total, total[first] + BOXES, side="right")) - 1)
            bounds = groups[first : last + 1]
            left, right = (
                _near(bounds, areas, boxes, threshold) if total[last] - total[first] <= BOXES else (None, None)
            )
            if left is None or right is None or len(left) > CANDIDATES * (bounds[-1] - bounds[0]):
                part = slice(int(bounds[0]), int(bounds[-1]))
                keep[part] = self._suppressed(column.part(part.start, part.stop), bounds - bounds[0], threshold)
            elif len(left):
                shared, one, other = self.pair_overlaps(column.take(left), column.take(right))
                drops = quotient(shared, one + other - shared) > threshold
                _drop(keep, rank, left[drops], right[drops])
            first = last
        return keep

    def _suppressed(self, column: MaskColumn, groups: Offsets, threshold: float) -> NDArray[np.bool_]:
        """`group_nms` by pycocotools: each block is compared with the kept masks, then with itself."""
        areas, matrix = column.areas(), _matrix(column, column)
        keep = np.ones(len(column), np.bool_)
        for begin, end in pairwise(groups.tolist()):
            if end - begin < 2:
                continue
            order = begin + nms_order(areas[begin:end])
            kept, at = order[:0], 0
            while at < len(order):
                block = order[at : at + min(NMS_FIRST + at, NMS_BLOCK)]
                at += len(block)
                if len(kept):
                    block = block[~self._over(matrix, areas, block, kept, threshold).any(axis=1)]
                    if not len(block):
                        continue
                own = np.triu(self._over(matrix, areas, block, block, threshold), 1)  # in row k: what k drops behind it
                alive = np.ones(len(block), np.bool_)
                for k in np.flatnonzero(own.any(axis=1)).tolist():
                    if alive[k]:
                        alive &= ~own[k]
                kept = np.concatenate([kept, block[alive]])
            keep[begin:end] = False
            keep[kept] = True
        return keep

    @staticmethod
    def _over(
        matrix: Callable[[Offsets, Offsets], NDArray[np.int64]],
        areas: Offsets,
        i: Offsets,
        j: Offsets,
        threshold: float,
    ) -> NDArray[np.bool_]:
        """`(n, m) bool`, whose IoU is above the threshold."""
        shared = matrix(i, j)
        over = np.zeros(shared.shape, np.bool_)
        row, column = np.nonzero(shared)  # few, as nearly always
        met = shared[row, column]
        over[row, column] = quotient(met, areas[i[row]] + areas[j[column]] - met) > threshold
        return over

    def union_overlaps(self, count: int, a: Part, b: Part) -> tuple[Offsets, Offsets, Offsets]:
        """Each side merged by pycocotools, group by group; by runs where groups have many masks, or too large ones."""
        masks = sum(int(np.count_nonzero(group >= 0)) for _, group in (a, b))
        if masks > MERGED * count or not _readable(a[0], b[0]):
            return _unions_by_runs(count, a, b)
        sides = [_merged(count, part) for part in (a, b)]
        left, right = (_areas(side, count) for side in sides)
        shared = np.zeros(count, np.int64)
        both = sorted(sides[0].keys() & sides[1].keys())
        share = _aligned(*([(side[k]["size"][0], side[k]["counts"]) for k in both] for side in sides))
        shared[both] = np.rint(share * left[both])
        return shared, left, right

    def tube_intersections(
        self,
        a: MaskColumn,
        a_frames: Offsets,
        a_tubes: NDArray[np.int64],
        b: MaskColumn,
        b_frames: Offsets,
        b_tubes: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """One call of pycocotools a frame, added up by tube."""
        shape = int(a_tubes.max(initial=-1)) + 1, int(b_tubes.max(initial=-1)) + 1
        flat = self.group_intersections(a, a_frames, b, b_frames)
        columns = np.repeat(np.diff(b_frames), np.diff(a_frames))  # of each of a's masks
        begin = np.repeat(b_frames[:-1], np.diff(a_frames)) - (np.cumsum(columns) - columns)
        place = np.repeat(begin, columns)
        place += np.arange(len(flat))
        tube = b_tubes[place]
        tube += np.repeat(a_tubes * shape[1], columns)
        total = np.zeros(shape[0] * shape[1], np.int64)
        for first in range(0, len(flat), SUMMED):
            part = slice(first, first + SUMMED)
            total += np.bincount(tube[part], weights=flat[part], minlength=len(total)).astype(np.int64)
        return total.reshape(shape)


def _merged(count: int, part: Part) -> dict[int, Any]:
    """The union of each group that has masks."""
    column, group = part
    masks = column.rles()
    used = np.flatnonzero(group >= 0)
    bounds = np.searchsorted(group[used], np.arange(count + 1)).tolist()
    found: dict[int, Any] = {}
    for k, (begin, end) in enumerate(pairwise(bounds)):
        if end > begin:
            own = [masks[i] for i in used[begin:end].tolist()]
            found[k] = own[0] if len(own) == 1 else coco.merge(own)
    return found


def _areas(masks: dict[int, Any], count: int) -> NDArray[np.int64]:
    """`(count,) int64`, pixels of the masks that are there; few at a time, as pycocotools can't take more."""
    result = np.zeros(count, np.int64)
    keys = list(masks)
    for first in range(0, len(keys), AREA_BLOCK):
        some = keys[first : first + AREA_BLOCK]
        result[some] = coco.area([masks[k] for k in some])
    return result


def _unions_by_runs(count: int, a: Part, b: Part) -> tuple[Offsets, Offsets, Offsets]:
    """`union_overlaps`, some groups at a time."""
    work, bounds = np.zeros(count, np.int64), []
    for column, group in (a, b):
        used = group >= 0
        work += np.bincount(group[used], column.decoded.ends.number[used], count).astype(np.int64)
        bounds.append(np.searchsorted(np.maximum.accumulate(group), np.arange(count + 1)))  # masks of no group stay
    shared, left, right = (np.zeros(count, np.int64) for _ in range(3))
    total, first = np.concatenate([[0], np.cumsum(work)]), 0
    while first < count:
        last = max(first + 1, int(np.searchsorted(total, total[first] + UNITED_RUNS, side="right")) - 1)
        some, parts = slice(first, last), []
        for (column, group), begin in zip((a, b), bounds, strict=True):
            p, q = int(begin[first]), int(begin[last])
            parts.append((column.part(p, q), np.maximum(group[p:q] - first, -1)))
        left[some], right[some] = (_union_areas(last - first, part) for part in parts)
        shared[some] = left[some] + right[some] - _union_areas(last - first, *parts)
        first = last
    return shared, left, right


def _union_areas(count: int, *parts: Part) -> NDArray[np.int64]:
    """All groups' intervals on one axis, sorted once; each adds what reaches beyond the furthest end before it."""
    reach = 1 + max((int(column.pixels.max()) for column, _ in parts if len(column)), default=0)
    gathered = [_on_axis(column, group * reach, group >= 0) for column, group in parts]
    starts, ends = (np.concatenate([part[k] for part in gathered]) for k in (0, 1))
    if not len(starts):
        return np.zeros(count, np.int64)
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    before = np.concatenate([[0], np.maximum.accumulate(ends)[:-1]])
    added: NDArray[np.int64] = np.concatenate([[0], np.cumsum(np.maximum(ends - np.maximum(starts, before), 0))])
    return np.diff(added[np.searchsorted(starts, np.arange(count + 1) * reach)])


def _aligned(a: Heighted, b: Heighted) -> NDArray[np.float64]:
    """Shared pixels of aligned masks as fractions of a's areas, some pairs per call."""
    shares = np.empty(len(a))
    for first in range(0, len(a), PAIRS_TOGETHER):
        part = slice(first, first + PAIRS_TOGETHER)
        these, those = (
            [{"size": (height, LARGEST + k), "counts": counts} for k, (height, counts) in enumerate(side[part])]
            for side in (a, b)
        )
        shares[part] = np.diagonal(coco.iou(these, those, [1] * len(those)))
    return shares


def _strings(column: MaskColumn) -> Heighted:
    heights = column.heights.tolist()
    return list(zip(heights, _Strings(column).counts(0, len(heights)), strict=True)) if heights else []


def _near(
    groups: Offsets, areas: Offsets, boxes: NDArray[np.int64], threshold: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of masks of one group whose IoU may be above a threshold, by their areas and boxes; each pair once."""
    sizes = np.repeat(np.diff(groups), np.diff(groups))
    left = np.repeat(np.arange(groups[0], groups[-1]), sizes)
    right = (
        np.arange(len(left)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(groups[:-1], np.diff(groups) ** 2)
    )
    ahead = left < right
    left, right = left[ahead], right[ahead]
    corners = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    inside = np.minimum(corners[1][left], corners[1][right]) - np.maximum(corners[0][left], corners[0][right])
    shared = np.minimum(np.maximum(inside, 0).prod(axis=1), np.minimum(areas[left], areas[right]))
    near = shared >= (threshold - 1e-9) * (areas[left] + areas[right] - shared)
    return left[near], right[near]


def _drop(keep: NDArray[np.bool_], rank: Offsets, left: NDArray[np.int64], right: NDArray[np.int64]) -> None:
    """Go through pairs by the rank of their first mask; one that is kept drops the other."""
    first, second = np.where(rank[left] < rank[right], (left, right), (right, left))
    order = np.argsort(rank[first], kind="stable")
    for one, other in zip(first[order].tolist(), second[order].tolist(), strict=True):
        if keep[one]:
            keep[other] = False


def _chunks(a: MaskColumn, a_groups: Offsets, b: MaskColumn, b_groups: Offsets) -> Iterator[tuple[int, int]]:
    """Bounds of groups whose intervals are joined at a time."""
    work = a.decoded.intervals[2][a_groups] + b.decoded.intervals[2][b_groups]
    first, count = 0, len(a_groups) - 1
    while first < count:
        last = max(first + 1, int(np.searchsorted(work, work[first] + JOINED, side="right")) - 1)
        yield first, last
        first = last


def _joined(a: MaskColumn, a_groups: Offsets, b: MaskColumn, b_groups: Offsets) -> Hits | None:
    """Pairs of masks of one group that share a pixel, from the pairs of intervals that overlap.

    Returns:
        The pairs, by a and then by b; `None` where so many intervals might overlap that this would be slow.
    """
    reach = 1 + max((int(column.pixels.max()) for column in (a, b) if len(column)), default=0)
    left_group, right_group = (np.repeat(np.arange(len(g) - 1), np.diff(g)) for g in (a_groups, b_groups))
    a_starts, a_ends, a_mask = _on_axis(a, left_group * reach)
    b_starts, b_ends, b_mask = _on_axis(b, right_group * reach)
    order = np.argsort(b_starts, kind="stable")
    b_starts, b_ends, b_mask = b_starts[order], b_ends[order], b_mask[order]
    # Of b's intervals in order of their starts, those from `low` to `high` may overlap an interval of a.
    low = np.searchsorted(np.maximum.accumulate(b_ends), a_starts, side="right")
    count = np.maximum(np.searchsorted(b_starts, a_ends, side="left") - low, 0)
    total = int(count.sum())
    if total > CANDIDATES * (len(a_starts) + len(b_starts)):
        return None
    one = np.repeat(np.arange(len(a_starts)), count)
    other = np.arange(total) + np.repeat(low - (np.cumsum(count) - count), count)
    shared = np.minimum(a_ends[one], b_ends[other]) - np.maximum(a_starts[one], b_starts[other])
    met = shared > 0
    width = max(int(np.diff(b_groups).max(initial=0)), 1)
    i, j = a_mask[one[met]], b_mask[other[met]]
    cell = i * width + j - b_groups[left_group[i]]
    if len(a) * width <= CELLS:
        sums = np.bincount(cell, weights=shared[met], minlength=1)
        cells = np.flatnonzero(sums)
        pixels = sums[cells]
    else:
        cells, place = np.unique(cell, return_inverse=True)
        pixels = np.bincount(place, weights=shared[met], minlength=len(cells))
    i = cells // width
    return Hits(i, cells % width + b_groups[left_group[i]], np.asarray(pixels, np.float64).astype(np.int64))


def _compared(a: MaskColumn, a_groups: Offsets, b: MaskColumn, b_groups: Offsets) -> Hits:
    """Hits by pycocotools: the non-zero cells of each group's matrix."""
    found, shares = [np.zeros((2, 0), np.int64)], [np.zeros(0)]
    for i, j, share in _matrices(a, a_groups, b, b_groups):
        place = np.stack(np.nonzero(share))
        shares.append(share[place[0], place[1]])
        found.append(place + np.array([[i], [j]]))
    left, right = np.concatenate(found, axis=1)
    shared = np.concatenate(shares) * a.areas()[left]
    return Hits(left, right, np.rint(shared, out=shared).astype(np.int64))


def _matrices(
    a: MaskColumn, a_groups: Offsets, b: MaskColumn, b_groups: Offsets
) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """Of each group with masks on both sides its first masks and, `(n, m)`, what every pair shares as a part of a's."""
    both = np.flatnonzero((np.diff(a_groups) > 0) & (np.diff(b_groups) > 0))
    groups = np.stack([a_groups[both], a_groups[both + 1], b_groups[both], b_groups[both + 1]], axis=1).tolist()
    if not _readable(a, b):
        matrix, areas = _matrix(a, b), np.maximum(a.areas(), 1)[:, None]
        for a0, a1, b0, b1 in groups:
            yield a0, b0, matrix(np.arange(a0, a1), np.arange(b0, b1)) / areas[a0:a1]
        return
    left, right = _Strings(a), _Strings(b)
    for some in _together(groups):
        these = [rle for k, (a0, a1, _, _) in enumerate(some) for rle in left.rles(a0, a1, k)]
        those = [rle for k, (_, _, b0, b1) in enumerate(some) for rle in right.rles(b0, b1, k)]
        # pycocotools divides by a's area where b is called crowd, so the product with it is the intersection.
        share = coco.iou(these, those, np.ones(len(those), np.uint8))
        i = j = 0
        for a0, a1, b0, b1 in some:
            yield a0, b0, share[i : i + a1 - a0, j : j + b1 - b0]
            i, j = i + a1 - a0, j + b1 - b0


def _together(groups: list[list[int]]) -> Iterator[list[list[int]]]:
    """Groups, as their bounds on both sides, that may share a call."""
    some: list[list[int]] = []
    n = m = 0
    for group in groups:
        a0, a1, b0, b1 = group
        n, m = n + a1 - a0, m + b1 - b0
        if some and n * m > TOGETHER:
            yield some
            some, n, m = [], a1 - a0, b1 - b0
        some.append(group)
    if some:
        yield some


class _Strings:
    """A column's masks as pycocotools takes them, made where they are needed: they last for one call."""

    def __init__(self, column: MaskColumn) -> None:
        plain = column.plain()
        self.data, self.offsets, self.heights = plain.data, plain.offsets.tolist(), column.heights.tolist()

    def rles(self, first: int, last: int, group: int) -> list[dict[str, Any]]:
        """The masks from `first` to `last`, of one size, that are compared with those of the same number of a group."""
        size = self.heights[first], LARGEST + group
        return [{"size": size, "counts": counts} for counts in self.counts(first, last)]

    def counts(self, first: int, last: int) -> list[bytes]:
        """Their strings."""
        cuts = self.offsets[first : last + 1]
        begin = cuts[0]
        text = self.data[begin : cuts[-1]].tobytes()
        return [text[p - begin : q - begin] for p, q in pairwise(cuts)]


def _readable(*columns: MaskColumn) -> bool:
    return all(int(column.pixels.max(initial=0)) <= LARGEST for column in columns)


def _matrix(a: MaskColumn, b: MaskColumn) -> Callable[[Offsets, Offsets], NDArray[np.int64]]:
    """From positions `(n,)` in a and `(m,)` in b to the pixels that they share, `(n, m) int64`."""
    if not _readable(a, b):
        return lambda i, j: _by_runs(a.take(np.repeat(i, len(j))), b.take(np.tile(j, len(i)))).reshape(len(i), len(j))
    areas, left = a.areas(), a.rles()
    right = left if b is a else b.rles()

    def matrix(i: Offsets, j: Offsets) -> NDArray[np.int64]:
        share = coco.iou([left[k] for k in i.tolist()], [right[k] for k in j.tolist()], [1] * len(j))
        share = np.asarray(share, np.float64).reshape(len(i), len(j)) * areas[i][:, None]
        return np.rint(share, out=share).astype(np.int64)

    return matrix


def _by_runs(a: MaskColumn, b: MaskColumn) -> NDArray[np.int64]:
    """`(n,) int64` of aligned masks: the runs of all b side by side on one axis, looked up at the ends of a's runs."""
    base = np.concatenate([[0], np.cumsum(a.pixels)])[:-1]
    a_starts, a_ends, _ = _on_axis(a, base)
    b_starts, b_ends, _ = _on_axis(b, base)
    if not len(b_starts):
        return np.zeros(len(a), np.int64)
    sums = np.concatenate([[0], np.cumsum(b_ends - b_starts)])

    def covered(position: NDArray[np.int64]) -> NDArray[np.int64]:
        """Foreground pixels of b before each position."""
        k = np.searchsorted(b_starts, position, side="right") - 1
        at = np.maximum(k, 0)
        inside = np.minimum(position - b_starts[at], b_ends[at] - b_starts[at])
        return np.where(k < 0, 0, sums[at] + inside)

    shared: NDArray[np.int64] = np.concatenate([[0], np.cumsum(covered(a_ends) - covered(a_starts))])
    return np.diff(shared[a.decoded.intervals[2]])


def _on_axis(
    column: MaskColumn, base: NDArray[np.int64], wanted: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The wanted masks' foreground intervals, moved by each mask's base, and the mask each belongs to."""
    starts, ends, offsets = column.decoded.intervals
    row = np.repeat(np.arange(len(column)), np.diff(offsets))
    if wanted is not None and not wanted.all():
        some = wanted[row]
        starts, ends, row = starts[some], ends[some], row[some]
    return starts + base[row], ends + base[row], row


def make_engine(threads: int) -> Engine:
    """The engine; threads would give pycocotools nothing."""
    del threads
    return PycocotoolsEngine()
