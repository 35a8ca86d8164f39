"""A batch of InstanceBench rows as the scoring needs them, whatever they came as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from datasets import Features, List, Value
from numpy.typing import NDArray

from bench_datasets.builders.instancebench_vocabulary import (
    FAMILIES,
    FAMILY_OF,
    OPERATIONS,
    ROLES,
    TRACKS,
    track_of,
)
from bench_datasets.faults import BenchError
from bench_datasets.masks import MASK_FEATURE, MASK_TYPE, MaskColumn, joined, list_offsets, list_values, parse_masks
from bench_datasets.metrics.masklists import MaskLists, read_mask_lists

LABEL_COLUMNS = (
    "key", "image_id", "source", "category", "height", "width", "target", "candidates", "expressions", "faults",
)  # fmt: skip
ANSWER_COLUMNS = ("mask", "box", "candidate_id", "run", "condition", "pred_faults")
ANSWER_FEATURES = Features(
    {
        "pred_masks": List(MASK_FEATURE),
        "pred_boxes": List(List(Value("float64"))),
        "pred_candidate_ids": List(Value("string")),
    }
)
"""What a row may bear beside the truth, aligned with its expressions; null for no answer."""


class Records(NamedTuple):
    """Lists of records of n rows, field by field.

    Attributes:
        groups: `(n + 1,) int64`, where each row's records begin.
        fields: values by field, one row's records behind the other; Python lists, or an Arrow array of masks.
    """

    groups: NDArray[np.int64]
    fields: dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """n truth rows with their predictions.

    Attributes:
        keys, sources, categories, runs, conditions: a text a row.
        labels: the fields that the row hash covers, without the masks.
        noted: the builder's fault codes.
        heights, widths, targets: `(n,) int64`; target is the position among all candidates, -1 for none.
        candidates: their masks; `candidate_ids` and `crowd` are aligned with them.
        expressions: by field, aligned with `groups`.
        groups: `(n + 1,) int64`, where each row's expressions begin.
        donors: donors' masks, aligned with the expressions; null where there is none.
        predicted: predicted masks, aligned with the expressions, null for none; a row is present if it has an answer
            of any kind.
        boxes: `(m, 4) float64`, predicted boxes aligned with the expressions; NaN for none.
        named: predicted candidates, aligned with the expressions; `None` where none was asked for.
        answered: `(m,) bool`, whether there is an answer, be it an empty one.
        reading: faults found when the predictions were read or paired.
    """

    keys: list[str]
    sources: list[str]
    categories: list[str]
    runs: list[str]
    conditions: list[str]
    labels: list[dict[str, Any]]
    noted: list[list[str]]
    heights: NDArray[np.int64]
    widths: NDArray[np.int64]
    targets: NDArray[np.int64]
    candidates: MaskLists
    candidate_ids: list[str]
    crowd: NDArray[np.bool_]
    expressions: dict[str, list[Any]]
    groups: NDArray[np.int64]
    donors: MaskLists
    predicted: MaskLists
    boxes: NDArray[np.float64]
    named: list[Any] | None
    answered: NDArray[np.bool_]
    reading: list[list[tuple[str, str]]]

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def expression_row(self) -> NDArray[np.int64]:
        """`(m,) int64`, the row of each expression."""
        return np.repeat(np.arange(len(self)), np.diff(self.groups))


def read_rows(batch: pa.Table | Mapping[str, Any]) -> Rows:
    """Put a batch into shape.

    Args:
        batch: an Arrow table, or columns by name as `Dataset.map(batched=True)` hands them over, with `pred_masks`
            (lists of masks or nulls aligned with the expressions), and `pred_boxes` or `pred_candidate_ids` likewise.

    Raises:
        BenchError: a column is absent, or predictions are not as many as expressions.
    """
    names = batch.column_names if isinstance(batch, pa.Table) else list(batch)
    answers = [name for name in ("pred_masks", "pred_boxes", "pred_candidate_ids") if name in names]
    absent = [name for name in ("target", "candidates", "expressions") if name not in names]
    if absent or not answers or not {"key", "tces_id"} & set(names):
        raise BenchError(
            "instancebench rows: expected the columns key, target, candidates, expressions and one of pred_masks,"
            f" pred_boxes, pred_candidate_ids; found {', '.join(names)}"
        )
    n = len(batch["expressions"])

    def values(name: str, default: Any = None) -> list[Any]:
        if name not in names:
            return [default] * n
        found = batch[name]
        return found.to_pylist() if isinstance(found, (pa.Array, pa.ChunkedArray)) else list(found)

    keys = [str(key) for key in values("key" if "key" in names else "tces_id")]
    candidates, expressions = records(batch["candidates"]), records(batch["expressions"])
    terms = _expressions(expressions.fields, int(expressions.groups[-1]))
    masks, wrong = _masks(candidates.fields.get("mask"), int(candidates.groups[-1]))
    donors, unsound = _masks(expressions.fields.get("donor_mask"), int(expressions.groups[-1]))
    crowd = np.array(
        [bool(value) for value in _plain(candidates.fields.get("iscrowd"), int(candidates.groups[-1]))], np.bool_
    )
    ids = [str(value) for value in _plain(candidates.fields["instance_id"], int(candidates.groups[-1]))]
    per_row = np.diff(expressions.groups)
    predicted = _aligned_masks(batch["pred_masks"] if "pred_masks" in names else None, keys, per_row)
    given = {name: values(name) for name in ("pred_boxes", "pred_candidate_ids") if name in names}
    if given:
        some = np.array([any(row is not None for row in rows) for rows in zip(*given.values(), strict=True)], np.bool_)
        predicted = predicted._replace(present=some | (predicted.present if "pred_masks" in names else False))
    reading = [[(fault["code"], fault["text"]) for fault in found or []] for found in values("pred_faults")]
    boxes = _boxes(given.get("pred_boxes"), keys, per_row, reading)
    texts = {name: values(name) for name in ("image_id", "source", "category")}
    targets = np.array([-1 if value is None else value for value in values("target")], np.int64)
    return Rows(
        keys, [str(v) for v in texts["source"]], [str(v) for v in texts["category"]],
        [str(v) for v in values("pred_run", "0")], [str(v) for v in values("pred_condition", "original")],
        _labels(keys, texts, targets, candidates.groups, ids, crowd, terms, expressions.groups),
        [list(codes or []) for codes in values("faults")],
        _sizes(values("height")), _sizes(values("width")), targets,
        MaskLists(masks, candidates.groups, np.ones(n, np.bool_), wrong), ids, crowd, terms, expressions.groups,
        MaskLists(donors, expressions.groups, np.ones(n, np.bool_), unsound), predicted, boxes,
        _aligned(given["pred_candidate_ids"], "pred_candidate_ids", keys, per_row)
        if "pred_candidate_ids" in given else None,
        np.array(_aligned(values("pred_answered"), "pred_answered", keys, per_row), np.bool_)
        if "pred_answered" in names else np.ones(int(expressions.groups[-1]), np.bool_),
        reading,
    )  # fmt: skip


def records(column: Any) -> Records:
    """A column of lists of records, field by field; masks stay in Arrow where they are there already."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        array = joined(column)
        flat = list_values(array)
        fields = {}
        for field in flat.type:
            values = flat.field(field.name)
            fields[field.name] = values if field.name in ("mask", "donor_mask") else values.to_pylist()
        return Records(list_offsets(array), fields)
    groups = np.concatenate([[0], np.cumsum([len(row) for row in column], dtype=np.int64)]).astype(np.int64)
    items = [item for row in column for item in row]
    names = dict.fromkeys(name for item in items for name in item)
    return Records(groups, {name: [item.get(name) for item in items] for name in names})


