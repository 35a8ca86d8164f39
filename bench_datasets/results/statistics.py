"""Percentile bootstrap of any number that is a function of summed columns, resampling clusters of rows.

A benchmark's numbers are nearly all such functions: a mean is a sum over a count, a pooled F1 a quotient of sums. So
one set of weights (how often each cluster was drawn) serves every number, every slice and every model.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import ThreadpoolController

Floats = NDArray[np.float64]

_LOG = logging.getLogger(__name__)

QUIET, EVERY = 4.0, 10.0
"""Seconds until the first line about a long resampling, and between lines."""


class Ticker:
    """Logs how far a resampling is, if it takes longer than a few seconds.

    Args:
        what: what is drawn, such as `bootstrap`.
        total: number of draws.
    """

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done = what, total, 0
        self.due = time.monotonic() + QUIET

    def add(self, count: int) -> None:
        """Note that some more draws are done."""
        self.done += count
        now = time.monotonic()
        if now >= self.due and self.done < self.total:
            self.due = now + EVERY
            _LOG.info("%s: %s of %s draws", self.what, f"{self.done:,}", f"{self.total:,}")


CHUNK_BYTES = 1 << 25
"""Memory of the weights that are held at a time."""


@dataclass(frozen=True)
class Statistic:
    """A number as a function of summed columns.

    Attributes:
        rows: `(r,) int64`, the rows of the table that the number is about.
        columns: `(r, k)` integers or floats, what is summed over these rows.
        of: from sums `(..., k) float64` to values `(...) float64`; NaN where undefined.
        n: how many units (rows, pairs, predictions) the number is about; with 0 it is undefined.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64] | Floats
    of: Callable[[Floats], Floats]
    n: int


