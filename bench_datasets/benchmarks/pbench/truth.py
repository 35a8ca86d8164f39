"""PBench's source rows into truth rows: keys, checked masks, sizes and faults."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import ClassLabel, Features, Image, List, Value

from bench_datasets.benchmarks.pbench.schema import LEVELS
from bench_datasets.data.images import Picture, no_picture, picture_of
from bench_datasets.faults import BenchError, Fault
from bench_datasets.masks import MASK_FEATURE, MASK_TYPE, MaskColumn, MaskError, list_offsets, list_values, parse_masks

LABELS = ("expression", "masks", "count", "id")
"""The source's label columns."""


def truth_features(images: bool) -> Features:
    """The truth rows' columns; with `images` two more."""
    columns: dict[str, Any] = {
        "key": Value("string"),
        "id": Value("int64"),
        "level": ClassLabel(names=list(LEVELS)),
        "expression": Value("string"),
        "masks": List(MASK_FEATURE),
        "count": Value("int32"),
        "height": Value("int32"),
        "width": Value("int32"),
        "faults": List(Value("string")),
    }
    if images:
        columns |= {"image": Image(), "image_sha256": Value("string")}
    return Features(columns)


def check_schema(schema: pa.Schema, file: str, *, images: bool) -> None:
    """Refuse a file that is not in PBench's layout.

    Raises:
        BenchError: a column is absent or of another type; the message names both and the columns found.
    """
    found = ", ".join(f"{field.name}: {_short(field.type)}" for field in schema)
    for column in (*LABELS, "image") if images else LABELS:
        if column not in schema.names:
            advice = "pass images=False to read labels alone" if column == "image" else "is this PBench's data?"
            raise BenchError(f"{file}: expected column {column!r}, found {found or 'no columns'}; {advice}")
    expected = {
        "expression": ("text", _is_text),
        "masks": ("a list of {size, counts} or of JSON texts", _is_masks),
        "count": ("an integer", pa.types.is_integer),
        "id": ("an integer", pa.types.is_integer),
        "image": ("{bytes, path}", _is_image),
    }
    for column in (*LABELS, "image") if images else LABELS:
        words, right = expected[column]
        kind = schema.field(column).type
        if not right(kind):
            raise BenchError(
                f"{file}: column {column!r}: expected {words}, found {_short(kind)}; is this PBench's data?"
            )


def row_ids(batch: pa.RecordBatch, file: str, first: int) -> list[int]:
    """The rows' ids.

    Raises:
        BenchError: an id is null, or too large for int64.
    """
    ids = batch.column("id").to_pylist()
    for i, value in enumerate(ids):
        if value is None or value >= 2**63:
            raise BenchError(f"{file}: row {first + i}: column 'id': expected a 64-bit integer, got {value}")
    return ids  # type: ignore[no-any-return]


