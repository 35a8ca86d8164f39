"""The `evaluate` module of a benchmark without one of its own, as plug-ins: rows in, every number out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from datasets import Features, Value

from bench_datasets.benchmark import get_benchmark
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.hf_evaluate.row_metric import RowMetric, check_aligned
from bench_datasets.masks import MaskError, plain
from bench_datasets.results.result import Result
from bench_datasets.results.summarize import summarize
from bench_datasets.scoring.score import scorer

_INPUTS = """
Args:
    predictions: for each row a dictionary of the columns that a model adds (such as `pred_masks`), or the value of the
        first of them alone; `None` where there is no prediction.
    references: for each row the ground-truth row, a dictionary as `load_dataset` gives it.
    ids: what errors call each row; its key, or its position, where not given.
    protocol: a protocol's name; the benchmark's default otherwise.
    missing: `empty` counts a prediction of `None` as an empty one; `error`, the default, refuses it.
    on_fault: `skip-and-report` leaves a row that can't be scored out; `stop`, the default, refuses it.

Returns:
    Values by metric key; NaN where undefined.
"""

_TEXT = Value("string")


def rows_metric(benchmark: str) -> type[RowMetric]:
    """The class for `evaluate` of a benchmark whose metric module follows docs/add-a-benchmark.md.

    Args:
        benchmark: its name.

    Raises:
        BenchError: there is no benchmark of that name.

    Example:
        >>> rows_metric("pbench").BENCHMARK
        'pbench'
    """
    entry = get_benchmark(benchmark)
    return type(entry.name, (_RowsMetric,), {"BENCHMARK": entry.name, "DESCRIPTION": entry.about or entry.title})


class _RowsMetric(RowMetric):
    """Rows are kept as JSON until they are scored: Arrow's types would not hold what differs between rows."""

    INPUTS = _INPUTS
    FEATURES = Features(predictions=_TEXT, references=_TEXT, ids=_TEXT)
    OPTIONS = ("protocol", "missing", "on_fault")

    def _validated(self, predictions: Any, references: Any, ids: Any, **columns: Any) -> dict[str, list[Any]]:
        check_aligned(predictions, references, ids, "an item per row")
        metric = get_benchmark(self.BENCHMARK)
        found: dict[str, list[Any]] = {"predictions": [], "references": [], "ids": []}
        for k, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
            if not isinstance(reference, Mapping):
                raise BenchError(f"row {k}: references: expected a ground-truth row, found {type(reference).__name__}")
            name = str(reference.get("key") or f"row {k}") if ids is None else str(ids[k])
            given = prediction if isinstance(prediction, Mapping) else {metric.prediction_columns[0]: prediction}
            answer = {column: given[column] for column in metric.prediction_columns if column in given}
            if not answer:
                expected = f"expected {' or '.join(metric.prediction_columns)}"
                raise BenchError(f"{name}: predictions: {expected}, found {', '.join(map(str, given)) or 'nothing'}")
            row = {column: reference[column] for column in metric.truth_columns if column in reference}
            for column, record in (("predictions", answer), ("references", {"key": name, **row})):
                try:
                    found[column].append(json.dumps(plain(record)))
                except MaskError as error:
                    raise FaultError("malformed_mask", name, f"{column}, {error}") from error
            found["ids"].append(name)
        return found

    def _result(self, predictions: list[Any], references: list[Any], **given: Any) -> Result:
        metric = get_benchmark(self.BENCHMARK)
        rows = [{**json.loads(row), **json.loads(found)} for row, found in zip(references, predictions, strict=True)]
        names = dict.fromkeys(name for row in rows for name in row)
        options = scorer(self.BENCHMARK, given.pop("protocol", None), **given).options
        batch = {name: [row.get(name) for row in rows] for name in names}
        return summarize(self.BENCHMARK, metric.score_table(batch, options), draws=0)
