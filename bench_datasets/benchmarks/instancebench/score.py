"""From a batch of InstanceBench rows to its score rows: masks in, small integers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from bench_datasets.benchmarks.instancebench import BENCHMARK
from bench_datasets.benchmarks.instancebench.batch import Rows, read_rows
from bench_datasets.benchmarks.instancebench.measure import Kept, measure, measure_boundaries
from bench_datasets.benchmarks.instancebench.protocol import get_protocol
from bench_datasets.benchmarks.instancebench.validation import faulty_answers, find_faults, noted_predictions
from bench_datasets.faults import stops
from bench_datasets.masks import Decoded, Status
from bench_datasets.masks.ragged import MaskLists
from bench_datasets.scoring.faulty_rows import Faulty
from bench_datasets.scoring.hashes import sound_hashes
from bench_datasets.scoring.options import ScoreOptions


def score_table(batch: pa.Table | Mapping[str, Any], options: ScoreOptions, decoded: Decoded | None = None) -> pa.Table:
    """Score a batch; see `metrics.pbench.score.score_table`.

    Raises:
        FaultError: a row has a fault and the options say to stop.
        BenchError: a column is absent.
    """
    protocol = get_protocol(options.protocol)
    rows = read_rows(batch)
    if decoded is not None:
        predicted = rows.predicted.masks
        predicted.remember(decoded if predicted.present.all() else decoded.spread(predicted.present))
    kept = _kept(rows)
    faulty = find_faults(rows, kept, options)
    odd = noted_predictions(rows)
    n = len(rows)
    truth = _without_nulls(rows.candidates)
    columns: dict[str, Any] = {
        "key": rows.keys,
        "run": rows.runs,
        "condition": rows.conditions,
        "cluster": rows.keys,
        "protocol": [f"{protocol.name}@{protocol.version}"] * n,
        "row_sha256": sound_hashes(rows.labels, truth, truth.problems()),
        "source": rows.sources,
        "category": rows.categories,
        "faults": [_codes(rows, faulty, odd, i) for i in range(n)],
        "skipped": [i in faulty.left_out for i in range(n)],
    }
    good = np.array([i not in faulty.left_out for i in range(n)], np.bool_)
    if faulty.wrong:
        rows = rows.without_answers(faulty_answers(rows, kept) & np.isin(rows.expression_row, list(faulty.wrong)))
    columns |= measure(rows, kept, good)
    if options.boundary:
        columns |= measure_boundaries(rows, kept, good)
    schema = _schema(options.boundary)
    return pa.Table.from_pydict({name: columns[name] for name in schema.names}, schema=schema)


def row_faults(batch: pa.Table | Mapping[str, Any], options: ScoreOptions) -> Faulty:
    """The rows of a batch that can't be scored as they are; see `metrics.pbench.score.row_faults`."""
    rows = read_rows(batch)
    return find_faults(rows, _kept(rows), options)


@cache
def _schema(boundary: bool) -> pa.Schema:
    return BENCHMARK.score_features(boundary=boundary).arrow_schema.remove_metadata()


def _codes(rows: Rows, faulty: Faulty, odd: Mapping[int, Sequence[str]], i: int) -> list[str]:
    """Codes of what the builder, the reading of predictions and the scoring found, sorted, each once."""
    read = [code for code, _ in rows.reading[i] if not stops(code)]
    seen = odd.get(i, ()) if i not in faulty.left_out and i not in faulty.wrong else ()
    return sorted({*rows.noted[i], *read, *faulty.codes(i), *seen})


def _without_nulls(lists: MaskLists) -> MaskLists:
    """The masks that are there; a candidate without one is no part of a row's content but by its id."""
    there = np.flatnonzero(lists.masks.present)
    if len(there) == len(lists.masks):
        return lists
    groups = np.searchsorted(there, lists.groups)
    return MaskLists(lists.masks.take(there), groups, lists.present, {})


def _kept(rows: Rows) -> Kept:
    """Candidates with a valid mask that are no crowd; the target stays, whatever it is called."""
    count = len(rows.candidates.masks)
    row = rows.candidates.row_of
    own = np.zeros(count, np.bool_)
    target = rows.candidates.groups[:-1] + rows.targets
    inside = (rows.targets >= 0) & (target < rows.candidates.groups[1:])
    own[target[inside]] = True
    sound = rows.candidates.masks.decoded.status == Status.OK
    index = np.flatnonzero(sound & (~rows.crowd | own))
    groups = np.concatenate([[0], np.cumsum(np.bincount(row[index], minlength=len(rows)))])
    place = np.full(count, -1)
    place[index] = np.arange(len(index)) - groups[:-1][row[index]]
    position = np.where(inside, place[np.where(inside, target, 0)] if count else -1, -1)
    masks = rows.candidates.masks if len(index) == count else rows.candidates.masks.take(index)
    return Kept(masks, groups, [rows.candidate_ids[i] for i in index.tolist()], position)
