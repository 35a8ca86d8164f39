"""JSON Lines (or one JSON array, or `{id: masks}`) of `{id | key, split?, masks, scores?}`, or a file per level."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from bench_datasets._util.untrusted import load_text
from bench_datasets.benchmark import known_parts
from bench_datasets.faults import BenchError
from bench_datasets.predictions.coerce import (
    ABSENT,
    MAX_MASKS,
    Name,
    as_list,
    image_size,
    level_of,
    no_prediction,
    pick,
    read_id,
    read_name,
    read_pairs,
    read_scores,
    show,
    show_fields,
    too_many,
)
from bench_datasets.predictions.files import Location, files_in
from bench_datasets.predictions.foreign_fields import refuse_other_benchmark
from bench_datasets.predictions.formats import falcon
from bench_datasets.predictions.json_records import records, records_or_batches
from bench_datasets.predictions.mask_blocks import BlockParser, first_line, grouped
from bench_datasets.predictions.mask_rows import Row, batches
from bench_datasets.predictions.mask_signature import MASK_SIGNATURE

ENDINGS = (".jsonl", ".jsonl.gz", ".ndjson", ".json", ".json.gz")


@lru_cache(maxsize=1)
def _id_or_key() -> re.Pattern[str]:
    """A name in an object that is an id or a key."""
    return re.compile(rf"-?[0-9]{{1,19}}|({'|'.join(known_parts())})/.+")


_FILE = re.compile(r"(?:(?P<level>\w+)__|sa_)?(?P<id>[0-9]{1,18})(?P<again>#[0-9]+)?\.json(?:\.gz)?")
"""A file of one row: `<id>.json`, `<level>__<id>.json`, or `sa_<id>.json` as in SA-1B."""


class Naming:
    """Keeps count of how the rows of one file are named: all by key or id, or all by their order.

    Args:
        shown: the file.
        split: the level that its name speaks of.
    """

    def __init__(self, shown: str, split: str | None) -> None:
        self.shown, self.split = shown, split
        self.rows = 0
        self.by_order = False

    def position(self, name: Name, place: str) -> int | None:
        """The row's place in its level, if that is what names it.

        Raises:
            BenchError: the row has no name and its order says nothing either.
        """
        if self.rows == 0:
            self.by_order = name.empty
        if name.empty != self.by_order and name.problem is None:
            found = (
                "no key or id, where earlier rows have one"
                if name.empty
                else "a key or id, where earlier rows have none"
            )
            raise BenchError(f"{place}: found {found}; name every row, or none of a file called <level>.jsonl")
        if name.empty and self.split is None:
            raise BenchError(
                f"{place}: expected a key ('level_0/7') or an id, found neither; rows without a name are paired by "
                "their order only in files called <level>.jsonl (level_0 to level_4, dense), or by their file's "
                "name where each row has a file <id>.json"
            )
        self.rows += 1
        return self.rows - 1 if self.by_order else None


def read(location: Location, *, only_falcon: bool = False) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of a file or a folder of files.

    Args:
        location: `*.jsonl`, or a folder of them.
        only_falcon: every line must be Falcon Perception's.

    Raises:
        BenchError: a line is no JSON object, names no row, or is another benchmark's.
    """
    return grouped(_rows(location, only_falcon), batches)


def read_unvalidated(location: Location) -> Iterator[pa.RecordBatch]:
    """The same as `read`, but invalid masks may stay as they are; for callers that validate every mask themselves."""
    return grouped(_rows(location, False, validate=False), batches)


def read_falcon(location: Location) -> Iterator[pa.RecordBatch]:
    """Read only Falcon Perception's own lines."""
    return read(location, only_falcon=True)


def _rows(location: Location, only_falcon: bool, *, validate: bool = True) -> Iterator[Row | pa.RecordBatch]:
    files = files_in(location, ENDINGS) if location.kind == "directory" else [location]
    empty = True
    for file in files:
        naming = Naming(file.shown, level_of(file.name))
        parser: BlockParser | None = None

        def parse(block: bytes, naming: Naming = naming) -> pa.RecordBatch | None:
            nonlocal parser
            if parser is None:
                parser = BlockParser(first_line(block) or {}, naming.split, validate=validate)
            batch = None if naming.by_order else parser.parse(block)
            naming.rows += 0 if batch is None else len(batch)
            return batch

        for item in records(file) if only_falcon else records_or_batches(file, parse):
            empty = False
            if isinstance(item, pa.RecordBatch):
                yield item
                continue
            line, record = item
            place = f"{file.shown}:{line}"
            if only_falcon and not falcon.is_falcon(record):
                found = show_fields(record)
                raise BenchError(f"{place}: expected a line with instances, found the fields {found}")
            for entry in entries(record):
                yield to_row(named_by_file(entry, file.name), naming, place)
    if empty:
        raise BenchError(
            f"{location.shown}: expected at least one prediction, found an empty file; write one line per row"
        )


