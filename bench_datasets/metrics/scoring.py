"""Scoring: truth and predictions in, a score table out; one pure function behind every door."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, Features, IterableDataset
from datasets.utils import tqdm
from numpy.typing import NDArray

from bench_datasets.benchmarks import get_benchmark
from bench_datasets.builders import provenance
from bench_datasets.faults import FAULTS, BenchError, FaultError
from bench_datasets.masks import using_engine
from bench_datasets.metrics.hashes import content_hash, row_hashes
from bench_datasets.metrics.masklists import CHUNK_BYTES, parts
from bench_datasets.metrics.options import ScoreOptions
from bench_datasets.metrics.provenance import with_provenance
from bench_datasets.metrics.units import Units, blame
from bench_datasets.predictions.store import Spool

BATCH_ROWS = 64
"""Rows that are taken up at a time; the scoring cuts them further by bytes."""

EXAMPLES = 5
"""Keys that are named with each fault."""


class Scorer:
    """A function for `Dataset.map(batched=True)` that turns rows with `pred_masks` into score rows.

    It takes an Arrow table (and gives one) or columns by name (and gives those), can be pickled, and holds nothing but
    its options.
    """

    def __init__(self, benchmark: str, options: ScoreOptions) -> None:
        self.benchmark, self.options = benchmark, options

    def __call__(self, batch: pa.Table | Mapping[str, Any]) -> pa.Table | dict[str, list[Any]]:
        """Score a batch; see `scorer`."""
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
    return Scorer(benchmark, ScoreOptions(chosen, missing, on_fault, level, engine, threads))


def score_features(benchmark: str, protocol: str | None = None) -> Features:
    """The score table's `Features`; to be given to `map`, which would otherwise guess them from the first rows."""
    metric = _metric(benchmark)
    metric.get_protocol(protocol)
    result: Features = metric.features()
    return result


def map_score(
    dataset: Dataset | IterableDataset,
    benchmark: str,
    protocol: str | None = None,
    *,
    missing: str = "error",
    on_fault: str = "stop",
    level: str | None = None,
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
    if level is None and str(dataset.split) in get_benchmark(benchmark).source.rows:
        level = str(dataset.split)
    function = scorer(
        benchmark, protocol, missing=missing, on_fault=on_fault, level=level, engine=engine, threads=threads
    )
    columns = dataset.column_names
    features = score_features(benchmark, protocol)
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
    num_proc: int | None = None,
    engine: str | None = None,
    threads: int = 1,
    whole: bool = True,
) -> Dataset:
    """Score predictions against the truth.

    Every prediction is validated and paired with its row before the first one is scored, so that a fault in the last
    row is found at once.

    Args:
        benchmark: its name.
        truth: rows as the builder gives them, or the source's own.
        predictions: what `read_predictions` gives, or a Dataset of those columns.
        protocol: a protocol's name; the benchmark's default for `None`.
        missing: `error`, or `empty` to count a row without prediction as an answer without masks.
        on_fault: `stop`, or `skip-and-report` to leave a faulty row out and count it.
        level: PBench: the level of rows without a `level` column; by default the truth's split.
        num_proc: processes; 1 for `None`.
        engine: what computes with the masks, `numba` or `pycocotools`; the fastest there is for `None`. The numbers
            are the same.
        threads: how many the numba engine may use in each process.

        whole: whether `truth` is all that the predictions are about; if not, predictions for other rows are no fault.

    Returns:
        One score row a truth row, sorted by key, with the provenance in the schema's metadata.

    Raises:
        FaultError: a row has a fault and `on_fault` is `stop`.
        BenchError: a choice or a column is wrong.
    """
    metric = _metric(benchmark)
    if level is None and str(truth.split) in get_benchmark(benchmark).source.rows:
        level = str(truth.split)
    options = scorer(
        benchmark, protocol, missing=missing, on_fault=on_fault, level=level, engine=engine, threads=threads
    ).options
    source = provenance(truth)
    labels = _labels(truth, metric)
    if not len(labels):
        raise BenchError("truth: expected rows, found none")
    units: Units = metric.pair_units(labels, predictions, options, whole)
    others = _count(units, options)
    answers = predictions.select_columns([c for c in metric.ANSWER_COLUMNS if c in predictions.column_names])
    with using_engine(engine, threads):
        hashed = _verify(metric, answers, units, options)
    table = pa.concat_tables(_scored(labels, answers, units, Scorer(benchmark, options), num_proc))
    table = table.take(pa.array(sort_order(table, metric.SORT_COLUMNS)))
    chosen = metric.get_protocol(protocol)
    record = {
        "benchmark": benchmark,
        "protocol": {"name": chosen.name, "version": chosen.version},
        "dataset": {
            "source": source["source"] if source else None,
            "split": str(truth.split) if truth.split is not None else None,
            "revision": source["revision"] if source else None,
            "expected": sum(source["rows"].values()) if source else None,
        },
        "predictions": {
            "sha256": content_hash(hashed), "rows": len(predictions), "missing": units.missing
        },
        "settings": {"missing": missing, "on_fault": on_fault},
        "faults": others,
    }  # fmt: skip
    features = score_features(benchmark, protocol)
    return Dataset(with_provenance(table.cast(features.arrow_schema), features, record))


def _count(units: Units, options: ScoreOptions) -> dict[str, dict[str, Any]]:
    """Faults of the pairing that belong to no unit, counted; rows named twice are scored as faulty ones.

    Raises:
        FaultError: there is a fault and the options say to stop.
    """
    counts: dict[str, dict[str, Any]] = {}
    for fault in units.faults:
        if options.stops:
            raise FaultError(*fault)
        if fault.code == "duplicate_prediction":
            continue
        entry = counts.setdefault(fault.code, {"count": 0, "examples": []})
        entry["count"] += 1
        if len(entry["examples"]) < EXAMPLES:
            entry["examples"].append(fault.key)
    return counts


