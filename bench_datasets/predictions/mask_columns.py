"""One table's columns into PBench predictions, mask columns as they lie: no Python object a mask."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bench_datasets.faults import BenchError
from bench_datasets.masks import joined, list_offsets, list_values
from bench_datasets.predictions.arrow_types import class_names, is_list, is_mask, is_numbers, keep_earlier, sound_masks
from bench_datasets.predictions.coerce import (
    MAX_MASKS,
    Found,
    Name,
    level_of,
    mask_faults,
    no_prediction,
    read_name,
    show,
    too_many,
)
from bench_datasets.predictions.foreign_fields import refuse_other_benchmark
from bench_datasets.predictions.mask_lines import Naming, fill
from bench_datasets.predictions.mask_rows import PAIRS_TYPE, SCHEMA, Row, batches, faults_array
from bench_datasets.predictions.mask_signature import MASK_SIGNATURE

_KNOWN = (
    *("key", "id", "image_id", "split", "level", "position", "pred_masks", "masks", "pred_scores", "scores"),
    *("pred_centers", "pred_sizes", "pred_faults", "size", "height", "width"),
    *("expression_id", "candidates", "expressions", "video_id", "tubes", "pred_tubes", "expression", "count"),
)

_NAMES = {"key", "id", "image_id", "split", "level", "position", "size", "height", "width"}


class Columns:
    """Which columns of a table say what, found once, and the conversion of its slices.

    Args:
        schema: of the table.
        shown: how messages call it.
        name: of its file or split, which may speak of a level.

    Raises:
        BenchError: it has no column of masks, nothing names its rows, or it is another benchmark's.
    """

    def __init__(self, schema: pa.Schema, shown: str, name: str) -> None:
        names = schema.names
        refuse_other_benchmark(names, shown, MASK_SIGNATURE)
        masks = next((name for name in ("pred_masks", "masks") if name in names), None)
        if masks is None:
            advice = "; write one row per image with all its masks, or COCO results as a JSON list"
            raise BenchError(
                f"{shown}: expected a column pred_masks (or masks), found {', '.join(names[:12]) or 'no columns'}"
                + advice * ("segmentation" in names)
            )
        self.schema, self.masks = schema, masks
        self.scores = next((name for name in ("pred_scores", "scores") if name in names), None)
        self.naming = Naming(shown, level_of(name))
        self.levels = class_names(schema, "level")
        self.rows = 0

    @staticmethod
    def known(names: Iterable[str]) -> list[str]:
        """Those of the names that are read; `masks` beside `pred_masks` is the truth's, and is not."""
        given = list(names)
        found = [name for name in given if name in _KNOWN and not (name == "masks" and "pred_masks" in given)]
        return given if found and set(found) <= _NAMES else found  # names alone: the message lists all columns

    def convert(self, table: pa.Table) -> pa.RecordBatch:
        """A slice of the table as a batch of `rows.SCHEMA`."""
        columns = {name: joined(table.column(name)) for name in self.known(table.column_names)}
        n = table.num_rows
        faults: list[Found] = [[] for _ in range(n)]
        named = self._names(columns, n, faults)
        long = self._leave_out_long(columns, faults)
        if not self._fast(columns):
            return self._slow(columns, named, faults, long)
        lists = columns[self.masks]
        offsets = list_offsets(lists)
        masks = _masks(list_values(lists), offsets, faults)
        if lists.null_count:
            for row in set(np.flatnonzero(lists.is_null().to_numpy(zero_copy_only=False)).tolist()) - long:
                faults[row].append(no_prediction("masks"))
        counts = np.diff(offsets)
        arrays = [
            *named,
            pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), masks),
            _scores(columns.get(self.scores or ""), counts, faults),
            _pairs(columns.get("pred_centers"), counts, faults, "pred_centers"),
            _pairs(columns.get("pred_sizes"), counts, faults, "pred_sizes"),
        ]
        keep_earlier(columns.get("pred_faults"), faults)
        return pa.RecordBatch.from_arrays([*arrays, faults_array(faults)], schema=SCHEMA)

    def _leave_out_long(self, columns: dict[str, pa.Array], faults: list[Found]) -> set[int]:
        """Drop the masks, and their scores, of rows with more than `MAX_MASKS`; returns these rows."""
        lists = columns[self.masks]
        if not is_list(lists.type):
            return set()
        counts = np.diff(list_offsets(lists))
        over = np.flatnonzero(counts > MAX_MASKS)
        if not len(over):
            return set()
        for row in over.tolist():
            faults[row].append(too_many(int(counts[row])))
        kept = np.arange(len(counts))
        index = pa.array(kept, mask=counts > MAX_MASKS)
        for name in {self.masks, self.scores, "pred_centers", "pred_sizes"} & columns.keys():
            if name:
                columns[name] = columns[name].take(index)
        return set(over.tolist())

    def _fast(self, columns: dict[str, pa.Array]) -> bool:
        scores = columns.get(self.scores or "")
        pairs = [columns[name].type for name in ("pred_centers", "pred_sizes") if name in columns]
        return (
            is_list(columns[self.masks].type)
            and is_mask(columns[self.masks].type.value_type)
            and (scores is None or is_numbers(scores.type))
            and all(kind == PAIRS_TYPE or pa.types.is_null(kind) for kind in pairs)
        )

    def _names(self, columns: dict[str, pa.Array], n: int, faults: list[Found]) -> list[pa.Array]:
        """key, id, split and position as arrays."""
        fields = ("key", "id", "image_id", "split", "level", "position")
        values = {name: columns[name].to_pylist() for name in fields if name in columns}
        if self.levels:
            known = dict(enumerate(self.levels))
            values["level"] = [known.get(value) for value in values["level"]]
        given = values.pop("position", None)
        earlier = columns["pred_faults"].to_pylist() if "pred_faults" in columns else [None] * n
        ids = ("id",) if self.naming.split else ("id", "image_id")
        names, positions = [], []
        for i in range(n):
            place = f"{self.naming.shown}, row {self.rows + i}"
            name = read_name({field: column[i] for field, column in values.items()}, self.naming.split, ids)
            if name.problem:
                faults[i].append(("unknown_row", f"{place}: {name.problem}"))
            elif name.empty and any(item["code"] == "unknown_row" for item in earlier[i] or []):
                name = Name(problem="an earlier reading found none")
            if given is not None and isinstance(given[i], int) and name.empty and name.split is not None:
                positions.append(given[i])
            else:
                positions.append(self.naming.position(name, place))
            names.append(name)
        self.rows += n
        return [
            pa.array([name.key for name in names], pa.string()),
            pa.array([name.id for name in names], pa.int64()),
            pa.array([name.split for name in names], pa.string()),
            pa.array(positions, pa.int64()),
        ]

    def _slow(
        self, columns: dict[str, pa.Array], named: list[pa.Array], faults: list[Found], long: set[int]
    ) -> pa.RecordBatch:
        """Masks of other kinds (JSON text, uncompressed runs), by way of Python values."""
        values = {name: array.to_pylist() for name, array in columns.items() if name not in ("masks", "scores")}
        values |= {"pred_masks": columns[self.masks].to_pylist()}
        if self.scores:
            values["pred_scores"] = columns[self.scores].to_pylist()
        names = zip(*(array.to_pylist() for array in named), strict=True)
        rows = []
        for i, (key, number, split, position) in enumerate(names):
            row = Row(key, number, split, position, faults=faults[i])
            if i not in long:
                fill(row, {name: column[i] for name, column in values.items()})
            rows.append(row)
        batch = pa.Table.from_batches(list(batches(rows)), SCHEMA).combine_chunks().to_batches()[0]
        keep_earlier(columns.get("pred_faults"), faults)
        return pa.RecordBatch.from_arrays([*batch.columns[:-1], faults_array(faults)], schema=SCHEMA)


