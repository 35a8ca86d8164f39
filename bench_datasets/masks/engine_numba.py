"""The fast engine: each mask read once by compiled loops, on as many threads as the caller allows."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bench_datasets.masks.column import MaskColumn
from bench_datasets.masks.decoded import Decoded, Ends, Measured
from bench_datasets.masks.engine import Engine, Hits, Offsets, Part, nms_order

_log = logging.getLogger(__name__)
_lock = threading.Lock()

TASKS_A_THREAD = 4
"""Parts that work is cut into for each thread, so that an uneven one does not keep the others waiting."""


@contextmanager
def _announced() -> Iterator[None]:
    """Say what takes so long, if the kernels are not on disk yet."""

    def say() -> None:
        text = "compiling the mask kernels (once; about half a minute, then kept on disk)"
        if sys.stderr is not None and sys.stderr.isatty():
            print(text, file=sys.stderr, flush=True)
        else:
            _log.info(text)

    timer = threading.Timer(1.5, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


with _announced():
    from bench_datasets.masks import kernels


class NumbaEngine:
    """See `Engine`; holds no state but the number of threads."""

    name = "numba"

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def decode(self, column: MaskColumn) -> Decoded:
        """Read, validate and measure in one pass over the bytes."""
        n = len(column)
        offsets, heights = _ints(column.offsets), _ints(column.heights)
        pixels = column.readable()
        ends = np.empty(int(offsets[-1] - offsets[0]) + 1, np.int32)
        count, area = np.zeros(n, np.int64), np.zeros(n, np.int64)
        status, irregular = np.zeros(n, np.int8), np.zeros(n, np.bool_)
        corners = np.zeros((n, 4), np.int32)

        def work(first: int, last: int) -> None:
            kernels.decode(
                column.data, offsets, pixels, heights, first, last, ends, count, status, irregular, area, corners
            )

        self._share(n, np.diff(offsets), work)
        column.blame(status)
        found = Ends(ends, offsets[:-1] - offsets[0], count)
        return Decoded(status, irregular, given_ends=found, measured=Measured(area, corners))

    def words(self, column: MaskColumn, begin: Offsets) -> NDArray[np.uint32]:
        """Straight from the ends."""
        masks, place = column.decoded.ends, _ints(begin)
        heights, widths = _ints(column.heights), _ints(column.widths)
        words = np.empty(int(masks.number.sum()) + 3 * len(column), np.uint32)

        def work(first: int, last: int) -> None:
            kernels.words(*masks, heights, widths, place, first, last, words)

        self._share(len(column), masks.number, work)
        return words.astype("<u4", copy=False)

    def pair_overlaps(self, a: MaskColumn, b: MaskColumn) -> tuple[Offsets, Offsets, Offsets]:
        """Masks that nobody has read yet are read, measured and intersected in one go, pair by pair."""
        shared, of_a, of_b = (np.zeros(len(a), np.int64) for _ in range(3))
        if "decoded" in a.__dict__ or "decoded" in b.__dict__:
            left, right = a.validate().decoded, b.validate().decoded

            def meet(first: int, last: int) -> None:
                kernels.aligned(*left.ends, *right.ends, first, last, shared)

            self._share(len(a), left.ends.number + right.ends.number, meet)
            return shared, left.areas, right.areas
        status = np.zeros(len(a), np.int8)
        a_offsets, b_offsets, pixels = _ints(a.offsets), _ints(b.offsets), np.minimum(a.readable(), b.readable())

        def work(first: int, last: int) -> None:
            kernels.pairs(a.data, a_offsets, b.data, b_offsets, pixels, first, last, shared, of_a, of_b, status)

        self._share(len(a), np.diff(a_offsets) + np.diff(b_offsets), work)
        if status.any():
            a.validate()
            b.validate()
        return shared, of_a, of_b

    def group_intersections(
        self, a: MaskColumn, a_groups: Offsets, b: MaskColumn, b_groups: Offsets
    ) -> NDArray[np.int64]:
        """Scatter the hits into zero-filled matrices."""
        width = np.diff(b_groups)
        group = np.repeat(np.arange(len(width)), np.diff(a_groups))
        place = np.concatenate([[0], np.cumsum(width[group])])
        out = np.zeros(int(place[-1]), np.int64)
        hits = self.group_hits(a, a_groups, b, b_groups)
        out[place[hits.left] + hits.right - b_groups[group[hits.left]]] = hits.shared
        return out

    def group_hits(self, a: MaskColumn, a_groups: Offsets, b: MaskColumn, b_groups: Offsets) -> Hits:
        """Boxes first, then the runs of the pairs whose boxes meet."""
        width = np.diff(b_groups)
        group = np.repeat(np.arange(len(width)), np.diff(a_groups))
        left, right, a_box, b_box = a.decoded.ends, b.decoded.ends, _corners(a), _corners(b)
        parts: dict[int, NDArray[np.int64]] = {}

        def work(first: int, last: int) -> None:
            found, number = kernels.hits(*left, a_box, *right, b_box, group, b_groups, first, last)
            parts[first] = found[:, :number]

        self._share(len(a), left.number * width[group], work)
        found = [parts[first] for first in sorted(parts)]
        return Hits(*(found[0] if len(found) == 1 else np.concatenate(found, axis=1)))

    def group_nms(self, column: MaskColumn, groups: Offsets, threshold: float) -> NDArray[np.bool_]:
        """A mask meets only kept ones, and only where the areas allow an IoU above the threshold."""
        keep = np.zeros(len(column), np.bool_)
        masks, areas, box = column.decoded.ends, column.areas(), _corners(column)
        group = np.repeat(np.arange(len(groups) - 1), np.diff(groups))
        order = nms_order(areas, group)

        def work(first: int, last: int) -> None:
            kernels.suppress(*masks, box, areas, order, groups, threshold, first, last, keep)

        self._share(len(groups) - 1, np.diff(groups) ** 2, work)
        return keep

    def union_overlaps(self, count: int, a: Part, b: Part) -> tuple[Offsets, Offsets, Offsets]:
        """Intervals merged two masks at a time."""
        left, a_groups = _grouped(count, a)
        right, b_groups = _grouped(count, b)
        shared, of_a, of_b = (np.zeros(count, np.int64) for _ in range(3))

        def work(first: int, last: int) -> None:
            kernels.unions(*left, a_groups, *right, b_groups, first, last, shared, of_a, of_b)

        self._share(count, np.diff(a_groups) + np.diff(b_groups), work)
        return shared, of_a, of_b

    def tube_intersections(
        self,
        a: MaskColumn,
        a_frames: Offsets,
        a_tubes: NDArray[np.int64],
        b: MaskColumn,
        b_frames: Offsets,
        b_tubes: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Every thread adds up its frames in a matrix of its own."""
        shape = (int(a_tubes.max(initial=-1)) + 1, int(b_tubes.max(initial=-1)) + 1)
        left, right, a_box, b_box = a.decoded.ends, b.decoded.ends, _corners(a), _corners(b)
        parts: list[NDArray[np.int64]] = []

        def work(first: int, last: int) -> None:
            out = np.zeros(shape, np.int64)
            kernels.tubes(*left, a_box, a_tubes, *right, b_box, b_tubes, a_frames, b_frames, first, last, out)
            parts.append(out)

        self._share(len(a_frames) - 1, np.diff(a_frames) * np.diff(b_frames), work)
        return np.sum(parts, axis=0, dtype=np.int64) if parts else np.zeros(shape, np.int64)

    def _share(self, n: int, cost: NDArray[np.int64], work: Callable[[int, int], None]) -> None:
        """Do `work(first, last)` over range(n), in parts of like cost on the threads."""
        if self.threads == 1 or n < 2:
            work(0, n)
            return
        total = np.concatenate([[0], np.cumsum(cost + 1)])
        steps = np.linspace(0, total[-1], TASKS_A_THREAD * self.threads + 1)
        bounds = np.unique(np.searchsorted(total, steps))
        spans = zip(bounds[:-1].tolist(), np.append(bounds[1:-1], n).tolist(), strict=True)
        list(_pool(os.getpid(), self.threads).map(lambda span: work(*span), spans))


def make_engine(threads: int) -> Engine:
    """The engine, on so many threads."""
    return NumbaEngine(threads)


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """The threads of one process: a forked child makes its own."""
    del process
    return ThreadPoolExecutor(threads, thread_name_prefix="masks")


def _ints(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.ascontiguousarray(values, np.int64)


def _corners(column: MaskColumn) -> NDArray[np.int32]:
    return column.decoded.corners(column.heights)


def _grouped(count: int, part: Part) -> tuple[Ends, Offsets]:
    """The masks that are in a group, and where each group's begin."""
    column, group = part
    used = np.flatnonzero(group >= 0)
    decoded = column.decoded if len(used) == len(group) else column.decoded.take(used)
    return decoded.ends, np.searchsorted(group[used], np.arange(count + 1)).astype(np.int64)
