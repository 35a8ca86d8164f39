"""Chosen columns of a Parquet file and not one byte of the others, through fsspec.

PBench's Parquet files are nearly all image bytes; what scoring needs is some megabytes in small column chunks between
them. Three kinds of ranges are read: the file's last eight bytes, its footer, and the wanted columns' chunks of a row
group (touching ones in one go). Nothing is read ahead, and one row group's chunks are held at a time.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench_datasets._util.untrusted import open_file
from bench_datasets._util.untrusted_tables import Budget, check_parquet, plain_batch, texts
from bench_datasets.data.provenance import without_secrets
from bench_datasets.data.source import Access, in_words
from bench_datasets.faults import BenchError

_MAGIC = b"PAR1"
_TAIL = 8  # footer length (uint32, little endian) and magic
_MAX_FOOTER = 512 << 20  # bytes; footers are kilobytes
_BUFFER = 1 << 20  # bytes of a large column's chunk that are decoded from at a time
_BLOCK = 8 << 20  # bytes that a remote file system fetches of it at a time


class LabelFile:
    """A Parquet file whose columns are read one by one.

    Args:
        url: path or fsspec URL.
        access: token and storage options.
        name: what messages call the file; the URL where None.

    Attributes:
        metadata: the file's footer.
        schema: its Arrow schema.
        size: the file's size in bytes.

    Raises:
        BenchError: the file is missing, empty, cut off or no Parquet; the message names it and says which.
    """

    def __init__(self, url: str, access: Access | None = None, *, name: str | None = None) -> None:
        self.url, self.name = url, name or without_secrets(url)
        self._fs, self._path = (access or Access()).open(url)
        with self._open(cache_type="none") as file:
            self.size = _size(file, self.name)
            footer = _footer(file, self.size, self.name)
        try:
            self.metadata: pq.FileMetaData = pq.read_metadata(pa.BufferReader(footer))
            self.schema: pa.Schema = self.metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise BenchError(
                f"{self.name}: expected a Parquet file, found a footer that cannot be read ({error})"
            ) from error

    @property
    def num_rows(self) -> int:
        """Rows in the file, from its footer."""
        return int(self.metadata.num_rows)

    def ranges(self, columns: Sequence[str], row_group: int) -> list[tuple[int, int]]:
        """The byte ranges `(start, end)` of these columns' chunks in a row group, touching ones merged."""
        group, wanted, spans = self.metadata.row_group(row_group), set(columns), []
        for i in range(group.num_columns):
            chunk = group.column(i)
            if self._root(i) not in wanted:
                continue
            start = chunk.data_page_offset
            if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
                start = chunk.dictionary_page_offset
            spans.append((int(start), int(start + chunk.total_compressed_size)))
        merged: list[tuple[int, int]] = []
        for start, end in sorted(spans):
            if start < 4 or end > self.size - _TAIL or end < start:
                raise BenchError(f"{self.name}: row group {row_group} points outside the file; fetch it again")
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def batches(
        self, columns: Sequence[str], *, streamed: Sequence[str] = (), batch_rows: int = 1024
    ) -> Iterator[pa.RecordBatch]:
        """The rows' chosen columns, in order, at most `batch_rows` at a time.

        Args:
            columns: small columns; a row group's chunks are fetched exactly and held while it is read.
            streamed: large columns (images); read in passing, a page at a time.
            batch_rows: most rows in a batch.

        Raises:
            BenchError: a column is missing, or its pages cannot be read.

        Example:
            >>> import tempfile, os, pyarrow as pa, pyarrow.parquet as pq
            >>> path = os.path.join(tempfile.mkdtemp(), "t.parquet")
            >>> pq.write_table(pa.table({"id": [1, 2], "image": [b"x", b"y"]}), path)
            >>> [batch.to_pydict() for batch in LabelFile(path).batches(["id"])]
            [{'id': [1, 2]}]
        """
        missing = [column for column in (*columns, *streamed) if column not in self.schema.names]
        if missing:
            raise BenchError(f"{self.name}: expected column {missing[0]!r}, found {', '.join(self.schema.names)}")
        budget = Budget(self.size, self.name)
        check_parquet(self.metadata, [*columns, *streamed], budget)
        with ExitStack() as stack:
            file = stack.enter_context(self._open(cache_type="none"))
            large = stack.enter_context(self._open(block_size=_BLOCK)) if streamed else None
            for group in range(self.metadata.num_row_groups):
                if self.metadata.row_group(group).num_rows == 0:
                    continue
                spans = self.ranges(columns, group)
                blocks = {start: _read(file, start, end, self.name) for start, end in spans}
                try:
                    parts = [self._group(_Sparse(self.size, blocks), columns, group, batch_rows, budget)]
                    if large is not None:
                        parts.append(self._group(large, streamed, group, batch_rows))
                    for batch in zip(*parts, strict=True):
                        arrays = [array for part in batch for array in part.columns]
                        yield pa.RecordBatch.from_arrays(
                            arrays, names=[name for part in batch for name in part.schema.names]
                        )
                except (pa.ArrowException, OSError) as error:
                    raise BenchError(
                        f"{self.name}: row group {group} cannot be read ({error}); fetch the file again"
                    ) from error

    def _group(
        self, file: Any, columns: Sequence[str], group: int, rows: int, budget: Budget | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches of one row group's columns; without `pre_buffer` exactly their chunks are asked of `file`."""
        source = pa.PythonFile(file, "r")
        reader = pq.ParquetFile(
            source,
            metadata=self.metadata,
            pre_buffer=False,
            buffer_size=_BUFFER,
            read_dictionary=[] if budget is None else texts(self.metadata, columns),
        )
        for batch in reader.iter_batches(rows, row_groups=[group], columns=list(columns), use_threads=False):
            yield batch if budget is None else plain_batch(batch, budget)

    def _root(self, leaf: int) -> str:
        return str(self.metadata.schema.column(leaf).path).split(".", 1)[0]

    def _open(self, **options: Any) -> Any:
        try:
            with in_words(self.name):
                return open_file(self._fs, self._path, self.name, **options)
        except FileNotFoundError as error:
            raise BenchError(f"{self.name}: expected a Parquet file, found none") from error
        except IsADirectoryError as error:
            raise BenchError(f"{self.name}: expected a Parquet file, found a folder") from error


_WHOLE_ONLY = "the server does not hand out parts of a file; download the files and name the folder as data_dir"


class _Sparse(io.RawIOBase):
    """A file of which some ranges are held; reading anywhere else is an error."""

    def __init__(self, size: int, blocks: dict[int, bytes]) -> None:
        super().__init__()
        self._size, self._blocks, self._at = size, blocks, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        start = self._at
        end = self._size if size < 0 else min(start + size, self._size)
        for first, block in self._blocks.items():
            if first <= start and end <= first + len(block):
                self._at = end
                return block[start - first : end - first]
        raise OSError(f"bytes {start} to {end} are of no wanted column")


def _size(file: Any, name: str) -> int:
    try:
        with in_words(name):
            return int(file.seek(0, io.SEEK_END))
    except BenchError:
        raise
    except (ValueError, OSError) as error:
        raise BenchError(f"{name}: {_WHOLE_ONLY}") from error


def _read(file: Any, start: int, end: int, name: str) -> bytes:
    """Bytes `start` to `end`, exactly."""
    file.seek(start)
    pieces, left = [], end - start
    while left:
        try:
            with in_words(name):
                piece = file.read(left)
        except BenchError:
            raise
        except ValueError as error:
            raise BenchError(f"{name}: {_WHOLE_ONLY}") from error
        if not piece or len(piece) > left:
            raise BenchError(
                f"{name}: expected {end - start} bytes from {start} on, got {end - start - left}; fetch it again"
            )
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _footer(file: Any, size: int, name: str) -> bytes:
    """The footer as a Parquet file of its own: magic, metadata, length, magic."""
    if size == 0:
        raise BenchError(f"{name}: expected a Parquet file, found an empty file")
    tail = _read(file, max(0, size - _TAIL), size, name)
    if size < 12 or tail[4:] != _MAGIC:
        head = _read(file, 0, min(size, 64), name)
        if head.startswith(b"version https://git-lfs"):
            raise BenchError(f"{name}: found a Git LFS pointer in place of the file; run `git lfs pull`")
        if tail[-4:] == b"PARE":
            raise BenchError(f"{name}: expected a Parquet file, found an encrypted one")
        cut = head.startswith(_MAGIC)
        what = "a file that is cut off (its end is missing)" if cut else f"a file that begins with {head[:8]!r}"
        raise BenchError(f"{name}: expected a Parquet file, found {what}; fetch it again")
    length = int.from_bytes(tail[:4], "little")
    if not 0 < length <= min(size - 12, _MAX_FOOTER):
        raise BenchError(f"{name}: expected a Parquet file, found one whose footer claims {length} of {size} bytes")
    return _MAGIC + _read(file, size - _TAIL - length, size, name)
