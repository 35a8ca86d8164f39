"""Rows on disk instead of in memory: an Arrow stream in a temporary folder, mapped, that goes when its data goes."""

from __future__ import annotations

import atexit
import contextlib
import mmap
import os
import shutil
import tempfile
import weakref
from types import TracebackType

import pyarrow as pa
from datasets import Dataset, DatasetInfo, Features
from datasets.table import InMemoryTable, MemoryMappedTable


class Spool:
    """A file of record batches that is written once and then mapped.

    The file lives as long as any Arrow buffer over it, so as long as the Dataset and whatever was selected or sliced
    out of it; what is left goes when the process that wrote it ends. Its name is never used again, so that no cache
    answers for it. A Dataset over it travels to worker processes by the file's path, while the parent lives.

    Args:
        schema: of every batch.

    Example:
        >>> with Spool(pa.schema([("n", pa.int64())])) as spool:
        ...     spool.write(pa.record_batch({"n": [1, 2]}))
        >>> spool.table().num_rows
        2
    """

    def __init__(self, schema: pa.Schema) -> None:
        folder = tempfile.mkdtemp(prefix="bench-datasets-")
        self.path = os.path.join(folder, "rows.arrow")
        self._owner = os.getpid()
        atexit.register(_remove_folder, folder, self._owner)
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
            stack.callback(self._sink.close)
            stack.callback(self._writer.close)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch."""
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


def _remove_folder(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
