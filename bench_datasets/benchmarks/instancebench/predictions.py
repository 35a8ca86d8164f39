"""Form of InstanceBench's predictions: columns, formats, check."""

from __future__ import annotations

from bench_datasets.benchmarks.instancebench import prediction_coco, prediction_folders, prediction_lines
from bench_datasets.benchmarks.instancebench.check import check
from bench_datasets.benchmarks.instancebench.prediction_columns import Columns
from bench_datasets.benchmarks.instancebench.prediction_rows import FEATURES
from bench_datasets.benchmarks.instancebench.signature import SIGNATURE
from bench_datasets.predictions.form import PredictionForm
from bench_datasets.predictions.tables import Tables

_TABLES = Tables(Columns.known, Columns, prediction_lines.from_rows, lambda _: "expression_id", "mask", 1024)

FORM = PredictionForm(
    features=FEATURES,
    readers={
        "jsonl": prediction_lines.read,
        "coco": prediction_coco.read,
        "parquet": _TABLES.read,
        "arrow": _TABLES.read,
        "saved": _TABLES.read_saved,
        "npz": prediction_folders.read_npz,
        "npy": prediction_folders.read_npy,
        "png": prediction_folders.read_png,
    },
    read_dataset=_TABLES.read_dataset,
    signature=SIGNATURE,
    check=check,
    unvalidated_readers={"jsonl": prediction_lines.read_unvalidated},
    read_again=True,
)
