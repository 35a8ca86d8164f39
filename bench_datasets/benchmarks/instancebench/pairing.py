"""InstanceBench's predictions beside its truth: one an expression, for each run and condition."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from numpy.typing import NDArray

from bench_datasets.benchmarks.instancebench.prediction_pairing import ExpressionPairing, pair_expressions
from bench_datasets.benchmarks.instancebench.schema import ORIGINAL
from bench_datasets.faults import BenchError, stops
from bench_datasets.masks import MASK_TYPE, MaskColumn, joined, list_offsets, list_values
from bench_datasets.masks.ragged import MaskLists
from bench_datasets.predictions import arrow_columns
from bench_datasets.predictions.mask_rows import FAULTS_TYPE
from bench_datasets.scoring.options import ScoreOptions
from bench_datasets.scoring.units import Units, placed


def pair_units(labels: Dataset, predictions: Dataset, options: ScoreOptions, whole: bool) -> Units:
    """Which predictions belong to which TCES, run by run and condition by condition.

    Under `original` every TCES is a unit; under another condition those of which an expression was answered.

    Raises:
        BenchError: a column is absent, or two truth rows bear one key, or two expressions one id.
    """
    del options
    names = [name for name in ("key", "expressions", "faults") if name in labels.column_names]
    table = arrow_columns(labels, names)
    keys = table["key"].to_pylist()
    if len(set(keys)) < len(keys):
        raise BenchError("instancebench rows: two truth rows bear one tces_id; mend the manifest")
    expressions = pa.concat_arrays(table["expressions"].chunks)
    offsets = list_offsets(expressions)
    ids = [str(value) for value in list_values(expressions).field("expression_id").to_pylist()]
    if len(set(ids)) < len(ids):
        _refuse_shared_ids(table, ids, offsets)
    found = pair_expressions(ids, predictions, whole=whole)
    parts = [_of_pair(pair, found, offsets) for pair in found.conditions]
    truth, place = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    sizes = np.diff(offsets)[truth]
    row_of = np.repeat(np.arange(len(keys)), np.diff(offsets))[place].tolist()
    counts = [len(part[0]) for part in parts]
    columns = {
        "pred_run": [run for (run, _), n in zip(found.conditions, counts, strict=True) for _ in range(n)],
        "pred_condition": [name for (_, name), n in zip(found.conditions, counts, strict=True) for _ in range(n)],
    }
    return Units(
        truth,
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([part[2] for part in parts]),
        [ids[k] for k in place.tolist()],
        np.concatenate([part[3] for part in parts]),
        [fault for fault in found.faults if fault.code != "missing_prediction"],
        columns,
        missing=sum(int((found.index[pair] < 0).sum()) for pair in found.conditions if pair[1] == ORIGINAL),
        rows=[keys[row] for row in row_of],
    )


def _of_pair(
    pair: tuple[str, str], found: ExpressionPairing, offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Of one run and condition: its truth rows, their expressions, the answers to those, and rows answered twice."""
    index, twice = found.index[pair], found.twice[pair]
    sizes = np.diff(offsets)
    row = np.repeat(np.arange(len(sizes)), sizes)
    asked = np.ones(len(sizes), np.bool_)
    if pair[1] != ORIGINAL:
        asked = np.bincount(row[index >= 0], minlength=len(sizes)) > 0
    place = np.flatnonzero(asked[row])
    doubled = np.bincount(row[twice], minlength=len(sizes)) > 0
    return np.flatnonzero(asked), place, index[place], doubled[asked]


def _refuse_shared_ids(table: pa.Table, ids: list[str], offsets: NDArray[np.int64]) -> None:
    """Refuse an expression id that stands in two sets; one that stands twice in its set is a fault of the row.

    Raises:
        BenchError: two sets have it, and neither notes it as a fault.
    """
    noted = table["faults"].to_pylist() if "faults" in table.column_names else [None] * len(table)
    times = Counter(name for i in range(len(table)) for name in set(ids[offsets[i] : offsets[i + 1]]))
    for i, codes in enumerate(noted):
        again = [name for name in ids[offsets[i] : offsets[i + 1]] if times[name] > 1]
        if again and "repeated_expression" not in (codes or ()):
            raise BenchError(
                f"instancebench rows: two sets have an expression with the id {again[0]!r}, so predictions for it can't"
                " be told apart; correct the manifest"
            )