def _masks(values: Any, count: int) -> tuple[MaskColumn, dict[int, str]]:
    if values is None:
        return MaskColumn.from_arrow(pa.nulls(count, MASK_TYPE)), {}
    if isinstance(values, pa.Array):
        return MaskColumn.from_arrow(values), {}
    array, wrong = parse_masks(values)
    return MaskColumn.from_arrow(array), {i: text for i, text in wrong.items() if values[i] is not None}


def _plain(values: Any, count: int) -> list[Any]:
    return [None] * count if values is None else list(values)


def _expressions(fields: Mapping[str, Any], count: int) -> dict[str, list[Any]]:
    """Terms by name, whether they came as class numbers or as names."""
    words = {"role": ROLES, "operation": OPERATIONS, "family": FAMILIES, "track": TRACKS}
    result: dict[str, list[Any]] = {
        name: [known[v] if isinstance(v, int) and 0 <= v < len(known) else v for v in _plain(fields.get(name), count)]
        for name, known in words.items()
    }
    for name in ("expression_id", "text", "tags"):
        result[name] = _plain(fields.get(name), count)
    result["expression_id"] = [str(value) for value in result["expression_id"]]
    # What follows from role and operation need not be given.
    pairs = list(zip(result["role"], result["operation"], strict=True))
    for name, derive in (("family", _family), ("track", _track)):
        if None in result[name]:
            result[name] = [derive(*pair) if v is None else v for v, pair in zip(result[name], pairs, strict=True)]
    return result


