"""Form of PVSG's predictions: columns, formats, check."""

from __future__ import annotations

from bench_datasets.benchmarks.pvsg import label_maps, openpvsg, prediction_lines
from bench_datasets.benchmarks.pvsg.check import check
from bench_datasets.benchmarks.pvsg.prediction_columns import Columns
from bench_datasets.benchmarks.pvsg.prediction_rows import FEATURES
from bench_datasets.benchmarks.pvsg.signature import SIGNATURE
from bench_datasets.predictions.form import PredictionForm
from bench_datasets.predictions.tables import Tables

_TABLES = Tables(Columns.known, Columns, prediction_lines.from_rows, lambda _: "video_id", "tubes", 1)

FORM = PredictionForm(
    features=FEATURES,
    readers={
        "jsonl": prediction_lines.read,
        "parquet": _TABLES.read,
        "arrow": _TABLES.read,
        "saved": _TABLES.read_saved,
        "research": openpvsg.read,
        "davis": label_maps.read_davis,
        "panoptic": label_maps.read_panoptic,
    },
    read_dataset=_TABLES.read_dataset,
    signature=SIGNATURE,
    check=check,
    unvalidated_readers={"jsonl": prediction_lines.read_unvalidated},
    read_again=True,
)
