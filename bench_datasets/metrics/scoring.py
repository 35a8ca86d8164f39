"""Scoring: truth and predictions in, a score table out; one pure function behind every door."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pyarrow as pa
from datasets import Dataset, Features, IterableDataset

from bench_datasets import __version__
from bench_datasets.benchmarks import PBENCH_LEVELS, get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.masks import using_engine
from bench_datasets.metrics.lots import BATCH_ROWS
from bench_datasets.metrics.options import ScoreOptions
from bench_datasets.metrics.planning import make_plan, table_features


class Scorer:
    """A function for `Dataset.map(batched=True)` that turns rows with `pred_masks` into score rows.

    It takes an Arrow table (and gives one) or columns by name (and gives those), can be pickled, and holds nothing but
    its options.
    """

    def __init__(self, benchmark: str, options: ScoreOptions) -> None:
        self.benchmark, self.options = benchmark, options
        # `map` remembers results by what its function holds: another version of either must not find them.
        self.versions = __version__, _metric(benchmark).get_protocol(options.protocol).version

    def __call__(self, batch: pa.Table | Mapping[str, Any]) -> pa.Table | dict[str, list[Any]]:
        """Score a batch; see `scorer`.

        Raises:
            BenchError: a single row was handed over.
        """
        if not isinstance(batch, pa.Table) and any(isinstance(batch[name], (str, int)) for name in batch):
            raise BenchError("scorer: expected a batch of rows, found a single one; say map(..., batched=True)")
        with using_engine(self.options.engine, self.options.threads):
            scored: pa.Table = _metric(self.benchmark).score_table(batch, self.options)
        return scored if isinstance(batch, pa.Table) else scored.to_pydict()


def scorer(
    benchmark: str,
    protocol: str | None = None,
    *,
    missing: str = "error",
    on_fault: str = "stop",
    level: str | None = None,
    boundary: bool = False,
    engine: str | None = None,
    threads: int = 1,
) -> Scorer:
    """The function to `map` over rows that bear truth and predictions.

    Args:
        benchmark: its name.
        protocol: a protocol's name; the benchmark's default for `None`.
        missing: `error`, or `empty` to count a row without prediction as an answer without masks.
        on_fault: `stop`, or `skip-and-report` to leave a faulty row out and count it.
        level: PBench: the level of rows without a `level` column (the source's rows, split by split).
        boundary: whether to compare outlines too (boundary IoU, boundary F), in further columns.
        engine: what computes with the masks, `numba` or `pycocotools`; the fastest there is for `None`. The numbers
            are the same.
        threads: how many the numba engine may use in each process.

    Raises:
        BenchError: the benchmark, the protocol or a choice is unknown.

    Example:
        >>> from datasets import Dataset
        >>> mask = {"size": [2, 3], "counts": "15"}
        >>> rows = Dataset.from_list([{"id": 7, "level": "level_0", "masks": [mask], "pred_masks": [mask]}])
        >>> scores = rows.map(scorer("pbench"), batched=True, remove_columns=rows.column_names,
        ...                   features=score_features("pbench"))
        >>> scores[0]["key"], scores[0]["matched_intersection"]
        ('level_0/7', [5])
    """
    chosen = _metric(benchmark).get_protocol(protocol).name
    table_features(benchmark, boundary=boundary)
    return Scorer(benchmark, ScoreOptions(chosen, missing, on_fault, level, engine, threads, boundary=boundary))


def score_features(benchmark: str, protocol: str | None = None, *, boundary: bool = False) -> Features:
    """The score table's `Features`; to be given to `map`, which would otherwise guess them from the first rows.

    Args:
        benchmark: its name.
        protocol: a protocol's name; all of a benchmark's give the same columns.
        boundary: whether the columns of the option `boundary` are among them.

    Raises:
        BenchError: the benchmark or the protocol is unknown, or compares no outlines.
    """
    _metric(benchmark).get_protocol(protocol)
    return table_features(benchmark, boundary=boundary)


def map_score(
    dataset: Dataset | IterableDataset,
    benchmark: str,
    protocol: str | None = None,
    *,
    missing: str = "error",
    on_fault: str = "stop",
    level: str | None = None,
    boundary: bool = False,
    num_proc: int | None = None,
    engine: str | None = None,
    threads: int = 1,
) -> Dataset | IterableDataset:
    """Score rows that bear truth and predictions, streaming or not.

    Writes the line `dataset.map(scorer(...), batched=True, remove_columns=..., features=...)`; the level of rows
    without a `level` column is taken from the dataset's split where it is named like one.

    Raises:
        BenchError: as `scorer`, and what the rows are found to lack.
    """
    if level is None and str(dataset.split) in PBENCH_LEVELS:
        level = str(dataset.split)
    function = scorer(
        benchmark, protocol, missing=missing, on_fault=on_fault, level=level, boundary=boundary, engine=engine,
        threads=threads,
    )  # fmt: skip
    columns = dataset.column_names or list(next(iter(dataset), ()))  # a stream may not know them before its rows
    features = score_features(benchmark, protocol, boundary=boundary)
    if isinstance(dataset, IterableDataset):
        if num_proc is not None:
            raise BenchError("num_proc: a streaming dataset is scored in one process; leave it out")
        return dataset.map(function, batched=True, batch_size=BATCH_ROWS, remove_columns=columns, features=features)
    arrow = dataset.with_format("arrow")
    return arrow.map(
        function, batched=True, batch_size=BATCH_ROWS, remove_columns=columns, features=features, num_proc=num_proc
    ).with_format(None)


def score(
    benchmark: str,
    truth: Dataset | IterableDataset,
    predictions: Dataset,
    protocol: str | None = None,
    *,
    missing: str = "error",
    on_fault: str = "stop",
    level: str | None = None,
    boundary: bool = False,
    num_proc: int | None = None,
    engine: str | None = None,
    threads: int = 1,
    whole: bool = True,
    oracle: str | None = None,
) -> Dataset:
    """Score predictions against the truth.

    Every prediction is validated and paired with its row before the first one is scored, so that a fault in the last
    row is found at once.

    Args:
        benchmark: its name.
        truth: rows as the builder gives them, or the source's own.
        predictions: what `read_predictions` gives, or a Dataset of one's own, which is read as that reads it.
        protocol: a protocol's name; the benchmark's default for `None`.
        missing: `error`, or `empty` to count a row without prediction as an answer without masks.
        on_fault: `stop`, or `skip-and-report` to leave a faulty row out and count it.
        level: PBench: the level of rows without a `level` column; by default the truth's split.
        boundary: whether to compare outlines too (boundary IoU, boundary F), in further columns.
        num_proc: processes; 1 for `None`.
        engine: what computes with the masks, `numba` or `pycocotools`; the fastest there is for `None`. The numbers
            are the same.
        threads: how many the numba engine may use in each process.
        whole: whether `truth` is all that the predictions are about; if not, predictions for other rows are no fault.
        oracle: PVSG: `tubes` or `relations`, whose truth takes the predictions' place.

    Returns:
        One score row a truth row, sorted by key, with the provenance in the schema's metadata.

    Raises:
        FaultError: a row has a fault and `on_fault` is `stop`.
        BenchError: a choice or a column is wrong.
    """
    plan = make_plan(
        benchmark, truth, predictions, protocol, missing=missing, on_fault=on_fault, level=level, boundary=boundary,
        engine=engine, threads=threads, oracle=oracle, whole=whole, num_proc=num_proc,
    )  # fmt: skip
    return plan.finish(plan.score(range(len(plan.units)), num_proc))


def _metric(benchmark: str) -> ModuleType:
    return get_benchmark(benchmark).metric_module()