def _labels(truth: Dataset | IterableDataset, metric: ModuleType) -> Dataset:
    """The truth's label columns alone; a stream is written to disk, so that memory stays bounded."""
    names = truth.column_names or list(truth.features or ())
    wanted = [name for name in metric.LABEL_COLUMNS if name in names]
    if isinstance(truth, Dataset):
        return truth.select_columns(wanted)
    stream = truth.select_columns(wanted) if wanted else truth
    spool: Spool | None = None
    try:
        for batch in stream.with_format("arrow").iter(batch_size=BATCH_ROWS):
            if spool is None:
                spool = Spool(batch.schema.remove_metadata()).__enter__()
            for part in batch.combine_chunks().to_batches():
                spool.write(part)
    finally:
        if spool is not None:
            spool.__exit__(None, None, None)
    if spool is None:
        raise BenchError("truth: expected rows, the stream gave none")
    table = spool.table()
    return spool.dataset(stream.features or Features.from_arrow_schema(table.schema))


def sort_order(table: pa.Table, columns: Sequence[str]) -> NDArray[np.int64]:
    """`(n,) int64`, the order of a score table: by its key, then by what else tells its rows apart."""
    names = [np.array(table[column].to_pylist(), dtype=object).astype(str) for column in columns]
    return np.lexsort(names[::-1]).astype(np.int64)


def _verify(metric: ModuleType, answers: Dataset, units: Units, options: ScoreOptions) -> list[str]:
    """Validate every prediction that will be scored, before the first one is; their hashes.

    Raises:
        FaultError: one is faulty and the options say to stop.
    """
    used = np.flatnonzero(units.answers >= 0)
    hashes: list[str] = []
    arrow = answers.with_format("arrow")
    for first in range(0, len(used), BATCH_ROWS):
        place = used[first : first + BATCH_ROWS]
        table = arrow[units.answers[place].tolist()]
        reading = table["pred_faults"].to_pylist() if "pred_faults" in table.column_names else [None] * len(place)
        lists, fields = metric.read_answers(table)
        for start, stop in parts(lists.bytes_a_row() / CHUNK_BYTES):
            part = lists.slice(start, stop)
            problems = part.problems()
            for k in range(stop - start):
                read = reading[start + k]
                if options.stops and (k in problems or (read and FAULTS[read[0]["code"]].default == "stop")):
                    code, text = (read[0]["code"], read[0]["text"]) if read else ("malformed_mask", problems[k][0])
                    advice = "`check` lists all that is wrong"
                    raise FaultError(code, units.names[place[start + k]], f"prediction, {text}; {advice}")
            sound = np.array([k for k in range(stop - start) if k not in problems], np.int64)
            chosen = part if len(sound) == stop - start else part.take(sound)
            named = [{"key": units.names[place[start + k]], **fields[start + k]} for k in sound]
            hashes += row_hashes(named, chosen.masks, chosen.groups)
    return hashes


class _UnitScorer:
    """The scorer over units, whose truth and predictions stand elsewhere."""

    def __init__(self, function: Scorer, labels: Dataset, answers: Dataset, units: Units) -> None:
        self.function, self.labels, self.answers, self.units = function, labels, answers, units

    def __call__(self, rows: list[int]) -> pa.Table:
        metric, units = _metric(self.function.benchmark), self.units
        first, last = rows[0], rows[-1] + 1
        truth = self.labels.with_format("arrow")[units.truth[first:last].tolist()]
        begin = units.begin[first : last + 1]
        wanted = units.answers[begin[0] : begin[-1]]
        there = np.flatnonzero(wanted >= 0)
        found = self.answers.with_format("arrow")[wanted[there].tolist()] if len(there) else None
        place = np.full(len(wanted), -1)
        place[there] = np.arange(len(there))
        columns = {name: values[first:last] for name, values in units.columns.items()}
        schema = self.answers.features.arrow_schema
        table = metric.attach(truth, found, place, begin - begin[0], columns, schema, self.function.options)
        if units.twice[first:last].any():
            table = blame(table, units.twice[first:last])
        scored = self.function(table)
        assert isinstance(scored, pa.Table)
        return scored

    def in_batch(self, batch: dict[str, list[int]]) -> pa.Table:
        """For `Dataset.map` over the units' numbers."""
        return self(batch["unit"])


def _scored(labels: Dataset, answers: Dataset, units: Units, function: Scorer, num_proc: int | None) -> list[pa.Table]:
    work = _UnitScorer(function, labels, answers, units)
    if num_proc is not None and num_proc > 1:
        numbers = Dataset.from_dict({"unit": list(range(len(units)))})
        scored = numbers.map(
            work.in_batch, batched=True, batch_size=BATCH_ROWS, num_proc=num_proc, remove_columns=["unit"],
            features=score_features(function.benchmark, function.options.protocol), load_from_cache_file=False,
            desc="Scoring",
        )  # fmt: skip
        return [scored.with_format("arrow")[:]]
    return list(_in_turn(work, len(units)))


def _in_turn(work: _UnitScorer, count: int) -> Iterator[pa.Table]:
    with tqdm(total=count, desc="Scoring", unit=" rows") as progress:
        for first in range(0, count, BATCH_ROWS):
            rows = list(range(first, min(first + BATCH_ROWS, count)))
            yield work(rows)
            progress.update(len(rows))


def _metric(benchmark: str) -> ModuleType:
    return get_benchmark(benchmark).metric_module()
