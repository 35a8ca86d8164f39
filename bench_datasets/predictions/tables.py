"""Predictions that are tables already: Parquet, Arrow files, Datasets and what `save_to_disk` wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, IterableDataset

from bench_datasets.faults import BenchError
from bench_datasets.predictions.location import Location, files_in
from bench_datasets.predictions.values import given_rows

ENDINGS = (".parquet", ".arrow", ".feather")

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
        try:
            saved = datasets.load_from_disk(path)
        except Exception as error:
            raise BenchError(f"{location.shown}: expected a folder that save_to_disk wrote, found: {error}") from error
        yield from self.read_dataset(saved, location.shown)

    def read_dataset(self, given: Any, shown: str = "predictions") -> Iterator[pa.RecordBatch]:
        """Batches out of predictions that are handed over in Python.

        Args:
            given: what `values.given_rows` takes; a DatasetDict of several splits, which are read in turn; or a
                dictionary by name, `{7: [masks]}` or `{7: {"masks": [masks], "scores": [0.9]}}`.
            shown: how messages call it.

        Raises:
            BenchError: it is none of these, or empty.
        """
        if isinstance(given, Mapping):
            if given and all(isinstance(part, (Dataset, IterableDataset)) for part in given.values()):
                for name, part in given.items():
                    yield from self._dataset(part, f"{shown}[{str(name)!r}]", str(name))
                return
            if not self.known(map(str, given)):
                given = [self._named(name, item, shown) for name, item in given.items()]
        rows = given_rows(given, shown)
        if not isinstance(rows, list):
            yield from self._dataset(rows, shown, str(rows.split or ""))
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

    def _dataset(self, dataset: Dataset | IterableDataset, shown: str, name: str) -> Iterator[pa.RecordBatch]:
        if dataset.features is None:  # rows of a streaming `map`: types are whatever the function gave
            yield from self.rows(dataset, shown, name)
            return
        known = self.known(dataset.features)
        if known:
            dataset = dataset.select_columns(known)
        arrow = dataset.with_format("arrow")
        schema = dataset.features.arrow_schema
        yield from self._convert((_sound(table.cast(schema)) for table in arrow.iter(self.size)), shown, name, schema)

    def _file(self, file: Location) -> Iterator[pa.Table]:
        try:
            with file.open() as stream:
                start = stream.read(8)
                stream.seek(0)
                if start[:4] == b"PAR1":
                    parquet = pq.ParquetFile(stream)
                    names = self.known(parquet.schema_arrow.names) or parquet.schema_arrow.names
                    empty = parquet.schema_arrow.empty_table()
                    yield empty.select(names)
                    for batch in parquet.iter_batches(self.size, columns=names):
                        yield pa.Table.from_batches([batch])
                    return
                opened = pa.ipc.open_file(stream) if start[:6] == b"ARROW1" else pa.ipc.open_stream(stream)
                yield opened.schema.empty_table()
                indexed = start[:6] == b"ARROW1"
                several = map(opened.get_batch, range(opened.num_record_batches)) if indexed else opened
                for batch in several:
                    yield _sound(pa.Table.from_batches([batch]))
        except (pa.ArrowException, OSError, EOFError, ValueError) as error:
            if isinstance(error, BenchError):
                raise
            if _NULL_MASKS in str(error) and int(pa.__version__.split(".")[0]) < 26:
                raise BenchError(
                    f"{file.shown}: pyarrow {pa.__version__} cannot read null masks from Parquet; pyarrow 26 and newer"
                    " (Python 3.11) can, or hand over JSON Lines"
                ) from error
            raise BenchError(
                f"{file.shown}: expected a whole Parquet or Arrow file, found it broken or cut: {error}"
            ) from error

    def _convert(
        self, tables: Iterable[Any], shown: str, name: str, schema: pa.Schema | None = None
    ) -> Iterator[pa.RecordBatch]:
        columns = None if schema is None else self.columns(schema, shown, name)
        for table in tables:
            if columns is None:
                columns = self.columns(table.schema, shown, name)
            for start in range(0, table.num_rows, self.size):
                yield columns.convert(table.slice(start, self.size))


def _sound(table: pa.Table) -> pa.Table:
    """The table, once its buffers are known to hold what they claim (mapped files are not checked by Arrow)."""
    table.validate(full=True)
    return table
