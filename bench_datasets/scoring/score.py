"""Scoring: truth and predictions in, a score table out; one pure function behind every door."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa
from datasets import Dataset, DatasetInfo, Features, IterableDataset, load_from_disk
from datasets.utils import tqdm

from bench_datasets import __version__
from bench_datasets.benchmark import Benchmark, get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.masks import MaskError, plain, using_engine
from bench_datasets.predictions.values import Rows, given_rows
from bench_datasets.scoring.batching import BATCH_ROWS
from bench_datasets.scoring.options import ScoreOptions
from bench_datasets.scoring.prepare import make_plan, table_features


class Scorer:
    """A function for `Dataset.map(batched=True)` that turns rows with `pred_masks` into score rows.

    It takes an Arrow table (and gives one) or columns by name (and gives those), can be pickled, and holds nothing but
    its options.
    """

    def __init__(self, benchmark: str, options: ScoreOptions) -> None:
        self.benchmark, self.options = benchmark, options
        # `map` remembers results by what its function holds: another version of either must not find them.
        self.versions = __version__, _metric(benchmark).protocol(options.protocol).version

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
        missing: `error`, or `empty` to count a row without a prediction as an empty prediction.
        on_fault: `stop`; `skip-and-report` to leave a faulty row out and count it; or `count-as-wrong` to score a
            faulty or missing prediction as wrong.
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
    chosen = _metric(benchmark).protocol(protocol).name
    table_features(benchmark, boundary=boundary)
    options = ScoreOptions(chosen, missing, on_fault, level, engine, threads, boundary=boundary)
    return Scorer(benchmark, options)


def score_features(benchmark: str, protocol: str | None = None, *, boundary: bool = False) -> Features:
    """The score table's `Features`; to be given to `map`, which would otherwise guess them from the first rows.

    Args:
        benchmark: its name.
        protocol: a protocol's name; all of a benchmark's give the same columns.
        boundary: whether the columns of the option `boundary` are among them.

    Raises:
        BenchError: the benchmark or the protocol is unknown, or compares no outlines.
    """
    _metric(benchmark).protocol(protocol)
    return table_features(benchmark, boundary=boundary)


def map_score(
    dataset: Any,
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
) -> Dataset:
    """Score rows that hold ground truth and predictions.

    A Dataset is scored by `dataset.map(scorer(...), batched=True, remove_columns=..., features=...)`. A streaming
    Dataset, such as `truth.map(model)` with `streaming=True`, is read once from its begin to its end, so that the model
    runs once per row; the score table comes back whole. (A stream is computed each time it is read: for a lazy one,
    write the line above.)

    Args:
        dataset: the rows: a Dataset, streaming or not; a DatasetDict of one split; a list of dictionaries; a DataFrame
            or an Arrow table; a dictionary of columns; or the path of a Parquet file or of a folder that
            `save_to_disk` wrote. Masks in lists of dictionaries, and in streams, may be arrays, tensors and images.
        benchmark: its name.
        protocol: a protocol's name; the benchmark's default for `None`.
        missing: `error`, or `empty` to count a row without prediction as a prediction without masks.
        on_fault: `stop`, or `skip-and-report` to leave a faulty row out and count it.
        level: PBench: the level of rows without a `level` column; by default the split, where it is named like one.
        boundary: whether to compare outlines too (boundary IoU, boundary F), in further columns.
        num_proc: processes; 1 for `None`. For a Dataset alone.
        engine: what computes with the masks, `numba` or `pycocotools`; the fastest there is for `None`. The numbers
            are the same.
        threads: how many the numba engine may use in each process.

    Returns:
        One score row per row, in the order of the rows.

    Raises:
        FaultError: a row has a fault and `on_fault` is `stop`.
        BenchError: a choice is wrong, or the rows lack a column.

    Example:
        >>> import numpy as np
        >>> row = {"id": 7, "level": "level_0", "masks": [np.ones((2, 3), bool)], "pred_masks": [np.ones((2, 3), bool)]}
        >>> map_score([row], "pbench")["key"][0]
        'level_0/7'
    """
    rows = _joined_rows(dataset)
    if level is None and not isinstance(rows, list) and str(rows.split) in get_benchmark(benchmark).parts:
        level = str(rows.split)
    function = scorer(
        benchmark, protocol, missing=missing, on_fault=on_fault, level=level, boundary=boundary, engine=engine,
        threads=threads,
    )  # fmt: skip
    features = score_features(benchmark, protocol, boundary=boundary)
    if isinstance(rows, Dataset) and len(rows):
        arrow = rows.with_format("arrow")
        return arrow.map(
            function, batched=True, batch_size=BATCH_ROWS, remove_columns=rows.column_names, features=features,
            num_proc=num_proc,
        ).with_format(None)  # fmt: skip
    if num_proc is not None:
        raise BenchError("num_proc: only a Dataset that is not streaming is scored in several processes; leave it out")
    schema = features.arrow_schema.remove_metadata()
    tables = [schema.empty_table()]
    with tqdm(desc="Scoring", unit=" rows", disable=None) as progress:
        for batch in _batches(rows, _metric(benchmark)):
            columns = {
                name: [row.get(name) for row in batch] for name in dict.fromkeys(n for row in batch for n in row)
            }
            with using_engine(engine, threads):
                tables.append(_metric(benchmark).score_table(columns, function.options).cast(schema))
            progress.update(len(batch))
    return Dataset(pa.concat_tables(tables), info=DatasetInfo(features=features))


def _joined_rows(dataset: Any) -> Rows:
    """The rows that `map_score` was given."""
    if not isinstance(dataset, (str, os.PathLike)):
        return given_rows(dataset, "dataset")
    path = os.fspath(dataset)
    try:
        return given_rows(Dataset.from_parquet(path) if os.path.isfile(path) else load_from_disk(path), "dataset")
    except BenchError:
        raise
    except Exception as error:  # whatever a broken file or folder raises
        expected = "expected rows of ground truth and predictions in a Parquet file, or in a folder of save_to_disk"
        raise BenchError(
            f"{path}: {expected}, found something else ({type(error).__name__}: {error}); to score predictions alone"
            " use bd.score(benchmark, truth, predictions)"
        ) from error


def _batches(rows: Rows, metric: Benchmark) -> Iterator[list[Mapping[str, Any]]]:
    """Rows of a list or a stream as plain values in batches; the scoring refuses values that are no masks."""
    if isinstance(rows, IterableDataset) and rows.column_names:
        wanted = {*metric.truth_columns, *metric.prediction_columns, *metric.prediction_features()}
        rows = rows.select_columns([name for name in rows.column_names if name in wanted])
    each = iter(rows)
    while batch := list(islice(each, BATCH_ROWS)):
        yield [_plain(row) for row in batch]


def _plain(row: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = plain(row, height=row.get("height"), width=row.get("width"))
    except MaskError:
        return row
    return found


def score(
    benchmark: str,
    truth: Any,
    predictions: Any,
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
        truth: rows as `load_dataset(benchmark)` gives them, or the source's own: a Dataset, streaming or not; a
            DatasetDict of one split; a list of dictionaries, a DataFrame, an Arrow table or a dictionary of columns;
            the path or URL of a folder or file (its split `test`); or `sample` for the built-in rows.
        predictions: what `read_predictions` gives, or anything that it takes: a path, a list of dictionaries, ...
        protocol: a protocol's name; the benchmark's default for `None`.
        missing: `error`, or `empty` to count a row without a prediction as an empty prediction.
        on_fault: `stop`; `skip-and-report` to leave a faulty row out and count it; or `count-as-wrong` to score a
            faulty or missing prediction as wrong.
        level: PBench: the level of rows without a `level` column; by default the truth's split.
        boundary: whether to compare outlines too (boundary IoU, boundary F), in further columns.
        num_proc: processes; 1 for `None`.
        engine: what computes with the masks, `numba` or `pycocotools`; the fastest there is for `None`. The numbers
            are the same.
        threads: how many the numba engine may use in each process.
        whole: whether `truth` is all that the predictions are about; if not, predictions for other rows are no fault.
        oracle: PVSG: `tubes` or `relations`, whose truth takes the predictions' place.

    Returns:
        One score row per row of the ground truth, sorted by key, with the provenance in the schema's metadata.

    Raises:
        FaultError: a row has a fault and `on_fault` is `stop`.
        BenchError: a choice or a column is wrong.

    Example:
        >>> scores = score("pbench", "sample", "predictions.jsonl")                          # doctest: +SKIP
        >>> import numpy as np
        >>> truth = [{"id": 7, "level": "level_0", "masks": [np.ones((2, 3), bool)]}]
        >>> score("pbench", truth, [{"id": 7, "masks": [np.ones((2, 3), bool)]}])["key"][0]
        'level_0/7'
    """
    plan = make_plan(
        benchmark, truth, predictions, protocol, missing=missing, on_fault=on_fault, level=level, boundary=boundary,
        engine=engine, threads=threads, oracle=oracle, whole=whole, num_proc=num_proc,
    )  # fmt: skip
    return plan.finish(plan.score(range(len(plan.units)), num_proc))


def _metric(benchmark: str) -> Benchmark:
    return get_benchmark(benchmark)
