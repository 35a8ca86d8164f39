"""Parquet shards of a published dataset: the same rows give the same bytes, and no more than a row group is held."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features

from bench_datasets._compat import PARQUET_CHUNKING
from bench_datasets.faults import BenchError

SHARD_BYTES = 1 << 28
"""A shard is closed once its rows hold that many bytes in memory; on disk it is smaller."""

GROUP_BYTES = 1 << 23
"""Likewise a row group, which is what a reader fetches at a time."""

GROUP_ROWS = 256
"""Most rows of a row group, so that the first few rows of a stream are fetched without the others."""


@dataclass(frozen=True)
class Shard:
    """A Parquet file that was written.

    Attributes:
        name: its path in the repo, `<config>/<split>-00000-of-00001.parquet`.
        file: where it lies on this machine.
        rows: how many it holds.
        bytes: of the rows in memory.
    """

    name: str
    file: Path
    rows: int
    bytes: int

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.file.stat().st_size


class ShardWriter:
    """Writes tables one after the other into as many shards as they need.

    Args:
        folder: the repo's folder on this machine.
        stem: config and split, `default/test`.
        features: the rows' columns; they go into every file's metadata, so that nothing else has to say them.
        shard_bytes: bytes in memory at which a shard is closed.
        group_bytes: likewise a row group.
    """

    def __init__(
        self,
        folder: Path,
        stem: str,
        features: Features,
        *,
        shard_bytes: int = SHARD_BYTES,
        group_bytes: int = GROUP_BYTES,
    ) -> None:
        self.folder, self.stem, self.schema = folder, stem, features.arrow_schema
        self.shard_bytes, self.group_bytes = shard_bytes, group_bytes
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._writer: Any = None
        self._done: list[tuple[Path, int, int]] = []
        (folder / stem).parent.mkdir(parents=True, exist_ok=True)

    def write(self, table: pa.Table) -> None:
        """Take in some rows, with the columns of `features`."""
        table = table.select(self.schema.names).cast(self.schema).combine_chunks()
        for first in range(0, len(table), GROUP_ROWS):
            self._hold(table.slice(first, GROUP_ROWS).combine_chunks())

    def _hold(self, table: pa.Table) -> None:
        if self._held and sum(map(len, self._held)) + len(table) > GROUP_ROWS:
            self._flush()
        self._held.append(table)
        self._held_bytes += table.nbytes
        if self._held_bytes >= self.group_bytes:
            self._flush()

    def _flush(self) -> None:
        """Write the held rows as one row group; close the shard if it is large enough."""
        if not self._held:
            return
        # One chunk a column, so that pages do not depend on how the rows came.
        table = pa.concat_tables(self._held).combine_chunks()
        if self._writer is None:
            path = self.folder / f"{self.stem}.{len(self._done)}.partial"
            self._done.append((path, 0, 0))
            self._writer = pq.ParquetWriter(
                path, self.schema, compression="zstd", compression_level=3, version="2.6", write_page_index=True,
                **PARQUET_CHUNKING,
            )  # fmt: skip
        try:
            self._writer.write_table(table, row_group_size=len(table))
        except pa.ArrowNotImplementedError as error:
            raise BenchError(
                f"{self.stem}: pyarrow {pa.__version__} cannot write these rows as Parquet ({error}); null values"
                " around fixed-size lists take pyarrow 26, and Python 3.11"
            ) from error
        path, rows, size = self._done[-1]
        self._done[-1] = (path, rows + len(table), size + self._held_bytes)
        self._held, self._held_bytes = [], 0
        if self._done[-1][2] >= self.shard_bytes:
            self._close()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def finish(self) -> list[Shard]:
        """Write the remaining rows and name the shards; an empty list without rows."""
        self._flush()
        self._close()
        shards = []
        for k, (path, rows, size) in enumerate(self._done):
            name = f"{self.stem}-{k:05d}-of-{len(self._done):05d}.parquet"
            os.replace(path, self.folder / name)
            shards.append(Shard(name, self.folder / name, rows, size))
        return shards


def write_shards(tables: Iterable[pa.Table], features: Features, folder: Path, stem: str, **sizes: int) -> list[Shard]:
    """Write tables into shards.

    Args:
        tables: the rows, in order; each is held until its row group is written.
        features: their columns.
        folder: the repo's folder on this machine.
        stem: config and split, `default/test`.
        sizes: `shard_bytes` and `group_bytes`; see `ShardWriter`.

    Returns:
        The shards, in order; the same rows in the same portions give the same bytes.

    Example:
        >>> import tempfile
        >>> from datasets import Value
        >>> rows = [pa.table({"key": ["a", "b"]}), pa.table({"key": ["c"]})]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     shards = write_shards(rows, Features({"key": Value("string")}), Path(folder), "default/test")
        ...     [shard.name for shard in shards], [len(table) for table in read_shards(shards, ["key"])]
        (['default/test-00000-of-00001.parquet'], [3])
    """
    writer = ShardWriter(folder, stem, features, **sizes)
    for table in tables:
        writer.write(table)
    return writer.finish()


def read_shards(shards: Sequence[Shard], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The rows of shards again, a row group at a time.

    Args:
        shards: what `write_shards` gave.
        columns: those that are read; all for None.
    """
    for shard in shards:
        with pq.ParquetFile(shard.file) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, columns=None if columns is None else list(columns))
