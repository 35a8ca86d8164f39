"""What PBench predictions may be: their columns and a reader a format."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from bench_datasets.predictions import coco, jsonl, npz, png, tables
from bench_datasets.predictions.check_pbench import check
from bench_datasets.predictions.location import Location
from bench_datasets.predictions.rows import FEATURES

READERS: dict[str, Callable[[Location], Iterator[pa.RecordBatch]]] = {
    "jsonl": jsonl.read,
    "falcon": jsonl.read_falcon,
    "coco": coco.read,
    "parquet": tables.read,
    "arrow": tables.read,
    "saved": tables.read_saved,
    "npz": npz.read,
    "png": png.read,
}
"""A reader by format name."""

read_dataset = tables.read_dataset

__all__ = ["FEATURES", "READERS", "check", "read_dataset"]