def truth_table(
    batch: pa.RecordBatch, level: str, seen: Counter[int], *, file: str, first: int, images: bool
) -> tuple[pa.Table, list[Fault]]:
    """Truth rows of a batch of source rows.

    Args:
        batch: columns `LABELS` (and `image` with `images`), n rows.
        level: the rows' level.
        seen: how often each id has occurred in the level so far; brought up to date.
        file: what messages call the file.
        first: the batch's first row's number in it.
        images: whether to read images.

    Returns:
        n rows of `truth_features(images)`, and the faults found.

    Raises:
        BenchError: a row has no id or no expression.
    """
    ids = row_ids(batch, file, first)
    expressions = batch.column("expression").to_pylist()
    if None in expressions:
        where = first + expressions.index(None)
        raise BenchError(f"{file}: row {where}: column 'expression': expected text, got null")
    lists, counts = batch.column("masks"), batch.column("count").to_pylist()
    offsets = list_offsets(lists)
    masks, wrong = sound_masks(list_values(lists))
    column = MaskColumn.from_arrow(masks)
    pictures = [_picture(value) for value in batch.column("image")] if images else [None] * len(ids)

    keys: list[str] = []
    sizes: list[tuple[int, int] | None] = []
    codes: list[list[str]] = []
    faults: list[Fault] = []
    for i, row_id in enumerate(ids):
        seen[row_id] += 1
        key = f"{level}/{row_id}" + (f"#{seen[row_id]}" if seen[row_id] > 1 else "")
        lo, hi = int(offsets[i]), int(offsets[i + 1])
        own = [(int(column.heights[k]), int(column.widths[k])) for k in range(lo, hi) if k not in wrong]
        picture = pictures[i]
        size = picture.size if picture is not None and picture.size is not None else (own[0] if own else None)
        noted: dict[str, str] = {}
        if seen[row_id] > 1:
            noted["repeated_id"] = f"occurrence {seen[row_id]} of id {row_id} in {level}"
        if counts[i] != hi - lo:
            noted["count_mismatch"] = f"count is {counts[i]}, masks are {hi - lo}"
        bad = [k for k in range(lo, hi) if k in wrong]
        if bad:
            noted["malformed_mask"] = "; ".join(f"mask {k - lo}: {wrong[k]}" for k in bad[:3])
        if picture is not None and picture.size is None:
            noted["image_missing"] = picture.problem
        other = [mask for mask in own if mask != size]
        if other and size is not None:
            noted["image_size_mismatch"] = (
                f"a mask of {other[0][0]} x {other[0][1]} where {size[0]} x {size[1]} was expected"
            )
        if hi == lo:
            noted["no_truth"] = "no masks"
        keys.append(key)
        sizes.append(size)
        codes.append(list(noted))
        faults += [Fault(code, key, text) for code, text in noted.items()]

    data: dict[str, Any] = {
        "key": keys,
        "id": ids,
        "level": [LEVELS.index(level)] * len(ids),
        "expression": expressions,
        "masks": pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), masks),
        "count": counts,
        "height": [None if size is None else size[0] for size in sizes],
        "width": [None if size is None else size[1] for size in sizes],
        "faults": codes,
    }
    if images:
        data["image"] = [picture.value if picture is not None else None for picture in pictures]
        data["image_sha256"] = [picture.sha256 if picture is not None else None for picture in pictures]
    return pa.table(data, schema=truth_features(images).arrow_schema), faults


def sound_masks(values: pa.Array) -> tuple[pa.StructArray, dict[int, str]]:
    """Convert a source's masks to `MASK_TYPE`, null where invalid; returns the reasons by position.

    Example:
        >>> masks, wrong = sound_masks(pa.array(['{"size": [10, 10], "counts": "d0n0b1"}', "{"]))
        >>> masks.to_pylist(), wrong
        ([{'size': [10, 10], 'counts': 'd0n0b1'}, None], {1: 'expected a mask as JSON, found text that is none'})
    """
    if _is_text(values.type):
        return _json_masks(values)
    try:
        column = MaskColumn.from_arrow(values)
    except MaskError:  # counts as runs, sizes as text: slower, one by one
        return parse_masks(values.to_pylist())
    wrong = column.problems()
    masks = column.to_arrow()
    if wrong:
        bad = np.zeros(len(column), np.bool_)
        bad[list(wrong)] = True
        masks = pa.StructArray.from_arrays(
            [masks.field("size"), masks.field("counts")], fields=list(MASK_TYPE), mask=pa.array(bad)
        )
    return masks, wrong


def _json_masks(values: pa.Array) -> tuple[pa.StructArray, dict[int, str]]:
    parsed: list[object] = []
    no_json: dict[int, str] = {}
    for i, text in enumerate(values.to_pylist()):
        try:
            parsed.append(None if text is None else json.loads(text))
        except (ValueError, RecursionError):
            parsed.append(None)
            no_json[i] = "expected a mask as JSON, found text that is none"
    masks, wrong = parse_masks(parsed)
    return masks, {**wrong, **no_json}


def _picture(scalar: pa.Scalar) -> Picture:
    value = scalar.as_py()
    data = value.get("bytes") if isinstance(value, dict) else value
    if not data:
        return no_picture("the row holds no image bytes")
    return picture_of(data, value.get("path") if isinstance(value, dict) else None)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_masks(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    item = kind.value_type
    is_struct = pa.types.is_struct(item) and {"size", "counts"} <= {field.name for field in item}
    return bool(is_struct or _is_text(item) or pa.types.is_null(item))


def _is_image(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return "bytes" in {field.name for field in kind}
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _short(kind: pa.DataType) -> str:
    text = str(kind)
    return text if len(text) <= 80 else text[:77] + "..."
