"""Blocks of ordinary JSON Lines predictions, parsed together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar, cast

import msgspec
import numpy as np
import pyarrow as pa

from bench_datasets._util.untrusted import load_json
from bench_datasets.faults import BenchError
from bench_datasets.masks import MaskColumn
from bench_datasets.masks.status import MAX_COUNTS, MAX_PIXELS
from bench_datasets.predictions.coerce import MAX_MASKS
from bench_datasets.predictions.foreign_fields import refuse_other_benchmark
from bench_datasets.predictions.mask_rows import FAULTS_TYPE, SCHEMA
from bench_datasets.predictions.mask_signature import MASK_SIGNATURE

Row = TypeVar("Row")


class Rle(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A mask in the usual form: compressed RLE with its size."""

    size: tuple[int, int]
    counts: str


_FIELDS: dict[str, Any] = {
    "key": str | None,
    "id": int | None,
    "split": str | None,
    "masks": list[Rle],
    "pred_masks": list[Rle],
    "scores": list[float] | None,
    "pred_scores": list[float] | None,
}
"""Fields of an ordinary line, and their types."""

PLAIN_TYPES = (str, int, float, bool)
"""Types of values that other fields of an ordinary line may have."""

_CAREFUL = frozenset(
    {"level", "image", "image_id", "instances", "height", "width", "size", "orig_img_h", "orig_img_w"}
    | {"pred_centers", "pred_sizes", "pred_faults", "position"}
)
"""Fields that say something about the masks or the row: lines with them are parsed one by one."""

LONGEST_BLOCK = 1 << 27
"""Blocks with more bytes, so with a very long line, are parsed line by line, which bounds their memory."""


class UsualLines:
    """Decodes blocks of lines that have exactly the fields of the file's first line.

    Args:
        first: the fields of the first line, which need no careful reading.
        types: types of known fields; other fields have the type that they have in the first line, one of
            `PLAIN_TYPES`.
    """

    def __init__(self, first: Mapping[str, Any], types: Mapping[str, Any]) -> None:
        self._fields = list(first)
        self._decoder: msgspec.json.Decoder[Any] | None = None
        if all(name in types or type(value) in PLAIN_TYPES for name, value in first.items()):
            fields = [(f"field_{k}", types.get(name) or type(first[name])) for k, name in enumerate(first)]
            names = {f"field_{k}": name for k, name in enumerate(first)}
            line = msgspec.defstruct("Line", fields, rename=names, forbid_unknown_fields=True)
            self._decoder = msgspec.json.Decoder(line)

    def decode(
        self, block: bytes, inside: Callable[[Mapping[str, list[Any]]], tuple[int, int]]
    ) -> dict[str, list[Any]] | None:
        """Values by field, one per line; `None` if a line is not usual.

        Args:
            block: whole lines.
            inside: number of names, and of texts, in the objects and lists of the lines, out of the values by field.
        """
        if self._decoder is None or len(block) > LONGEST_BLOCK:
            return None
        lines = block.count(b"\n") + (not block.endswith(b"\n"))
        if block.count(b"}\n{") != lines - 1:  # an object is not on a line of its own
            return None
        try:
            rows = self._decoder.decode_lines(block)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return None
        if len(rows) != lines:
            return None
        values = {name: [getattr(row, f"field_{k}") for row in rows] for k, name in enumerate(self._fields)}
        names, texts = inside(values)
        names += len(self._fields) * lines
        texts += sum(sum(isinstance(value, str) for value in column) for column in values.values())
        # More quotation marks than these: a name stands twice in an object, or a text holds one.
        return values if block.count(b'"') == 2 * (names + texts) else None


