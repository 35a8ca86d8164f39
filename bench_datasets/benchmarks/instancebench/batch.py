"""`Batch` of InstanceBench: ground truth rows with their predictions, ready to be scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets._util.untrusted import load_text
from bench_datasets.benchmark import Protocol
from bench_datasets.benchmarks.instancebench.vocabulary import (
    FAMILIES,
    FAMILY_OF,
    OPERATIONS,
    ROLES,
    TRACKS,
    track_of,
)
from bench_datasets.faults import BenchError, shorten, stops
from bench_datasets.masks import MASK_TYPE, Decoded, MaskColumn, Status, joined, list_offsets, list_values, parse_masks
from bench_datasets.masks.ragged import MaskLists, read_mask_lists
from bench_datasets.predictions.arrow_types import size_advice
from bench_datasets.predictions.coerce import read_word
from bench_datasets.scoring.batch import Batch
from bench_datasets.scoring.faulty_rows import Faulty
from bench_datasets.scoring.hashes import sound_hashes
from bench_datasets.scoring.options import ScoreOptions

_NO_CANDIDATE = "\0"
"""A name that no candidate bears."""

Reading = list[list[tuple[str, str]]]
"""Faults of reading, row by row: codes and texts."""


class Records(NamedTuple):
    """Lists of records of n rows, field by field.

    Attributes:
        groups: `(n + 1,) int64`, where each row's records begin.
        fields: values by field, one row's records behind the other; Python lists, or an Arrow array of masks.
    """

    groups: NDArray[np.int64]
    fields: dict[str, Any]


class Kept(NamedTuple):
    """The candidates that identity is decided among.

    Attributes:
        masks: their masks, sound, row by row.
        groups: `(n + 1,) int64`.
        ids: their instance ids.
        target: `(n,) int64`, position of the target among its row's; -1 where there is none.
    """

    masks: MaskColumn
    groups: NDArray[np.int64]
    ids: list[str]
    target: NDArray[np.int64]

    def part(self, start: int, stop: int) -> Kept:
        """Those of the rows from `start` to `stop`."""
        first, last = int(self.groups[start]), int(self.groups[stop])
        groups = self.groups[start : stop + 1] - first
        return Kept(self.masks.part(first, last), groups, self.ids[first:last], self.target[start:stop])


@dataclass(frozen=True)
class Sets:
    """n ground truth rows.

    Attributes:
        keys, sources, categories: a text a row.
        labels: the fields that the row hash covers, without the masks.
        noted: the builder's fault codes.
        heights, widths, targets: `(n,) int64`; target is the position among all candidates, -1 for none.
        candidates: their masks; `candidate_ids` and `crowd` are aligned with them.
        expressions: by field, aligned with `groups`.
        groups: `(n + 1,) int64`, where each row's expressions begin.
        donors: donors' masks, aligned with the expressions; null where there is none.
    """

    keys: list[str]
    sources: list[str]
    categories: list[str]
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

    @cached_property
    def kept(self) -> Kept:
        """The candidates that identity is decided among."""
        return _kept(self)

    @cached_property
    def left_out_candidates(self) -> dict[int, tuple[str, str]]:
        """Candidates without a valid mask of the image's size, by place: a fault code and what was found."""
        return _left_out(self)

    @cached_property
    def hashes(self) -> list[str]:
        """The hash of each row's labels and candidates' masks; empty for an invalid mask."""
        truth = _without_nulls(self.candidates)
        return sound_hashes(self.labels, truth, truth.problems())

    def part(self, start: int, stop: int) -> Sets:
        """The rows from `start` to `stop`, with everything that is known of them."""
        first, last = int(self.candidates.groups[start]), int(self.candidates.groups[stop])
        begin, end = int(self.groups[start]), int(self.groups[stop])
        _ = self.donors.masks.decoded
        part = Sets(
            self.keys[start:stop], self.sources[start:stop], self.categories[start:stop], self.labels[start:stop],
            self.noted[start:stop], self.heights[start:stop], self.widths[start:stop], self.targets[start:stop],
            self.candidates.slice(start, stop), self.candidate_ids[first:last], self.crowd[first:last],
            {name: values[begin:end] for name, values in self.expressions.items()},
            self.groups[start : stop + 1] - begin, self.donors.slice(start, stop),
        )  # fmt: skip
        left_out = {k - first: found for k, found in self.left_out_candidates.items() if first <= k < last}
        known = {
            "kept": self.kept.part(start, stop),
            "left_out_candidates": left_out,
            "hashes": self.hashes[start:stop],
        }
        part.__dict__.update(known)
        return part


