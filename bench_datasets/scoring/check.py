"""`check` with the verdict of the scoring: it finds a fault exactly where `score` would stop."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datasets import Dataset

from bench_datasets.benchmark import get_benchmark
from bench_datasets.faults import FAULTS, BenchError, Fault, FaultError, stops
from bench_datasets.predictions import CheckReport, read_predictions
from bench_datasets.predictions import check as check_predictions
from bench_datasets.predictions.check import Collector
from bench_datasets.predictions.values import read_truth
from bench_datasets.scoring.hints import causes_in
from bench_datasets.scoring.options import COUNT_AS_WRONG, ScoreOptions
from bench_datasets.scoring.prepare import Plan, UnitScorer, make_plan

if TYPE_CHECKING:
    from bench_datasets.predictions.read import Predictions


def check(
    benchmark: str,
    predictions: Predictions,
    truth: Any = None,
    *,
    protocol: str | None = None,
    missing: str = "error",
    on_fault: str = "stop",
    level: str | None = None,
    whole: bool = True,
) -> CheckReport:
    """List everything that is wrong with predictions, and the faults of their ground truth at which scoring stops.

    Args:
        benchmark: its name.
        predictions: anything that `read_predictions` takes.
        truth: the rows they are for, in any form that `score` takes, streams aside. Without it, nothing is known about
            unknown, missing and resized rows, nor about the ground truth.
        protocol: a protocol's name; the benchmark's default for `None`.
        missing: as for `score`: `error` or `empty`.
        on_fault: as for `score`: `stop`, `skip-and-report` or `count-as-wrong`.
        level: PBench: the level of rows without a `level` column; by default the truth's split.
        whole: whether `truth` is all that the predictions are about; if not, predictions for other rows are no fault.

    Returns:
        The report: errors and warnings by code, each with its count and the first few rows. With `truth`, `ok` is true
        exactly where `score` with the same choices would not stop.

    Raises:
        BenchError: the predictions or the ground truth can't be read at all, or a choice is unknown.
    """
    metric = get_benchmark(benchmark)
    ScoreOptions(metric.protocol(protocol).name, missing, on_fault)
    if truth is None:
        return _tolerant(check_predictions(benchmark, predictions), missing, on_fault)
    truth = read_truth(benchmark, truth)
    if not isinstance(truth, Dataset):
        raise BenchError(f"truth: expected a Dataset, found {type(truth).__name__}; load it without streaming")
    try:
        read = read_predictions(benchmark, predictions)
    except FaultError:  # of the file as a whole
        return check_predictions(benchmark, predictions, truth)
    report = check_predictions(benchmark, read, truth)
    if not set(metric.required_columns) <= set(truth.column_names):
        return _tolerant(report, missing, on_fault)  # rows that name what predictions are for, but can't be scored
    if level is None and str(truth.split) in metric.parts:
        level = str(truth.split)
    plan = make_plan(
        benchmark, truth, read, protocol, missing=missing, on_fault=COUNT_AS_WRONG, level=level, whole=whole
    )
    of_truth, of_predictions, scored = _scoring_faults(plan)
    stopping = {fault.code for fault in (*of_truth, *of_predictions, *plan.units.faults)}
    # A row that stops for one fault is not searched for others, so nothing is harmless as long as any row stops.
    kept = [group for group in report.errors if group.code in stopping or (stopping and stops(group.code))]
    harmless = [group for group in report.errors if group not in kept]
    new = Collector()
    new.extend(fault for fault in of_predictions if fault.code not in {group.code for group in kept})
    truths = Collector()
    truths.extend(of_truth)
    report = replace(
        report,
        errors=(*kept, *new.groups({}), *truths.groups({code: _of_truth(code) for code in truths.counts})),
        warnings=(*report.warnings, *harmless),
    )
    report = replace(report, hints=tuple(causes_in(plan)))
    if on_fault == "skip-and-report":
        scored -= len({fault.key for fault in of_predictions} - {fault.key for fault in of_truth})
    if not scored and report.errors:  # there is nothing left to score, whatever is done about faults
        return report
    return _tolerant(report, missing, on_fault)


def _of_truth(code: str) -> str:
    meaning = FAULTS[code].meaning if code in FAULTS else "a fault of the row"
    return f"ground truth: {meaning}; correct the source's row, it can't be scored"


def _tolerant(report: CheckReport, missing: str, on_fault: str) -> CheckReport:
    """The report under the options: faults that they allow are no errors."""
    if missing == "empty":
        absent = [group for group in report.errors if group.code == "missing_prediction"]
        counted = [
            replace(group, advice="rows without a prediction are scored as empty predictions") for group in absent
        ]
        errors = tuple(group for group in report.errors if group.code != "missing_prediction")
        report = replace(report, errors=errors, warnings=(*report.warnings, *counted))
    return replace(report, on_fault=on_fault)


def _scoring_faults(plan: Plan) -> tuple[list[Fault], list[Fault], int]:
    """Faults of the ground truth, faults of predictions, and how many score rows have none of the former."""
    work = UnitScorer(plan)
    of_truth: list[Fault] = []
    of_predictions: list[Fault] = []
    scored = 0
    units = list(plan.everything)
    for first in range(0, len(units), plan.lot):
        some = units[first : first + plan.lot]
        table = work.attached(some)
        faulty = plan.metric.row_faults(table, plan.options)
        left_out, wrong = faulty.lists()
        of_truth += left_out
        of_predictions += wrong
        scored += len(some) - len(faulty.left_out)
    return of_truth, of_predictions, scored
