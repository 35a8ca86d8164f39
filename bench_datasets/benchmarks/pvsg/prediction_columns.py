"""One table's columns into PVSG predictions, mask columns as they lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench_datasets.benchmarks.pvsg.prediction_parse import (
    TRIPLETS,
    TUBES,
    name_tube,
    read_category,
    refuse_many,
    to_video,
)
from bench_datasets.benchmarks.pvsg.prediction_rows import SCHEMA, Tube, Video, to_batch
from bench_datasets.benchmarks.pvsg.signature import SIGNATURE
from bench_datasets.faults import BenchError
from bench_datasets.masks import joined, list_offsets, list_values
from bench_datasets.predictions.arrow_types import is_list, is_mask, keep_earlier, sound_masks
from bench_datasets.predictions.foreign_fields import refuse_other_benchmark
from bench_datasets.predictions.mask_rows import faults_array

_KNOWN = (
    *("video_id", "key", "pred_tubes", "tubes", "pred_triplets", "triplets", "pred_faults", "size", "height", "width"),
    *("objects", "relations", "candidates", "expressions", "expression_id", "masks", "pred_masks", "instances"),
)

ANSWERS = ("pred_tubes", "pred_triplets")
"""Columns beside the ground truth without which a video has no prediction."""

_BESIDE = ("key", "height", "width")
"""Columns of the ground truth that reading a prediction needs."""


class Columns:
    """Which columns of a table say what, found once, and the conversion of its rows.

    Args:
        schema: of the table.
        shown: how messages call it.
        name: of its file or split.

    Raises:
        BenchError: it has no column of tubes or triplets, nothing names its rows, or it is another benchmark's.
    """

    def __init__(self, schema: pa.Schema, shown: str, name: str) -> None:
        del name
        names = schema.names
        refuse_other_benchmark(names, shown, SIGNATURE)
        listed = ", ".join(names[:12]) or "no columns"
        if not {"video_id", "key"} & set(names):
            raise BenchError(f"{shown}: expected a column key (or video_id), found {listed}")
        if not {*TUBES, *TRIPLETS} & set(names):
            raise BenchError(f"{shown}: expected columns pred_tubes and pred_triplets, found {listed}")
        self.shown = shown
        self.truth = "objects" in names and "relations" in names
        tubes = (name for name in TUBES if name in names and not (self.truth and name == "tubes"))
        self.tubes = next(tubes, None)
        self.typed = self.tubes is not None and _is_tubes(schema.field(self.tubes).type)
        self.rows = 0

    @staticmethod
    def known(names: Iterable[str]) -> list[str]:
        """Those of the names that are read; beside `pred_tubes` the truth's own columns are not."""
        given = list(names)
        beside = {"objects", "relations", "tubes"} if "pred_tubes" in given else set()
        found = [name for name in given if name in _KNOWN and name not in beside]
        return given if found and set(found) <= {"video_id", "key", "size", "height", "width"} else found

    def convert(self, table: pa.Table) -> pa.RecordBatch:
        """A row of the table as a batch of `rows.SCHEMA`."""
        columns = {name: joined(table.column(name)) for name in self.known(table.column_names)}
        left = {"objects", "relations", "pred_faults", *TUBES} - (set() if self.typed else {self.tubes})
        record = {name: column[0].as_py() for name, column in columns.items() if name not in left}
        if not self.truth and "relations" in columns and not set(TRIPLETS) & set(columns):
            record["triplets"] = columns["relations"][0].as_py()
        if self.tubes is not None:
            record.setdefault("pred_tubes", record.pop(self.tubes, None))
            if self.typed and columns[self.tubes][0].is_valid:
                record["pred_tubes"] = []  # read below, as they lie
        video = to_video(record, f"{self.shown}, row {self.rows}")
        if self.typed and self.tubes is not None:
            _add_tubes(video, columns[self.tubes])
        self.rows += 1
        batch = to_batch(video)
        earlier = columns.get("pred_faults")
        if earlier is None:
            return batch
        faults = [video.faults]
        if any(item["code"] == "unknown_row" for item in earlier[0].as_py() or [] if item):
            faults = [[fault for fault in video.faults if fault[0] != "unknown_row"]]
        keep_earlier(earlier, faults)
        return pa.RecordBatch.from_arrays([*batch.columns[:-1], faults_array(faults)], schema=SCHEMA)