@dataclass(frozen=True)
class Rows(Sets, Batch):
    """n truth rows with their predictions.

    Attributes:
        runs, conditions: a text a row.
        predicted: predicted masks, aligned with the expressions, null for none; a row is present if it has an answer
            of any kind.
        boxes: `(m, 4) float64`, predicted boxes aligned with the expressions; NaN for none.
        named: predicted candidates, aligned with the expressions; `None` where none was asked for.
        answered: `(m,) bool`, whether there is an answer, be it an empty one.
        reading: faults found when the predictions were read or paired.
        faulty: `(m,) bool`, predictions that such a fault is about.
        good: `(n,) bool`, rows that are scored.
    """

    runs: list[str]
    conditions: list[str]
    predicted: MaskLists
    boxes: NDArray[np.float64]
    named: list[Any] | None
    answered: NDArray[np.bool_]
    reading: Reading
    faulty: NDArray[np.bool_]
    good: NDArray[np.bool_]

    @property
    def clusters(self) -> list[str]:
        """The sets, which are resampled."""
        return self.keys

    def use_decoded(self, decoded: Decoded) -> None:
        """Take the predicted masks from an earlier decoding, which left nulls out."""
        masks = self.predicted.masks
        masks.remember(decoded if masks.present.all() else decoded.spread(masks.present))

    def label_columns(self) -> Mapping[str, Any]:
        """Run, condition, source, category, and the target's position among the candidates."""
        return {
            "run": self.runs,
            "condition": self.conditions,
            "source": self.sources,
            "category": self.categories,
            "target": pa.array(self.kept.target, pa.int32()),
        }

    def row_hashes(self) -> list[str]:
        """The hash of each row's labels and candidates' masks."""
        return self.hashes

    def find_faults(self, protocol: Protocol, options: ScoreOptions) -> Faulty:
        """The rows that can't be scored as they are."""
        from bench_datasets.benchmarks.instancebench.validation import find_faults

        del protocol
        return find_faults(self, self.kept, options)

    def fault_codes(self, faulty: Faulty) -> list[list[str]]:
        """Codes of the builder, of reading, of predictions that look wrong, and of the faults."""
        from bench_datasets.benchmarks.instancebench.validation import noted_predictions

        odd = noted_predictions(self)
        row = self.candidates.row_of
        candidates: dict[int, set[str]] = {}
        for k, (code, _) in self.left_out_candidates.items():
            candidates.setdefault(int(row[k]), set()).add(code)
        some = {*odd, *candidates, *faulty.left_out, *faulty.wrong}
        return [
            sorted({
                *noted,
                *candidates.get(i, ()),
                *(code for code, _ in reading if not stops(code)),
                *faulty.codes(i),
                *(odd.get(i, ()) if i not in faulty.left_out and i not in faulty.wrong else ()),
            }) if noted or reading or i in some else []
            for i, (noted, reading) in enumerate(zip(self.noted, self.reading, strict=True))
        ]  # fmt: skip

    def scorable(self, faulty: Faulty) -> Rows:
        """The rows, with those that are scored marked; predictions that count as wrong are null."""
        from bench_datasets.benchmarks.instancebench.validation import faulty_answers

        if not faulty.left_out and not faulty.wrong:
            return self
        good = np.array([i not in faulty.left_out for i in range(len(self))], np.bool_)
        rows = self
        if faulty.wrong:
            wrong = faulty_answers(self, self.kept) & np.isin(self.expression_row, list(faulty.wrong))
            rows = self.without_answers(wrong)
        return replace(rows, good=good)

    @cached_property
    def expression_row(self) -> NDArray[np.int64]:
        """`(m,) int64`, the row of each expression."""
        return np.repeat(np.arange(len(self)), np.diff(self.groups))

    def without_answers(self, which: NDArray[np.bool_]) -> Rows:
        """The same rows, of which the predictions `which` `(m,) bool` are null masks, wrong boxes and no candidates."""
        masks = self.predicted.masks.to_pylist()
        for k in np.flatnonzero(which).tolist():
            masks[k] = None
        wrong = {k: text for k, text in self.predicted.wrong.items() if not which[k]}
        boxes = self.boxes.copy()
        boxes[which & np.isfinite(boxes).all(axis=1)] = 0.0
        named = self.named
        if named is not None:
            named = [
                _NO_CANDIDATE if faulty and name is not None else name
                for name, faulty in zip(named, which.tolist(), strict=True)
            ]
        column = MaskColumn.from_arrow(pa.array(masks, MASK_TYPE))
        return replace(self, predicted=self.predicted._replace(masks=column, wrong=wrong), boxes=boxes, named=named)


