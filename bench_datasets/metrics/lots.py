"""Rows taken up lot by lot: how many at a time, and how they are read from a Dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset
from numpy.typing import NDArray

BATCH_ROWS = 64
"""Rows that are taken up at a time; the scoring cuts them further by bytes."""

MOST_ROWS, LIGHT_BYTES = 1024, 1 << 21
"""More rows than that are taken up at a time where they are light: as many as these bytes hold."""

BATCH_BYTES = 1 << 24
"""Bytes that are taken up at a time, going by the average row."""


def rows_at_a_time(*datasets: Dataset) -> int:
    """How many rows to take up at a time, so that an average lot stays within `BATCH_BYTES`."""
    average = max(sum(data.data.nbytes / max(len(data.data), 1) for data in datasets), 1)
    most = min(MOST_ROWS, max(BATCH_ROWS, int(LIGHT_BYTES / average)))
    return max(1, min(most, int(BATCH_BYTES / average)))


def is_run(numbers: NDArray[np.int64]) -> bool:
    """Whether the numbers rise by one.

    Example:
        >>> is_run(np.array([4, 5, 6])), is_run(np.array([4, 6]))
        (True, False)
    """
    return len(numbers) > 0 and bool((np.diff(numbers) == 1).all())


def rows_of(arrow: Any, numbers: NDArray[np.int64]) -> pa.Table:
    """Rows as an Arrow table: a view of them where they stand one behind the other, a copy else.

    Args:
        arrow: a Dataset in Arrow format, or what gives a table for a list of row numbers.
        numbers: `(n,) int64`, of the rows.
    """
    if isinstance(arrow, Dataset) and is_run(numbers):
        found: pa.Table = arrow[int(numbers[0]) : int(numbers[-1]) + 1]
    else:
        found = arrow[numbers.tolist()]
    return found


def joined(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array: as it is where it is one already."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
