"""Arithmetic on sorted intervals of one axis, on which many masks lie one behind the other.

Each mask has a stretch of the axis of its own, so that one sort serves them all. Of two lists of disjoint intervals
it is enough to sort the starts and the ends, each by themselves: where the j-th start lies before the (j - 1)-th end,
two intervals are open, and where it lies behind the (j - 1)-th end, none was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_datasets.masks.column import MaskColumn

Ints = NDArray[np.int64]

PART = 1 << 19
"""Intervals of one large mask that are worked on at a time, so that memory stays bounded."""


class Intervals(NamedTuple):
    """Half-open intervals, sorted; disjoint unless a function says otherwise, though they may touch.

    Attributes:
        starts: `(n,) int64`.
        ends: `(n,) int64`, exclusive, above the starts.
    """

    starts: Ints
    ends: Ints


class Axis:
    """Where on one axis the pixels of n images lie, column by column.

    Attributes:
        heights: `(n,) int64`, pixels.
        widths: `(n,) int64`, pixels.
        base: `(n,) int64`, where each image's first pixel lies.
        bounds: `(n + 1,) int64`, the same and the end of the last image.
    """

    def __init__(self, heights: Ints, widths: Ints, gaps: Ints) -> None:
        """Lay out images of these sizes, each behind a gap `(n,) int64` into which its pixels may be shifted."""
        self.heights, self.widths = heights, widths
        ends: Ints = np.cumsum(heights * widths + gaps)
        self.base: Ints = ends - heights * widths
        self.bounds: Ints = np.append(self.base, ends[-1:])

    def lay(self, column: MaskColumn, row: Ints | None = None) -> Intervals:
        """The masks' foreground; of image i for mask i, or of image row[i] (they may overlap then, and are sorted)."""
        if len(column) == 1 and row is None:  # a large mask is alone: make no copies that the column keeps
            values, begin, number = column.decoded.ends
            own = values[int(begin[0]) : int(begin[0] + number[0])].astype(np.int64)
            own += self.base[0]
            return Intervals(np.ascontiguousarray(own[:-1:2]), np.ascontiguousarray(own[1::2]))
        starts, ends, offsets = column.decoded.intervals
        base = self.base if row is None else self.base[row]
        shift = np.repeat(base, np.diff(offsets))
        return Intervals(starts + shift, ends + shift)

    def owners(self, a: Intervals) -> Ints:
        """The image on which each interval lies, `(n,) int64`."""
        return np.repeat(np.arange(len(self.base)), np.diff(np.searchsorted(a.starts, self.bounds)))

    def sizes(self, a: Intervals) -> Ints:
        """Pixels of the intervals on each image, `(n,) int64`."""
        total = np.concatenate([[0], np.cumsum(a.ends - a.starts)])
        return np.asarray(np.diff(total[np.searchsorted(a.starts, self.bounds)]))

    def columns(self, a: Intervals) -> tuple[Intervals, Ints]:
        """The intervals cut where a column of the image ends, and the image of each."""
        row = self.owners(a)
        base, height = self.base[row], self.heights[row]
        first, last = (a.starts - base) // height, (a.ends - 1 - base) // height
        count = last - first + 1
        if (count == 1).all():
            return a, row
        place = np.repeat(np.arange(len(row)), count)
        number = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
        top = base[place] + (first[place] + number) * height[place]
        starts, ends = np.maximum(a.starts[place], top), np.minimum(a.ends[place], top + height[place])
        return Intervals(starts, ends), row[place]


def tidy(starts: Ints, ends: Ints) -> Intervals:
    """The intervals that are not empty."""
    some = starts < ends
    return Intervals(starts, ends) if some.all() else Intervals(starts[some], ends[some])


def within(a: Intervals, first: int, last: int) -> Intervals:
    """The part of the intervals that lies from position `first` to `last` (exclusive).

    Example:
        >>> part = within(Intervals(np.array([0, 6]), np.array([4, 9])), 2, 7)
        >>> part.starts, part.ends
        (array([2, 6]), array([4, 7]))
    """
    low, high = np.searchsorted(a.ends, first, side="right"), np.searchsorted(a.starts, last)
    return Intervals(np.maximum(a.starts[low:high], first), np.minimum(a.ends[low:high], last))


def spans(first: int, last: int, count: Callable[[int, int], int]) -> Iterator[tuple[int, int]]:
    """Cut the positions from `first` to `last` into spans, in order, each with at most `PART` intervals.

    Args:
        first: the first position.
        last: the last position, exclusive.
        count: returns how many intervals the work on a span needs.

    Example:
        >>> list(spans(0, 8, lambda first, last: PART * (last - first) // 4))
        [(0, 4), (4, 8)]
    """
    left = [(first, last)]
    while left:
        first, last = left.pop()
        if last - first < 2 or count(first, last) <= PART:
            yield first, last
        else:
            middle = (first + last) // 2
            left += [(middle, last), (first, middle)]


def overlaps(a: Intervals, b: Intervals, axis: Axis) -> Ints:
    """Pixels that lie in both lists, for each image, `(n,) int64`."""
    if len(a.starts) + len(b.starts) <= PART:
        return axis.sizes(intersect(a, b))

    def count(first: int, last: int) -> int:
        ends = ((np.searchsorted(x.ends, first), np.searchsorted(x.starts, last)) for x in (a, b))
        return int(sum(high - low for low, high in ends))

    total = np.zeros(len(axis.base), np.int64)
    for span in spans(int(axis.bounds[0]), int(axis.bounds[-1]), count):
        total += axis.sizes(intersect(within(a, *span), within(b, *span)))
    return total


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """Intersection of two lists of intervals.

    Example:
        >>> both = intersect(Intervals(np.array([0, 6]), np.array([4, 9])), Intervals(np.array([3]), np.array([8])))
        >>> both.starts, both.ends
        (array([3, 6]), array([4, 8]))
    """
    starts, ends = _sorted(a.starts, b.starts), _sorted(a.ends, b.ends)
    return tidy(starts[1:], ends[:-1])


def join(*lists: Intervals, touching: bool = False) -> Intervals:
    """Union of intervals, which may overlap and be unsorted.

    Args:
        lists: of intervals.
        touching: whether intervals that only touch become one.

    Example:
        >>> either = join(Intervals(np.array([0, 6]), np.array([4, 8])), Intervals(np.array([3, 8]), np.array([5, 9])))
        >>> either.starts, either.ends
        (array([0, 6, 8]), array([5, 8, 9]))
    """
    starts, ends = _sorted(*(part.starts for part in lists)), _sorted(*(part.ends for part in lists))
    if not len(starts):
        return Intervals(starts, ends)
    apart = starts[1:] > ends[:-1] if touching else starts[1:] >= ends[:-1]
    return Intervals(starts[np.concatenate([[True], apart])], ends[np.concatenate([apart, [True]])])


def differ(a: Intervals, b: Intervals) -> Intervals:
    """Intervals in one of the two lists and not in the other.

    Example:
        >>> one = differ(Intervals(np.array([0, 6]), np.array([4, 9])), Intervals(np.array([3]), np.array([9])))
        >>> one.starts, one.ends
        (array([0, 4]), array([3, 6]))
    """
    bounds = _sorted(a.starts, a.ends, b.starts, b.ends)
    return tidy(bounds[::2], bounds[1::2])


def _sorted(*parts: Ints) -> Ints:
    """Merge sorted lists with a stable sort."""
    whole: Ints = np.concatenate(parts)
    whole.sort(kind="stable")
    return whole
