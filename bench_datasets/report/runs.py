"""The runs that a report is about: their scores and results, all of one benchmark, protocol and truth."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset

from bench_datasets.benchmark import Benchmark, get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.results.comparability import benchmark_of, names_of, scored_on
from bench_datasets.results.reproduce import reproduce
from bench_datasets.results.result import Result
from bench_datasets.results.run_files import RESULT, read_scores
from bench_datasets.results.summarize import read_table, summarize


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        name: what it is called.
        place: its folder or file, as given.
        scores: its score table as it was written.
        table: the same, sorted, without skipped rows.
        result: its numbers.
    """

    name: str
    place: str
    scores: Dataset
    table: pa.Table
    result: Result

    @property
    def metric(self) -> Benchmark:
        """The benchmark's metric module."""
        return get_benchmark(self.result.benchmark)

    @property
    def protocol(self) -> Any:
        """The protocol it was scored under."""
        return self.metric.protocol(self.result.protocol["name"])


def open_runs(places: Sequence[str | os.PathLike[str]], names: Sequence[str] | None = None) -> list[Run]:
    """Read runs.

    Args:
        places: folders with `scores.parquet` (and `result.json`, else the numbers are summed up anew), or score files.
        names: what to call them; by default their folders' names.

    Raises:
        BenchError: there is none, one is unreadable, or they are of different benchmarks, protocols, rows or truth.
    """
    if not places:
        raise BenchError("report: expected a run's folder or more, got none")
    if names is not None and len(names) != len(places):
        raise BenchError(f"names: expected {len(places)}, one per run, got {len(names)}")
    called = list(names) if names is not None else names_of(places)
    if len(set(called)) < len(called):
        raise BenchError(f"names: expected names that differ, got {', '.join(called)}")
    runs = [_open(name, os.fspath(place)) for name, place in zip(called, places, strict=True)]
    kinds = {run.result.benchmark for run in runs}
    if len(kinds) > 1:
        raise BenchError(f"report: expected runs of one benchmark, got {', '.join(sorted(kinds))}; report them apart")
    for run in runs[1:]:
        _check_same(runs[0], run)
    return runs


def _check_same(first: Run, other: Run) -> None:
    """Check that the runs of one page have one protocol and the same rows.

    Raises:
        BenchError: they are not.
    """
    shown = [f"{run.result.protocol['name']}@{run.result.protocol['version']}" for run in (first, other)]
    if shown[0] != shown[1]:
        raise BenchError(f"report: {first.name} was scored under {shown[0]}, {other.name} under {shown[1]}")
    one, two = (dict(zip(r.table["key"].to_pylist(), r.table["row_sha256"].to_pylist(), strict=True)) for r in
                (first, other))  # fmt: skip
    places = scored_on(
        {run.name: (run.result.dataset.get("source"), len(r)) for run, r in ((first, one), (other, two))}
    )
    for has, lacks, missing in ((first, other, one.keys() - two.keys()), (other, first, two.keys() - one.keys())):
        if missing:
            text = f"{has.name} has {len(missing)} rows that {lacks.name} lacks, such as {min(missing)}"
            raise BenchError(f"report: {places}: {text}; score both on the same rows")
    changed = sorted(key for key in one if one[key] != two[key])
    if changed:
        raise BenchError(
            f"report: {len(changed)} rows of {other.name} were scored against another ground truth than those of"
            f" {first.name}, such as {changed[0]}; {places}: score both on the same data"
        )


def _open(name: str, place: str) -> Run:
    scores = read_scores(place)
    benchmark = benchmark_of(scores)
    metric = get_benchmark(benchmark)
    table = read_table(scores, metric)
    kept = table.filter(pa.compute.invert(table["skipped"]))
    if not len(kept):
        raise BenchError(f"{place}: expected scored rows, found only rows that were left out for their faults")
    file = Path(place) / RESULT if "://" not in place and os.path.isdir(place) else None
    if file is None or not file.exists():
        return Run(name, place, scores, kept, summarize(benchmark, scores))
    result = Result.load(file)
    try:
        reproduce(result, scores)
    except BenchError as error:
        raise BenchError(
            f"{file}: its numbers are not those of the scores beside it ({error}); summarise them again"
        ) from error
    return Run(name, place, scores, kept, result)