def read_beside(batch: pa.Table | Mapping[str, Any]) -> pa.Table:
    """Predictions that stand beside the ground truth, read as a file of predictions is.

    Args:
        batch: an Arrow table or columns by name, with `key`, `pred_tubes` and `pred_triplets`; `height` and `width`,
            which polygons need, and `pred_faults` may be absent.

    Returns:
        Columns `pred_tubes`, `pred_triplets` and `pred_faults` of `rows.SCHEMA`, one row per video; the first two are
        null where a video has no prediction.
    """
    names = [*ANSWERS, "pred_faults"]
    if isinstance(batch, pa.Table):
        wanted = SCHEMA.empty_table().select(names).schema
        if set(names) <= set(batch.column_names) and batch.schema.field("pred_faults").type == wanted.field(2).type:
            known = batch.select(names)
            if known.schema.types == wanted.types:
                return known  # it has been read already
        table = batch.select([name for name in (*_BESIDE, *names) if name in batch.column_names])
        convert = Columns(table.schema, "rows", "").convert
        parts = [convert(table.slice(i, 1)) for i in range(len(table))]
        there = [any(table[name][i].is_valid for name in ANSWERS) for i in range(len(table))]
    else:
        given = {name: _plain(batch[name]) for name in (*_BESIDE, *names) if name in batch}
        rows = [{name: values[i] for name, values in given.items()} for i in range(len(given["key"]))]
        parts = [_batch_of(row, i) for i, row in enumerate(rows)]
        there = [any(row[name] is not None for name in ANSWERS) for row in rows]
    table = pa.Table.from_batches(parts, SCHEMA).select(names)
    present = pa.array(there, pa.bool_())
    columns = [pc.if_else(present, joined(table[name]), pa.scalar(None, table[name].type)) for name in ANSWERS]
    return pa.table([*columns, joined(table["pred_faults"])], names=names)


def read_prediction(record: Mapping[str, Any], place: str) -> dict[str, Any]:
    """One prediction of Python values as a row of `rows.SCHEMA`, read as a line of a file is.

    Args:
        record: its fields, with the video's id as `key`.
        place: how messages call it.

    Example:
        >>> read_prediction({"key": "v", "tubes": [], "triplets": []}, "v")["pred_faults"]
        []
    """
    found: dict[str, Any] = to_batch(to_video(record, place)).to_pylist()[0]
    return found


def _plain(column: Any) -> Any:
    return column.to_pylist() if isinstance(column, (pa.Array, pa.ChunkedArray)) else column


def _batch_of(row: Mapping[str, Any], place: int) -> pa.RecordBatch:
    """One row of Python values, with the faults that it has already, as a batch of `rows.SCHEMA`."""
    video = to_video(row, f"row {place}")
    batch = to_batch(video)
    faults = [video.faults]
    keep_earlier(pa.array([row.get("pred_faults")], SCHEMA.field("pred_faults").type), faults)
    return pa.RecordBatch.from_arrays([*batch.columns[:-1], faults_array(faults)], schema=SCHEMA)


def _add_tubes(video: Video, column: pa.Array) -> None:
    """The tubes of the column's one row, whose masks are validated as they lie."""
    structs = list_values(column)
    if refuse_many(video, len(structs)):
        return
    there = structs.is_valid().to_pylist()
    ids, categories, frames = (structs.field(name).to_pylist() for name in ("tube_id", "category", "frames"))
    lists = structs.field("masks")
    video.sound = sound_masks(list_values(lists))
    names: set[str] = set()
    for i, (begin, end) in enumerate(pairwise(list_offsets(lists).tolist())):
        name = name_tube(video, names, ids[i] if there[i] else None, f"tube number {i}")
        if name is not None:
            video.tubes.append(Tube(name, read_category(categories[i]), frames[i] or [], range(begin, end)))


def _is_tubes(kind: pa.DataType) -> bool:
    if not is_list(kind) or not pa.types.is_struct(kind.value_type):
        return False
    fields = {field.name: field.type for field in kind.value_type}
    if {"tube_id", "category", "frames", "masks"} - set(fields):
        return False
    return is_list(fields["frames"]) and is_list(fields["masks"]) and is_mask(fields["masks"].value_type)
