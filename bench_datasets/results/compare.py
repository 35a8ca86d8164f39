"""Comparing runs: paired by row, resampled by cluster, tested by permutation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from bench_datasets.benchmark import Benchmark, get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.results.comparability import (
    Scores,
    check_alike,
    coarsest,
    one_benchmark,
    recorded_ranks,
    sources_of,
    tables_of,
)
from bench_datasets.results.estimates import ALL, Gathered, Part, better_when_higher
from bench_datasets.results.legend import label
from bench_datasets.results.resample import Key, Resampling, holm, places
from bench_datasets.results.statistics import Floats, Statistic, percentile_interval, value_of
from bench_datasets.results.summarize import oracle_of, read_table
from bench_datasets.results.verdicts import statements

POWER = 1.959963984540054 + 0.8416212335729143
"""Standard errors of the minimum detectable difference: 80 % power at alpha .05."""


@dataclass(frozen=True)
class Difference:
    """The difference of two runs in one metric, B minus A.

    Attributes:
        part: the rows, as a column and a value; two empty texts for all.
        metric: its key.
        a, b: the two values.
        difference: b - a.
        ci95: paired cluster bootstrap interval of the difference; `None` where undefined.
        p: two-sided paired permutation p-value.
        p_holm: the same after Holm's correction over the parts shown together.
        wins, ties, losses: clusters at which B is better, equal, worse; `None` where a cluster alone has no value.
        n: how many cases the value of the first run is about.
        detectable: minimum detectable difference (80 % power at alpha .05).
        higher_is_better: whether more is better.
        differing: clusters at which the runs differ in what the metric is made of; swapping others changes nothing.
        n_b: how many cases the value of the second run is about; `None` for as many as the first.
    """

    part: Part
    metric: str
    a: float
    b: float
    difference: float
    ci95: tuple[float, float] | None
    p: float
    p_holm: float
    wins: int | None
    ties: int | None
    losses: int | None
    n: int
    detectable: float
    higher_is_better: bool
    differing: int = 0
    n_b: int | None = None

    @property
    def verdict(self) -> str | None:
        """`A`, `B` or `None`: the significantly better run (corrected p below .05)."""
        if not self.p_holm < 0.05 or self.difference == 0:
            return None
        return "B" if (self.difference > 0) == self.higher_is_better else "A"


@dataclass(frozen=True)
class Rank:
    """A run's place by one metric, with the 95 % interval of the place over bootstrap draws."""

    name: str
    metric: str
    value: float
    rank: float
    ci95: tuple[float, float]


@dataclass(frozen=True)
class Comparison:
    """A comparison of two or more runs.

    Attributes:
        benchmark: its name.
        protocol: `name@version`, the same for all.
        names: the runs.
        rows: rows that all of them scored.
        unit: what is resampled and swapped: clusters of rows.
        clusters: how many there are.
        pairs: differences by pair of names.
        ranks: places by metric, for more than two runs.
        draws, permutations, seed: of the bootstrap and the permutation test.
        statements: by pair of names, the result in sentences.
        oracles: what the truth stood in for, by the names of the runs in which it did.
        remarks: what else is to be known: runs that were resampled by other units, too few units.
        headline: the key of the number that stands for a run; empty where there is none.
    """

    benchmark: str
    protocol: str
    names: list[str]
    rows: int
    unit: str
    clusters: int
    pairs: dict[tuple[str, str], list[Difference]]
    ranks: list[Rank]
    draws: int
    permutations: int
    seed: int
    statements: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    oracles: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    headline: str = ""

    @property
    def sentences(self) -> dict[tuple[str, str], str]:
        """The result in words, by pair of names."""
        return {pair: " ".join(said) for pair, said in self.statements.items()}

    def __str__(self) -> str:
        from bench_datasets.results.comparison_tables import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from bench_datasets.results.comparison_tables import as_html

        return as_html(self)

    def to_json(self) -> str:
        """Everything as JSON; the same scores give the same bytes."""
        from bench_datasets.results.comparison_tables import as_json

        return as_json(self)