def read_sets(batch: pa.Table | Mapping[str, Any]) -> Sets:
    """The ground truth of a batch.

    Args:
        batch: an Arrow table, or columns by name as `Dataset.map(batched=True)` hands them over.
    """
    values = partial(_values, batch, len(batch["expressions"]))
    n = len(batch["expressions"])
    keys = [str(key) for key in values("key" if "key" in _names(batch) else "tces_id")]
    candidates, expressions = records(batch["candidates"]), records(batch["expressions"])
    terms = _expressions(expressions.fields, int(expressions.groups[-1]))
    masks, wrong = _masks(candidates.fields.get("mask"), int(candidates.groups[-1]))
    donors, unsound = _masks(expressions.fields.get("donor_mask"), int(expressions.groups[-1]))
    crowd = np.array(
        [bool(value) for value in _plain(candidates.fields.get("iscrowd"), int(candidates.groups[-1]))], np.bool_
    )
    ids = [str(value) for value in _plain(candidates.fields["instance_id"], int(candidates.groups[-1]))]
    texts = {name: values(name) for name in ("image_id", "source", "category")}
    targets = np.array([-1 if value is None else value for value in values("target")], np.int64)
    return Sets(
        keys, [str(v) for v in texts["source"]], [str(v) for v in texts["category"]],
        _labels(keys, texts, targets, candidates.groups, ids, crowd, terms, expressions.groups),
        [list(codes or []) for codes in values("faults")],
        _sizes(values("height")), _sizes(values("width")), targets,
        MaskLists(masks, candidates.groups, np.ones(n, np.bool_), wrong), ids, crowd, terms, expressions.groups,
        MaskLists(donors, expressions.groups, np.ones(n, np.bool_), unsound),
    )  # fmt: skip


