"""What InstanceBench predictions may be: their columns, a reader a format, their pairing and their check."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from bench_datasets.benchmarks.instancebench import prediction_coco, prediction_folders, prediction_lines
from bench_datasets.benchmarks.instancebench.check import check
from bench_datasets.benchmarks.instancebench.prediction_columns import Columns
from bench_datasets.benchmarks.instancebench.prediction_pairing import ExpressionPairing, pair_expressions
from bench_datasets.benchmarks.instancebench.prediction_rows import CONDITIONS, FEATURES, ORIGINAL
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.tables import Tables

_TABLES = Tables(Columns.known, Columns, prediction_lines.from_rows, lambda _: "expression_id", "mask", 1024)

READERS: dict[str, Callable[[Location], Iterator[pa.RecordBatch]]] = {
    "jsonl": prediction_lines.read,
    "coco": prediction_coco.read,
    "parquet": _TABLES.read,
    "arrow": _TABLES.read,
    "saved": _TABLES.read_saved,
    "npz": prediction_folders.read_npz,
    "npy": prediction_folders.read_npy,
    "png": prediction_folders.read_png,
}
"""A reader by format name."""

read_dataset = _TABLES.read_dataset

__all__ = [
    "CONDITIONS",
    "FEATURES",
    "ORIGINAL",
    "READERS",
    "ExpressionPairing",
    "check",
    "pair_expressions",
    "read_dataset",
]
