"""A scoring about to be done: everything paired and validated, so that any part of it can be scored anywhere."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, Features, IterableDataset
from datasets.utils import tqdm
from numpy.typing import NDArray

from bench_datasets.benchmark import Benchmark, get_benchmark
from bench_datasets.data import provenance
from bench_datasets.data.provenance import without_secrets
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.masks import using_engine
from bench_datasets.predictions.read import read_for_scoring, read_predictions
from bench_datasets.predictions.spool import Spool
from bench_datasets.predictions.values import read_truth
from bench_datasets.scoring.batching import BATCH_ROWS, ArrowRows, rows_at_a_time, rows_of
from bench_datasets.scoring.hashes import content_hash
from bench_datasets.scoring.options import COUNT_AS_WRONG, ScoreOptions
from bench_datasets.scoring.provenance import with_provenance
from bench_datasets.scoring.shared_truth import TruthCache
from bench_datasets.scoring.units import Units, blame
from bench_datasets.scoring.validate import Readings, UnsoundMasksError, verify

EXAMPLES = 5
"""Keys that are named with each fault."""


@dataclass(frozen=True)
class Plan:
    """Inputs of a scoring, paired and validated.

    Attributes:
        benchmark: its name.
        options: how.
        labels: the truth's label columns.
        answers: the predictions' columns that are scored.
        units: which belong together; one score row each.
        record: the provenance of the scores.
        readings: what is known of the predictions' masks already.
        truth: ground truth that several units share, once it is read.
    """

    benchmark: str
    options: ScoreOptions
    labels: Dataset
    answers: ArrowRows
    units: Units
    record: dict[str, Any]
    readings: Readings = field(default_factory=Readings)
    truth: TruthCache = field(default_factory=TruthCache)

    @property
    def metric(self) -> Benchmark:
        """The benchmark's benchmark."""
        return get_benchmark(self.benchmark)

    @property
    def everything(self) -> range:
        """The numbers of all units."""
        return range(len(self.units))

    @property
    def lot(self) -> int:
        """Number of units per batch."""
        return rows_at_a_time(ArrowRows(self.labels), self.answers)

    @cached_property
    def features(self) -> Features:
        """Of the score table."""
        return table_features(self.benchmark, boundary=self.options.boundary)

    @cached_property
    def schema(self) -> pa.Schema:
        """Of the score table."""
        return self.features.arrow_schema

    def score(self, units: Sequence[int], num_proc: int | None = None, *, quiet: bool = False) -> pa.Table:
        """Score some units.

        Args:
            units: their numbers.
            num_proc: processes; 1 for `None`.
            quiet: show no progress.

        Returns:
            A score row each, in that order.
        """
        if num_proc is not None and num_proc > 1:
            numbers = Dataset.from_dict({"unit": list(units)})
            scored = numbers.map(
                UnitScorer(self),
                batched=True,
                batch_size=self.lot,
                num_proc=num_proc,
                remove_columns=["unit"],
                features=self.features,
                load_from_cache_file=False,
                desc="Scoring",
            )
            return pa.table(scored.with_format("arrow")[:])
        schema = self.schema
        found = list(self._in_turn(list(units), quiet))
        return pa.concat_tables(found).cast(schema) if found else schema.empty_table()

    def _in_turn(self, units: list[int], quiet: bool) -> Iterator[pa.Table]:
        work, size = UnitScorer(self), self.lot
        with tqdm(total=len(units), desc="Scoring", unit=" rows", disable=quiet or None) as progress:
            for first in range(0, len(units), size):
                some = units[first : first + size]
                yield work({"unit": some})
                progress.update(len(some))

    def finish(self, table: pa.Table) -> Dataset:
        """All score rows as a Dataset, sorted, with the provenance in the schema's metadata."""
        table = table.take(pa.array(sort_order(table, self.metric.sort_columns))).combine_chunks()
        table = with_provenance(table.cast(self.schema), self.features, self.record)
        return Dataset(table, fingerprint=_fingerprint(table))