def quotient_of_sums(sums: Floats) -> Floats:
    """The first sum over the second, `(...) float64` from `(..., 2)`; NaN where the second is 0.

    Example:
        >>> float(quotient_of_sums(np.array([1.0, 4.0])))
        0.25
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[..., 0] / sums[..., 1])


def ratio(top: NDArray[Any], bottom: NDArray[Any], rows: NDArray[np.int64]) -> Statistic:
    """The sum of one column over the sum of another, over some rows.

    Args:
        top: `(n,)` integers, floats or flags.
        bottom: `(n,)`, likewise.
        rows: `(r,) int64`, the rows.

    Example:
        >>> value_of(ratio(np.array([1, 2, 7]), np.array([2, 4, 9]), np.array([0, 1])))
        0.5
    """
    columns = np.stack([top, bottom], axis=1)[rows]
    exact = columns if columns.dtype.kind == "f" else columns.astype(np.int64)
    return Statistic(rows, exact, quotient_of_sums, len(rows))


def mean(values: NDArray[Any], rows: NDArray[np.int64]) -> Statistic:
    """The mean of a column over some rows.

    Args:
        values: `(n,)` integers, floats or flags.
        rows: `(r,) int64`, the rows.

    Example:
        >>> value_of(mean(np.array([0.5, 1.0, 0.0]), np.array([0, 1])))
        0.75
    """
    return ratio(values, np.ones(len(values), np.int64), rows)


@dataclass(frozen=True)
class Estimate:
    """A value, how many units it is about, its 95 % interval (`None` where there is none); NaN, 0 if undefined."""

    value: float
    n: int
    ci95: tuple[float, float] | None


def weights(
    clusters: int, draws: int, seed: int, chunk: int | None = None, place: NDArray[np.int64] | None = None
) -> Iterator[Floats]:
    """How often each cluster is drawn, draw by draw.

    Args:
        clusters: number of clusters c; each draw takes c of them with replacement.
        draws: number of draws.
        seed: of the generator; the same seed gives the same draws, however they are cut into chunks.
        chunk: draws at a time; by default what fits the memory bound.
        place: `(c,) int64`, the column of each cluster; by default its number.

    Yields:
        `(chunk, c) float64` of whole numbers; the last one may be shorter.

    Example:
        >>> [block.sum(axis=1).tolist() for block in weights(3, draws=2, seed=0)]
        [[3.0, 3.0]]
    """
    generator = np.random.default_rng(seed)
    size = chunk or max(1, CHUNK_BYTES // (8 * max(clusters, 1)))
    for first in range(0, draws, size):
        block = np.empty((min(size, draws - first), clusters))
        for row in block:
            drawn = generator.integers(0, clusters, size=clusters, dtype=np.int64)
            row[:] = np.bincount(drawn if place is None else place[drawn], minlength=clusters)
        yield block


def estimate(
    statistics: Mapping[str, Statistic], clusters: Sequence[str], draws: int = 10_000, seed: int = 0
) -> dict[str, Estimate]:
    """Values and percentile intervals of many statistics over the same rows.

    Values come from exact sums (`math.fsum`). For the intervals, columns are held on a binary grid so fine that every
    sum of a draw is exact in float64 as well: the same bytes on any machine, in any order, with any chunk.

    Args:
        statistics: by name.
        clusters: the cluster of each row of the table.
        draws: number of bootstrap draws; 0 for no intervals.
        seed: of the draws.

    Returns:
        An `Estimate` by name.

    Example:
        >>> rows = np.arange(4)
        >>> mean = Statistic(rows, np.array([[1, 1], [0, 1], [1, 1], [0, 1]]), lambda s: s[..., 0] / s[..., 1], n=4)
        >>> estimate({"mean": mean}, ["a", "b", "c", "d"], draws=1000)["mean"]
        Estimate(value=0.5, n=4, ci95=(0.0, 1.0))
    """
    values = {name: value_of(item) for name, item in statistics.items()}
    drawn = {name: item for name, item in statistics.items() if draws and item.n}
    intervals = _intervals(drawn, clusters, draws, seed) if drawn else {}
    return {
        name: Estimate(values[name], item.n, intervals.get(name))
        if math.isfinite(values[name])
        else Estimate(math.nan, 0, None)
        for name, item in statistics.items()
    }


def value_of(statistic: Statistic) -> float:
    """The number itself, from exact sums; NaN where it is about nothing."""
    if not statistic.n:
        return math.nan
    columns = statistic.columns
    if columns.dtype.kind in "iu":
        sums = [float(sum(column)) for column in columns.T.tolist()]
    else:
        sums = [math.fsum(column) for column in columns.T.tolist()]
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(statistic.of(np.array(sums, np.float64)))


def _intervals(
    statistics: Mapping[str, Statistic], clusters: Sequence[str], draws: int, seed: int
) -> dict[str, tuple[float, float]]:
    sums = ClusterSums(list(statistics.values()), clusters)
    ticker = Ticker("bootstrap", draws)
    totals = np.empty((sums.width, draws))
    done = 0
    for block in weights(sums.clusters, draws, seed, place=sums.place):
        totals[:, done : done + len(block)] = sums.totals(block)
        done += len(block)
        ticker.add(len(block))
    result = {}
    for number, name in enumerate(statistics):
        bounds = percentile_interval(sums.values(number, sums.sums_of(number, totals)))
        if bounds is not None:
            result[name] = bounds
    return result


BLOCK_CLUSTERS = 64
"""Smallest number of clusters that are multiplied at a time."""


class ClusterSums:
    """Columns of many statistics, summed by cluster, to be summed again over drawn clusters.

    Equal columns are held once. Clusters are ordered by the statistics that they take part in, so that the numbers of a
    slice are multiplied with the weights of the slice's clusters only.

    Args:
        statistics: over rows of one table.
        clusters: the cluster of each row of the table.

    Attributes:
        clusters: number of clusters.
        place: `(clusters,) int64`, where each cluster stands in the columns of the weights that `totals` takes.
        width: number of different columns.
    """

    def __init__(self, statistics: Sequence[Statistic], clusters: Sequence[str]) -> None:
        _, code = np.unique(np.asarray(clusters, dtype=object).astype(str), return_inverse=True)
        self.clusters = int(code.max()) + 1
        self._of = [item.of for item in statistics]
        self._columns: list[NDArray[np.int64]] = []
        by_rows: dict[bytes, dict[bytes, int]] = {}
        used: list[NDArray[np.int64]] = []
        sums: list[list[Floats]] = []
        ids: list[list[int]] = []
        groups: dict[bytes, int] = {}
        self.width = 0
        for item in statistics:
            rows = np.asarray(item.rows, np.int64)
            key = rows.tobytes()
            if key not in groups:
                groups[key] = len(used)
                used.append(np.unique(code[rows]))
                by_rows[key] = {}
                sums.append([])
                ids.append([])
            group, known, chosen = groups[key], by_rows[key], []
            local = np.searchsorted(used[group], code[rows])
            for column in _on_grid(item.columns).T:
                total = np.asarray(np.bincount(local, column, minlength=len(used[group])), np.float64)
                content = total.tobytes()
                if content not in known:
                    known[content] = self.width
                    sums[group].append(total)
                    ids[group].append(self.width)
                    self.width += 1
                chosen.append(known[content])
            self._columns.append(np.array(chosen, np.int64))
        self._blas = ThreadpoolController()
        self.place = self._order(used)
        self._blocks = self._cut(used, sums, ids)

    def _order(self, used: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Order clusters by the groups of statistics that use them, and note where that changes."""
        member = np.zeros((self.clusters, len(used)), np.bool_)
        for group, clusters in enumerate(used):
            member[clusters, group] = True
        packed = np.packbits(member, axis=1)
        order = np.lexsort(packed.T)
        changes = np.flatnonzero((packed[order][1:] != packed[order][:-1]).any(axis=1)) + 1
        self._bounds = [0]
        for change in changes.tolist():
            if change - self._bounds[-1] >= BLOCK_CLUSTERS:
                self._bounds.append(change)
        self._bounds.append(self.clusters)
        place = np.empty(self.clusters, np.int64)
        place[order] = np.arange(self.clusters)
        return place

    def _cut(
        self, used: Sequence[NDArray[np.int64]], sums: Sequence[Sequence[Floats]], ids: Sequence[Sequence[int]]
    ) -> list[tuple[slice, NDArray[np.int64], Floats]]:
        """The sums of each block of clusters, with the numbers of their columns."""
        where, content = [], []
        for clusters, columns in zip(used, sums, strict=True):
            order = np.argsort(self.place[clusters])
            where.append(self.place[clusters][order])
            content.append(np.stack(columns, axis=1)[order] if columns else np.zeros((len(clusters), 0)))
        blocks = []
        for first, last in zip(self._bounds[:-1], self._bounds[1:], strict=True):
            parts: list[Floats] = []
            numbers: list[int] = []
            for group, places in enumerate(where):
                low, high = np.searchsorted(places, [first, last])
                if low < high:
                    part = np.zeros((last - first, len(ids[group])))
                    part[places[low:high] - first] = content[group][low:high]
                    parts.append(part)
                    numbers += ids[group]
            if parts:
                blocks.append((slice(first, last), np.array(numbers, np.int64), np.concatenate(parts, axis=1)))
        return blocks

    def totals(self, weights: Floats) -> Floats:
        """Sum every column over weighted clusters, `(width, draws) float64`.

        Args:
            weights: `(draws, clusters) float64`, in the order of `place`.
        """
        result = np.zeros((self.width, len(weights)))
        with self._blas.limit(limits=1, user_api="blas"):  # threads of BLAS cost more than they save on small blocks
            for clusters, numbers, sums in self._blocks:
                result[numbers] += sums.T @ weights[:, clusters].T
        return result

    def sums_of(self, number: int, totals: Floats) -> Floats:
        """The rows of `totals` that hold a statistic's columns, `(k, draws) float64`."""
        return totals[self._columns[number]]

    def values(self, number: int, sums: Floats) -> Floats:
        """A statistic's value in each draw, `(draws,) float64`; NaN where it is undefined.

        Args:
            number: position of the statistic.
            sums: `(k, draws) float64`, its summed columns.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            # The order of additions in `of` follows the layout in memory.
            return np.asarray(self._of[number](np.ascontiguousarray(sums.T)), np.float64)

    def by_cluster(self, number: int) -> Floats:
        """A statistic's columns summed by cluster, `(clusters, k) float64`, in the order of `place`."""
        found = np.zeros((self.clusters, len(self._columns[number])))
        for clusters, numbers, sums in self._blocks:
            for k, column in enumerate(self._columns[number].tolist()):
                (at,) = np.nonzero(numbers == column)
                if len(at):
                    found[clusters, k] = sums[:, at[0]]
        return found


