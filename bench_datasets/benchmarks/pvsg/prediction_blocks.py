"""Blocks of ordinary JSON Lines predictions of PVSG, parsed together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from bench_datasets.benchmarks.pvsg import prediction_rows
from bench_datasets.benchmarks.pvsg.prediction_parse import (
    MAX_TRIPLETS,
    MAX_TUBES,
    TRIPLETS,
    TUBES,
    read_category,
)
from bench_datasets.benchmarks.pvsg.prediction_rows import LAST_FRAME, SCHEMA
from bench_datasets.benchmarks.pvsg.signature import SIGNATURE
from bench_datasets.benchmarks.pvsg.vocabulary import PREDICATES
from bench_datasets.faults import BenchError
from bench_datasets.predictions.coerce import read_word
from bench_datasets.predictions.foreign_fields import refuse_other_benchmark
from bench_datasets.predictions.mask_blocks import Rle, UsualLines, column_of


class _Tube(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A tube in the usual form."""

    tube_id: str | int
    category: str | int | None
    frames: list[int]
    masks: list[Rle]


class _Triplet(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A triplet in the usual form."""

    subject_id: str | int
    object_id: str | int
    predicate: str | int | None
    score: float
    spans: list[tuple[int, int]]


_TYPES: dict[str, Any] = {
    "video_id": str | int,
    "key": str | int,
    **dict.fromkeys(TUBES, list[_Tube]),
    **dict.fromkeys(TRIPLETS, list[_Triplet]),
}
"""Fields of an ordinary line, and their types."""

_TUBES: pa.ListType = SCHEMA.field("pred_tubes").type
_TRIPLETS: pa.ListType = SCHEMA.field("pred_triplets").type


class BlockParser:
    """Parses blocks of lines whose fields have the usual form; leaves all others to the careful reader.

    Lines are usual if they have the fields of the file's first line, a name, tubes and triplets among them, and nothing
    is wrong with them: frames ascend, and all masks of a video have one size. The result is the one that the careful
    reader gives.

    Args:
        first: the fields of the file's first line.
        validate: whether to leave blocks with invalid masks to the careful reader. Without it, masks are not decoded.
    """

    def __init__(self, first: Mapping[str, Any], *, validate: bool) -> None:
        self._validate = validate
        self._lines = UsualLines(first, _TYPES) if _is_usual(first) else None
        self._key, self._tubes, self._triplets = (
            next((name for name in names if name in first), "") for names in (("video_id", "key"), TUBES, TRIPLETS)
        )

    def parse(self, block: bytes) -> pa.RecordBatch | None:
        """A batch of the columns of `SCHEMA`; `None` if the careful reader must parse the lines of the block."""
        values = self._lines.decode(block, self._inside) if self._lines is not None else None
        if values is None:
            return None
        keys = [read_word(value) for value in values[self._key]]
        tubes, triplets = self._read_tubes(values[self._tubes]), _read_triplets(values[self._triplets])
        if None in keys or tubes is None or triplets is None:
            return None
        kind = SCHEMA.field("pred_faults").type
        begin = pa.array(np.zeros(len(keys) + 1, np.int32))
        none = pa.ListArray.from_arrays(begin, pa.array([], kind.value_type)).cast(kind)
        return pa.RecordBatch.from_arrays(
            [pa.array(keys, pa.string()), tubes, triplets, none.cast(kind)], schema=SCHEMA
        )

    def _inside(self, values: Mapping[str, list[Any]]) -> tuple[int, int]:
        tubes = [tube for row in values[self._tubes] for tube in row]
        triplets = [triplet for row in values[self._triplets] for triplet in row]
        masks = sum(len(tube.masks) for tube in tubes)
        texts = masks + sum(isinstance(tube.tube_id, str) + isinstance(tube.category, str) for tube in tubes)
        for triplet in triplets:
            texts += sum(isinstance(v, str) for v in (triplet.subject_id, triplet.object_id, triplet.predicate))
        return 4 * len(tubes) + 2 * masks + 5 * len(triplets), texts

    def _read_tubes(self, rows: Sequence[Sequence[_Tube]]) -> pa.Array | None:
        """The column `pred_tubes`; `None` if something is wrong with a tube."""
        tubes = [tube for row in rows for tube in row]
        names = [[read_word(tube.tube_id) for tube in row] for row in rows]
        if any(None in row or len(set(row)) < len(row) or len(row) > MAX_TUBES for row in names):
            return None
        sizes = np.array([len(tube.frames) for tube in tubes], np.int64)
        if any(len(tube.frames) != len(tube.masks) for tube in tubes):
            return None
        try:
            frames = np.array([frame for tube in tubes for frame in tube.frames], np.int64)
        except OverflowError:
            return None
        begin = np.concatenate([[0], np.cumsum(sizes)])
        first = np.zeros(len(frames) + 1, np.bool_)
        first[begin] = True
        if len(frames) and (frames.min() < 0 or frames.max() > LAST_FRAME):
            return None
        if not (first[1:-1] | (np.diff(frames) > 0)).all():
            return None
        column = column_of([mask for tube in tubes for mask in tube.masks])
        if column is None or (self._validate and column.problems()):
            return None
        videos = begin[np.concatenate([[0], np.cumsum([len(row) for row in rows])])]
        if np.diff(videos).max(initial=0) > prediction_rows.MAX_VIDEO_MASKS:
            return None
        shape = column.heights * column.widths, column.heights
        row_of = np.repeat(np.arange(len(rows)), np.diff(videos))
        if any((values != values[videos[:-1][row_of]]).any() for values in shape):
            return None
        offsets = pa.array(begin.astype(np.int32))
        fields = [
            pa.array([name for row in names for name in row], pa.string()),
            pa.array([read_category(tube.category) for tube in tubes], pa.string()),
            pa.ListArray.from_arrays(offsets, pa.array(frames.astype(np.int32))),
            pa.ListArray.from_arrays(offsets, column.to_arrow()),
        ]
        structs = pa.StructArray.from_arrays(fields, fields=list(_TUBES.value_type))
        return _lists(rows, structs, _TUBES)


def _read_triplets(rows: Sequence[Sequence[_Triplet]]) -> pa.Array | None:
    """The column `pred_triplets`; `None` if something is wrong with a triplet."""
    triplets = [triplet for row in rows for triplet in row]
    spans = [span for triplet in triplets for span in triplet.spans]
    scores = np.array([triplet.score for triplet in triplets], np.float64)
    if max(map(len, rows), default=0) > MAX_TRIPLETS or not np.isfinite(scores).all():
        return None
    if any(not 0 <= first <= last <= LAST_FRAME for first, last in spans):
        return None
    ends = np.array(spans, np.int32).reshape(-1)
    kind = _TRIPLETS.value_type.field("spans").type
    begin = np.concatenate([[0], np.cumsum([len(triplet.spans) for triplet in triplets])]).astype(np.int32)
    pairs = pa.FixedSizeListArray.from_arrays(pa.array(ends), type=kind.value_type)
    fields = [
        pa.array([read_word(triplet.subject_id) for triplet in triplets], pa.string()),
        pa.array([read_word(triplet.object_id) for triplet in triplets], pa.string()),
        pa.array([read_category(triplet.predicate, PREDICATES) for triplet in triplets], pa.string()),
        pa.array(scores),
        pa.ListArray.from_arrays(pa.array(begin), pairs, type=kind),
    ]
    return _lists(rows, pa.StructArray.from_arrays(fields, fields=list(_TRIPLETS.value_type)), _TRIPLETS)


def _lists(rows: Sequence[Sequence[Any]], structs: pa.Array, kind: pa.ListType) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), structs, type=kind)


def _is_usual(first: Mapping[str, Any]) -> bool:
    """Whether lines with exactly these fields need no careful reading."""
    if any(sum(name in first for name in names) != 1 for names in (("video_id", "key"), TUBES, TRIPLETS)):
        return False
    try:
        refuse_other_benchmark(set(first), "", SIGNATURE)
    except BenchError:
        return False
    return True