def read_rows(batch: pa.Table | Mapping[str, Any], sets: Sets | None = None) -> Rows:
    """Put a batch into shape.

    Args:
        batch: an Arrow table, or columns by name as `Dataset.map(batched=True)` hands them over, with `pred_masks`
            (lists of masks or nulls aligned with the expressions), and `pred_boxes` or `pred_candidate_ids` likewise.
        sets: the batch's ground truth, where it was read before.

    Raises:
        BenchError: a column is absent.
    """
    names = _names(batch)
    answers = [name for name in ("pred_masks", "pred_boxes", "pred_candidate_ids") if name in names]
    absent = [name for name in ("target", "candidates", "expressions") if name not in names]
    if absent or not answers or not {"key", "tces_id"} & set(names):
        raise BenchError(
            "instancebench rows: expected the columns key, target, candidates, expressions and one of pred_masks,"
            f" pred_boxes, pred_candidate_ids; found {', '.join(names)}"
        )
    n = len(batch["expressions"])
    values = partial(_values, batch, n)
    sets = read_sets(batch) if sets is None else sets
    per_row = np.diff(sets.groups)
    reading = [[(fault["code"], fault["text"]) for fault in found or []] for found in values("pred_faults")]
    whole = np.array([any(stops(code) for code, _ in found) for found in reading], np.bool_)
    if "pred_faulty" in names:  # pairing knows which of the row's predictions are faulty
        whole = np.array([any(code == "duplicate_prediction" for code, _ in found) for found in reading], np.bool_)
    known = [len(found) for found in reading]
    predicted = _aligned_masks(batch["pred_masks"] if "pred_masks" in names else None, per_row, reading)
    given = {name: values(name) for name in ("pred_boxes", "pred_candidate_ids") if name in names}
    if given:
        some = np.array([any(row is not None for row in rows) for rows in zip(*given.values(), strict=True)], np.bool_)
        predicted = predicted._replace(present=some | (predicted.present if "pred_masks" in names else False))
    candidates_named = (
        _aligned(given["pred_candidate_ids"], "pred_candidate_ids", per_row, reading)
        if "pred_candidate_ids" in given
        else None
    )
    box_lists = _aligned(given["pred_boxes"], "pred_boxes", per_row, reading) if "pred_boxes" in given else None
    whole |= np.array([len(found) for found in reading], np.int64) > known  # lists that are not aligned
    faulty = np.repeat(whole, per_row)
    if "pred_faulty" in names:
        faulty |= _flags(batch["pred_faulty"], "pred_faulty", per_row, reading)
    if candidates_named is not None:
        faulty |= _bad_names(candidates_named, per_row, reading)
        candidates_named = [name if name is None else read_word(name) or str(name) for name in candidates_named]
    boxes, bad_boxes = _boxes(box_lists, per_row, reading)
    faulty |= bad_boxes
    rows = Rows(
        **{field.name: getattr(sets, field.name) for field in fields(Sets)},
        runs=[str(v) for v in values("pred_run", "0")],
        conditions=[str(v) for v in values("pred_condition", "original")],
        predicted=predicted,
        boxes=boxes,
        named=candidates_named,
        answered=_flags(batch["pred_answered"], "pred_answered", per_row, reading)
        if "pred_answered" in names
        else np.ones(int(sets.groups[-1]), np.bool_),
        reading=reading,
        faulty=faulty,
        good=np.ones(n, np.bool_),
    )
    rows.__dict__.update({name: value for name, value in sets.__dict__.items() if name in _CACHED})
    return rows


_CACHED = ("kept", "left_out_candidates", "hashes")
"""What `Sets` knows once it was asked."""


def _names(batch: pa.Table | Mapping[str, Any]) -> list[str]:
    return batch.column_names if isinstance(batch, pa.Table) else list(batch)


def _values(batch: pa.Table | Mapping[str, Any], count: int, name: str, default: Any = None) -> list[Any]:
    """A column as Python values; `default` for each of the `count` rows where it is absent."""
    if name not in _names(batch):
        return [default] * count
    found = batch[name]
    return found.to_pylist() if isinstance(found, (pa.Array, pa.ChunkedArray)) else list(found)


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
    flat: list[Any] | None, per_row: NDArray[np.int64], reading: Reading
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Parse boxes: NaN where there is none, zeros for an invalid one, and which are invalid."""
    result = np.full((int(per_row.sum()), 4), np.nan)
    bad = np.zeros(len(result), np.bool_)
    if flat is None:
        return result, bad
    row = np.repeat(np.arange(len(per_row)), per_row)
    for k, given in enumerate(flat):
        box = load_text(given)
        if box is None:
            continue
        sides = list(box) if hasattr(box, "__len__") and not isinstance(box, (str, bytes, Mapping)) else []
        if len(sides) == 4 and all(_is_number(side) for side in sides) and min(sides[2:]) >= 0:
            result[k] = sides
            continue
        result[k], bad[k] = 0.0, True
        at = k - int(per_row[: row[k]].sum())
        text = f"pred_boxes, box {at}: expected four finite numbers [x, y, width, height] in pixels, no negative side"
        reading[row[k]].append(("bad_box", f"{text}, found {str(box)[:60]}"))
    return result, bad


def _bad_names(named: list[Any], per_row: NDArray[np.int64], reading: Reading) -> NDArray[np.bool_]:
    """Which names of candidates are none, neither text nor an integer; each is a fault of its row."""
    bad = np.array([name is not None and read_word(name) is None for name in named], np.bool_)
    row = np.repeat(np.arange(len(per_row)), per_row)
    for k in np.flatnonzero(bad).tolist():
        at = k - int(per_row[: row[k]].sum())
        expected = "expected a candidate's instance_id (text, or an integer)"
        text = f"pred_candidate_ids, item {at}: {expected}, found {shorten(named[k])}"
        reading[row[k]].append(("malformed_mask", text))
    return bad


def _is_number(value: Any) -> bool:
    """Whether it is a finite number of float64's range."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return bool(-1e300 < value < 1e300)


