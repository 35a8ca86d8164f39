"""JSON Lines (or one JSON array) of `{expression_id, mask | box | candidate_id, run?, condition?}`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from bench_datasets._util.untrusted import load_text
from bench_datasets.benchmarks.instancebench.prediction_blocks import BlockParser
from bench_datasets.benchmarks.instancebench.prediction_rows import RUN, Row, batches, condition_of
from bench_datasets.benchmarks.instancebench.schema import ORIGINAL
from bench_datasets.benchmarks.instancebench.signature import SIGNATURE
from bench_datasets.faults import BenchError
from bench_datasets.predictions.coerce import (
    ABSENT,
    Found,
    as_list,
    image_size,
    is_text,
    pick,
    read_id,
    read_number,
    read_word,
    show,
    show_fields,
)
from bench_datasets.predictions.files import Location, files_in
from bench_datasets.predictions.foreign_fields import refuse_other_benchmark
from bench_datasets.predictions.json_records import records_or_batches
from bench_datasets.predictions.mask_blocks import first_line, grouped
from bench_datasets.predictions.mask_lines import ENDINGS

ANSWERS = ("mask", "segmentation", "box", "candidate_id")
"""Fields that hold an answer; `segmentation` is COCO's name of `mask`."""

_KNOWN = {
    *("expression_id", "image_id", "ref_id", "sent_id", *ANSWERS, "bbox", "bbox_2d", "run", "condition", "key", "id"),
    *("masks", "pred_masks", "instances", "video_id", "tubes", "triplets", "pred_tubes", "pred_triplets"),
    *("candidates", "expressions", "images", "annotations", "predictions", "results", "data"),
}
"""Names that are never expression ids: fields of a prediction, of another benchmark, or of a truth file."""

_NAMES = {"expression_id", "image_id", "ref_id", "sent_id", "key", "id", "video_id", "images", "candidates"}
NO_TARGET = ("no_target", "pred_nt")
"""Fields by which gRefCOCO's models say that nothing was found."""


