"""What PVSG predictions may be: their columns, a reader a format, their pairing and their check."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from bench_datasets.benchmarks.pvsg import label_maps, openpvsg, prediction_lines
from bench_datasets.benchmarks.pvsg.check import check
from bench_datasets.benchmarks.pvsg.dangling_ids import noted_faults
from bench_datasets.benchmarks.pvsg.prediction_columns import Columns, read_beside, read_prediction
from bench_datasets.benchmarks.pvsg.prediction_pairing import pair_videos
from bench_datasets.benchmarks.pvsg.prediction_rows import FEATURES
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.tables import Tables

_TABLES = Tables(Columns.known, Columns, prediction_lines.from_rows, lambda _: "video_id", "tubes", 1)

READERS: dict[str, Callable[[Location], Iterator[pa.RecordBatch]]] = {
    "jsonl": prediction_lines.read,
    "parquet": _TABLES.read,
    "arrow": _TABLES.read,
    "saved": _TABLES.read_saved,
    "research": openpvsg.read,
    "davis": label_maps.read_davis,
    "panoptic": label_maps.read_panoptic,
}
"""A reader by format name."""

read_dataset = _TABLES.read_dataset

__all__ = [
    "FEATURES", "READERS", "check", "noted_faults", "pair_videos", "read_beside", "read_dataset", "read_prediction",
]  # fmt: skip