def make_plan(
    benchmark: str,
    truth: Any,
    predictions: Any,
    protocol: str | None = None,
    *,
    whole: bool = True,
    num_proc: int | None = None,
    read_again: Callable[[], Dataset] | None = None,
    **choices: Any,
) -> Plan:
    """Pair and validate everything, on several processes where asked to.

    Args:
        benchmark: its name.
        truth: in any form of `read_truth`.
        predictions: in any form of `read_predictions`.
        protocol: a protocol's name; the benchmark's default for `None`.
        whole: see `scoring.score`.
        num_proc: processes.
        read_again: reads the same predictions with validation, where they were read without.
        **choices: fields of `ScoreOptions`.

    Raises:
        FaultError: a prediction has a fault and `on_fault` is `stop`.
        BenchError: a choice or a column is wrong.
    """
    metric = get_benchmark(benchmark)
    chosen = metric.protocol(protocol)
    truth = read_truth(benchmark, truth)
    if choices.get("level") is None and str(truth.split) in get_benchmark(benchmark).parts:
        choices["level"] = str(truth.split)
    options = ScoreOptions(chosen.name, **choices)
    table_features(benchmark, boundary=options.boundary)
    if options.oracle is not None and "oracle" not in metric.options:
        raise BenchError(f"oracle: {benchmark} has no tubes and relations; leave it out")
    source = provenance(truth) or _published(truth)
    if not isinstance(predictions, Dataset) or "pred_faults" not in predictions.column_names:
        with using_engine(options.engine, options.threads):
            given, predictions = predictions, read_for_scoring(benchmark, predictions)
        if isinstance(given, (str, os.PathLike)):
            read_again = partial(read_predictions, benchmark, given)
    labels = _select_labels(truth, metric)
    if not len(labels):
        raise BenchError("truth: expected rows, found none")
    units: Units = metric.pair_units(labels, predictions, options, whole)
    others = count_faults(units, options)
    answers = ArrowRows(predictions, [c for c in metric.prediction_columns if c in predictions.column_names])
    size = rows_at_a_time(ArrowRows(labels), answers)
    doubtful = read_again is not None and metric.prediction_form().read_again
    try:
        verified = verify(metric, answers, units, options, num_proc, size, doubtful=doubtful)
    except UnsoundMasksError:
        with using_engine(options.engine, options.threads):
            predictions = read_again() if read_again is not None else predictions
        return make_plan(benchmark, truth, predictions, protocol, whole=whole, num_proc=num_proc, **choices)
    except FaultError:
        unverified = Plan(benchmark, options, labels, answers, units, {})
        if (first := _first_truth_fault(unverified)) is not None:
            raise first from None
        raise
    dataset = {
        "source": source["source"] if source else None,
        "split": str(truth.split) if truth.split is not None else None,
        "revision": source["revision"] if source else None,
        "expected": _expected(source["rows"], str(truth.split)) if source else None,
    }
    given = {"sha256": content_hash(verified.hashes), "rows": len(predictions), "missing": units.missing}
    record = record_of(benchmark, options, dataset, given, others)
    return Plan(benchmark, options, labels, answers, units, record, verified.readings)


def _first_truth_fault(plan: Plan) -> FaultError | None:
    """The ground truth's fault of the first row with a fault; `None` if that row's fault is its prediction's.

    The ground truth comes first, as it does where predictions stand beside it in the row.
    """
    work = UnitScorer(replace(plan, options=replace(plan.options, on_fault=COUNT_AS_WRONG)))
    for first in range(0, len(plan.units), plan.lot):
        table = work.attached(range(first, min(first + plan.lot, len(plan.units))))
        faulty = plan.metric.row_faults(table, work.options)
        for row in sorted({*faulty.left_out, *faulty.wrong}):
            return FaultError(*faulty.left_out[row][0]) if row in faulty.left_out else None
    return None


