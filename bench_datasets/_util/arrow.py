"""Helpers for Arrow columns and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset
from numpy.typing import NDArray

from bench_datasets._compat import indices_of, whole_table


def list_column(
    kind: pa.DataType, values: Any, sizes: NDArray[np.int64], present: NDArray[np.bool_] | None = None
) -> pa.Array:
    """A list column from its items, one row behind the other.

    Args:
        kind: Arrow list type.
        values: the items, as an Arrow array, a numpy array or a list.
        sizes: `(n,) int64`, how many are each row's.
        present: `(n,) bool`, false for a row whose list is null, which has no items; all are there for `None`.

    Example:
        >>> list_column(pa.list_(pa.int32()), [7, 8, 9], np.array([1, 0, 2])).to_pylist()
        [[7], [], [8, 9]]
    """
    items = values if isinstance(values, pa.Array) else pa.array(values, kind.value_type)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    nulls = None if present is None or present.all() else pa.array(~present)
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=kind, mask=nulls)


def spread(column: pa.Array, chosen: NDArray[np.bool_], default: Any) -> pa.Array:
    """A column with `default` in the rows that are not among the chosen ones.

    Args:
        column: a value for each chosen row.
        chosen: `(n,) bool`.
        default: of the others.

    Example:
        >>> spread(pa.array([5, 6]), np.array([True, False, True]), 0).to_pylist()
        [5, 0, 6]
    """
    if chosen.all():
        return column
    values = iter(column.to_pylist())
    return pa.array([next(values) if there else default for there in chosen.tolist()], column.type)


def joined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array: as it is where it is one already."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def arrow_columns(dataset: Dataset, names: Sequence[str]) -> pa.Table:
    """Columns as an Arrow table: views of the Dataset's own, where its rows were not chosen or put in another order.

    That spares the copies of a Dataset, with its features and fingerprint, that lead to the same.

    Args:
        dataset: n rows.
        names: of some of its columns.

    Example:
        >>> rows = Dataset.from_dict({"id": [1, 2, 3], "text": ["a", "b", "c"]})
        >>> arrow_columns(rows.select([2, 0]), ["id"]).to_pydict(), arrow_columns(rows, ["text"]).num_rows
        ({'id': [3, 1]}, 3)
    """
    if indices_of(dataset) is None:
        return whole_table(dataset).select(list(names))
    chosen: pa.Table = dataset.select_columns(list(names)).with_format("arrow")[:]
    return chosen


def lists_of(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Convert a column of lists to one array of a given list type; null where a row holds nothing.

    Args:
        column: n rows.
        kind: Arrow list type.

    Raises:
        pyarrow.ArrowException: there are other values.

    Example:
        >>> lists_of(pa.array([[1], None], pa.large_list(pa.int8())), pa.list_(pa.int64())).to_pylist()
        [[1], None]
    """
    array = joined(column)
    if array.type == kind:
        return array
    if array.null_count == len(array):
        return pa.nulls(len(array), kind)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return array.cast(kind)
    return pa.array(array.to_pylist(), kind)  # a cast of list views loses lists