def _masks(values: pa.Array, offsets: NDArray[np.int64], faults: list[Found]) -> pa.Array:
    masks, wrong = sound_masks(values)
    places = np.fromiter(wrong, np.int64, len(wrong))
    rows = np.searchsorted(offsets, places, side="right") - 1
    by_row = zip(rows.tolist(), (places - offsets[rows]).tolist(), wrong.values(), strict=True)
    for row, items in groupby(by_row, key=lambda item: item[0]):
        faults[row] += mask_faults((i, text) for _, i, text in items)
    return masks


def _scores(scores: pa.Array | None, counts: NDArray[np.int64], faults: list[Found]) -> pa.Array:
    kind = SCHEMA.field("pred_scores").type
    if scores is None or pa.types.is_null(scores.type):
        return pa.nulls(len(counts), kind)
    offsets = list_offsets(scores)
    values = list_values(scores).cast(pa.float64(), safe=False)
    numbers = pc.fill_null(values, np.nan).to_numpy(zero_copy_only=False)
    absent = scores.is_null().to_numpy(zero_copy_only=False)
    uneven = (np.diff(offsets) != counts) & ~absent
    for row in np.flatnonzero(uneven).tolist():
        found = int(offsets[row + 1] - offsets[row])
        faults[row].append(("bad_score", f"scores: expected one per mask ({counts[row]}), found {found}"))
    bad = ~np.isfinite(numbers)
    for i in np.flatnonzero(bad).tolist():
        row = int(np.searchsorted(offsets, i, side="right")) - 1
        if not uneven[row]:
            text = f"score {i - offsets[row]}: expected a finite number, found {show(values[int(i)].as_py())}"
            faults[row].append(("bad_score", text))
    clean = pa.array(numbers, pa.float64(), mask=bad)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), clean, mask=pa.array(absent | uneven))


def _pairs(pairs: pa.Array | None, counts: NDArray[np.int64], faults: list[Found], field: str) -> pa.Array:
    if pairs is None or pa.types.is_null(pairs.type):
        return pa.nulls(len(counts), PAIRS_TYPE)
    offsets = list_offsets(pairs)
    values = list_values(pairs)
    absent = pairs.is_null().to_numpy(zero_copy_only=False)
    uneven = (np.diff(offsets) != counts) & ~absent
    for row in np.flatnonzero(uneven).tolist():
        found = int(offsets[row + 1] - offsets[row])
        faults[row].append(("bad_box", f"{field}: expected a list of one pair a mask ({counts[row]}), found {found}"))
    # A null pair keeps its place; its two numbers are read as NaN.
    items = values.take(pa.array(np.arange(len(values)))) if values.offset else values
    flat = pc.fill_null(items.values, np.nan).to_numpy(zero_copy_only=False)[: 2 * len(items)].reshape(-1, 2)
    null = items.is_null().to_numpy(zero_copy_only=False)
    bad = ~np.isfinite(flat).all(axis=1) | null
    for i in np.flatnonzero(bad).tolist():
        row = int(np.searchsorted(offsets, i, side="right")) - 1
        if not uneven[row]:
            text = f"mask {i - offsets[row]}: {field}: expected two finite numbers, found {show(items[int(i)].as_py())}"
            faults[row].append(("bad_box", text))
    clean = pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), type=PAIRS_TYPE.value_type, mask=pa.array(bad))
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), clean, mask=pa.array(absent | uneven))
