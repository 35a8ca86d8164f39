"""Resampling several runs at once: paired bootstrap, permutation by swapping, Holm's correction, places."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bench_datasets.results.estimates import Part
from bench_datasets.results.statistics import Floats, Statistic, Ticker, cluster_sums, swaps, weights

Key = tuple[Part, str]
"""A part of the rows and the name of a number."""


class Resampling:
    """The runs' columns summed by cluster, and the resampling over them."""

    def __init__(
        self, runs: list[str], keys: list[Key], chosen: Mapping[str, dict[Key, Statistic]], clusters: Sequence[str]
    ) -> None:
        _, code = np.unique(np.asarray(clusters, dtype=object).astype(str), return_inverse=True)
        self.count = int(code.max()) + 1
        self.runs, self.keys = runs, keys
        self.of = {key: chosen[runs[0]][key].of for key in keys}
        self.bounds = np.cumsum([0, *(chosen[runs[0]][key].columns.shape[1] for key in keys)])
        self.sums = {
            name: np.concatenate([cluster_sums(found[key], code, self.count) for key in keys], axis=1)
            for name, found in chosen.items()
        }

    def _values(self, totals: Floats, i: int) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.of[self.keys[i]](totals[:, self.bounds[i] : self.bounds[i + 1]]), np.float64)

    def bootstrap(self, draws: int, seed: int) -> dict[str, dict[Key, Floats]]:
        """Every number of every run in every draw; a draw takes the same clusters in all runs."""
        parts: dict[str, dict[Key, list[Floats]]] = {name: {key: [] for key in self.keys} for name in self.runs}
        ticker = Ticker("bootstrap", draws)
        for block in weights(self.count, draws, seed):
            ticker.add(len(block))
            chosen = block.astype(np.float64)
            for name in self.runs:
                totals = chosen @ self.sums[name]
                for i, key in enumerate(self.keys):
                    parts[name][key].append(self._values(totals, i))
        return {
            name: {key: np.concatenate(blocks) if blocks else np.zeros(0) for key, blocks in found.items()}
            for name, found in parts.items()
        }

    def permute(
        self, permutations: int, seed: int, values: Mapping[str, Mapping[Key, float]]
    ) -> dict[tuple[str, str], dict[Key, int]]:
        """How often a difference as large as the observed comes up where clusters' answers are swapped by chance."""
        pairs = [(a, b) for i, a in enumerate(self.runs) for b in self.runs[i + 1 :]]
        counts = {pair: dict.fromkeys(self.keys, 0) for pair in pairs}
        whole = {name: sums.sum(axis=0) for name, sums in self.sums.items()}
        ticker = Ticker("permutation test", permutations)
        for block in swaps(self.count, permutations, seed):
            ticker.add(len(block))
            taken = {name: block @ sums for name, sums in self.sums.items()}
            for a, b in pairs:
                one = taken[a] + (whole[b] - taken[b])
                other = taken[b] + (whole[a] - taken[a])
                for i, key in enumerate(self.keys):
                    observed = abs(values[b][key] - values[a][key])
                    drawn = np.abs(self._values(one, i) - self._values(other, i))
                    counts[a, b][key] += int((drawn >= observed - 1e-12).sum())
        return counts

    def differing(self, a: str, b: str, key: Key) -> int:
        """Clusters at which two runs differ in a number's columns: all that a swap can change.

        Args:
            a: name of the first run.
            b: name of the second.
            key: the number.
        """
        i = self.keys.index(key)
        part = slice(self.bounds[i], self.bounds[i + 1])
        return int((self.sums[a][:, part] != self.sums[b][:, part]).any(axis=1).sum())

    def duels(self, a: str, b: str, key: Key, higher: bool) -> tuple[int, int, int] | None:
        """Clusters that B wins, that are equal, that it loses; `None` where a cluster alone has no value.

        Args:
            a: name of the first run.
            b: name of the second.
            key: the number.
            higher: whether more is better.
        """
        i = self.keys.index(key)
        one, other = self._values(self.sums[a], i), self._values(self.sums[b], i)
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
