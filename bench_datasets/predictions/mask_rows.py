"""Rows of PBench predictions: the columns, and from Python values to Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from datasets import Features, List, Value

from bench_datasets.masks import MASK_FEATURE, MASK_TYPE, parse_masks
from bench_datasets.predictions.coerce import Found, mask_faults

FEATURES = Features(
    {
        "key": Value("string"),
        "id": Value("int64"),
        "split": Value("string"),
        "position": Value("int64"),
        "pred_masks": List(MASK_FEATURE),
        "pred_scores": List(Value("float64")),
        "pred_centers": List(List(Value("float64"), length=2)),
        "pred_sizes": List(List(Value("float64"), length=2)),
        "pred_faults": List({"code": Value("string"), "text": Value("string")}),
    }
)
"""Columns of PBench predictions.

`key`, `id`, `split`, `position` (row order within the split) name the row, each may be null. `pred_masks` holds a null
where a mask was unsound; `pred_scores`, `pred_centers` (x, y) and `pred_sizes` (height, width; fractions of the image)
are aligned with it, or null where the file gave none. `pred_faults` says what was wrong with the row.
"""

SCHEMA: pa.Schema = FEATURES.arrow_schema
"""The same as an Arrow schema."""

FAULTS_TYPE: pa.DataType = SCHEMA.field("pred_faults").type
PAIRS_TYPE: pa.DataType = SCHEMA.field("pred_centers").type

BATCH = 1 << 26
"""Bytes of counts after which a batch is full; with one more record it stays below the 2 GiB that Arrow can hold."""

_ROWS, _MASKS = 1024, 4096


@dataclass
class Row:
    """One prediction as it was read; the masks are still untrusted values."""

    key: str | None = None
    id: int | None = None
    split: str | None = None
    position: int | None = None
    masks: list[Any] = field(default_factory=list)
    height: int | None = None
    width: int | None = None
    scores: list[float | None] | None = None
    centers: list[list[float] | None] | None = None
    sizes: list[list[float] | None] | None = None
    faults: Found = field(default_factory=list)
    broken: dict[int, str] = field(default_factory=dict)
    """Reasons why masks could not be read, by position; each becomes a fault."""
    broken_code: str = "unreadable_mask"
    """Code of these faults."""


def batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Validate the rows' masks and put them into record batches of bounded size."""
    pending: list[Row] = []
    masks = held = 0
    for row in rows:
        pending.append(row)
        masks += len(row.masks)
        held += sum(map(weight, row.masks))
        if len(pending) >= _ROWS or masks >= _MASKS or held >= BATCH:
            yield to_batch(pending)
            pending, masks, held = [], 0, 0
    if pending:
        yield to_batch(pending)


def weight(mask: object) -> int:
    """About how many bytes an untrusted mask's counts take."""
    counts = mask.get("counts") if isinstance(mask, dict) else mask
    return len(counts) if isinstance(counts, (str, bytes, list)) else 0


def to_batch(rows: list[Row]) -> pa.RecordBatch:
    """One batch of `SCHEMA`."""
    offsets, total = [0], 0
    for row in rows:
        total += len(row.masks)
        offsets.append(total)
    masks = _parse(rows)
    columns = {
        "key": [row.key for row in rows],
        "id": [row.id for row in rows],
        "split": [row.split for row in rows],
        "position": [row.position for row in rows],
        "pred_masks": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), masks),
        "pred_scores": [row.scores for row in rows],
        "pred_centers": [row.centers for row in rows],
        "pred_sizes": [row.sizes for row in rows],
        "pred_faults": faults_array([row.faults for row in rows]),
    }
    arrays = [
        values if isinstance(values, pa.Array) else pa.array(values, SCHEMA.field(name).type)
        for name, values in columns.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def faults_array(faults: Iterable[Found]) -> pa.Array:
    """Faults by row as the column `pred_faults`."""
    return pa.array([[{"code": code, "text": text} for code, text in row] for row in faults], FAULTS_TYPE)


def _parse(rows: list[Row]) -> pa.Array:
    """Parse all masks of the rows; faults are added to the rows."""
    chunks: list[pa.Array] = []
    start = 0
    for end in range(1, len(rows) + 1):
        # Polygons need the image's size, which is the row's own: such rows are parsed one by one.
        if end < len(rows) and not (_sized(rows[end - 1]) or _sized(rows[end])):
            continue
        group = rows[start:end]
        height, width = (group[0].height, group[0].width) if _sized(group[0]) else (None, None)
        noted: dict[int, str] = {}
        masks = [mask for row in group for mask in row.masks]
        parsed, wrong = parse_masks(masks, height=height, width=width, noted=noted)
        chunks.append(parsed)
        _note(group, wrong, noted)
        start = end
    return pa.concat_arrays(chunks) if chunks else pa.array([], MASK_TYPE)


def _note(rows: list[Row], wrong: dict[int, str], noted: dict[int, str]) -> None:
    if not wrong and not noted and not any(row.broken for row in rows):
        return
    first = 0
    for row in rows:
        places = range(len(row.masks))
        found = mask_faults(sorted(row.broken.items()), row.broken_code)
        own = [i for i in places if i not in row.broken]
        found += mask_faults((i, wrong[first + i]) for i in own if first + i in wrong)
        found += mask_faults(((i, noted[first + i]) for i in own if first + i in noted), "polygon_part_dropped")
        names = [fault for fault in row.faults if fault[0] == "unknown_row"]
        # Faults of the masks come before those of the numbers that go with them, as in tables.
        row.faults[:] = [*names, *found, *(fault for fault in row.faults if fault[0] != "unknown_row")]
        first += len(row.masks)


def _sized(row: Row) -> bool:
    return row.height is not None and row.width is not None
