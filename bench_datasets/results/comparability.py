"""Load runs to compare, name them, and check that they are about the same rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from datasets import Dataset, IterableDataset

from bench_datasets.benchmark import BENCHMARKS, Benchmark
from bench_datasets.faults import BenchError
from bench_datasets.results.result import Result
from bench_datasets.results.run_files import RESULT, SCORES, read_scores
from bench_datasets.results.summarize import one_protocol
from bench_datasets.results.tables import few, many
from bench_datasets.scoring.provenance import provenance_of

Scores: TypeAlias = Dataset | IterableDataset | pa.Table | str | os.PathLike[str]


def tables_of(scores: Mapping[str, Scores] | Sequence[Scores], names: Sequence[str] | None) -> dict[str, Any]:
    """Score tables by the runs' names; files are read.

    Raises:
        BenchError: two runs bear one name, names are too few or too many, or a file is no score table.
    """
    if isinstance(scores, Mapping):
        items = list(scores.items())
    else:
        given = list(names) if names is not None else names_of(scores)
        if len(given) != len(scores):
            raise BenchError(f"names: expected {len(scores)}, one per run, got {len(given)}")
        items = list(zip(given, scores, strict=True))
    if len({name for name, _ in items}) < len(items):
        raise BenchError(f"names: expected names that differ, got {', '.join(name for name, _ in items)}")
    return {name: read_scores(item) if isinstance(item, (str, os.PathLike)) else item for name, item in items}


def recorded_ranks(scores: Mapping[str, Scores] | Sequence[Scores]) -> list[int] | None:
    """The ranks that the results in the runs' folders record, as `common_ranks` joins them."""
    found = []
    for item in scores.values() if isinstance(scores, Mapping) else scores:
        if isinstance(item, (str, os.PathLike)) and "://" not in os.fspath(item):
            place = Path(item)
            file = (place.parent if place.name == SCORES else place) / RESULT
            if file.is_file():
                found.append(Result.load(file))
    return common_ranks(found)


def common_ranks(results: Sequence[Result]) -> list[int] | None:
    """The ranks that all results are about; with none in common, every one; `None` where they have none."""
    found = [ranks for result in results if (ranks := result.settings.get("k"))]
    every = list(dict.fromkeys(k for ranks in found for k in ranks))
    return [k for k in every if all(k in ranks for ranks in found)] or every or None


def names_of(scores: Sequence[Scores]) -> list[str]:
    """Names by place; a second run of one name is numbered."""
    names: list[str] = []
    for i, item in enumerate(scores):
        name, number = _name(item, i), 2
        while name in names:
            name, number = f"{_name(item, i)} ({number})", number + 1
        names.append(name)
    return names


def _name(item: Scores, i: int) -> str:
    if isinstance(item, (str, os.PathLike)):
        path = Path(item)
        return path.parent.name if path.name == SCORES else path.stem if path.suffix == ".parquet" else path.name
    return chr(ord("A") + i) if i < 26 else f"run {i}"


def benchmark_of(table: Any) -> str:
    """The benchmark whose columns a score table has.

    Raises:
        BenchError: it is no score table.
    """
    columns = set(table.column_names or ())
    for name, entry in BENCHMARKS.items():
        if set(entry.score_features()) <= columns:
            return name
    raise BenchError(f"scores: expected a score table, found the columns {', '.join(sorted(columns)[:6])}")


def one_benchmark(tables: Mapping[str, Any]) -> str:
    """The benchmark of several runs' score tables.

    Raises:
        BenchError: one of them is no score table, or they are of different benchmarks.
    """
    kinds = {name: benchmark_of(table) for name, table in tables.items()}
    first, *others = kinds
    for name in others:
        if kinds[name] != kinds[first]:
            titles = [BENCHMARKS[kinds[run]].title for run in (first, name)]
            raise BenchError(f"compare: expected runs of one benchmark; {first} is {titles[0]}, {name} is {titles[1]}")
    return kinds[first]


def sources_of(tables: Mapping[str, Any]) -> dict[str, str | None]:
    """Where each run's rows came from; `None` where its scores do not say."""
    found: dict[str, str | None] = {}
    for name, table in tables.items():
        origin = provenance_of(table) or {}
        found[name] = origin.get("dataset", {}).get("source")
    return found