def read(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of a file or a folder of files.

    Raises:
        BenchError: a line is no JSON object, or another benchmark's; or there is none.
    """
    return grouped(_rows(location, validate=True), batches)


def read_unvalidated(location: Location) -> Iterator[pa.RecordBatch]:
    """The same as `read`, but invalid masks may stay as they are; for callers that validate every mask themselves."""
    return grouped(_rows(location, validate=False), batches)


def _rows(location: Location, *, validate: bool) -> Iterator[Row | pa.RecordBatch]:
    """The lines of a file, or of each file of a folder, as rows, or as batches of many."""
    folder = location.kind == "directory"
    empty = True
    for file in files_in(location, ENDINGS) if folder else [location]:
        parser: BlockParser | None = None

        def parse(block: bytes) -> pa.RecordBatch | None:
            nonlocal parser
            if parser is None:
                parser = BlockParser(first_line(block) or {}, validate=validate)
            return parser.parse(block)

        for item in records_or_batches(file, parse):
            empty = False
            if isinstance(item, pa.RecordBatch):
                yield item
                continue
            line, record = item
            for entry in _entries(record):
                if folder and file.name.endswith(".json") and not _NAMES & set(entry):
                    entry = {**entry, "expression_id": file.name[:-5]}
                yield to_row(entry, f"{file.shown}:{line}")
    if empty:
        raise BenchError(f"{location.shown}: expected at least one prediction, found none; write a line an expression")


def _entries(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The record itself, or the answers of an object whose names are expression ids: `{expression_id: mask}`."""
    answers = [
        value if isinstance(value, dict) and set(ANSWERS) & set(value) else {"mask": value}
        for value in record.values()
        if value is None or isinstance(value, list) or (isinstance(value, dict) and {*ANSWERS, "counts"} & set(value))
    ]
    if not record or len(answers) < len(record) or _KNOWN & set(record):
        yield record
        return
    for name, answer in zip(record, answers, strict=True):
        yield {**answer, "expression_id": name}


def from_rows(rows: Iterable[Mapping[str, Any]], shown: str, name: str) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of rows that are Python values already."""
    del name
    yield from batches(to_row(row, f"{shown}, row {i}") for i, row in enumerate(rows))


def to_row(record: Mapping[str, Any], place: str) -> Row:
    """One line as a row.

    Raises:
        BenchError: it is no prediction of InstanceBench.
    """
    record = named(record)
    coco = "segmentation" in record and "image_id" in record and "expression_id" not in record
    if not coco:
        refuse_other_benchmark(record, place, SIGNATURE)
    row = Row()
    name_row(row, record, "image_id" if coco else "expression_id", place)
    row.box = read_box(row, record)
    row.candidate_id = read_candidate(row, record)
    mask = load_text(pick(record, "mask", "segmentation"))
    if mask is ABSENT and flagged(record) and row.box is None and row.candidate_id is None:
        return row
    if mask is not ABSENT and mask is not None:
        row.faults += contradiction(record)
    if mask is ABSENT:
        if not any(name in record for name in ANSWERS):
            found = show_fields(record)
            text = f"expected mask (null where nothing was found), box or candidate_id, found {found}"
            if {"masks", "pred_masks"} & set(record):
                text += "; write one mask per expression"
            elif any("box" in name for name in record):
                text += "; write boxes as box: [x, y, width, height] in pixels"
            row.faults.append(("malformed_mask", f"mask: {text}"))
        return row
    row.mask = mask
    if isinstance(mask, list):
        row.height, row.width = image_size(record)
        if row.width is None:
            row.height = None
    return row


def flagged(record: Mapping[str, Any]) -> str | None:
    """The field by which a record says that nothing was found; None where there is none."""
    return next((name for name in NO_TARGET if record.get(name) is True), None)


def contradiction(record: Mapping[str, Any]) -> Found:
    """The fault of a record that has a mask and says that nothing was found."""
    name = flagged(record)
    text = f"mask: expected null where {name} is true, found a mask; write one of the two"
    return [] if name is None else [("malformed_mask", text)]


def named(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record, with the expression's id where it names a RefCOCO sentence by `ref_id` and `sent_id`.

    Such are the ids that `convert refcoco` writes.
    """
    if "expression_id" in record:
        return record
    ref, sentence = (read_id(record.get(name)) for name in ("ref_id", "sent_id"))
    return record if ref is None or sentence is None else {**record, "expression_id": f"refcoco-{ref}-{sentence}"}


def name_row(row: Row, record: Mapping[str, Any], field: str, place: str) -> None:
    """Read a prediction's expression, run and condition; a fault is noted if they are invalid."""
    raw = record.get(field)
    name = read_word(raw)
    problem = None
    if name is None:
        found = show(raw) if field in record else f"none among the fields {show_fields(record)}"
        problem = f"{field}: expected text, or an integer, found {found}"
    for part, default in (("run", RUN), ("condition", ORIGINAL)):
        value = record.get(part)
        word = default if value is None else read_word(value) if part == "run" else _text(value)
        if word is None:
            problem = problem or f"{part}: expected text{' or an integer' * (part == 'run')}, found {show(value)}"
        else:
            setattr(row, part, condition_of(word) if part == "condition" else word)
    if problem:
        row.faults.append(("unknown_row", f"{place}: {problem}"))
    else:
        row.expression_id = name


def read_box(row: Row, record: Mapping[str, Any]) -> list[float] | None:
    """The record's box, x, y, width, height in pixels; null and a fault of the row where it is none."""
    value = load_text(record.get("box"))
    if value is None:
        return None
    items = as_list(value)
    numbers = [read_number(item) for item in items] if items is not None and len(items) == 4 else [None]
    box = [number for number in numbers if number is not None]
    if len(box) < 4:
        problem = "expected four finite numbers [x, y, width, height] in pixels"
    elif min(box[2:]) < 0:
        problem = "expected no negative width or height ([x, y, width, height] in pixels)"
    else:
        return box
    row.faults.append(("bad_box", f"box: {problem}, found {show(value)}"))
    return None


def read_candidate(row: Row, record: Mapping[str, Any]) -> str | None:
    """The record's candidate id as text; null and a fault of the row where it is none."""
    value = record.get("candidate_id")
    if value is None:
        return None
    word = read_word(value)
    if word is None:
        text = f"candidate_id: expected a candidate's instance_id (text, or an integer), found {show(value)}"
        row.faults.append(("malformed_mask", text))
    return word


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value and is_text(value) else None
