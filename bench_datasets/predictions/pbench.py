"""What PBench predictions may be: their columns and a reader a format."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from bench_datasets.predictions import coco, jsonl, npy_folder, npz, png_folder
from bench_datasets.predictions.check_pbench import check
from bench_datasets.predictions.columns import Columns
from bench_datasets.predictions.location import Location
from bench_datasets.predictions.rows import FEATURES
from bench_datasets.predictions.tables import Tables

_TABLES = Tables(Columns.known, Columns, jsonl.from_rows, jsonl.name_field, "masks")

READERS: dict[str, Callable[[Location], Iterator[pa.RecordBatch]]] = {
    "jsonl": jsonl.read,
    "falcon": jsonl.read_falcon,
    "coco": coco.read,
    "parquet": _TABLES.read,
    "arrow": _TABLES.read,
    "saved": _TABLES.read_saved,
    "npz": npz.read,
    "npy": npy_folder.read,
    "png": png_folder.read,
}
"""A reader by format name."""

read_dataset = _TABLES.read_dataset

__all__ = ["FEATURES", "READERS", "check", "read_dataset"]
