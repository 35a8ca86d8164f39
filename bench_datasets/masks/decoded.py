"""Masks once they have been read: run ends in one array, and what is derived from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bench_datasets.masks.varint import Runs


@dataclass
class Decoded:
    """What reading a column gave; the same from every engine, wherever in `ends` it puts the masks.

    Attributes:
        status: `(n,) int8`, a `Status` a mask.
        ends: `int32`, cumulative ends of runs, each mask's counted from its first pixel; background first,
            zero-length runs merged away (a first one may be 0).
        begin: `(n,) int64`, where each mask's ends begin.
        count: `(n,) int64`, how many there are; 0 for a mask that is not `Status.OK`.
        irregular: `(n,) bool`, sound masks whose string had zero-length runs (compiled code must not see it).
    """

    status: NDArray[np.int8]
    ends: NDArray[np.int32]
    begin: NDArray[np.int64]
    count: NDArray[np.int64]
    irregular: NDArray[np.bool_]

    @classmethod
    def from_runs(cls, runs: Runs, status: NDArray[np.int8], irregular: NDArray[np.bool_]) -> Decoded:
        """The same from run lengths."""
        total = np.cumsum(runs.lengths)
        before = np.concatenate([[0], total])[runs.offsets[:-1]]
        counts = np.diff(runs.offsets)
        ends = (total - np.repeat(before, counts)).astype(np.int32)
        return cls(status, ends, runs.offsets[:-1], counts, irregular)

    def take(self, index: NDArray[np.int64]) -> Decoded:
        """The masks at `index`, over the same ends."""
        new = Decoded(self.status[index], self.ends, self.begin[index], self.count[index], self.irregular[index])
        for name in ("areas", "corners"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name][index]
        return new

    @cached_property
    def _flat(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ends without gaps, and `(n + 1,)` offsets."""
        offsets = np.concatenate([[0], np.cumsum(self.count)])
        if np.array_equal(offsets[:-1], self.begin) and offsets[-1] == len(self.ends):
            return self.ends.astype(np.int64), offsets
        place = np.arange(int(offsets[-1])) + np.repeat(self.begin - offsets[:-1], self.count)
        return self.ends[place].astype(np.int64), offsets

    @cached_property
    def runs(self) -> Runs:
        """Run lengths, zero-length ones merged."""
        ends, offsets = self._flat
        lengths = np.diff(ends, prepend=0)
        first = offsets[:-1][self.count > 0]
        lengths[first] = ends[first]
        return Runs(lengths, offsets)

    @cached_property
    def intervals(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Foreground intervals: starts, ends (exclusive), offsets `(n + 1,)`; column-major pixels."""
        ends, offsets = self._flat
        odd = ((np.arange(len(ends)) - np.repeat(offsets[:-1], self.count)) & 1) == 1
        last = np.flatnonzero(odd)
        return ends[last - 1], ends[last], np.concatenate([[0], np.cumsum(self.count >> 1)])

    @cached_property
    def areas(self) -> NDArray[np.int64]:
        """`(n,) int64`, foreground pixels."""
        starts, ends, offsets = self.intervals
        total: NDArray[np.int64] = np.concatenate([[0], np.cumsum(ends - starts)])
        return np.diff(total[offsets])