def record_of(
    benchmark: str,
    options: ScoreOptions,
    dataset: dict[str, Any],
    predictions: dict[str, Any],
    faults: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    """The provenance of scores that are to be: what stands in their table's metadata.

    Args:
        benchmark: its name.
        options: how it is scored.
        dataset: `source`, `split`, `revision` and `expected` rows of the truth.
        predictions: their `sha256`, `rows` and how many are `missing`.
        faults: those that belong to no row, counted.
    """
    chosen = get_benchmark(benchmark).protocol(options.protocol)
    if isinstance(source := dataset.get("source"), str):
        dataset = {**dataset, "source": without_secrets(source)}
    return {
        "benchmark": benchmark,
        "protocol": {"name": chosen.name, "version": chosen.version},
        "dataset": dataset,
        "predictions": predictions,
        "settings": {
            "missing": options.missing,
            "on_fault": options.on_fault,
            **({"oracle": options.oracle} if options.oracle is not None else {}),
        },
        "faults": faults,
    }


def count_faults(units: Units, options: ScoreOptions) -> dict[str, dict[str, Any]]:
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


def _select_labels(truth: Dataset | IterableDataset, metric: Benchmark) -> Dataset:
    """Select the label columns of ground truth rows; a stream is written to disk, so that memory stays bounded."""
    names = truth.column_names or list(truth.features or ())
    wanted = [name for name in metric.truth_columns if name in names]
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
    return spool.dataset(stream.features)


def table_features(benchmark: str, *, boundary: bool = False) -> Features:
    """The `Features` of a benchmark's score table.

    Raises:
        BenchError: there are no boundary columns.
    """
    return get_benchmark(benchmark).score_features(boundary=boundary)


def sort_order(table: pa.Table, columns: Sequence[str]) -> NDArray[np.int64]:
    """`(n,) int64`, the order of a score table: by its key, then by what else tells its rows apart."""
    names = [np.array(table[column].to_pylist(), dtype=object).astype(str) for column in columns]
    return np.lexsort(names[::-1]).astype(np.int64)


def _fingerprint(table: pa.Table) -> str:
    """The table's fingerprint for `datasets`, from its bytes; pickling would take longer."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return hashlib.sha256(sink.getvalue()).hexdigest()[:16]


def _published(truth: Dataset | IterableDataset) -> dict[str, Any] | None:
    """The origin that rows of a published copy bear themselves, with the number of rows that their repo declares."""
    names = truth.column_names or ()
    splits = getattr(truth.info, "splits", None) or {}
    base = str(truth.split).partition("[")[0]
    if "source_dataset" not in names or "source_revision" not in names or base not in splits:
        return None
    first = next(iter(truth.select_columns(["source_dataset", "source_revision"])), None)
    if first is None or first["source_dataset"] is None:
        return None
    rows = {base: int(splits[base].num_examples)}
    return {"source": first["source_dataset"], "revision": first["source_revision"], "rows": rows}


def _expected(rows: dict[str, int], split: str) -> int:
    """Rows that the source holds: of the split, where its parts are splits, else of all parts."""
    base = split.partition("[")[0]
    return rows.get(base, sum(rows.values()))


class UnitScorer:
    """The scorer over units, whose truth and predictions stand elsewhere; for `Dataset.map` over their numbers."""

    def __init__(self, plan: Plan) -> None:
        self.benchmark, self.options, self.units = plan.benchmark, plan.options, plan.units
        self.labels: Any = ArrowRows(plan.labels)
        self.answers: Any = plan.answers
        self.schema, self.readings, self.truth = plan.answers.schema, plan.readings, plan.truth

    def __call__(self, batch: dict[str, list[int]]) -> pa.Table:
        """Score rows of the units that the batch names in its column `unit`."""
        metric, rows = get_benchmark(self.benchmark), self.units.truth[np.asarray(batch["unit"], np.int64)]
        scored: list[pa.Table] = []
        with using_engine(self.options.engine, self.options.threads):
            for start, stop, truth in self.truth.parts(metric, self.labels, rows, len(self.units)):
                chosen = batch["unit"][start:stop]
                scored.append(
                    metric.score_table(self.attached(chosen), self.options, self.readings.take(chosen), truth)
                )
        return scored[0] if len(scored) == 1 else pa.concat_tables(scored)

    def attached(self, chosen: Sequence[int]) -> pa.Table:
        """Truth rows of some units with their predictions beside them, as they are scored."""
        metric, units = get_benchmark(self.benchmark), self.units
        numbers = np.asarray(chosen, np.int64)
        truth = rows_of(self.labels, units.truth[numbers])
        sizes = units.begin[1:][numbers] - units.begin[:-1][numbers]
        begin = np.concatenate([[0], np.cumsum(sizes)])
        wanted = units.answers[np.arange(int(begin[-1])) + np.repeat(units.begin[:-1][numbers] - begin[:-1], sizes)]
        there = np.flatnonzero(wanted >= 0)
        found = rows_of(self.answers, wanted[there]) if len(there) else None
        place = np.full(len(wanted), -1)
        place[there] = np.arange(len(there))
        columns = {name: [values[i] for i in chosen] for name, values in units.columns.items()}
        table: pa.Table = metric.attach(truth, found, place, begin, columns, self.schema, self.options)
        return blame(table, units.twice[numbers]) if units.twice[numbers].any() else table
