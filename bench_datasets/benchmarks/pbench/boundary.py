"""Outlines of PBench's rows: the union of the scored predictions against the union of the truth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench_datasets.benchmarks.pbench.schema import BOUNDARY_COLUMNS
from bench_datasets.masks import MaskColumn, boundary_pairs, union_masks


def measure_boundaries(
    count: int, predicted: MaskColumn, predicted_row: NDArray[np.int64], true: MaskColumn, true_row: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """The columns that the option `boundary` adds.

    Args:
        count: number of rows.
        predicted: the predictions of all rows, those of a row that has truth in the truth's size.
        predicted_row: `(masks,) int64`, the row of each, rising; -1 for one that is left out.
        true: the truth masks of all rows.
        true_row: `(masks,) int64`, the row of each, rising.

    Returns:
        `(count,) int64` a column; 0 where a row has no mask at all.
    """
    used = np.flatnonzero(predicted_row >= 0)
    scored, scored_row = (predicted if len(used) == len(predicted) else predicted.take(used)), predicted_row[used]
    height, width = np.full(count, -1), np.full(count, -1)
    for column, row in ((scored, scored_row), (true, true_row)):
        height[row], width[row] = column.heights, column.widths
    some = np.flatnonzero(height > 0)
    sides = []
    for column, row in ((scored, scored_row), (true, true_row)):
        groups = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=count)[some])])
        sides.append(union_masks(column, groups, height[some], width[some]))
    columns = {}
    for name, values in zip(BOUNDARY_COLUMNS, boundary_pairs(*sides), strict=True):
        whole = np.zeros(count, np.int64)
        whole[some] = values
        columns[name] = whole
    return columns
