"""Decoded masks: their runs, and values derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_datasets.masks.rle import Runs, ShortRuns
from bench_datasets.masks.status import Status


class Ends(NamedTuple):
    """Cumulative ends of runs, as the compiled loops read them.

    Attributes:
        ends: `int32`, each mask's counted from its first pixel; background first.
        begin: `(n,) int64`, where each mask's ends begin.
        number: `(n,) int64`, how many there are.
    """

    ends: NDArray[np.int32]
    begin: NDArray[np.int64]
    number: NDArray[np.int64]


class Measured(NamedTuple):
    """Values that an engine measured while it decoded the masks.

    Attributes:
        areas: `(n,) int64`, foreground pixels.
        corners: `(n, 4) int32`, x0, y0, x1, y1 inclusive; x1 < x0 for an empty mask.
    """

    areas: NDArray[np.int64]
    corners: NDArray[np.int32]


@dataclass
class Decoded:
    """The decoded masks of a column, as run lengths or as run ends; each is derived from the other.

    Zero-length runs are merged away (a first one may be 0); a mask that is not `Status.OK` has no runs.

    Attributes:
        status: `(n,) int8`, a `Status` a mask.
        irregular: `(n,) bool`, sound masks whose string other compiled code must not see: those with zero-length runs
            or a varint of seven characters.
        given_runs: the runs, where the engine reads runs.
        given_ends: the ends, where it reads ends.
        given_areas: `(n,) int64`, foreground pixels, where the engine found nothing but them on the way.
        measured: areas and corners, where it found them on the way.
    """

    status: NDArray[np.int8]
    irregular: NDArray[np.bool_]
    given_runs: Runs | ShortRuns | None = None
    given_ends: Ends | None = None
    given_areas: NDArray[np.int64] | None = None
    measured: Measured | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the decoded runs, without derived values."""
        given = (self.given_runs, self.given_ends, self.measured)
        held = (self.status, self.irregular, self.given_areas, *(part for parts in given for part in parts or ()))
        return sum(part.nbytes for part in held if part is not None)

    def spread(self, there: NDArray[np.bool_]) -> Decoded:
        """The masks at the places where `there` is true, null ones at the others."""
        place = np.maximum(np.cumsum(there) - 1, 0)
        if not len(self.status):
            return Decoded(
                np.full(len(there), Status.NULL, np.int8),
                np.zeros(len(there), np.bool_),
                given_runs=Runs(np.zeros(0, np.int64), np.zeros(len(there) + 1, np.int64)),
            )
        found = self.take(place)
        found.status[~there] = Status.NULL
        for values in (found.irregular, found.ends.number, found.given_areas, *(found.measured or ())):
            if values is not None:
                values[~there] = 0
        if found.measured is not None:
            found.measured.corners[~there, 2:] = -1
        return found

    @classmethod
    def joined(cls, parts: Sequence[Decoded]) -> Decoded:
        """The masks of one or several, one behind the other."""
        if len(parts) == 1:
            return parts[0]
        ends, begin, start = [], [], 0
        for part in parts:
            values, own, number = part.ends
            first, last = (int(own[0]), int(own[-1] + number[-1])) if len(own) else (0, 0)
            ends.append(values[first:last])
            begin.append(own - first + start)
            start += last - first
        number = np.concatenate([part.ends.number for part in parts])
        measured = [part.measured for part in parts if part.measured is not None]
        areas = [part.given_areas for part in parts if part.given_areas is not None]
        return cls(
            np.concatenate([part.status for part in parts]),
            np.concatenate([part.irregular for part in parts]),
            given_ends=Ends(np.concatenate(ends), np.concatenate(begin), number),
            given_areas=np.concatenate(areas) if len(areas) == len(parts) else None,
            measured=Measured(
                np.concatenate([own.areas for own in measured]), np.concatenate([own.corners for own in measured])
            )
            if len(measured) == len(parts)
            else None,
        )

    def part(self, start: int, stop: int) -> Decoded:
        """The masks from `start` to `stop`, over the same ends."""
        return self if stop - start == len(self.status) else self.take(np.arange(start, stop))

    def take(self, index: NDArray[np.int64]) -> Decoded:
        """The masks at `index`, over the same ends."""
        measured = None if self.measured is None else Measured(self.measured.areas[index], self.measured.corners[index])
        areas = None if self.given_areas is None else self.given_areas[index]
        ends, begin, count = self.ends
        chosen = Ends(ends, begin[index], count[index])
        return Decoded(
            self.status[index], self.irregular[index], given_ends=chosen, given_areas=areas, measured=measured
        )

    @cached_property
    def ends(self) -> Ends:
        """Ends of runs."""
        if self.given_ends is not None:
            return self.given_ends
        lengths, offsets = self.given_runs or self.runs
        total = np.cumsum(lengths.astype(np.int64, copy=False))
        count = np.diff(offsets)
        before = np.concatenate([[0], total])[offsets[:-1]]
        total -= np.repeat(before, count)
        return Ends(total.astype(np.int32), np.ascontiguousarray(offsets[:-1]), count)

    @cached_property
    def _flat_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ends without gaps between masks, and `(n + 1,)` offsets."""
        ends, begin, count = self.ends
        offsets = np.concatenate([[0], np.cumsum(count)])
        if self.given_ends is None:
            return ends.astype(np.int64), offsets
        place = np.arange(int(offsets[-1])) + np.repeat(begin - offsets[:-1], count)
        return ends[place].astype(np.int64), offsets

    @cached_property
    def runs(self) -> Runs:
        """Run lengths."""
        if self.given_runs is not None:
            return Runs(self.given_runs.lengths.astype(np.int64, copy=False), self.given_runs.offsets)
        ends, offsets = self._flat_ends
        lengths = np.diff(ends, prepend=0)
        first = offsets[:-1][np.diff(offsets) > 0]
        lengths[first] = ends[first]
        return Runs(lengths, offsets)

    @cached_property
    def intervals(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Foreground intervals: starts, ends (exclusive), offsets `(n + 1,)`; column-major pixels."""
        ends, offsets = self._flat_ends
        count = np.diff(offsets)
        foreground = np.repeat(offsets[:-1] & 1 == 1, count)  # of a mask that begins at an odd place: the even ones
        np.logical_not(foreground[1::2], out=foreground[1::2])
        last = np.flatnonzero(foreground)
        return ends[last - 1], ends[last], np.concatenate([[0], np.cumsum(count >> 1)])

    @cached_property
    def areas(self) -> NDArray[np.int64]:
        """`(n,) int64`, foreground pixels."""
        if self.measured is not None:
            return self.measured.areas
        if self.given_areas is not None:
            return self.given_areas
        lengths, offsets = self.runs
        signed = lengths.copy()
        np.negative(lengths[1::2], out=signed[1::2])
        areas = np.zeros(len(self.status), np.int64)
        some = np.flatnonzero(np.diff(offsets))
        if len(some):
            first = offsets[:-1][some]
            difference = np.add.reduceat(signed, first) * (1 - 2 * (first & 1))  # background less foreground
            areas[some] = (np.add.reduceat(lengths, first) - difference) >> 1
        return areas

    def corners(self, heights: NDArray[np.int64]) -> NDArray[np.int32]:
        """`(n, 4) int32`: x0, y0, x1, y1 inclusive; x1 < x0 for an empty mask.

        Args:
            heights: `(n,) int64`, of the masks.
        """
        if self.measured is not None:
            return self.measured.corners
        starts, ends, offsets = self.intervals
        result = np.tile(np.array([0, 0, -1, -1], np.int32), (len(self.status), 1))
        some = np.flatnonzero(np.diff(offsets))
        if len(some):
            first = offsets[:-1][some]
            # One number divides several times as fast as many do.
            height = heights[0] if (heights == heights[0]).all() else np.repeat(heights, np.diff(offsets))
            left, right = starts // height, (ends - 1) // height
            over = left != right  # an interval that goes on in the next column touches the bottom and the top
            top = np.minimum.reduceat(np.where(over, 0, starts - left * height), first)
            bottom = np.maximum.reduceat(np.where(over, height - 1, ends - 1 - right * height), first)
            result[some] = np.stack([left[first], top, right[offsets[1:][some] - 1], bottom], axis=1)
        return result