def _aligned(lists: list[Any], name: str, per_row: NDArray[np.int64], reading: Reading) -> list[Any]:
    """A list per row, aligned with its expressions, one behind the other; a null row is all nulls.

    A list that is not aligned is a fault of its row, and all nulls.
    """
    flat: list[Any] = []
    for i, (given, count) in enumerate(zip(lists, per_row.tolist(), strict=True)):
        items = load_text(given)
        aligned = hasattr(items, "__len__") and not isinstance(items, (str, bytes, Mapping)) and len(items) == count
        if items is not None and not aligned:
            reading[i].append(_unaligned(name, count, items))
        flat += list(items) if aligned else [None] * count
    return flat


def _flags(column: Any, name: str, per_row: NDArray[np.int64], reading: Reading) -> NDArray[np.bool_]:
    """`_aligned` of lists of truth values."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        lists = joined(column)
        items = list_values(lists) if pa.types.is_list(lists.type) and not lists.null_count else pa.nulls(1)
        if pa.types.is_boolean(items.type) and not items.null_count and (np.diff(list_offsets(lists)) == per_row).all():
            return np.array(items.to_numpy(zero_copy_only=False), np.bool_)
        column = lists.to_pylist()
    return np.array(_aligned(column, name, per_row, reading), np.bool_)


def _unaligned(name: str, count: int, items: Any) -> tuple[str, str]:
    found = f"{len(items)}" if hasattr(items, "__len__") and not isinstance(items, str) else type(items).__name__
    return "unaligned_prediction", f"{name}: expected {count} items, one per expression, found {found}"


def _aligned_masks(column: Any, per_row: NDArray[np.int64], reading: Reading) -> MaskLists:
    groups = np.concatenate([[0], np.cumsum(per_row)])
    if column is None:
        return MaskLists(
            MaskColumn.from_arrow(pa.nulls(int(groups[-1]), MASK_TYPE)), groups, np.ones(len(per_row), np.bool_), {}
        )
    lists = read_mask_lists(column)
    sizes = np.diff(lists.groups)
    aligned = sizes == per_row
    for i in np.flatnonzero(~aligned & lists.present).tolist():
        reading[i].append(_unaligned("pred_masks", int(per_row[i]), range(int(sizes[i]))))
    wrong = {i: text for i, text in lists.wrong.items() if text != "the mask is null"}
    if aligned.all():
        return MaskLists(lists.masks, groups, lists.present, wrong)
    # Rows that are null or not aligned become as many nulls as there are expressions.
    values = lists.masks.to_pylist()
    filled: list[Any] = []
    moved: dict[int, str] = {}
    for i, count in enumerate(per_row.tolist()):
        first = int(lists.groups[i])
        if aligned[i]:
            moved |= {len(filled) + k: wrong[first + k] for k in range(count) if first + k in wrong}
        filled += values[first : first + count] if aligned[i] else [None] * count
    return MaskLists(MaskColumn.from_arrow(pa.array(filled, MASK_TYPE)), groups, lists.present, moved)


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
    """The fields that the row hash covers besides the candidates' masks."""
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


