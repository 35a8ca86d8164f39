"""JSON Lines (or one JSON array) of `{video_id, tubes, triplets}`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from bench_datasets.benchmarks.pvsg.prediction_blocks import BlockParser
from bench_datasets.benchmarks.pvsg.prediction_parse import TRIPLETS, TUBES, to_video
from bench_datasets.benchmarks.pvsg.prediction_rows import to_batch
from bench_datasets.faults import BenchError
from bench_datasets.predictions.files import Location, files_in
from bench_datasets.predictions.json_records import records_or_batches
from bench_datasets.predictions.mask_blocks import first_line
from bench_datasets.predictions.mask_lines import ENDINGS


def read(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of a file or a folder of files.

    Raises:
        BenchError: a line is no JSON object, or another benchmark's; or there is none.
    """
    return _read(location, validate=True)


def read_unvalidated(location: Location) -> Iterator[pa.RecordBatch]:
    """The same as `read`, but invalid masks may stay as they are; for callers that validate every mask themselves."""
    return _read(location, validate=False)


def _read(location: Location, *, validate: bool) -> Iterator[pa.RecordBatch]:
    folder = location.kind == "directory"
    names = {*TUBES, *TRIPLETS}
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
                unnamed = not {"video_id", "key"} & set(entry) and names & set(entry)
                if unnamed and folder and file.name.endswith(".json"):
                    entry = {**entry, "video_id": file.name[:-5]}
                yield to_batch(to_video(entry, f"{file.shown}:{line}"))
    if empty:
        raise BenchError(f"{location.shown}: expected at least one prediction, found none; write one line per video")


def _entries(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The record itself, or the videos of an object whose names are video ids: `{video_id: {tubes, triplets}}`."""
    names = {*TUBES, *TRIPLETS}
    if not record or not all(isinstance(value, dict) and names & set(value) for value in record.values()):
        yield record
        return
    for name, value in record.items():
        yield {**value, "video_id": name}


def from_rows(rows: Iterable[Mapping[str, Any]], shown: str, name: str) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of rows that are Python values already."""
    del name
    for i, row in enumerate(rows):
        yield to_batch(to_video(row, f"{shown}, row {i}"))
