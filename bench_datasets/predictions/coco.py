"""COCO results JSON: one flat list of `{image_id, segmentation, score, category_id?}`, grouped into rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bench_datasets.faults import BenchError
from bench_datasets.masks import MASK_TYPE, parse_masks
from bench_datasets.predictions.belonging import refuse_other_benchmark
from bench_datasets.predictions.fields import (
    ABSENT,
    Found,
    Name,
    level_of,
    load_text,
    pick,
    read_name,
    read_number,
    show,
)
from bench_datasets.predictions.jsonl import image_size
from bench_datasets.predictions.location import Location
from bench_datasets.predictions.rows import SCHEMA, faults_array
from bench_datasets.predictions.store import Spool
from bench_datasets.predictions.text import records

IDS = ("image_id", "id")
"""Fields that may hold the truth's id, the first that is there counts."""

_FLAT = pa.schema(
    [
        ("row", pa.int64()),
        ("mask", MASK_TYPE),
        ("problem", pa.string()),
        ("dropped", pa.string()),
        ("score", pa.float64()),
        ("bad_score", pa.string()),
    ]
)
_MASKS = 4096


class _Item(NamedTuple):
    row: int
    mask: Any
    size: tuple[int | None, int | None]
    score: float | None
    bad_score: str | None
    missing: str | None


def read(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of a results file; a row's masks keep their order in the file.

    A row without any mask cannot be written in this format: such rows are missing from what is read.

    Raises:
        BenchError: the file is no JSON list of objects, or an object names no row.
    """
    if location.kind == "directory":
        raise BenchError(f"{location.shown}: expected one COCO results file, found a folder")
    rows: dict[Name, int] = {}
    with Spool(_FLAT) as spool:
        pending: list[_Item] = []
        for line, record in records(location):
            pending.append(_item(record, rows, f"{location.shown}:{line}", level_of(location.name)))
            if len(pending) >= _MASKS or pending[-1].size[0] is not None:
                spool.write(_flat(pending))
                pending = []
        if pending:
            spool.write(_flat(pending))
    if not rows:
        raise BenchError(f"{location.shown}: expected at least one result, found an empty list")
    yield from _grouped(spool.table(), list(rows))


def _item(record: dict[str, Any], rows: dict[Name, int], place: str, split: str | None) -> _Item:
    if "annotations" in record and "images" in record:
        raise BenchError(f"{place}: expected a COCO results list, found an annotation file; give its results as a list")
    if not set(record) & {"key", *IDS}:
        refuse_other_benchmark(record, place)
    name = read_name(record, split, IDS)
    if name.empty:
        raise BenchError(
            f"{place}: expected image_id (the truth's id) or key, found {', '.join(sorted(map(ascii, record))[:8])}"
        )
    if name.problem:
        name = Name(problem=f"{place}: {name.problem}")
    mask = load_text(pick(record, "segmentation", "mask", "mask_rle"))
    given = pick(record, "score")
    score = None if given is ABSENT else read_number(given)
    bad = None if given is ABSENT or score is not None else f"expected a finite number, found {show(given)}"
    missing = "expected a segmentation, found none (boxes alone are no masks)" if mask is ABSENT else None
    size = image_size(record) if isinstance(mask, list) else (None, None)
    return _Item(rows.setdefault(name, len(rows)), None if missing else mask, size, score, bad, missing)


def _flat(items: list[_Item]) -> pa.RecordBatch:
    """Items as a batch; only the last of them may state an image size, for its polygons."""
    plain, last = (items, []) if items[-1].size[0] is None else (items[:-1], items[-1:])
    masks, wrong = parse_masks([item.mask for item in plain])
    problems = [item.missing or wrong.get(i) for i, item in enumerate(plain)]
    dropped: list[str | None] = [None] * len(plain)
    for item in last:
        noted: dict[int, str] = {}
        more, wrong = parse_masks([item.mask], height=item.size[0], width=item.size[1], noted=noted)
        dropped.append(noted.get(0))
        masks, problems = pa.concat_arrays([masks, more]), [*problems, wrong.get(0)]
    columns = [
        pa.array([item.row for item in items], pa.int64()),
        masks,
        pa.array(problems, pa.string()),
        pa.array(dropped, pa.string()),
        pa.array([item.score for item in items], pa.float64()),
        pa.array([item.bad_score for item in items], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_FLAT)


def _grouped(table: pa.Table, names: list[Name]) -> Iterator[pa.RecordBatch]:
    """The flat items by row, in batches of whole rows."""
    row_of = table.column("row").to_numpy()
    order = np.argsort(row_of, kind="stable")
    ends = np.cumsum(np.bincount(row_of, minlength=len(names)))
    first = begin = 0
    while first < len(names):
        last = max(first + 1, int(np.searchsorted(ends, begin + _MASKS, side="right")))
        end = int(ends[last - 1])
        items = table.take(pa.array(order[begin:end])).combine_chunks()
        offsets = np.concatenate([[begin], ends[first:last]]) - begin
        yield _rows(items, names[first:last], offsets.astype(np.int32))
        first, begin = last, end


def _rows(items: pa.Table, names: list[Name], offsets: np.ndarray[Any, np.dtype[np.int32]]) -> pa.RecordBatch:
    problems, dropped, scores, bad = (
        items.column(name).to_pylist() for name in ("problem", "dropped", "score", "bad_score")
    )
    score_lists: list[list[float | None] | None] = []
    faults: list[Found] = []
    for name, begin, end in zip(names, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        found: Found = [("unknown_row", name.problem)] if name.problem else []
        found += [("malformed_mask", f"mask {i}: {text}") for i, text in enumerate(problems[begin:end]) if text]
        found += [("polygon_part_dropped", f"mask {i}: {text}") for i, text in enumerate(dropped[begin:end]) if text]
        found += [("bad_score", f"score {i}: {text}") for i, text in enumerate(bad[begin:end]) if text]
        scored = [scores[i] is not None or bad[i] is not None for i in range(begin, end)]
        if any(scored) and not all(scored):
            found.append(("bad_score", f"scores: expected one a mask ({end - begin}), found {sum(scored)}"))
        score_lists.append(scores[begin:end] if all(scored) else None)
        faults.append(found)
    masks = items.column("mask").combine_chunks()
    arrays = [
        pa.array([name.key for name in names], pa.string()),
        pa.array([name.id for name in names], pa.int64()),
        pa.array([name.split for name in names], pa.string()),
        pa.nulls(len(names), pa.int64()),
        pa.ListArray.from_arrays(pa.array(offsets), masks.chunk(0) if isinstance(masks, pa.ChunkedArray) else masks),
        pa.array(score_lists, SCHEMA.field("pred_scores").type),
        *(pa.nulls(len(names), SCHEMA.field(name).type) for name in ("pred_centers", "pred_sizes")),
        faults_array(faults),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