def attach(
    table: pa.Table,
    found: pa.Table | None,
    place: NDArray[np.int64],
    begin: NDArray[np.int64],
    columns: dict[str, list[Any]],
    schema: pa.Schema,
    options: ScoreOptions,
) -> pa.Table:
    """Truth rows with lists of predictions aligned with their expressions beside them."""
    column = placed(found, place)

    def lists(values: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(pa.array(begin.astype(np.int32)), values)

    given_faults = column("pred_faults", FAULTS_TYPE)
    noted = np.flatnonzero(pc.fill_null(pc.list_value_length(given_faults), 0).to_numpy(zero_copy_only=False))
    faults = {k: given_faults[k].as_py() for k in noted.tolist()}
    codes = {k: {fault["code"] for fault in found} for k, found in faults.items()}
    table = table.append_column("pred_masks", lists(column("mask", MASK_TYPE)))
    for name, given in (("pred_boxes", "box"), ("pred_candidate_ids", "candidate_id")):
        if given in schema.names:
            values = column(given, schema.field(given).type)
            if given == "box" and options.counts_as_wrong and any("bad_box" in found for found in codes.values()):
                boxes = values.to_pylist()
                for k, found in codes.items():  # a box without area is wrong, null is none
                    boxes[k] = [0.0] * 4 if "bad_box" in found else boxes[k]
                values = pa.array(boxes, values.type)
            if values.null_count < len(values):
                table = table.append_column(name, lists(values))
    table = table.append_column("pred_answered", lists(pa.array(place >= 0)))
    faulty = np.zeros(len(place), np.bool_)
    faulty[[k for k, found in codes.items() if any(map(stops, found))]] = True
    table = table.append_column("pred_faulty", lists(pa.array(faulty)))
    for name, texts in columns.items():
        table = table.append_column(name, pa.array(texts, pa.string()))
    asked = table["expressions"]

    def own_id(i: int, k: int) -> str:
        return str(asked[i].as_py()[k].get("expression_id"))

    rows: list[list[dict[str, str]]] = [[]] * len(table)
    for i in np.unique(np.searchsorted(begin, [*faults, *np.flatnonzero(place < 0)], side="right") - 1).tolist():
        own = range(int(begin[i]), int(begin[i + 1]))
        found_here = [fault for k in own for fault in faults.get(k, ())]
        missing = [k - int(begin[i]) for k in own if place[k] < 0]
        if missing and columns["pred_condition"][i] == ORIGINAL and options.missing == "error":
            text = f"no prediction for the expression {own_id(i, missing[0])}"
            text += f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            text += '; predict it, write "mask": null, or ask for missing="empty"'
            found_here.append({"code": "missing_prediction", "text": text})
        rows[i] = found_here
    return table.append_column("pred_faults", pa.array(rows, FAULTS_TYPE))


def split_predictions(table: pa.Table) -> tuple[MaskLists, pa.Table]:
    """The masks of prediction rows (one a row, or none), and their other fields."""
    count = len(table)
    if "mask" in table.column_names:
        array = joined(table["mask"]) if table["mask"].num_chunks else pa.nulls(count, MASK_TYPE)
    else:
        array = pa.nulls(count, MASK_TYPE)
    there = array.is_valid().to_numpy(zero_copy_only=False)
    groups = np.concatenate([[0], np.cumsum(there)]).astype(np.int64)
    masks = MaskColumn.from_arrow(array if there.all() else array.filter(pa.array(there)))
    others = [name for name in table.column_names if name not in ("mask", "pred_faults")]
    return MaskLists(masks, groups, there, {}), table.select(others)