def compare(
    scores: Mapping[str, Scores] | Sequence[Scores],
    *,
    names: Sequence[str] | None = None,
    benchmark: str | None = None,
    by: str | Sequence[str] = (),
    every: bool | None = None,
    k: int | Sequence[int] | None = None,
    run: str | None = None,
    condition: str | None = None,
    draws: int = 10_000,
    permutations: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare runs, paired by row: differences with confidence intervals and significance tests.

    Models with several runs (InstanceBench) are compared by the mean over their runs, so models may have different
    numbers of runs. The permutation test then exchanges all runs of a set at once: it is exact for equal numbers of
    runs and an approximation otherwise. Conditions that not all runs have are left out; `remarks` names them.

    Args:
        scores: score tables of two or more runs by name, or in order: Datasets, Arrow tables, files or run folders.
        names: what to call them, where `scores` is no mapping; by default their folders' names, or A, B, ...
        benchmark: its name; by default recognised from the tables' columns.
        by: further columns to slice by.
        every: every metric and slice, or only the headline and its parts; by default every one for two runs.
        k: ranks of benchmarks that have them; by default those that the runs' folders record.
        run: InstanceBench: compare this one run of each model, such as `"0"`; by default the mean over runs.
        condition: InstanceBench: compare the answers under this condition, such as `"category_only"`; by default the
            answers to the original expressions.
        draws: number of bootstrap draws.
        permutations: number of random permutations of the test.
        seed: random seed of the bootstrap and of the permutation test.

    Raises:
        BenchError: fewer than two runs, runs under different protocols, of different data or of different rows (the
            message says which), skipped rows, or a run or a condition that a model lacks.

    Example:
        >>> print(compare({"A": "runs/a", "B": "runs/b"}))          # doctest: +SKIP
    """
    by = (by,) if isinstance(by, str) else by
    k = (k,) if isinstance(k, int) else k
    tables = tables_of(scores, names)
    if len(tables) < 2:
        raise BenchError(f"compare: expected two runs or more, got {len(tables)}")
    kind = benchmark or one_benchmark(tables)
    metric = get_benchmark(kind)
    read, remarks = metric.shared_rows(
        {name: read_table(table, metric) for name, table in tables.items()}, run=run, condition=condition
    )
    protocol = check_alike(read, metric, sources_of(tables))
    version = f"{protocol['name']}@{protocol['version']}"
    runs = list(read)
    first = read[runs[0]]
    every = len(runs) == 2 if every is None else every
    ranks = (k if k is not None else recorded_ranks(scores)) if "k" in metric.options else None
    headline = get_benchmark(kind).headline_key(protocol["name"], ranks) or ""
    chosen = {
        name: _choose(
            metric, metric.statistics(table, protocol["name"], by=by, k=ranks), protocol["name"], headline, every=every
        )
        for name, table in read.items()
    }
    keys = [key for key in chosen[runs[0]] if _alike(key, list(chosen.values()))]
    clusters, unit, more = coarsest(read, metric.unit)

    def higher(key: Key) -> bool:
        return better_when_higher(key[1], metric.lower_is_better)

    work = Resampling(runs, keys, chosen, clusters)
    samples = work.bootstrap(draws, seed)
    values = {name: {key: value_of(chosen[name][key]) for key in keys} for name in runs}
    pairs: dict[tuple[str, str], list[Difference]] = {}
    counts = work.permute(permutations, seed + 1, values)
    for i, a in enumerate(runs):
        for b in runs[i + 1 :]:
            found = [
                _difference(key, values[a][key], values[b][key], samples[b][key] - samples[a][key], counts[a, b][key],
                            permutations, work.duels(a, b, key, higher(key)), (chosen[a][key].n, chosen[b][key].n),
                            metric, work.differing(a, b, key))
                for key in keys
            ]  # fmt: skip
            pairs[a, b] = _holm(found)
    family = metric.headline_parts.get(protocol["name"], "")
    return Comparison(
        benchmark=kind,
        protocol=version,
        names=runs,
        rows=len(set(first["key"].to_pylist())),
        unit=unit,
        clusters=work.count,
        pairs=pairs,
        ranks=_ranks(runs, keys, values, samples, metric) if len(runs) > 2 else [],
        draws=draws,
        permutations=permutations,
        seed=seed,
        statements={
            pair: statements(*pair, found, headline, family, unit, partial(label, kind))
            for pair, found in pairs.items()
        },
        oracles={name: oracle for name, table in read.items() if (oracle := oracle_of(table))},
        remarks=[*remarks, *more],
        headline=headline,
    )


def _alike(key: Key, chosen: Sequence[Mapping[Key, Statistic]]) -> bool:
    """Whether all runs have a number, made of the same columns."""
    if not all(key in found for found in chosen):
        return False
    return len({found[key].columns.shape[1] for found in chosen}) == 1


def _choose(
    metric: Benchmark, gathered: Gathered, protocol: str, headline: str, *, every: bool
) -> dict[Key, Statistic]:
    """All numbers, or the headline and its family; parts that each run cuts for itself are left out."""
    flat = {
        (part, name): item
        for part, items in gathered.items()
        for name, item in items.items()
        if part[0] not in metric.unpaired_slices and name.partition("/")[0] not in metric.unpaired_metrics
    }
    if every:
        return flat
    family = metric.headline_parts.get(protocol, "")
    return {
        (part, name): item
        for (part, name), item in flat.items()
        if part == ALL and (name == headline or (family and name.startswith(family)))
    }


def _difference(
    key: Key, a: float, b: float, sample: Floats, count: int, permutations: int, duels: tuple[int, int, int] | None,
    n: tuple[int, int], metric: Benchmark, differing: int,
) -> Difference:  # fmt: skip
    defined = math.isfinite(a) and math.isfinite(b)
    finite = sample[np.isfinite(sample)]
    spread = float(finite.std(ddof=1)) if len(finite) > 1 else math.nan
    p = (1 + count) / (1 + permutations) if defined and permutations else math.nan
    wins, ties, losses = duels if duels is not None else (None, None, None)
    return Difference(
        part=key[0], metric=key[1], a=a, b=b, difference=b - a, ci95=percentile_interval(sample) if defined else None,
        p=p, p_holm=p, wins=wins, ties=ties, losses=losses, n=n[0] if defined else 0, detectable=POWER * spread,
        higher_is_better=better_when_higher(key[1], metric.lower_is_better), differing=differing,
        n_b=n[1] if defined and n[1] != n[0] else None,
    )  # fmt: skip


def _holm(found: list[Difference]) -> list[Difference]:
    """Correct p-values of one metric over its parts."""
    groups: dict[tuple[str, str], list[int]] = {}
    for i, item in enumerate(found):
        base = item.metric.rpartition("/")[0] if item.part == ALL and "/" in item.metric else item.metric
        groups.setdefault((item.part[0], base), []).append(i)
    result = list(found)
    for members in groups.values():
        for i, p in zip(members, holm([found[i].p for i in members]), strict=True):
            result[i] = replace(found[i], p_holm=p)
    return result


def _ranks(
    runs: list[str],
    keys: list[Key],
    values: Mapping[str, Mapping[Key, float]],
    samples: Mapping[str, Mapping[Key, Floats]],
    metric: Benchmark,
) -> list[Rank]:
    """Places from 1 (best), equal values sharing theirs, with intervals over the draws."""
    result = []
    for part, name in keys:
        if part != ALL:
            continue
        sign = -1.0 if better_when_higher(name, metric.lower_is_better) else 1.0
        now = places(sign * np.array([[values[run][part, name]] for run in runs]))[:, 0]
        drawn = places(sign * np.stack([samples[run][part, name] for run in runs]))
        for i, run in enumerate(runs):
            interval = percentile_interval(drawn[i]) or (math.nan, math.nan)
            result.append(Rank(run, name, values[run][part, name], float(now[i]), interval))
    return result
