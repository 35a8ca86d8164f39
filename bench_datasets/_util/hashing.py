"""Content hash and bytes per row of Arrow tables, independent of buffers and batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bench_datasets._util.arrow import joined


class ContentHash:
    """SHA-256 over the content of a table that comes in lots; how it is cut into lots and chunks makes no difference.

    Example:
        >>> whole, cut = ContentHash(), ContentHash()
        >>> table = pa.table({"a": [[1, 2], None, [3]], "b": ["x", "y", None]})
        >>> whole.add(table)
        >>> for first in range(3):
        ...     cut.add(table.slice(first, 1))
        >>> whole.hexdigest() == cut.hexdigest()
        True
    """

    def __init__(self) -> None:
        self._streams: dict[tuple[str, ...], Any] = {}

    def add(self, table: pa.Table) -> None:
        """The next rows."""
        for name in table.column_names:
            for path, values in _leaves((name,), joined(table[name])):
                self._streams.setdefault(path, hashlib.sha256()).update(values)

    def hexdigest(self) -> str:
        """Of everything so far."""
        whole = hashlib.sha256()
        for path in sorted(self._streams):
            whole.update("\0".join(path).encode("utf-8", "surrogatepass"))
            whole.update(self._streams[path].digest())
        return whole.hexdigest()


def _leaves(path: tuple[str, ...], array: pa.Array) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The arrays' values, as streams that can be put one behind the other."""
    kind = array.type
    yield (*path, "valid"), array.is_valid().cast(pa.uint8()).to_numpy(zero_copy_only=False).tobytes()
    if pa.types.is_struct(kind):
        for field, child in zip(kind, array.flatten(), strict=True):
            yield from _leaves((*path, f".{field.name}"), child)
    elif _is_list(kind):
        yield (*path, "lengths"), _lengths(array).tobytes()
        yield from _leaves((*path, "[]"), array.flatten())
    elif _is_text(kind):
        yield (*path, "lengths"), _lengths(array).tobytes()
        yield (*path, "bytes"), _text(array)
    elif not pa.types.is_null(kind):
        filled = array.fill_null(False if pa.types.is_boolean(kind) else 0) if array.null_count else array
        yield (*path, str(kind)), np.ascontiguousarray(filled.to_numpy(zero_copy_only=False)).tobytes()


def _text(array: pa.Array) -> Any:
    """The bytes of strings, one behind the other."""
    if array.null_count:
        array = array.fill_null("" if not pa.types.is_binary(array.type) else b"")
    _, offsets, data = array.buffers()
    if not len(array) or data is None:
        return b""
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    places = np.frombuffer(offsets, "<i8" if wide else "<i4")[array.offset : array.offset + len(array) + 1]
    return memoryview(data)[int(places[0]) : int(places[-1])]


def row_bytes(array: pa.Array) -> NDArray[np.int64]:
    """`(n,) int64`, about how many bytes each element takes, with all that hangs on it.

    Example:
        >>> row_bytes(pa.array([["ab", "c"], [], None])).tolist()
        [3, 0, 0]
    """
    kind = array.type
    if pa.types.is_struct(kind):
        return _sum(len(array), [row_bytes(child) for child in array.flatten()])
    if _is_list(kind):
        total = np.concatenate([[0], np.cumsum(row_bytes(array.flatten()))])
        bounds = np.concatenate([[0], np.cumsum(_lengths(array))])
        return np.asarray(np.diff(total[bounds]), np.int64)
    if _is_text(kind):
        return _lengths(array)
    width = 0 if pa.types.is_null(kind) else max(1, kind.bit_width // 8)
    return np.full(len(array), width, np.int64)


def table_row_bytes(table: pa.Table) -> NDArray[np.int64]:
    """`(n,) int64`, about how many bytes each row takes."""
    columns = [row_bytes(joined(table[name])) for name in table.column_names]
    return _sum(len(table), columns)


def _sum(n: int, columns: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    total = np.zeros(n, np.int64)
    for column in columns:
        total += column
    return total


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_text(kind: pa.DataType) -> bool:
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _lengths(array: pa.Array) -> NDArray[np.int64]:
    """`(n,) int64`, items or bytes of each element; 0 where it is null."""
    lengths = pc.list_value_length(array) if _is_list(array.type) else pc.binary_length(array)
    found: NDArray[np.int64] = np.asarray(pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False), np.int64)
    return found
