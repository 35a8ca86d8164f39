"""What PVSG predictions may be: their columns, a reader a format, their pairing and their check."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from bench_datasets.predictions.location import Location
from bench_datasets.predictions.pvsg import jsonl, maps, research
from bench_datasets.predictions.pvsg.check import check
from bench_datasets.predictions.pvsg.columns import Columns, read_beside, read_prediction
from bench_datasets.predictions.pvsg.noted import noted_faults
from bench_datasets.predictions.pvsg.pairing import pair_videos
from bench_datasets.predictions.pvsg.rows import FEATURES
from bench_datasets.predictions.tables import Tables

_TABLES = Tables(Columns.known, Columns, jsonl.from_rows, lambda _: "video_id", "tubes", 1)

READERS: dict[str, Callable[[Location], Iterator[pa.RecordBatch]]] = {
    "jsonl": jsonl.read,
    "parquet": _TABLES.read,
    "arrow": _TABLES.read,
    "saved": _TABLES.read_saved,
    "research": research.read,
    "davis": maps.read_davis,
    "panoptic": maps.read_panoptic,
}
"""A reader by format name."""

read_dataset = _TABLES.read_dataset

__all__ = [
    "FEATURES", "READERS", "check", "noted_faults", "pair_videos", "read_beside", "read_dataset", "read_prediction",
]  # fmt: skip