def entries(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The record itself, or the rows of an object whose names are ids or keys: `{id: masks}`, `{id: {"masks": ...}}`.

    Example:
        >>> list(entries({"7": [], "level_0/8": {"masks": [], "scores": []}}))
        [{'masks': [], 'id': '7'}, {'masks': [], 'scores': [], 'key': 'level_0/8'}]
    """
    if not record or not all(map(_id_or_key().fullmatch, record)):
        yield record
        return
    for name, value in record.items():
        fields = value if isinstance(value, dict) and "counts" not in value else {"masks": value}
        yield {**fields, "key" if "/" in name else "id": name}


def named_by_file(record: Mapping[str, Any], file: str) -> Mapping[str, Any]:
    """The record with the name of its row: its own, that of its `image`, or that of a file `<id>.json`.

    Example:
        >>> named_by_file({"masks": []}, "7.json"), named_by_file({"masks": []}, "dense__7.json")
        ({'masks': [], 'id': '7'}, {'masks': [], 'key': 'dense/7'})
    """
    if any(record.get(name) is not None for name in ("key", "id", "image_id")):
        return record
    image = record.get("image")
    if isinstance(image, dict) and image.get("image_id") is not None:
        return {**record, "id": image["image_id"]}
    found = _FILE.fullmatch(file)
    if found is None or (found["level"] and found["level"] not in known_parts()):
        return record
    if found["level"] or found["again"]:
        return {**record, "key": f"{found['level']}/{found['id']}{found['again'] or ''}"} if found["level"] else record
    return {**record, "id": found["id"]}


def from_rows(rows: Iterable[Mapping[str, Any]], shown: str, name: str) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of rows that are Python values already.

    Args:
        rows: the rows.
        shown: how messages call them.
        name: of their split, which may speak of a level.
    """
    naming = Naming(shown, level_of(name))
    yield from batches(to_row(row, naming, f"{shown}, row {i}") for i, row in enumerate(rows))


def name_field(name: object) -> str:
    """The field that the name of a prediction belongs to: `id` for a whole number, `key` for other text.

    Example:
        >>> name_field(7), name_field("7"), name_field("level_0/7")
        ('id', 'id', 'key')
    """
    return "key" if isinstance(name, str) and read_id(name) is None else "id"


def to_row(record: Mapping[str, Any], naming: Naming, place: str) -> Row:
    """One line as a row.

    Raises:
        BenchError: it names no row, or is no prediction of PBench.
    """
    refuse_other_benchmark(record, place, MASK_SIGNATURE)
    name = read_name(record, naming.split, ("id",) if naming.split else ("id", "image_id"))
    row = Row(name.key, name.id, name.split, naming.position(name, place))
    if name.problem:
        row.faults.append(("unknown_row", f"{place}: {name.problem}"))
    if falcon.is_falcon(record):
        falcon.fill(row, record)
    else:
        fill(row, record)
    return row


def fill(row: Row, record: Mapping[str, Any]) -> None:
    """Put a record's masks and their scores, centres and sizes into a row."""
    given = load_text(pick(record, "pred_masks", "masks"))
    if given is None:
        row.faults.append(no_prediction("masks"))
        return
    masks = as_list(given)
    if masks is None:
        found = f"none among the fields {show_fields(record)}" if given is ABSENT else show(given)
        advice = "; put a single mask into a list" if isinstance(given, dict) else ""
        row.faults.append(("malformed_mask", f"masks: expected a list of masks, found {found}{advice}"))
        return
    if len(masks) > MAX_MASKS:
        row.faults.append(too_many(len(masks)))
        return
    row.masks = masks = [load_text(mask) for mask in masks]
    if {"orig_img_h", "orig_img_w"} <= set(record):  # SAM 3's agent writes counts alone
        size = [record["orig_img_h"], record["orig_img_w"]]
        row.masks = masks = [{"size": size, "counts": mask} if isinstance(mask, str) else mask for mask in masks]
    if any(isinstance(mask, list) for mask in masks):
        row.height, row.width = image_size(record)
    scores, found_scores = read_scores(load_text(pick(record, "pred_scores", "scores")), len(masks))
    centers, found_centers = read_pairs(pick(record, "pred_centers"), len(masks), "pred_centers", ("x", "y"))
    sizes, found_sizes = read_pairs(pick(record, "pred_sizes"), len(masks), "pred_sizes", ("h", "w"))
    row.scores, row.centers, row.sizes = scores, centers, sizes
    row.faults += [*found_scores, *found_centers, *found_sizes]
