"""Predictions that are tables already: Parquet, Arrow files, Datasets and what `save_to_disk` wrote."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, IterableDataset

from bench_datasets._compat import FIXED_SIZE_NULLS
from bench_datasets._util.untrusted_tables import BATCH, Budget, check_arrow, check_parquet, plain_batches, texts
from bench_datasets.faults import BenchError, shorten
from bench_datasets.predictions.files import Location, files_in
from bench_datasets.predictions.json_records import whole
from bench_datasets.predictions.values import given_rows

ENDINGS = (".parquet", ".arrow", ".feather")

_TRUSTED = 1 << 60
"""Size of what is in memory already, so that nothing about it is refused."""

_NULL_MASKS = "Expected all lists to be of size"
"""What Arrow before 26 says of a null struct with a list of fixed length in it."""


class Converter(Protocol):
    """Turns slices of one table into batches of a benchmark's predictions."""

    def convert(self, table: pa.Table) -> pa.RecordBatch:
        """One slice."""


@dataclass(frozen=True)
class Tables:
    """How a benchmark's predictions are read out of tables.

    Attributes:
        known: the columns that are read, of the names of those there are.
        columns: makes the converter of one table; takes its schema, how messages call it, and the name of its file or
            split. It raises `BenchError` where the columns will not do.
        rows: batches out of Python rows, which is what a streaming `map` gives; takes the rows and the same two names.
        name_field: the field that a name belongs to, where predictions are a dictionary by name.
        value_field: the field that a value of such a dictionary belongs to, where it is no dictionary of fields.
        size: how many rows are converted at once.
    """

    known: Callable[[Iterable[str]], Sequence[str]]
    columns: Callable[[pa.Schema, str, str], Converter]
    rows: Callable[[Iterable[Mapping[str, Any]], str, str], Iterator[pa.RecordBatch]]
    name_field: Callable[[Any], str]
    value_field: str
    size: int = 256

    def read(self, location: Location) -> Iterator[pa.RecordBatch]:
        """Batches out of a Parquet or Arrow file, or a folder of them.

        Columns that are not known are not read.

        Raises:
            BenchError: the file is broken or cut short, or has no such columns.
        """
        files = files_in(location, ENDINGS) if location.kind == "directory" else [location]
        for file in files:
            yield from self._convert(self._file(file), file.shown, file.name)

    def read_saved(self, location: Location) -> Iterator[pa.RecordBatch]:
        """Batches out of a folder that `Dataset.save_to_disk` or `DatasetDict.save_to_disk` wrote."""
        if location.kind != "directory":
            raise BenchError(f"{location.shown}: expected a folder that save_to_disk wrote, found one file")
        path = location.fs.unstrip_protocol(location.path)
        files = _saved_files(location)
        budget = Budget(sum(file.size for file in files), location.shown)
        try:
            for file in files:
                with file.open() as stream:
                    check_arrow(stream, Budget(file.size, file.shown))
            saved = datasets.load_from_disk(path)
        except BenchError:
            raise
        except Exception as error:
            raise BenchError(f"{location.shown}: expected a folder that save_to_disk wrote, found: {error}") from error
        yield from self.read_dataset(saved, location.shown, budget)

    def read_dataset(
        self, given: Any, shown: str = "predictions", budget: Budget | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches out of predictions that are handed over in Python.

        Args:
            given: what `values.given_rows` takes; a DatasetDict of several splits, which are read in turn; or a
                dictionary by name, `{7: [masks]}` or `{7: {"masks": [masks], "scores": [0.9]}}`.
            shown: how messages call it.
            budget: what it may unpack to, where it comes from a file.

        Raises:
            BenchError: it is none of these, or empty.
        """
        budget = budget or Budget(_TRUSTED, shown)
        if isinstance(given, Mapping):
            if given and all(isinstance(part, (Dataset, IterableDataset)) for part in given.values()):
                for name, part in given.items():
                    yield from self._dataset(part, f"{shown}[{str(name)!r}]", str(name), budget)
                return
            if not self.known(map(str, given)):
                given = [self._named(name, item, shown) for name, item in given.items()]
        rows = given_rows(given, shown)
        if not isinstance(rows, list):
            yield from self._dataset(rows, shown, str(rows.split or ""), budget)
        elif rows:
            yield from self.rows(rows, shown, "")
        else:
            raise BenchError(f"{shown}: expected at least one prediction, found none")

    def _named(self, name: Any, item: Any, shown: str) -> Mapping[str, Any]:
        """The record of one entry of a dictionary by name."""
        field = self.name_field(name)
        record = item if isinstance(item, Mapping) and "counts" not in item else {self.value_field: item}
        if record.get(field) is not None and str(record[field]) != str(name):
            found = f"found {record[field]!r}; the two must agree"
            raise BenchError(f"{shown}[{name!r}]: expected {field} {name!r} in its prediction, or none, {found}")
        return {**record, field: name}

    def _dataset(
        self, dataset: Dataset | IterableDataset, shown: str, name: str, budget: Budget
    ) -> Iterator[pa.RecordBatch]:
        if dataset.features is None:  # rows of a streaming `map`: types are whatever the function gave
            yield from self.rows(dataset, shown, name)
            return
        known = self.known(dataset.features)
        if known:
            dataset = dataset.select_columns(known)
        arrow = dataset.with_format("arrow")
        schema = dataset.features.arrow_schema
        parts = (part.cast(schema) for table in arrow.iter(self.size) for part in _sound(table, budget))
        yield from self._convert(parts, shown, name, schema)

    def _file(self, file: Location) -> Iterator[pa.Table]:
        try:
            with file.open() as stream:
                budget = Budget(stream.seek(0, io.SEEK_END), file.shown)
                stream.seek(0)
                start = stream.read(8)
                stream.seek(0)
                if start[:4] == b"PAR1":
                    yield from self._parquet(stream, budget)
                    return
                check_arrow(stream, budget)
                opened = pa.ipc.open_file(stream) if start[:6] == b"ARROW1" else pa.ipc.open_stream(stream)
                yield opened.schema.empty_table()
                indexed = start[:6] == b"ARROW1"
                several = map(opened.get_batch, range(opened.num_record_batches)) if indexed else opened
                for batch in several:
                    yield from _sound(pa.Table.from_batches([batch]), budget)
        except (pa.ArrowException, OSError, EOFError, ValueError) as error:
            if isinstance(error, BenchError):
                raise
            if _NULL_MASKS in str(error) and not FIXED_SIZE_NULLS:
                raise BenchError(
                    f"{file.shown}: pyarrow {pa.__version__} cannot read null masks from Parquet where `size` is a"
                    " fixed-size list; use pyarrow 26 or newer (Python 3.11), write `size` as a plain list, or write"
                    " JSON Lines"
                ) from error
            raise BenchError(
                f"{file.shown}: expected a whole Parquet or Arrow file, found it broken or cut: {error}"
            ) from error

    def _parquet(self, stream: IO[bytes], budget: Budget) -> Iterator[pa.Table]:
        metadata = pq.read_metadata(stream)
        schema = metadata.schema.to_arrow_schema()
        names = self.known(schema.names) or schema.names
        yield schema.empty_table().select(names)
        stored = check_parquet(metadata, names, budget)
        rows = max(1, min(self.size, 4 * BATCH * metadata.num_rows // max(stored, 1)))
        reader = pq.ParquetFile(stream, metadata=metadata, read_dictionary=texts(metadata, names))
        for group in range(metadata.num_row_groups):  # a batch over two of them would have two dictionaries
            for batch in reader.iter_batches(rows, row_groups=[group], columns=names, use_threads=False):
                for part in plain_batches(batch, budget):
                    yield pa.Table.from_batches([part])

    def _convert(
        self, tables: Iterable[Any], shown: str, name: str, schema: pa.Schema | None = None
    ) -> Iterator[pa.RecordBatch]:
        columns = None if schema is None else self.columns(schema, shown, name)
        for table in tables:
            if columns is None:
                columns = self.columns(table.schema, shown, name)
            for start in range(0, table.num_rows, self.size):
                yield columns.convert(table.slice(start, self.size))


def _saved_files(location: Location) -> list[Location]:
    """The Arrow files that a folder of `save_to_disk` names, all of which must lie in it.

    Raises:
        BenchError: `state.json` is no JSON of that form, or names a file elsewhere or none.
    """
    inside = {relative: item for relative, item, folder in location.inside() if not folder}
    found = []
    for relative, item in inside.items():
        folder, _, name = relative.rpartition("/")
        if name != "state.json":
            continue
        state = whole(item)
        named = state.get("_data_files") if isinstance(state, dict) else None
        for entry in named if isinstance(named, list) else [None]:
            own = entry.get("filename") if isinstance(entry, dict) else None
            file = inside.get(f"{folder}/{own}".lstrip("/")) if isinstance(own, str) else None
            if file is None:
                raise BenchError(
                    f"{item.shown}: expected the names of Arrow files in the same folder, found {shorten(own)}; save "
                    "the dataset again"
                )
            found.append(file)
    return found


def _sound(table: pa.Table, budget: Budget) -> Iterator[pa.Table]:
    """The table in parts of bounded size, once its buffers are validated.

    Mapped files are not checked by Arrow.
    """
    budget.values(table.num_rows)
    table.validate(full=True)
    for batch in table.to_batches():
        for part in plain_batches(batch, budget):
            yield pa.Table.from_batches([part])
