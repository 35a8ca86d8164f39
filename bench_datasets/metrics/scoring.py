"""Scoring: truth and predictions in, a score table out; one pure function behind every door."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, Features, IterableDataset
from datasets.utils import tqdm
from numpy.typing import NDArray

from bench_datasets.benchmarks import get_benchmark
from bench_datasets.builders import provenance
from bench_datasets.faults import BenchError, Fault, FaultError
from bench_datasets.masks import using_engine
from bench_datasets.metrics.hashes import content_hash, row_hashes
from bench_datasets.metrics.masklists import CHUNK_BYTES, parts, read_mask_lists
from bench_datasets.metrics.options import ScoreOptions
from bench_datasets.metrics.provenance import with_provenance
from bench_datasets.predictions import pair
from bench_datasets.predictions.store import Spool

BATCH_ROWS = 64
"""Rows that are taken up at a time; the scoring cuts them further by bytes."""

TWICE = -2
"""Stands for the prediction of a row that several predictions name."""

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
    keys, ids, levels = _names(labels, metric, level)
    pairing = pair(keys, ids, levels, predictions)
    faults = _pairing_faults(pairing.faults, options)
    used = pairing.index.copy()
    used[[i for i, key in enumerate(keys) if key in faults.twice]] = TWICE
    answers = predictions.select_columns([c for c in metric.PREDICTION_COLUMNS if c in predictions.column_names])
    with using_engine(engine, threads):
        hashed = _verify(answers, used, keys, options)
    batches = _scored(labels, answers, used, Scorer(benchmark, options), num_proc)
    table = pa.concat_tables(batches) if batches else score_features(benchmark).arrow_schema.empty_table()
    order = np.argsort(np.array(table["key"].to_pylist(), dtype=object).astype(str), kind="stable")
    table = table.take(pa.array(order))
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
            "sha256": content_hash(hashed), "rows": len(predictions), "missing": int((pairing.index == -1).sum())
        },
        "settings": {"missing": missing, "on_fault": on_fault},
        "faults": faults.counts,
    }  # fmt: skip
    features = score_features(benchmark, protocol)
    return Dataset(with_provenance(table.cast(features.arrow_schema), features, record))


class _Faults:
    """Faults of the pairing: those of no truth row are counted here; rows named twice are scored as faulty ones."""

    def __init__(self) -> None:
        self.counts: dict[str, dict[str, Any]] = {}
        self.twice: set[str] = set()

    def count(self, fault: Fault) -> None:
        entry = self.counts.setdefault(fault.code, {"count": 0, "examples": []})
        entry["count"] += 1
        if len(entry["examples"]) < EXAMPLES:
            entry["examples"].append(fault.key)


def _pairing_faults(found: list[Fault], options: ScoreOptions) -> _Faults:
    faults = _Faults()
    for fault in found:
        if fault.code == "missing_prediction":
            continue  # the scoring itself meets the row without prediction, and knows what was asked for
        if options.stops:
            raise FaultError(*fault)
        if fault.code == "duplicate_prediction":
            faults.twice.add(fault.key)
        else:
            faults.count(fault)
    return faults


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


def _names(labels: Dataset, metric: ModuleType, level: str | None) -> tuple[list[str], list[int], list[str]]:
    """Keys, ids and levels of all rows; keys must differ."""
    names = [name for name in ("key", "id", "level") if name in labels.column_names]
    table = labels.select_columns(names).with_format("arrow")[:] if names else None
    keys, ids, levels = metric.row_names(table, level, labels.column_names)
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise BenchError(
                f'{key}: two truth rows bear this key; load them with load_dataset("{metric.__name__.split(".")[-1]}",'
                " data_dir=...), which numbers repeated ids in the source's order"
            )
        seen.add(key)
    return keys, ids, levels


def _verify(predictions: Dataset, index: NDArray[np.int64], keys: list[str], options: ScoreOptions) -> list[str]:
    """Validate every prediction that will be scored, before the first one is; their hashes.

    Raises:
        FaultError: one is faulty and the options say to stop.
    """
    paired = np.flatnonzero(index >= 0)
    hashes: list[str] = []
    arrow = predictions.with_format("arrow")
    for first in range(0, len(paired), BATCH_ROWS):
        rows = paired[first : first + BATCH_ROWS]
        table = arrow[index[rows].tolist()]
        if "pred_masks" not in table.column_names:
            raise BenchError(f"predictions: expected a column pred_masks, found {', '.join(predictions.column_names)}")
        reading = table["pred_faults"].to_pylist() if "pred_faults" in table.column_names else [None] * len(rows)
        others = table.select([c for c in table.column_names if c not in ("pred_masks", "pred_faults")]).to_pylist()
        lists = read_mask_lists(table["pred_masks"])
        for start, stop in parts(lists.bytes_a_row() / CHUNK_BYTES):
            part = lists.slice(start, stop)
            problems = part.problems()
            for k in range(stop - start):
                read = reading[start + k]
                if options.stops and (read or k in problems):
                    code, text = (read[0]["code"], read[0]["text"]) if read else ("malformed_mask", problems[k][0])
                    advice = "`check` lists all that is wrong"
                    raise FaultError(code, keys[rows[start + k]], f"prediction, {text}; {advice}")
            sound = np.array([k for k in range(stop - start) if k not in problems], np.int64)
            fields = [{"key": keys[rows[start + k]], **others[start + k]} for k in sound]
            chosen = part if len(sound) == stop - start else part.take(sound)
            hashes += row_hashes(fields, chosen.masks, chosen.groups)
    return hashes


class _PairedScorer:
    """The scorer over truth rows whose predictions stand elsewhere, at `index` (-1: none, -2: more than one)."""

    def __init__(self, function: Scorer, predictions: Dataset, index: NDArray[np.int64]) -> None:
        self.function, self.predictions, self.index = function, predictions, index

    def __call__(self, table: pa.Table, rows: list[int]) -> pa.Table:
        chosen = self.index[rows]
        answered = np.flatnonzero(chosen >= 0)
        found = self.predictions.with_format("arrow")[chosen[answered].tolist()] if len(answered) else None
        place = np.full(len(rows), -1)
        place[answered] = np.arange(len(answered))
        for name in self.predictions.column_names:
            kind = self.predictions.features.arrow_schema.field(name).type
            if found is None:
                values = pa.nulls(len(rows), kind)
            else:
                values = pa.concat_arrays(found[name].chunks)
                if len(answered) < len(rows):
                    values = values.take(pa.array(place, mask=place < 0))
            table = table.append_column(name, values)
        if (chosen == TWICE).any():
            table = _blame(table, chosen == TWICE)
        scored = self.function(table)
        assert isinstance(scored, pa.Table)
        return scored


def _blame(table: pa.Table, twice: NDArray[np.bool_]) -> pa.Table:
    """Rows that two predictions name bear that fault."""
    old = table["pred_faults"].to_pylist() if "pred_faults" in table.column_names else [None] * len(table)
    fault = [{"code": "duplicate_prediction", "text": "two predictions name this row"}]
    faults = [fault if two else other for two, other in zip(twice, old, strict=True)]
    kept = table.drop_columns(["pred_faults"]) if "pred_faults" in table.column_names else table
    return kept.append_column("pred_faults", pa.array(faults, _FAULTS))


_FAULTS = pa.list_(pa.struct([("code", pa.string()), ("text", pa.string())]))


def _scored(
    labels: Dataset, predictions: Dataset, index: NDArray[np.int64], function: Scorer, num_proc: int | None
) -> list[pa.Table]:
    paired = _PairedScorer(function, predictions, index)
    arrow = labels.with_format("arrow")
    if num_proc is not None and num_proc > 1:
        scored = arrow.map(
            paired, with_indices=True, batched=True, batch_size=BATCH_ROWS, num_proc=num_proc,
            remove_columns=labels.column_names, features=score_features(function.benchmark, function.options.protocol),
            load_from_cache_file=False, desc="Scoring",
        )  # fmt: skip
        return [scored.with_format("arrow")[:]]
    return list(_in_turn(arrow, paired))


def _in_turn(arrow: Dataset, paired: _PairedScorer) -> Iterator[pa.Table]:
    with tqdm(total=len(arrow), desc="Scoring", unit=" rows") as progress:
        for first in range(0, len(arrow), BATCH_ROWS):
            rows = list(range(first, min(first + BATCH_ROWS, len(arrow))))
            yield paired(arrow[first : first + len(rows)], rows)
            progress.update(len(rows))


def _metric(benchmark: str) -> ModuleType:
    return get_benchmark(benchmark).metric_module()