def swaps(
    clusters: int, permutations: int, seed: int, chunk: int | None = None, place: NDArray[np.int64] | None = None
) -> Iterator[Floats]:
    """Which clusters keep their side, permutation by permutation: 1 with probability one half, else 0.

    Args:
        clusters: number of clusters.
        permutations: how many.
        seed: of the generator; chunks do not change what it gives.
        chunk: permutations at a time; by default what fits the memory bound.
        place: `(clusters,) int64`, the column of each cluster; by default its number.

    Yields:
        `(chunk, clusters) float64`.
    """
    generator = np.random.default_rng(seed)
    size = chunk or max(1, CHUNK_BYTES // (8 * max(clusters, 1)))
    order = None if place is None else np.argsort(place)
    for first in range(0, permutations, size):
        kept = generator.random((min(size, permutations - first), clusters)) < 0.5
        yield (kept if order is None else kept[:, order]).astype(np.float64)


def percentile_interval(sample: ArrayLike) -> tuple[float, float] | None:
    """The 95 % percentile interval of bootstrap draws; draws where the number is undefined are left out.

    Example:
        >>> percentile_interval(np.arange(201.0))
        (5.0, 195.0)
    """
    values = np.asarray(sample, np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _on_grid(columns: NDArray[np.int64] | Floats) -> Floats:
    """Columns as float64; fractions rounded to a grid on which the sum of every draw is exact."""
    if columns.dtype.kind in "iu":
        return columns.astype(np.float64)
    largest = float(np.abs(columns).max()) if columns.size else 0.0
    if largest == 0.0:
        return np.asarray(columns, np.float64)
    # A draw may hold more rows than the table, where large clusters are drawn often: three bits are left for that.
    bits = 50 - math.ceil(math.log2(largest)) - math.ceil(math.log2(max(len(columns), 1) + 1))
    return np.asarray(np.round(np.ldexp(columns, bits)) * math.ldexp(1.0, -bits), np.float64)
