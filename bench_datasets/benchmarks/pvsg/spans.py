"""Spans: the frames in which a relation holds, as ranges with both ends in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FARTHEST = 2**31
"""Frames are cut to within this of 0: beyond it there are no masks."""


class Spans(NamedTuple):
    """Sets of frames of n things, each as ranges that rise and do not touch.

    Attributes:
        first: `(s,) int64`, the first frame of each range.
        stop: `(s,) int64`, the frame behind its last one.
        offsets: `(n + 1,) int64`, where each thing's ranges begin.
    """

    first: NDArray[np.int64]
    stop: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def read(cls, lists: Sequence[Sequence[Sequence[int]]], frames: int | None = None) -> Spans:
        """Parse lists of `[first, last]` into sets of frames; a frame counts once.

        Args:
            lists: n lists; a span that ends before it begins holds no frame.
            frames: cut the spans to frames from 0 to `frames` - 1.

        Example:
            >>> Spans.read([[[3, 3]], [[5, 8], [0, 4]], []]).sizes()
            array([1, 9, 0])
        """
        low, high = (-FARTHEST, FARTHEST) if frames is None else (0, frames)
        first: list[int] = []
        stop: list[int] = []
        offsets = [0]
        for spans in lists:
            begin = len(first)
            for a, b in sorted((max(int(a), low), min(int(b) + 1, high)) for a, b in spans):
                if b <= a:
                    continue
                if len(first) > begin and a <= stop[-1]:
                    stop[-1] = max(stop[-1], b)
                else:
                    first.append(a)
                    stop.append(b)
            offsets.append(len(first))
        return cls(np.array(first, np.int64), np.array(stop, np.int64), np.array(offsets, np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def ranges(self, i: int) -> list[tuple[int, int]]:
        """One thing's ranges, first frame and the one behind the last."""
        part = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
        return list(zip(self.first[part].tolist(), self.stop[part].tolist(), strict=True))

    def mask(self, i: int, frames: int) -> NDArray[np.bool_]:
        """`(frames,) bool`, whether each frame is in one thing's set."""
        result = np.zeros(frames, np.bool_)
        for first, stop in self.ranges(i):
            result[max(first, 0) : max(stop, 0)] = True
        return result

    def sizes(self) -> NDArray[np.int64]:
        """`(n,) int64`, frames in each set."""
        return self._sums(self.stop - self.first)

    def take(self, index: NDArray[np.int64]) -> Spans:
        """The chosen things' sets."""
        counts = np.diff(self.offsets)[index]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        place = np.arange(int(offsets[-1])) + np.repeat(self.offsets[:-1][index] - offsets[:-1], counts)
        return Spans(self.first[place], self.stop[place], offsets)

    def sums(
        self, cumulative: NDArray[np.int64], row: NDArray[np.int64], within: Sequence[tuple[int, int]] | None = None
    ) -> NDArray[np.int64]:
        """Sum a row of numbers over each set, with two look-ups per span.

        Args:
            cumulative: `(r, f + 1) int`, sums over the frames before each.
            row: `(n,) int64`, the row that each thing is about.
            within: ranges that do not touch; only frames in these count too. `None` for all f frames.

        Returns:
            `(n,) int64`.

        Example:
            >>> Spans.read([[[1, 2]], [[0, 0], [3, 9]]]).sums(np.array([[0, 5, 6, 8, 8]]), np.array([0, 0]))
            array([3, 5])
        """
        of = np.repeat(row, np.diff(self.offsets))
        total = np.zeros(len(self.first), np.int64)
        for first, stop in [(0, cumulative.shape[1] - 1)] if within is None else within:
            total += cumulative[of, np.clip(self.stop, first, stop)] - cumulative[of, np.clip(self.first, first, stop)]
        return self._sums(total)

    def _sums(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        total = np.concatenate([[0], np.cumsum(values)])
        return np.asarray(total[self.offsets[1:]] - total[self.offsets[:-1]])


def cumulative(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """`(r, f) int` to `(r, f + 1) int64`: sums over the frames before each, and over all."""
    result = np.zeros((values.shape[0], values.shape[1] + 1), np.int64)
    np.cumsum(values, axis=1, out=result[:, 1:])
    return result
