"""Stored results checked against the scores beside them: every number is computed again, without intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from datasets import Dataset

from bench_datasets.benchmark import BENCHMARKS, get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.results.comparability import benchmark_of
from bench_datasets.results.result import Metric, Result, Slice
from bench_datasets.results.summarize import summarize
from bench_datasets.scoring.provenance import provenance_of

MAX_VALUES = 1_000
"""Most distinct texts of a column whose values become slices."""

MAX_WORK = 50_000_000
"""Most rows times distinct texts of such a column."""


def reproduce(result: Result, scores: Dataset, *, slices: bool = True) -> Result:
    """A stored result, if the scores beside it give every one of its numbers.

    Everything in the result but intervals, package versions and the time is computed again. What the scores record of
    their origin must be what the result says. Numbers that this version does not compute are left out.

    Args:
        result: as it was stored.
        scores: the score table that the result is of, with its provenance.
        slices: whether slices by further columns are checked, too; else they are left out.

    Returns:
        The result with the numbers that were checked.

    Raises:
        BenchError: the scores give another number, or are no score table; the message names the first difference.
    """
    fresh = _computed(result, scores, slices)
    stored, found = result.to_dict(), fresh.to_dict()
    _same("benchmark", stored["benchmark"], found["benchmark"])
    for part in ("protocol", "dataset", "predictions", "settings"):
        for name in dict.fromkeys([*found[part], *stored[part]]):
            _same(f"{part}.{name}", stored[part].get(name), found[part].get(name))
    for name in ("unit", "clusters"):
        if name in stored["statistics"]:
            _same(f"statistics.{name}", stored["statistics"][name], found["statistics"][name])
    _same("faults", stored["faults"], found["faults"])
    known = {(part.by, part.value): part.metrics for part in fresh.slices}
    parts = [
        Slice(part.by, part.value, _checked(part.metrics, known[part.by, part.value], f"{part.by} {part.value}: "))
        for part in result.slices
        if (part.by, part.value) in known
    ]
    return replace(result, metrics=_checked(result.metrics, fresh.metrics), slices=parts)


def _computed(result: Result, scores: Dataset, slices: bool) -> Result:
    """The numbers that the scores give under the result's own settings."""
    if result.benchmark not in BENCHMARKS:
        raise BenchError(f"benchmark {ascii(result.benchmark)[:80]} is not known here; install the package that has it")
    benchmark = benchmark_of(scores)
    _same("benchmark", result.benchmark, benchmark)
    columns = scores.column_names
    by = [name for name in dict.fromkeys(part.by for part in result.slices) if slices and name in columns]
    _check_work(benchmark, scores, by)
    asked = {name: result.settings[name] for name in ("k", "thresholds") if result.settings.get(name) is not None}
    try:
        return summarize(benchmark, scores, draws=0, by=by, provenance=_origin(result, scores), **asked)
    except BenchError:
        raise
    except Exception as error:  # columns that contradict each other break sums in many ways
        raise BenchError(f"the scores contradict themselves ({type(error).__name__}: {str(error)[:100]})") from error


def _origin(result: Result, scores: Dataset) -> Mapping[str, Any]:
    """Origin that the scores record; if they record none, the origin that the result states."""
    found = provenance_of(scores)
    if found is not None:
        return found
    dataset = {name: result.dataset.get(name) for name in ("source", "split", "revision")}
    in_rows = {code for codes in scores["faults"] for code in codes or ()}
    return {
        "dataset": {**dataset, "expected": result.dataset["rows"]["expected"]},
        "predictions": result.predictions,
        "settings": {name: result.settings.get(name) for name in ("missing", "on_fault")},
        "faults": {code: entry for code, entry in result.faults.items() if code not in in_rows},
    }


def _check_work(benchmark: str, scores: Dataset, by: list[str]) -> None:
    """Refuse tables whose texts would make more slices than can be computed in reasonable time."""
    table, metric = scores.with_format("arrow")[:], get_benchmark(benchmark)
    ids = {"key", "cluster", "protocol", "row_sha256", "faults", "category", *by}
    for name in metric.score_features():
        kind = table.schema.field(name).type
        values = table[name].combine_chunks()
        while pa.types.is_list(kind) or pa.types.is_large_list(kind):
            values, kind = values.flatten(), kind.value_type
        if name in ids or name.endswith("_ids") or not pa.types.is_string(kind):
            continue
        distinct = len(values.unique())
        if distinct > MAX_VALUES or distinct * len(values) > MAX_WORK:
            raise BenchError(f"column {name!r}: expected at most {MAX_VALUES:,} distinct texts, found {distinct:,}")


def _checked(stored: Mapping[str, Metric], fresh: Mapping[str, Metric], where: str = "") -> dict[str, Metric]:
    """The metrics that are in both, each with the same value."""
    known = {key: metric for key, metric in stored.items() if key in fresh}
    for key, metric in known.items():
        one, other = metric, fresh[key]
        if not _close(one.value, other.value):
            raise BenchError(f"{where}{key}: the result says {_text(one.value)}, the scores give {_text(other.value)}")
        for name in ("n", "higher_is_better", "runs"):
            _same(f"{where}{key}: {name}", getattr(one, name), getattr(other, name))
        if not _close(one.sd if one.sd is not None else math.nan, other.sd if other.sd is not None else math.nan):
            _same(f"{where}{key}: sd", one.sd, other.sd)
    return known


def _close(one: float, other: float) -> bool:
    """Whether two numbers agree, apart from the last digits that another machine may round differently."""
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def _text(value: float) -> str:
    return "none" if math.isnan(value) else f"{value:.6g}"


def _same(name: str, stored: object, found: object) -> None:
    if stored != found:
        one, other = (ascii(value)[:80] for value in (stored, found))
        raise BenchError(f"{name}: the result says {one}, the scores give {other}")
