"""Read tables from untrusted files in batches of bounded size."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench_datasets.faults import BenchError

BATCH = 1 << 26
"""Most bytes of a batch, unless one row is larger: 64 MiB."""

ROW = 1 << 30
"""Most bytes of one row: 1 GiB."""

BODY = 1 << 32
"""Most bytes to which one compressed batch of an Arrow file may unpack: 4 GiB."""

FREE_VALUES, VALUES = 1 << 20, 256
"""A column may hold about a million values, and 256 per byte of its file beyond that."""

FREE_BYTES, RATIO = 1 << 27, 256
"""A file may unpack to 128 MiB, and to 256 times its own size beyond that."""


class Budget:
    """Limit on the size of the tables of one file.

    Args:
        size: bytes of the file.
        shown: what messages call the file.
    """

    def __init__(self, size: int, shown: str) -> None:
        self.size, self.shown = size, shown
        self.held = 0

    def values(self, count: int) -> None:
        """Stop at a column of so many values.

        Raises:
            BenchError: they are too many for the size of the file.
        """
        if count > FREE_VALUES + VALUES * self.size:
            raise BenchError(
                f"{self.shown}: expected at most {FREE_VALUES + VALUES * self.size:,} values in a column of a file of "
                f"{self.size:,} bytes, found {count:,}; the file is not read"
            )

    def spend(self, held: int) -> None:
        """Count bytes that are about to be unpacked.

        Raises:
            BenchError: they are too many for the size of the file.
        """
        self.held += held
        if self.held > FREE_BYTES + RATIO * self.size:
            raise BenchError(
                f"{self.shown}: expected a file that unpacks to at most {RATIO} times its size, found more than "
                f"{self.held:,} bytes in {self.size:,}; the file is not read"
            )


def check_parquet(metadata: pq.FileMetaData, columns: Sequence[str], budget: Budget) -> int:
    """Stop at a Parquet file whose footer says that its columns unpack to far more than the file holds.

    Returns:
        Bytes of the columns, unpacked as the footer says.

    Raises:
        BenchError: they do.
    """
    counts = {"": metadata.num_rows}
    stored = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for leaf in map(group.column, range(group.num_columns)):
            if leaf.path_in_schema.split(".", 1)[0] in columns:
                counts[leaf.path_in_schema] = counts.get(leaf.path_in_schema, 0) + leaf.num_values
                stored += leaf.total_uncompressed_size
    budget.values(max(counts.values()))
    Budget(budget.size, budget.shown).spend(stored)
    return stored


def check_arrow(stream: IO[bytes], budget: Budget) -> None:
    """Stop at an Arrow file whose compressed batches unpack to far more than the file holds.

    Every compressed buffer begins with its unpacked length, which Arrow allocates and fills exactly. Only the metadata
    of the batches and these lengths are read, so that nothing is unpacked.

    Args:
        stream: an Arrow IPC file (Feather) or stream that can seek; it is left at its beginning.
        budget: of the file.

    Raises:
        BenchError: the batches come to more than the budget, one is larger than `BODY`, or they overlap.
        ValueError: the metadata is broken.
    """
    stream.seek(0)
    indexed = stream.read(6) == b"ARROW1"
    total, metadata_bytes = Budget(budget.size, budget.shown), 0
    try:
        for message, body in _indexed(stream, budget.size) if indexed else _streamed(stream):
            metadata_bytes += len(message)
            if metadata_bytes > budget.size:
                raise BenchError(f"{budget.shown}: expected batches that do not overlap; write the file again")
            held = _compressed(stream, message, body)
            total.spend(held)
            if held > BODY:
                raise BenchError(
                    f"{budget.shown}: expected at most {BODY:,} bytes in one compressed batch, found {held:,}; write "
                    "fewer rows per batch"
                )
    except struct.error as error:
        raise ValueError(f"metadata of a batch: {error}") from error
    stream.seek(0)


def _streamed(stream: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """The metadata of each message of an Arrow stream, and where its body begins."""
    at = 0
    while True:
        stream.seek(at)
        start = stream.read(8)
        if len(start) < 8:
            return
        mark, length = struct.unpack("<Ii", start)
        begin = at + 8
        if mark != 0xFFFFFFFF:  # before Arrow 0.15 there was no mark
            length, begin = struct.unpack("<i", start[:4])[0], at + 4
        if length <= 0:
            return
        stream.seek(begin)
        message = stream.read(length)
        body = _scalar(message, _root(message), 3, "q")
        if len(message) < length or body < 0:
            return  # cut or broken: Arrow says so
        yield message, begin + length
        at = begin + length + body


def _indexed(stream: IO[bytes], size: int) -> Iterator[tuple[bytes, int]]:
    """The metadata of each message that an Arrow file's footer names, and where its body begins."""
    stream.seek(max(0, size - 10))
    length = struct.unpack("<i", stream.read(10)[:4])[0]
    if not 0 < length <= size - 10:
        return  # Arrow says what is wrong
    stream.seek(size - 10 - length)
    footer = stream.read(length)
    root = _root(footer)
    for field in (2, 3):  # dictionaries and batches
        for at in _vector(footer, root, field, 24):
            offset, whole = struct.unpack_from("<qi", footer, at)
            if not 0 <= offset <= size or not 8 <= whole <= size:
                raise ValueError("a batch lies outside the file")
            stream.seek(offset)
            message = stream.read(whole)
            marked = message[:4] == b"\xff\xff\xff\xff"
            yield message[8 if marked else 4 :], offset + whole


