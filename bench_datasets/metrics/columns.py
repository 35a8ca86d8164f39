"""Arrow columns of score tables from flat values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


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
