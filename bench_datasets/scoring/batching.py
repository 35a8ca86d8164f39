"""Rows taken up lot by lot: how many at a time, and how they are read from a Dataset."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset
from numpy.typing import NDArray

from bench_datasets._compat import indices_of, take_rows

BATCH_ROWS = 64
"""Rows that are taken up at a time; the scoring cuts them further by bytes."""

MOST_ROWS, LIGHT_BYTES = 2048, 1 << 22
"""More rows than that are taken up at a time where they are light: as many as these bytes hold."""

BATCH_BYTES = 1 << 24
"""Bytes that are taken up at a time, going by the average row."""


class ArrowRows:
    """Rows of a Dataset as Arrow tables, without the copies of a Dataset that its own ways to the same make.

    Args:
        dataset: n rows, chosen and put in order or not.
        names: of the columns that are wanted; all for `None`.

    Example:
        >>> rows = ArrowRows(Dataset.from_dict({"id": [1, 2, 3], "text": ["a", "b", "c"]}).select([2, 0]), ["id"])
        >>> len(rows), rows[[1]].to_pydict(), rows[:2].to_pydict()
        (2, {'id': [1]}, {'id': [3, 1]})
    """

    def __init__(self, dataset: Dataset, names: Sequence[str] | None = None) -> None:
        self._table = dataset.data if names is None else dataset.data.select(list(names))
        self._indices = indices_of(dataset)

    def __len__(self) -> int:
        return int((self._table if self._indices is None else self._indices).num_rows)

    def __getitem__(self, rows: slice | Sequence[int]) -> pa.Table:
        if isinstance(rows, slice):
            return take_rows(self._table, rows, self._indices)
        numbers = np.asarray(rows, np.int64)
        if self._indices is not None:
            numbers = self._indices.column(0).take(pa.array(numbers)).to_numpy().astype(np.int64)
        return _gathered(*self._batches, numbers) if len(numbers) else self._table.table.slice(0, 0)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_batches"}

    @cached_property
    def _batches(self) -> tuple[list[pa.RecordBatch], NDArray[np.int64]]:
        """The table's batches that have rows, and where each begins."""
        batches = [batch for batch in self._table.table.to_batches() if len(batch)]
        return batches, np.concatenate([[0], np.cumsum([len(batch) for batch in batches])]).astype(np.int64)

    @property
    def schema(self) -> pa.Schema:
        """Of the tables."""
        return self._table.schema

    @property
    def average(self) -> float:
        """Bytes of a row."""
        return float(self._table.nbytes / max(self._table.num_rows, 1))


def _gathered(batches: list[pa.RecordBatch], begin: NDArray[np.int64], numbers: NDArray[np.int64]) -> pa.Table:
    """Rows of batches by their numbers, in that order; a batch is touched once."""
    place = np.searchsorted(begin, numbers, side="right") - 1
    order = np.argsort(place, kind="stable")
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(place[order])) + 1, [len(order)]])
    parts = [order[a:b] for a, b in itertools.pairwise(bounds)]
    found = pa.Table.from_batches(
        [batches[place[part[0]]].take(pa.array(numbers[part] - begin[place[part[0]]])) for part in parts]
    )
    if is_run(order):
        return found
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return found.combine_chunks().take(pa.array(back))


def rows_at_a_time(*rows: ArrowRows) -> int:
    """Number of rows per batch, so that an average batch stays within `BATCH_BYTES`."""
    average = max(sum(each.average for each in rows), 1)
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
        arrow: of a Dataset, or what gives a table for a list of row numbers.
        numbers: `(n,) int64`, of the rows.
    """
    if isinstance(arrow, ArrowRows) and is_run(numbers):
        found: pa.Table = arrow[int(numbers[0]) : int(numbers[-1]) + 1]
    else:
        found = arrow[numbers.tolist()]
    return found
