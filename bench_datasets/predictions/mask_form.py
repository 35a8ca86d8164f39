"""Predictions with a list of masks per row, named by key or by id: columns, formats, check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from bench_datasets.predictions import mask_lines
from bench_datasets.predictions.check_masks import check
from bench_datasets.predictions.form import PredictionForm
from bench_datasets.predictions.formats import coco, npy_folder, npz, png_folder
from bench_datasets.predictions.mask_columns import Columns
from bench_datasets.predictions.mask_rows import FEATURES
from bench_datasets.predictions.mask_signature import MASK_SIGNATURE
from bench_datasets.predictions.tables import Tables

if TYPE_CHECKING:
    import pyarrow as pa


def _from_rows(rows: Iterable[Mapping[str, Any]], shown: str, name: str) -> Iterator[pa.RecordBatch]:
    """Rows with lists of masks, or COCO results with one mask each, whichever the first is."""
    left = iter(rows)
    first = next(left, None)
    read = coco.from_rows if first is not None and coco.is_result(first) else mask_lines.from_rows
    yield from read(left if first is None else chain([first], left), shown, name)


_TABLES = Tables(Columns.known, Columns, _from_rows, mask_lines.name_field, "masks")

MASK_FORM = PredictionForm(
    features=FEATURES,
    readers={
        "jsonl": mask_lines.read,
        "falcon": mask_lines.read_falcon,
        "coco": coco.read,
        "parquet": _TABLES.read,
        "arrow": _TABLES.read,
        "saved": _TABLES.read_saved,
        "npz": npz.read,
        "npy": npy_folder.read,
        "png": png_folder.read,
    },
    read_dataset=_TABLES.read_dataset,
    signature=MASK_SIGNATURE,
    check=check,
    unvalidated_readers={"jsonl": mask_lines.read_unvalidated, "coco": coco.read_unvalidated},
)
"""The form of benchmarks whose rows are expressions with masks."""