def _without_nulls(lists: MaskLists) -> MaskLists:
    """The masks that are there; a candidate without one is no part of a row's content but by its id."""
    there = np.flatnonzero(lists.masks.present)
    if len(there) == len(lists.masks):
        return lists
    groups = np.searchsorted(there, lists.groups)
    return MaskLists(lists.masks.take(there), groups, lists.present, {})


def _kept(rows: Sets) -> Kept:
    """Candidates that are no crowd and that `_left_out` does not leave out; a target marked as a crowd stays."""
    count = len(rows.candidates.masks)
    row = rows.candidates.row_of
    own, inside = _targets(rows)
    target = rows.candidates.groups[:-1] + rows.targets
    sound = np.ones(count, np.bool_)
    sound[list(rows.left_out_candidates)] = False
    index = np.flatnonzero(sound & (~rows.crowd | own))
    groups = np.concatenate([[0], np.cumsum(np.bincount(row[index], minlength=len(rows.keys)))])
    place = np.full(count, -1)
    place[index] = np.arange(len(index)) - groups[:-1][row[index]]
    position = np.where(inside, place[np.where(inside, target, 0)] if count else -1, -1)
    masks = rows.candidates.masks if len(index) == count else rows.candidates.masks.take(index)
    return Kept(masks, groups, [rows.candidate_ids[i] for i in index.tolist()], position)


def _targets(rows: Sets) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """`(candidates,) bool`, which candidates are targets, and `(n,) bool`, which rows have one."""
    own = np.zeros(len(rows.candidates.masks), np.bool_)
    target = rows.candidates.groups[:-1] + rows.targets
    inside = (rows.targets >= 0) & (target < rows.candidates.groups[1:])
    own[target[inside]] = True
    return own, inside


def _left_out(rows: Sets) -> dict[int, tuple[str, str]]:
    """Candidates that the builder would leave out, by place: fault code and reason.

    They have no valid mask, an empty one without being the target (`candidate_without_mask`), or one of another size
    than the image (`size_mismatch`). Where the image's size is not known, the target's mask has it.
    """
    masks = rows.candidates.masks
    own, inside = _targets(rows)
    invalid = masks.decoded.status != Status.OK
    invalid[list(rows.candidates.wrong)] = True
    height, width = rows.heights.copy(), rows.widths.copy()
    unknown = inside & ((height <= 0) | (width <= 0))
    target = (rows.candidates.groups[:-1] + rows.targets)[unknown]
    sound = ~invalid[target]
    height[unknown], width[unknown] = (
        np.where(sound, masks.heights[target], 0),
        np.where(sound, masks.widths[target], 0),
    )
    row = rows.candidates.row_of
    known = (height[row] > 0) & (width[row] > 0)
    other = ~invalid & known & ((masks.heights != height[row]) | (masks.widths != width[row]))
    valid = np.flatnonzero(~invalid)
    empty = np.zeros(len(masks), np.bool_)
    empty[valid] = (masks if len(valid) == len(masks) else masks.take(valid)).areas() == 0
    empty &= ~own
    if not (invalid | other | empty).any():
        return {}
    texts = {**masks.problems(), **rows.candidates.wrong}
    found = {k: ("candidate_without_mask", texts.get(k, "the mask is null")) for k in np.flatnonzero(invalid).tolist()}
    found |= dict.fromkeys(np.flatnonzero(empty).tolist(), ("candidate_without_mask", "the mask is empty"))
    for k in np.flatnonzero(other).tolist():
        size, expected = (int(masks.heights[k]), int(masks.widths[k])), (int(height[row[k]]), int(width[row[k]]))
        text = f"a mask of {size[0]} x {size[1]} where {expected[0]} x {expected[1]} was expected"
        found[k] = ("size_mismatch", text + size_advice(size, expected))
    return found
