"""Temporary Arrow files for rows that do not have to fit into memory."""

from __future__ import annotations

import contextlib
import mmap
import os
import weakref
from types import TracebackType

import pyarrow as pa
from datasets import Dataset, DatasetInfo, Features
from datasets.table import InMemoryTable, MemoryMappedTable

from bench_datasets._util.temporary import full_disk_explained, temporary_folder


class Spool:
    """A file of record batches that is written once and then mapped.

    The file lives as long as any Arrow buffer over it, so as long as the Dataset and every selection of it. What is
    left is removed when the process that wrote it ends. The name is never used again, so that no cache mistakes
    another file for it. A Dataset over it is sent to worker processes as the file's path, while the parent lives.

    Args:
        schema: of every batch.

    Example:
        >>> with Spool(pa.schema([("n", pa.int64())])) as spool:
        ...     spool.write(pa.record_batch({"n": [1, 2]}))
        >>> spool.table().num_rows
        2
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.path = str(temporary_folder("rows-") / "rows.arrow")
        self._owner = os.getpid()
        with full_disk_explained():
            self._sink = pa.OSFile(self.path, "wb")
            self._writer = pa.ipc.new_stream(self._sink, schema)

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.ExitStack() as stack:
            if error is not None:
                stack.callback(_remove_file, self.path, self._owner)
            stack.enter_context(full_disk_explained())
            stack.callback(self._sink.close)
            stack.callback(self._writer.close)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch.

        Raises:
            BenchError: there is no room in the temporary folder.
        """
        with full_disk_explained():
            self._writer.write_batch(batch)

    def table(self) -> pa.Table:
        """Everything written, over the mapped file; to be called once, after the `with` block."""
        with open(self.path, "rb") as file:
            mapped = _Mapping(file.fileno(), 0, access=mmap.ACCESS_READ)
        weakref.finalize(mapped, _remove_file, self.path, self._owner)
        return pa.ipc.open_stream(pa.py_buffer(mapped)).read_all()

    def dataset(self, features: Features | None = None) -> Dataset:
        """Everything written, as a Dataset; to be called once and without `table`, after the `with` block.

        Args:
            features: of the Dataset; what the written schema tells for `None`.
        """
        table = self.table()
        features = features or Features.from_arrow_schema(table.schema)
        # Without rows nothing holds on to the file: such a table travels by value.
        data = MemoryMappedTable(table, self.path) if table.num_rows else InMemoryTable(table)
        return Dataset(data, info=DatasetInfo(features=features))


class _Mapping(mmap.mmap):
    """A mapped file that weak references can watch."""


def _remove_file(path: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked worker drops its copy of the data, not the file
        with contextlib.suppress(OSError):
            os.remove(path)
            os.rmdir(os.path.dirname(path))  # stays if `map` has put its own cache there
