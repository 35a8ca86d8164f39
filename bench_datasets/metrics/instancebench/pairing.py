"""InstanceBench's predictions beside its truth: one an expression, for each run and condition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset
from numpy.typing import NDArray

from bench_datasets.faults import BenchError, Fault
from bench_datasets.masks import MASK_TYPE, MaskColumn, list_offsets, list_values
from bench_datasets.metrics.masklists import MaskLists
from bench_datasets.metrics.options import ScoreOptions
from bench_datasets.metrics.units import FAULTS_TYPE, Units

ORIGINAL = "original"
"""The condition without intervention: every expression is asked under it."""


def pair_units(labels: Dataset, predictions: Dataset, options: ScoreOptions, whole: bool) -> Units:
    """Which predictions belong to which TCES, run by run and condition by condition.

    Under `original` every TCES is a unit; under another condition those of which an expression was answered.

    Raises:
        BenchError: a column is absent, or two truth rows bear one key.
    """
    del options
    table = labels.select_columns(["key", "expressions"]).with_format("arrow")[:]
    keys = table["key"].to_pylist()
    if len(set(keys)) < len(keys):
        raise BenchError("instancebench rows: two truth rows bear one tces_id; mend the manifest")
    expressions = pa.concat_arrays(table["expressions"].chunks)
    offsets = list_offsets(expressions)
    ids = [str(value) for value in list_values(expressions).field("expression_id").to_pylist()]
    place = {name: i for i, name in enumerate(ids)}
    names = [name for name in ("expression_id", "run", "condition") if name in predictions.column_names]
    if "expression_id" not in names:
        raise BenchError(f"predictions: expected a column expression_id, found {', '.join(predictions.column_names)}")
    given = predictions.select_columns(names).with_format("arrow")[:]
    answers: dict[tuple[str, str], NDArray[np.int64]] = {}
    twice: set[tuple[str, str, int]] = set()
    faults: list[Fault] = []
    columns = [
        given[name].to_pylist() if name in names else [default] * len(given)
        for name, default in (("expression_id", ""), ("run", "0"), ("condition", ORIGINAL))
    ]
    for row, (name, run, condition) in enumerate(zip(*columns, strict=True)):
        at = place.get(str(name))
        if at is None:
            if whole:
                text = (
                    f"a prediction for an expression that the truth does not hold (its {len(ids)} begin with {ids[:1]})"
                )
                faults.append(Fault("unknown_row", f"expression {name}", text))
            continue
        group = (str(run or "0"), str(condition or ORIGINAL))
        index = answers.setdefault(group, np.full(len(ids), -1))
        if index[at] >= 0:
            twice.add((*group, at))
            text = f"two predictions for run {group[0]}, condition {group[1]}; keep one"
            faults.append(Fault("duplicate_prediction", f"expression {name}", text))
        index[at] = row
    runs = list(dict.fromkeys(run for run, _ in sorted(answers))) or ["0"]
    for run in runs:
        answers.setdefault((run, ORIGINAL), np.full(len(ids), -1))
    return _units(keys, offsets, ids, answers, twice, faults)


def _units(
    keys: list[str],
    offsets: NDArray[np.int64],
    ids: list[str],
    answers: dict[tuple[str, str], NDArray[np.int64]],
    twice: set[tuple[str, str, int]],
    faults: list[Fault],
) -> Units:
    groups = sorted(answers, key=lambda group: (group[0], group[1] != ORIGINAL, group[1]))
    truth: list[NDArray[np.int64]] = []
    flat: list[NDArray[np.int64]] = []
    begin = [np.zeros(1, np.int64)]
    names: list[str] = []
    doubled: list[NDArray[np.bool_]] = []
    columns: dict[str, list[Any]] = {"pred_run": [], "pred_condition": []}
    total = 0
    for group in groups:
        index = answers[group]
        asked = np.arange(len(keys))
        if group[1] != ORIGINAL:
            counts = np.add.reduceat(np.append(index >= 0, False), offsets[:-1]) * (np.diff(offsets) > 0)
            asked = np.flatnonzero(counts)
        sizes = np.diff(offsets)[asked]
        ends = total + np.cumsum(sizes)
        place = np.arange(int(sizes.sum())) + np.repeat(offsets[:-1][asked] - (ends - sizes - total), sizes)
        truth.append(asked)
        flat.append(index[place])
        begin.append(ends)
        names += [ids[k] for k in place]
        of_row = np.searchsorted(offsets, [at for *other, at in twice if tuple(other) == group], side="right") - 1
        doubled.append(np.isin(asked, of_row))
        columns["pred_run"] += [group[0]] * len(asked)
        columns["pred_condition"] += [group[1]] * len(asked)
        total = int(ends[-1]) if len(ends) else total
    return Units(
        np.concatenate(truth),
        np.concatenate(begin),
        np.concatenate(flat),
        names,
        np.concatenate(doubled),
        faults,
        columns,
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
    spread = pa.array(place, mask=place < 0)

    def lists(values: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(pa.array(begin.astype(np.int32)), values)

    def column(name: str, kind: pa.DataType) -> pa.Array:
        if found is None or name not in found.column_names:
            return pa.nulls(len(place), kind)
        return pa.concat_arrays(found[name].chunks).take(spread)

    table = table.append_column("pred_masks", lists(column("mask", MASK_TYPE)))
    for name, given in (("pred_boxes", "box"), ("pred_candidate_ids", "candidate_id")):
        if given in schema.names:
            values = column(given, schema.field(given).type)
            if values.null_count < len(values):
                table = table.append_column(name, lists(values))
    table = table.append_column("pred_answered", lists(pa.array(place >= 0)))
    for name, texts in columns.items():
        table = table.append_column(name, pa.array(texts, pa.string()))
    faults = column("pred_faults", FAULTS_TYPE).to_pylist()
    rows = []
    for i, condition in enumerate(columns["pred_condition"]):
        own = range(int(begin[i]), int(begin[i + 1]))
        found_here = [fault for k in own for fault in faults[k] or []]
        missing = [k - int(begin[i]) for k in own if place[k] < 0]
        if missing and condition == ORIGINAL and options.missing == "error":
            text = f"no prediction for expression {missing[0]} of the row"
            text += f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            text += '; predict it, write "mask": null, or ask for missing="empty"'
            found_here.append({"code": "missing_prediction", "text": text})
        rows.append(found_here)
    return table.append_column("pred_faults", pa.array(rows, FAULTS_TYPE))


def read_answers(table: pa.Table) -> tuple[MaskLists, list[dict[str, Any]]]:
    """The masks of prediction rows (one a row, or none), and their other fields."""
    count = len(table)
    if "mask" in table.column_names:
        array = pa.concat_arrays(table["mask"].chunks) if table["mask"].num_chunks else pa.nulls(count, MASK_TYPE)
    else:
        array = pa.nulls(count, MASK_TYPE)
    there = array.is_valid().to_numpy(zero_copy_only=False)
    groups = np.concatenate([[0], np.cumsum(there)]).astype(np.int64)
    masks = MaskColumn.from_arrow(array.filter(pa.array(there)))
    others = [name for name in table.column_names if name not in ("mask", "pred_faults")]
    return MaskLists(masks, groups, there, {}), table.select(others).to_pylist() if others else [{}] * count
