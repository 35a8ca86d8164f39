"""Some columns of a Dataset, as they stand."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from datasets import Dataset

from bench_datasets.masks import joined


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
    if dataset._indices is None:
        whole: pa.Table = dataset.data.table
        return whole.select(list(names))
    chosen: pa.Table = dataset.select_columns(list(names)).with_format("arrow")[:]
    return chosen


def lists_of(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """A column of lists as one array of a list type, whatever lists it came as; nulls where it holds nothing.

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
