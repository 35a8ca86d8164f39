"""What PBench predictions may be: their columns and a reader a format."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from bench_datasets.predictions import mask_lines
from bench_datasets.predictions.check_masks import check
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.formats import coco, npy_folder, npz, png_folder
from bench_datasets.predictions.mask_columns import Columns
from bench_datasets.predictions.mask_rows import FEATURES
from bench_datasets.predictions.tables import Tables

_TABLES = Tables(Columns.known, Columns, mask_lines.from_rows, mask_lines.name_field, "masks")

READERS: dict[str, Callable[[Location], Iterator[pa.RecordBatch]]] = {
    "jsonl": mask_lines.read,
    "falcon": mask_lines.read_falcon,
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
