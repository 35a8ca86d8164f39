"""Resampling several runs at once: paired bootstrap, permutation by swapping, Holm's correction, places."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bench_datasets.results.estimates import Part
from bench_datasets.results.statistics import ClusterSums, Floats, Statistic, Ticker, swaps, weights

Key = tuple[Part, str]
"""A part of the rows and the name of a number."""


class Resampling:
    """The runs' columns summed by cluster, and the resampling over them.

    Args:
        runs: names of the runs.
        keys: the numbers.
        chosen: each run's statistics by key; all are over the same table's rows.
        clusters: the cluster of each row.

    Attributes:
        count: number of clusters.
    """

    def __init__(
        self, runs: list[str], keys: list[Key], chosen: Mapping[str, Mapping[Key, Statistic]], clusters: Sequence[str]
    ) -> None:
        self.runs, self.keys = runs, keys
        self._sums = ClusterSums([chosen[name][key] for name in runs for key in keys], clusters)
        self.count = self._sums.clusters
        self._number = {(name, key): i for i, (name, key) in enumerate((name, key) for name in runs for key in keys)}

    def bootstrap(self, draws: int, seed: int) -> dict[str, dict[Key, Floats]]:
        """Every number of every run in every draw; a draw takes the same clusters in all runs."""
        found = {name: {key: np.empty(draws) for key in self.keys} for name in self.runs}
        ticker = Ticker("bootstrap", draws)
        done = 0
        for block in weights(self.count, draws, seed, place=self._sums.place):
            ticker.add(len(block))
            totals = self._sums.totals(block)
            for (name, key), number in self._number.items():
                values = self._sums.values(number, self._sums.sums_of(number, totals))
                found[name][key][done : done + len(block)] = values
            done += len(block)
        return found

    def permute(
        self, permutations: int, seed: int, values: Mapping[str, Mapping[Key, float]]
    ) -> dict[tuple[str, str], dict[Key, int]]:
        """How often a difference as large as the observed comes up where clusters' answers are swapped by chance."""
        pairs = [(a, b) for i, a in enumerate(self.runs) for b in self.runs[i + 1 :]]
        counts = {pair: dict.fromkeys(self.keys, 0) for pair in pairs}
        of, number = self._sums, self._number
        whole = of.totals(np.ones((1, self.count)))
        ticker = Ticker("permutation test", permutations)
        for block in swaps(self.count, permutations, seed, place=of.place):
            ticker.add(len(block))
            totals = of.totals(block)
            for a, b in pairs:
                for key in self.keys:
                    i, j = number[a, key], number[b, key]
                    first, second = of.sums_of(i, totals), of.sums_of(j, totals)
                    one = of.values(i, first + (of.sums_of(j, whole) - second))
                    other = of.values(i, second + (of.sums_of(i, whole) - first))
                    observed = abs(values[b][key] - values[a][key])
                    counts[a, b][key] += int((np.abs(one - other) >= observed - 1e-12).sum())
        return counts

    def differing(self, a: str, b: str, key: Key) -> int:
        """Clusters at which two runs differ in a number's columns: all that a swap can change.

        Args:
            a: name of the first run.
            b: name of the second.
            key: the number.
        """
        one, other = (self._sums.by_cluster(self._number[name, key]) for name in (a, b))
        return int((one != other).any(axis=1).sum())

    def duels(self, a: str, b: str, key: Key, higher: bool) -> tuple[int, int, int] | None:
        """Clusters that B wins, that are equal, that it loses; `None` where a cluster alone has no value.

        Args:
            a: name of the first run.
            b: name of the second.
            key: the number.
            higher: whether more is better.
        """
        i, j = self._number[a, key], self._number[b, key]
        one, other = (self._sums.values(i, self._sums.by_cluster(k).T) for k in (i, j))
        both = np.isfinite(one) & np.isfinite(other)
        if not both.any():
            return None
        gain = (other - one)[both] * (1 if higher else -1)
        return int((gain > 1e-12).sum()), int((np.abs(gain) <= 1e-12).sum()), int((gain < -1e-12).sum())


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down correction of p-values that are shown together; undefined ones stay so.

    Example:
        >>> holm([0.01, math.nan, 0.04, 0.03])
        [0.03, nan, 0.06, 0.06]
    """
    result = list(p)
    defined = sorted((i for i in range(len(p)) if math.isfinite(p[i])), key=lambda i: p[i])
    highest = 0.0
    for place, i in enumerate(defined):
        highest = max(highest, min(1.0, (len(defined) - place) * p[i]))
        result[i] = highest
    return result


def places(values: NDArray[np.float64]) -> Floats:
    """`(runs, draws)`: 1 for the smallest of each column, equal ones sharing the middle."""
    below = (values[None, :, :] < values[:, None, :]).sum(axis=1)
    equal = (values[None, :, :] == values[:, None, :]).sum(axis=1)
    return np.asarray(np.where(np.isfinite(values), below + (equal + 1) / 2, np.nan), np.float64)
