"""Ground truth that several units share, such as several runs of a model: read once for all of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bench_datasets.benchmark import Benchmark
from bench_datasets.scoring.batching import ArrowRows

MOST_BYTES = 1 << 28
"""Ground truth of more bytes is read anew for every unit."""

LEAST_ROWS = 32
"""Batches whose ground truth rows stand in pieces that are shorter on average read it anew."""


class SharedTruth(Protocol):
    """Ground truth rows as a benchmark's `read_shared_truth` reads them."""

    def part(self, start: int, stop: int) -> SharedTruth:
        """The rows from `start` to `stop`."""
        ...


class TruthCache:
    """The ground truth rows of a scoring, read when they are first asked for. A copy in another process is empty."""

    def __init__(self) -> None:
        self._truth: SharedTruth | None = None
        self._asked = False

    def __reduce__(self) -> tuple[type[TruthCache], tuple[()]]:
        return TruthCache, ()

    def parts(
        self, benchmark: Benchmark, labels: ArrowRows, rows: NDArray[np.int64], units: int
    ) -> Iterator[tuple[int, int, SharedTruth | None]]:
        """Cut a batch of units into pieces whose ground truth rows follow each other.

        Args:
            benchmark: reads the rows.
            labels: all ground truth rows.
            rows: `(n,) int64`, the ground truth row of each unit of the batch.
            units: number of all units that are scored.

        Yields:
            Where a piece begins and ends in the batch, and its ground truth; `None` where it is not read once for all.
        """
        bounds = np.concatenate([[0], np.flatnonzero(np.diff(rows) != 1) + 1, [len(rows)]]).tolist()
        if units <= len(labels) or len(rows) < LEAST_ROWS * (len(bounds) - 2) or not self._read(benchmark, labels):
            yield 0, len(rows), None
            return
        for start, stop in itertools.pairwise(bounds):
            first = int(rows[start])
            yield start, stop, self._truth.part(first, first + stop - start) if self._truth is not None else None

    def _read(self, benchmark: Benchmark, labels: ArrowRows) -> bool:
        """Whether the ground truth is read once for all."""
        if not self._asked:
            self._asked = True
            if labels.average * len(labels) <= MOST_BYTES:
                self._truth = benchmark.read_shared_truth(labels[: len(labels)])
        return self._truth is not None
