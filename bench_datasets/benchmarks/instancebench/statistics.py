"""From InstanceBench's score rows to all numbers of the paper's tables, over one or several runs."""

from __future__ import annotations

import math
import statistics as plain
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from bench_datasets.benchmarks.instancebench import BENCHMARK
from bench_datasets.benchmarks.instancebench import metrics as numbers
from bench_datasets.benchmarks.instancebench.expressions import Expressions, Flags, read_expressions
from bench_datasets.benchmarks.instancebench.interventions import effects, interventions
from bench_datasets.benchmarks.instancebench.metrics import Numbers
from bench_datasets.benchmarks.instancebench.protocol import InstanceBenchProtocol, get_protocol
from bench_datasets.benchmarks.instancebench.schema import ORIGINAL
from bench_datasets.faults import BenchError
from bench_datasets.results.estimates import ALL, Gathered, assemble
from bench_datasets.results.result import Metric, Slice
from bench_datasets.results.statistics import Floats, Statistic, quotient_of_sums, value_of

SLICES = ("source", "operation", "source/operation")
"""Parts that are always shown (tables 9, 13, 16, 17)."""


def summarize_table(
    table: pa.Table, protocol: str, *, thresholds: Sequence[float] | None, by: Sequence[str], draws: int, seed: int
) -> tuple[dict[str, Metric], list[Slice]]:
    """Numbers and slices of scored rows.

    Args:
        table: score rows without skipped ones, sorted.
        protocol: the protocol they were scored under.
        thresholds: further IoU thresholds of P@t, All@t, TM@t and the failures.
        by: columns to slice by, besides source and operation.
        draws: bootstrap draws over TCESs.
        seed: of the draws.

    Raises:
        BenchError: a threshold is out of range, or there is no such column to slice by.
    """
    runs = _runs(table, get_protocol(protocol))
    found = _gather(runs, table, _taus(protocol, thresholds), by)
    metrics, slices = assemble(found, table["cluster"].to_pylist(), draws, seed, lower=BENCHMARK.lower_is_better)
    if len(runs) > 1:
        metrics = _with_deviation(metrics, runs, _taus(protocol, thresholds))
    counts = numbers.transitions(runs[0][ORIGINAL]) if runs else {}
    total = sum(counts.values())
    return metrics | {key: Metric(float(value), total) for key, value in counts.items()}, slices


def slice_statistics(
    table: pa.Table, protocol: str, *, thresholds: Sequence[float] | None = None, by: Sequence[str] = ()
) -> Gathered:
    """Every number of scored rows, by slice; see `summarize_table`."""
    return _gather(_runs(table, get_protocol(protocol)), table, _taus(protocol, thresholds), by)


def _taus(protocol: str, thresholds: Sequence[float] | None) -> tuple[float, ...]:
    if thresholds is not None and not all(0 < t <= 1 for t in thresholds):
        raise BenchError(f"thresholds: expected IoU thresholds in (0, 1], got {list(thresholds)}")
    return tuple(dict.fromkeys((get_protocol(protocol).tau, *(thresholds or ()))))


def _gather(
    runs: Sequence[Mapping[str, Expressions]], table: pa.Table, taus: Sequence[float], by: Sequence[str]
) -> Gathered:
    each = [_numbers(conditions, taus) for conditions in runs]
    names = list(dict.fromkeys(name for run in each for name in run))
    found: Gathered = {ALL: {name: _together([run[name] for run in each if name in run]) for name in names}}
    return found | _slices([conditions[ORIGINAL] for conditions in runs], table, taus, by)


def _runs(table: pa.Table, protocol: InstanceBenchProtocol) -> list[dict[str, Expressions]]:
    """The expressions of each run, by condition."""
    run = np.array(table["run"].to_pylist(), dtype=np.str_)
    condition = np.array(table["condition"].to_pylist(), dtype=np.str_)
    result = []
    for name in sorted(set(run.tolist())):
        rows = {
            c: np.flatnonzero((run == name) & (condition == c)) for c in sorted(set(condition[run == name].tolist()))
        }
        if ORIGINAL not in rows:
            raise BenchError(f"scores: run {name} has no rows under the condition {ORIGINAL}; score those too")
        result.append({c: read_expressions(table, index, protocol) for c, index in rows.items()})
    return result