def _family(role: Any, operation: Any) -> str | None:
    del role
    return FAMILY_OF.get(operation)


def _track(role: Any, operation: Any) -> str | None:
    known = role in TRACKS or (role in ROLES and operation in FAMILY_OF)
    return track_of(role, operation) if known else None


def _boxes(
    lists: list[Any] | None, keys: Sequence[str], per_row: NDArray[np.int64], reading: list[list[tuple[str, str]]]
) -> NDArray[np.float64]:
    """Boxes, NaN for none; what is wrong with one goes into the faults of its row."""
    result = np.full((int(per_row.sum()), 4), np.nan)
    if lists is None:
        return result
    row = np.repeat(np.arange(len(keys)), per_row)
    for k, box in enumerate(_aligned(lists, "pred_boxes", keys, per_row)):
        if box is None:
            continue
        sides = list(box) if hasattr(box, "__len__") and not isinstance(box, (str, bytes, Mapping)) else []
        if len(sides) == 4 and all(_is_number(side) for side in sides) and min(sides[2:]) >= 0:
            result[k] = sides
            continue
        at = k - int(per_row[: row[k]].sum())
        text = f"pred_boxes, box {at}: expected four finite numbers [x, y, width, height] in pixels, no negative side"
        reading[row[k]].append(("bad_box", f"{text}, found {str(box)[:60]}"))
    return result


def _is_number(value: Any) -> bool:
    """Whether it is a finite number of float64's range."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return bool(-1e300 < value < 1e300)


def _aligned(lists: list[Any], name: str, keys: Sequence[str], per_row: NDArray[np.int64]) -> list[Any]:
    """A list a row, aligned with its expressions, one behind the other; a null row is all nulls."""
    flat: list[Any] = []
    for key, items, count in zip(keys, lists, per_row, strict=True):
        items = [None] * int(count) if items is None else list(items)
        if len(items) != count:
            raise BenchError(f"{key}: {name}: expected {count} items, one an expression, found {len(items)}")
        flat += items
    return flat


def _aligned_masks(column: Any, keys: Sequence[str], per_row: NDArray[np.int64]) -> MaskLists:
    groups = np.concatenate([[0], np.cumsum(per_row)])
    if column is None:
        return MaskLists(
            MaskColumn.from_arrow(pa.nulls(int(groups[-1]), MASK_TYPE)), groups, np.ones(len(keys), np.bool_), {}
        )
    lists = read_mask_lists(column)
    sizes = np.diff(lists.groups)
    for i in np.flatnonzero(sizes != per_row).tolist():
        if lists.present[i]:
            raise BenchError(f"{keys[i]}: pred_masks: expected {per_row[i]} items, one an expression, found {sizes[i]}")
    if (sizes != per_row).any():  # rows of null become as many nulls as there are expressions
        values = lists.masks.to_pylist()
        filled: list[Any] = []
        for i, count in enumerate(per_row.tolist()):
            first = int(lists.groups[i])
            filled += values[first : first + count] if lists.present[i] else [None] * count
        return MaskLists(MaskColumn.from_arrow(pa.array(filled, MASK_TYPE)), groups, lists.present, lists.wrong)
    wrong = {i: text for i, text in lists.wrong.items() if text != "the mask is null"}
    return MaskLists(lists.masks, groups, lists.present, wrong)


def _sizes(values: list[Any]) -> NDArray[np.int64]:
    return np.array([-1 if value is None else value for value in values], np.int64)


def _labels(
    keys: list[str],
    texts: Mapping[str, list[Any]],
    targets: NDArray[np.int64],
    candidate_groups: NDArray[np.int64],
    ids: list[str],
    crowd: NDArray[np.bool_],
    terms: Mapping[str, list[Any]],
    groups: NDArray[np.int64],
) -> list[dict[str, Any]]:
    """What the row hash covers besides the candidates' masks."""
    names = ("expression_id", "text", "role", "operation", "family", "track", "tags")
    result = []
    for i, key in enumerate(keys):
        some = range(int(candidate_groups[i]), int(candidate_groups[i + 1]))
        own = range(int(groups[i]), int(groups[i + 1]))
        result.append({
            "tces_id": key,
            **{name: values[i] for name, values in texts.items()},
            "target": int(targets[i]),
            "candidates": [{"instance_id": ids[k], "iscrowd": bool(crowd[k])} for k in some],
            "expressions": [{name: terms[name][k] for name in names} for k in own],
        })  # fmt: skip
    return result
