"""What InstanceBench predictions may be: their columns, a reader a format, their pairing and their check."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from bench_datasets.predictions.instancebench import coco, folders, jsonl
from bench_datasets.predictions.instancebench.check import check
from bench_datasets.predictions.instancebench.columns import Columns
from bench_datasets.predictions.instancebench.pairing import ExpressionPairing, pair_expressions
from bench_datasets.predictions.instancebench.rows import CONDITIONS, FEATURES, ORIGINAL
from bench_datasets.predictions.location import Location
from bench_datasets.predictions.tables import Tables

_TABLES = Tables(Columns.known, Columns, jsonl.from_rows, lambda _: "expression_id", "mask", 1024)

READERS: dict[str, Callable[[Location], Iterator[pa.RecordBatch]]] = {
    "jsonl": jsonl.read,
    "coco": coco.read,
    "parquet": _TABLES.read,
    "arrow": _TABLES.read,
    "saved": _TABLES.read_saved,
    "npz": folders.read_npz,
    "npy": folders.read_npy,
    "png": folders.read_png,
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