def _compressed(stream: IO[bytes], message: bytes, body: int) -> int:
    """Bytes to which the compressed buffers of a message unpack."""
    table = _root(message)
    kind = _scalar(message, table, 1, "B")
    batch = _child(message, table, 2)
    if kind == 2 and batch:  # a dictionary holds a batch
        batch = _child(message, batch, 1)
    if kind not in (2, 3) or not batch or not _child(message, batch, 3):
        return 0
    held = 0
    for at in _vector(message, batch, 2, 16):
        offset, length = struct.unpack_from("<qq", message, at)
        if length >= 8 and offset >= 0:
            stream.seek(body + offset)
            start = stream.read(8)
            stated = struct.unpack("<q", start)[0] if len(start) == 8 else 0
            held += length if stated < 0 else stated
    return held


def _root(data: bytes) -> int:
    return int(struct.unpack_from("<I", data, 0)[0])


def _slot(data: bytes, table: int, field: int) -> int:
    """Where a field of a FlatBuffers table lies; 0 where it is absent."""
    entries = table - struct.unpack_from("<i", data, table)[0]
    if entries < 0:
        raise struct.error("a table points outside")
    (size,) = struct.unpack_from("<H", data, entries)
    offset = struct.unpack_from("<H", data, entries + 4 + 2 * field)[0] if 6 + 2 * field <= size else 0
    return table + offset if offset else 0


def _scalar(data: bytes, table: int, field: int, kind: str) -> int:
    at = _slot(data, table, field)
    return int(struct.unpack_from(f"<{kind}", data, at)[0]) if at else 0


def _child(data: bytes, table: int, field: int) -> int:
    at = _slot(data, table, field)
    return at + int(struct.unpack_from("<I", data, at)[0]) if at else 0


def _vector(data: bytes, table: int, field: int, width: int) -> range:
    """Where each item of a vector lies, items of so many bytes."""
    at = _child(data, table, field)
    if not at:
        return range(0)
    (count,) = struct.unpack_from("<I", data, at)
    if at + 4 + count * width > len(data):
        raise struct.error("a vector reaches past the end")
    return range(at + 4, at + 4 + count * width, width)


def texts(metadata: pq.FileMetaData, columns: Sequence[str]) -> list[str]:
    """The paths of a Parquet file's columns of texts and bytes, within the chosen columns.

    They are to be read as dictionaries: a text that stands in many rows is then unpacked by `plain_batches`, which
    knows beforehand how many bytes that takes.
    """
    leaves = map(metadata.schema.column, range(metadata.num_columns))
    return [
        leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and leaf.path.split(".", 1)[0] in columns
    ]


def read_parquet(
    stream: IO[bytes], shown: str, columns: Sequence[str] | None = None, row_group: int | None = None
) -> pa.Table:
    """Read columns of an untrusted Parquet file, without unpacking far more than it holds.

    Args:
        stream: the file; it can seek.
        shown: what messages call the file.
        columns: names of the columns, all of them by default.
        row_group: the number of the only row group to read; all of them by default.

    Returns:
        The rows, with the file's schema and metadata.

    Raises:
        BenchError: the columns unpack to more than the budget, or one row is larger than `ROW`.
        pa.ArrowException: the file is cut or is no Parquet file.
    """
    budget = Budget(stream.seek(0, 2), shown)
    stream.seek(0)
    metadata = pq.read_metadata(stream)
    schema = metadata.schema.to_arrow_schema()
    names = list(schema.names if columns is None else columns)
    check_parquet(metadata, names, budget)
    stream.seek(0)
    file = pq.ParquetFile(stream, metadata=metadata, read_dictionary=texts(metadata, names))
    schema = pa.schema([field for field in schema if field.name in names], schema.metadata)
    batches = [
        part
        for group in (range(metadata.num_row_groups) if row_group is None else (row_group,))
        for batch in file.iter_batches(row_groups=[group], columns=names)  # Arrow joins no lists of dictionaries
        for part in plain_batches(batch, budget)
    ]
    return pa.Table.from_batches(batches, schema) if batches else schema.empty_table()