class BlockParser:
    """Parses blocks of lines whose fields and masks have the usual form; leaves all others to the careful reader.

    Lines are usual if they have the fields of the file's first line and nothing is wrong with them: a name, a list of
    masks as compressed RLE, finite scores. The result is the one that the careful reader gives, in a fraction of the
    time.

    Args:
        first: the fields of the file's first line.
        split: the level that the file's name speaks of.
        validate: whether to leave blocks with invalid masks to the careful reader. Without it, masks are not decoded;
            whoever scores them must validate them.
    """

    def __init__(self, first: Mapping[str, Any], split: str | None, *, validate: bool) -> None:
        self._split, self._validate = split, validate
        self._lines = UsualLines(first, _FIELDS) if _is_usual(first) else None
        self._masks = next((name for name in ("pred_masks", "masks") if name in first), "")
        self._scores = next((name for name in ("pred_scores", "scores") if name in first), "")

    def parse(self, block: bytes) -> pa.RecordBatch | None:
        """Predictions of a block.

        Args:
            block: whole lines.

        Returns:
            A batch of the columns of `mask_rows.SCHEMA`; `None` if the careful reader must parse the lines.
        """
        values = self._lines.decode(block, self._inside) if self._lines is not None else None
        if values is None:
            return None
        masks = [mask for row in values[self._masks] for mask in row]
        names, scores = self._names(values), _scores_of(values.get(self._scores), values[self._masks])
        column = column_of(masks)
        counts = [len(row) for row in values[self._masks]]
        if names is None or scores is None or column is None or max(counts, default=0) > MAX_MASKS:
            return None
        if self._validate and column.problems():
            return None
        lines = len(counts)
        begin = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        lists = pa.ListArray.from_arrays(begin, column.to_arrow())
        empty = pa.ListArray.from_arrays(pa.array(np.zeros(lines + 1, np.int32)), pa.array([], FAULTS_TYPE.value_type))
        parts = {**names, "pred_masks": lists, "pred_scores": scores, "pred_faults": empty}
        arrays = [
            parts[field.name].cast(field.type) if field.name in parts else pa.nulls(lines, field.type)
            for field in SCHEMA
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def _inside(self, values: Mapping[str, list[Any]]) -> tuple[int, int]:
        masks = sum(map(len, values[self._masks]))
        return 2 * masks, masks

    def _names(self, values: Mapping[str, list[Any]]) -> dict[str, pa.Array] | None:
        """The columns that name the rows; `None` if a row's name is not usual."""
        nothing = [None] * len(values[self._masks])
        key, number, split = (values.get(name, nothing) for name in ("key", "id", "split"))
        if "" in key or "" in split or any(a is None and b is None for a, b in zip(key, number, strict=True)):
            return None
        if self._split is not None:
            if any(value not in (None, self._split) for value in split):
                return None
            split = [self._split] * len(split)
        try:
            ids = pa.array(number, pa.int64())
        except (OverflowError, pa.ArrowException):
            return None
        return {"key": pa.array(key, pa.string()), "id": ids, "split": pa.array(split, pa.string())}


def grouped(
    items: Iterable[Row | pa.RecordBatch], batches: Callable[[Iterator[Row]], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """Batches out of rows and batches, in order.

    Args:
        items: rows, and batches of many.
        batches: makes batches of rows.
    """
    for whole, group in groupby(items, key=lambda item: isinstance(item, pa.RecordBatch)):
        if whole:
            yield from cast("Iterator[pa.RecordBatch]", group)
        else:
            yield from batches(cast("Iterator[Row]", group))


def first_line(block: bytes) -> dict[str, Any] | None:
    """The fields of the first line of a block; `None` if it is no JSON object."""
    line = block[: block.find(b"\n") + 1] or block
    try:
        value = load_json(line)
    except (ValueError, RecursionError):  # the careful reader says what is wrong
        return None
    return value if isinstance(value, dict) else None


def _is_usual(first: Mapping[str, Any]) -> bool:
    """Whether lines with exactly these fields need no careful reading."""
    if sum(name in first for name in ("masks", "pred_masks")) != 1:
        return False
    if sum(name in first for name in ("scores", "pred_scores")) > 1 or set(first) & _CAREFUL:
        return False
    try:
        refuse_other_benchmark(set(first), "", MASK_SIGNATURE)
    except BenchError:
        return False
    return True


def column_of(masks: Sequence[Rle | None]) -> MaskColumn | None:
    """The masks as a column, `None` as null; `None` if a size is not usual, or counts are no ASCII or too long."""
    given = [mask for mask in masks if mask is not None]
    text = "".join([mask.counts for mask in given])
    lengths = np.array([len(mask.counts) for mask in given], np.int64)
    sizes = [side for mask in given for side in mask.size]
    if not text.isascii() or (len(lengths) and lengths.max() > MAX_COUNTS):
        return None
    if sizes and not (min(sizes) > 0 and max(sizes[::2]) * max(sizes[1::2]) <= MAX_PIXELS):
        return None
    pairs = np.array(sizes, np.int64).reshape(-1, 2)
    present = None
    if len(given) < len(masks):
        present = np.array([mask is not None for mask in masks], np.bool_)
        place = np.cumsum(present) - 1
        pairs = np.where(present[:, None], pairs[place], -1) if len(given) else np.full((len(masks), 2), -1)
        lengths = np.where(present, lengths[place], 0) if len(given) else np.zeros(len(masks), np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return MaskColumn(np.frombuffer(text.encode(), np.uint8), offsets, pairs[:, 0], pairs[:, 1], present)


def _scores_of(rows: Sequence[list[float] | None] | None, masks: Sequence[list[Rle]]) -> pa.Array | None:
    """The rows' scores, one per mask; `None` if they are not."""
    if rows is None:
        return pa.nulls(len(masks), pa.list_(pa.float64()))
    if any(row is not None and len(row) != len(own) for row, own in zip(rows, masks, strict=True)):
        return None
    return pa.array(rows, pa.list_(pa.float64()))