def _numbers(conditions: Mapping[str, Expressions], taus: Sequence[float]) -> Numbers:
    """Every number of one run; numbers of masks are undefined where no answer was one."""
    e = conditions[ORIGINAL]
    tau = taus[0]
    result = numbers.masks(e, tau, taus[1:]) | numbers.identities(e, taus)
    where = e.core & e.eligible[e.row]
    for t in taus:
        result |= {f"{name}@{t:g}": item for name, item in numbers.failures(e, t, where).items()}
    result |= numbers.outlines(e) | numbers.tracks(e) | numbers.sources(e, tau) | effects(e)
    result |= interventions(e, {c: other for c, other in conditions.items() if c != ORIGINAL})
    result |= numbers.sensitivity(e, tau)
    result = _undefined(result, e.has_masks)
    result |= _undefined(numbers.boxes(e), e.has_boxes) | _undefined(numbers.named(e), e.has_names)
    return result


def _undefined(found: Numbers, given: bool) -> Numbers:
    """The numbers as they are if there were answers of their kind, else about nothing."""
    return found if given else {k: Statistic(s.rows, s.columns, s.of, 0) for k, s in found.items()}


def _with_deviation(
    metrics: Mapping[str, Metric], runs: Sequence[Mapping[str, Expressions]], taus: Sequence[float]
) -> dict[str, Metric]:
    """The numbers with their sample standard deviation over the runs, and how many runs have them."""
    each = [{name: value_of(item) for name, item in _numbers(conditions, taus).items()} for conditions in runs]
    result = {}
    for name, metric in metrics.items():
        values = [run[name] for run in each if name in run and math.isfinite(run[name])]
        sd = plain.stdev(values) if len(values) > 1 and metric.n else None
        result[name] = replace(metric, sd=sd, runs=len(values))
    return result


def _together(items: Sequence[Statistic]) -> Statistic:
    """The mean over runs as one number: a draw takes the same TCESs in every run."""
    defined = [item for item in items if item.n]
    if len(defined) < 2:
        return defined[0] if defined else items[0]
    widths = [item.columns.shape[1] for item in defined]
    kind = np.result_type(*(item.columns for item in defined))
    columns = np.zeros((sum(len(item.rows) for item in defined), sum(widths)), kind)
    row = at = 0
    for item, width in zip(defined, widths, strict=True):
        columns[row : row + len(item.rows), at : at + width] = item.columns
        row, at = row + len(item.rows), at + width
    bounds = np.cumsum([0, *widths])

    def of(sums: Floats) -> Floats:
        values = [item.of(sums[..., a:b]) for item, a, b in zip(defined, bounds[:-1], bounds[1:], strict=True)]
        return np.asarray(np.mean(values, axis=0), np.float64)

    rows = np.concatenate([item.rows for item in defined])
    return Statistic(rows, columns, of, max(item.n for item in defined))


def _slices(runs: Sequence[Expressions], table: pa.Table, taus: Sequence[float], by: Sequence[str]) -> Gathered:
    """Masks and failures of the core expressions by source, operation, both, and further columns."""
    wanted: dict[tuple[str, str], list[tuple[Expressions, Flags]]] = {}
    for e in runs:
        for name in dict.fromkeys((*SLICES, *by)):
            values = _values(e, table, name)
            for value in sorted(set(values[e.core].tolist())):
                wanted.setdefault((name, value), []).append((e, values == value))
    found: Gathered = {}
    for part, pieces in wanted.items():
        per_run = [_part(e, taus[0], where) for e, where in pieces]
        found[part] = {name: _together([run[name] for run in per_run]) for name in per_run[0]}
    return found


def _part(e: Expressions, tau: float, where: Flags) -> Numbers:
    core = e.core & where
    shared, union = numbers.by_row(e, e.shared, core), numbers.by_row(e, e.union, core)
    result = {
        "miou": numbers.mean(e, e.q, core),
        "oiou": numbers.make(e, [shared, union], quotient_of_sums, int(core.sum())),
        f"p@{tau:g}": numbers.mean(e, e.q >= tau, core),
    }
    eligible = core & e.eligible[e.row]
    result |= {f"{name}@{tau:g}": item for name, item in numbers.failures(e, tau, eligible).items()}
    return _undefined(result, e.has_masks)


def _values(e: Expressions, table: pa.Table, name: str) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    """The value of each expression in a column to slice by."""
    of_expression = {"operation": e.operation, "family": e.family, "role": e.role, "track": e.track}
    if name in of_expression:
        return of_expression[name]
    if name == "source/operation":
        return np.char.add(np.char.add(e.sources[e.row], "/"), e.operation)
    if name not in table.column_names or pa.types.is_nested(table.schema.field(name).type):
        flat = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
        raise BenchError(f"by: expected one of {', '.join([*of_expression, *flat])}; got {name!r}")
    texts = np.array([str(value) for value in table[name].to_pylist()], dtype=np.str_)
    return texts[e.rows][e.row]
