"""PBench's predictions beside its truth: one a row."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from datasets import Dataset

from bench_datasets.benchmarks.pbench.batch import row_names
from bench_datasets.faults import BenchError
from bench_datasets.masks.ragged import MaskLists, read_mask_lists
from bench_datasets.predictions import arrow_columns, pair
from bench_datasets.scoring.options import ScoreOptions
from bench_datasets.scoring.units import Units, attach_rows

attach = attach_rows  # one prediction a row


def pair_units(labels: Dataset, predictions: Dataset, options: ScoreOptions, whole: bool) -> Units:
    """Which prediction belongs to which row.

    Raises:
        BenchError: two truth rows bear one key.
    """
    columns = [name for name in ("key", "id", "level") if name in labels.column_names]
    table = arrow_columns(labels, columns) if columns else None
    keys, ids, levels = row_names(table, options.level, labels.column_names)
    if len(set(keys)) < len(keys):
        key = next(key for key, count in Counter(keys).items() if count > 1)
        raise BenchError(
            f'{key}: two truth rows bear this key; load them with load_dataset("pbench", data_dir=...), which'
            " numbers repeated ids in the source's order"
        )
    found = pair(keys, ids, levels, predictions, whole=whole)
    return Units.row_by_row(found.index, keys, found.faults)


def read_answers(table: pa.Table) -> tuple[MaskLists, pa.Table]:
    """The masks of prediction rows, and their other fields.

    Raises:
        BenchError: there is no column `pred_masks`.
    """
    if "pred_masks" not in table.column_names:
        raise BenchError(f"predictions: expected a column pred_masks, found {', '.join(table.column_names)}")
    others = [name for name in table.column_names if name not in ("pred_masks", "pred_faults")]
    return read_mask_lists(table["pred_masks"]), table.select(others)
