"""Predictions that are tables already: Parquet, Arrow files, Datasets and what `save_to_disk` wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict

from bench_datasets.faults import BenchError
from bench_datasets.predictions.columns import Columns
from bench_datasets.predictions.fields import level_of
from bench_datasets.predictions.jsonl import Naming, to_row
from bench_datasets.predictions.location import Location
from bench_datasets.predictions.rows import batches

ENDINGS = (".parquet", ".arrow", ".feather")

_ROWS = 256


def read(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of a Parquet or Arrow file, or a folder of them.

    The columns are those of `rows.FEATURES`, `masks` and `scores` without the prefix too; others are not read. Counts
    may be text or bytes; a mask may also be JSON text or an uncompressed RLE.

    Raises:
        BenchError: the file is broken or cut short, or has no such columns.
    """
    files = location.files(*ENDINGS) if location.kind == "directory" else [location]
    if not files:
        raise BenchError(f"{location.shown}: expected files that end in {', '.join(ENDINGS)}, found none in the folder")
    for file in files:
        yield from _convert(_file_batches(file), file.shown, level_of(file.name))


def read_saved(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches out of a folder that `Dataset.save_to_disk` or `DatasetDict.save_to_disk` wrote."""
    if location.kind != "directory":
        raise BenchError(f"{location.shown}: expected a folder that save_to_disk wrote, found one file")
    path = location.fs.unstrip_protocol(location.path)
    try:
        saved = datasets.load_from_disk(path)
    except Exception as error:
        raise BenchError(f"{location.shown}: expected a folder that save_to_disk wrote, found: {error}") from error
    yield from read_dataset(saved, location.shown)


def read_dataset(
    dataset: Dataset | IterableDataset | DatasetDict | IterableDatasetDict, shown: str = "predictions"
) -> Iterator[pa.RecordBatch]:
    """Batches out of a Dataset, streaming or not; of a DatasetDict each split in turn."""
    if isinstance(dataset, dict):
        for name, part in dataset.items():
            yield from _one_dataset(part, f"{shown}[{name!r}]", level_of(str(name)))
    else:
        yield from _one_dataset(dataset, shown, level_of(str(dataset.split)) if dataset.split else None)


def _one_dataset(dataset: Dataset | IterableDataset, shown: str, split: str | None) -> Iterator[pa.RecordBatch]:
    if dataset.features is None:  # rows of a streaming `map`: types are whatever the function gave
        naming = Naming(shown, split)
        yield from batches(to_row(row, naming, f"{shown}, row {i}") for i, row in enumerate(dataset))
        return
    known = Columns.known(dataset.features)
    if known:
        dataset = dataset.select_columns(known)
    arrow = dataset.with_format("arrow")
    schema = dataset.features.arrow_schema
    yield from _convert((_sound(table.cast(schema)) for table in arrow.iter(_ROWS)), shown, split, schema)


def _sound(table: pa.Table) -> pa.Table:
    """The table, once its buffers are known to hold what they claim (mapped files are not checked by Arrow)."""
    table.validate(full=True)
    return table


def _file_batches(file: Location) -> Iterator[pa.Table]:
    try:
        with file.open() as stream:
            start = stream.read(8)
            stream.seek(0)
            if start[:4] == b"PAR1":
                parquet = pq.ParquetFile(stream)
                names = Columns.known(parquet.schema_arrow.names) or parquet.schema_arrow.names
                empty = parquet.schema_arrow.empty_table()
                yield empty.select(names)
                for batch in parquet.iter_batches(_ROWS, columns=names):
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
        raise BenchError(
            f"{file.shown}: expected a whole Parquet or Arrow file, found it broken or cut: {error}"
        ) from error


def _convert(
    tables: Iterable[Any], shown: str, split: str | None, schema: pa.Schema | None = None
) -> Iterator[pa.RecordBatch]:
    columns = None if schema is None else Columns(schema, shown, split)
    for table in tables:
        if columns is None:
            columns = Columns(table.schema, shown, split)
        for start in range(0, table.num_rows, _ROWS):
            yield columns.convert(table.slice(start, _ROWS))