def plain_batches(batch: pa.RecordBatch, budget: Budget) -> Iterator[pa.RecordBatch]:
    """A batch in parts of bounded size, dictionaries unpacked.

    Raises:
        BenchError: one row is larger than `ROW`, or all come to more than the budget.
    """
    held = _held(batch, budget)
    budget.spend(held)
    yield from _parts(batch, held, budget)


def plain_batch(batch: pa.RecordBatch, budget: Budget) -> pa.RecordBatch:
    """A batch with its dictionaries unpacked.

    Raises:
        BenchError: it is larger than `ROW`, or all come to more than the budget.
    """
    held = _held(batch, budget)
    budget.spend(held)
    return _plain_batch(batch, held, budget)


def _parts(batch: pa.RecordBatch, held: int, budget: Budget) -> Iterator[pa.RecordBatch]:
    if held <= BATCH or batch.num_rows < 2:
        yield _plain_batch(batch, held, budget)
        return
    half = batch.num_rows // 2
    for part in (batch.slice(0, half), batch.slice(half)):
        yield from _parts(part, _held(part, budget), budget)


def _held(batch: pa.RecordBatch, budget: Budget) -> int:
    return sum(_unpacked(column, budget) for column in batch.columns)


def _plain_batch(batch: pa.RecordBatch, held: int, budget: Budget) -> pa.RecordBatch:
    if held > ROW:
        what = "one row" if batch.num_rows == 1 else f"{batch.num_rows} rows"
        raise BenchError(
            f"{budget.shown}: expected at most {ROW:,} bytes in {what}, found {held:,}; the file is not read"
        )
    kinds = [_plain(column.type) for column in batch.columns]
    if kinds == [column.type for column in batch.columns]:
        return batch
    # A cast of lists goes over the items of all rows, those before and behind a slice, too: `take` leaves them out.
    rows = pa.array(range(batch.num_rows))
    arrays = [
        column if column.type == kind else column.take(rows).cast(kind)
        for column, kind in zip(batch.columns, kinds, strict=True)
    ]
    fields = [field.with_type(kind) for field, kind in zip(batch.schema, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, batch.schema.metadata))


def _unpacked(array: pa.Array, budget: Budget) -> int:
    """Bytes that an array takes once its dictionaries and views are unpacked."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if not len(array.dictionary):
            return len(array)
        each = _lengths(array.dictionary)
        return int(pc.sum(each.take(array.indices.drop_null())).as_py() or 0) + 8 * len(array)
    if _is_list(kind):
        items = pc.sum(pc.list_value_length(array)).as_py() or 0
        budget.values(items)
        return int(8 * len(array) + _unpacked(array.flatten(), budget))
    if pa.types.is_struct(kind):
        return sum(_unpacked(array.field(i), budget) for i in range(kind.num_fields)) + len(array)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return int(pc.sum(_lengths(array)).as_py() or 0) + 8 * len(array)
    return int(array.nbytes) + len(array)


def _lengths(values: pa.Array) -> pa.Array:
    if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
        return pa.array([len(value.as_buffer() or b"") for value in values], pa.int64())
    try:
        return pc.binary_length(values).cast(pa.int64()).fill_null(0)
    except pa.ArrowNotImplementedError:  # not texts: small, each of them
        return pa.array([8] * len(values), pa.int64())


def _is_list(kind: pa.DataType) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view)
    return any(test(kind) for test in (*tests, pa.types.is_large_list_view))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without dictionaries."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        field = kind.value_field
        make: Any = pa.list_ if pa.types.is_list(kind) else pa.large_list
        inner = _plain(field.type)
        return kind if inner == field.type else make(field.with_type(inner))
    if pa.types.is_struct(kind):
        fields = [field.with_type(_plain(field.type)) for field in kind]
        return kind if fields == list(kind) else pa.struct(fields)
    return kind
