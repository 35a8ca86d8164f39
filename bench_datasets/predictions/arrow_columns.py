"""Some columns of a Dataset, as they stand."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from datasets import Dataset


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