def scored_on(runs: Mapping[str, tuple[str | None, int]]) -> str:
    """Describe the rows that runs were scored on.

    Args:
        runs: source (or `None`) and number of rows by name.

    Example:
        >>> scored_on({"a": ("sample", 35), "b": (None, 17)})
        'a was scored on sample (35 rows), b on rows from a place that was not recorded (17 rows)'
    """
    said = [
        f"{name} {'was scored ' if not i else ''}on {source or 'rows from a place that was not recorded'}"
        f" ({rows:,} row{'' if rows == 1 else 's'})"
        for i, (name, (source, rows)) in enumerate(runs.items())
    ]
    return ", ".join(said)


def check_alike(
    tables: Mapping[str, pa.Table], metric: Benchmark, sources: Mapping[str, str | None] | None = None
) -> dict[str, str]:
    """The one protocol of several runs, which must have the same rows of the same content, none of them skipped.

    Args:
        tables: what `read_table` gave, by the runs' names.
        metric: the benchmark's benchmark.
        sources: where their rows came from, by name.

    Raises:
        BenchError: they differ; the message says in what.
    """
    protocols = {name: one_protocol(table) for name, table in tables.items()}
    first, *others = tables
    for name in others:
        if protocols[name] != protocols[first]:
            shown = [f"{p['name']}@{p['version']}" for p in (protocols[first], protocols[name])]
            raise BenchError(f"compare: {first} was scored under {shown[0]}, {name} under {shown[1]}; score both alike")
    for name, table in tables.items():
        skipped = table.filter(table["skipped"])["key"].to_pylist()
        if skipped:
            raise BenchError(f"compare: {name} left out {len(skipped)} rows, such as {skipped[0]}; mend and score them")

    def content(table: pa.Table) -> dict[tuple[str, ...], str]:
        names = zip(*(table[column].to_pylist() for column in metric.sort_columns), strict=True)
        return dict(zip(names, table["row_sha256"].to_pylist(), strict=True))

    expected = content(tables[first])
    for name in others:
        found = content(tables[name])
        places = {run: ((sources or {}).get(run), len(rows)) for run, rows in ((first, expected), (name, found))}
        for missing, has, lacks in (
            (expected.keys() - found.keys(), first, name),
            (found.keys() - expected.keys(), name, first),
        ):
            if missing and {key[0] for key in expected} == {key[0] for key in found} and len(metric.sort_columns) > 1:
                key, *rest = min(missing)
                answer = ", ".join(f"{n} {v}" for n, v in zip(metric.sort_columns[1:], rest, strict=True))
                raise BenchError(
                    f"compare: the same rows, but {has} has {len(missing)} answers that {lacks} lacks, such as"
                    f" {answer} of {key}; both need the same {' and '.join(f'{n}s' for n in metric.sort_columns[1:])}"
                )
            if missing:
                example = " ".join(min(missing))
                raise BenchError(
                    f"compare: {scored_on(places)}: {has} has {len(missing)} rows that {lacks} lacks, such as"
                    f" {example}; score both on the same rows"
                )
        changed = sorted(key for key in expected if expected[key] != found[key])
        if changed:
            raise BenchError(
                f"compare: {len(changed)} rows of {name} were scored against other truth than those of {first}, such as"
                f" {' '.join(changed[0])}; {scored_on(places)}: score both on the same data"
            )
    return protocols[first]


def coarsest(tables: Mapping[str, pa.Table], unit: str) -> tuple[list[str], str, list[str]]:
    """The coarsest unit that any of the runs resamples, for resampling them together.

    Scores of rows whose images were read bear the image's hash, others the row's key alone; runs of both kinds are
    held against each other by image, as rows of one image are no independent cases.

    Args:
        tables: what `read_table` gave, by the runs' names, with the same rows.
        unit: what the benchmark resamples where rows bear no image.

    Returns:
        Each row's cluster, what clusters are called, and what is to be said of it.
    """
    clusters = {name: table["cluster"].to_pylist() for name, table in tables.items()}
    keys = {name: table["key"].to_pylist() for name, table in tables.items()}
    units = {name: unit if clusters[name] == keys[name] else "image" for name in tables}
    counts = {name: len(set(found)) for name, found in clusters.items()}
    chosen = min(counts, key=lambda name: counts[name])
    remarks = []
    if len(set(counts.values())) > 1:
        said = ", ".join(f"{name} by {many(units[name], counts[name])}" for name in tables)
        remarks.append(f"resampled apart, {said}; here all by the coarsest, {many(units[chosen], counts[chosen])}")
    if few(counts[chosen]):
        remarks.append(f"only {many(units[chosen], counts[chosen])}: so few that intervals mean little")
    return clusters[chosen], units[chosen], remarks
