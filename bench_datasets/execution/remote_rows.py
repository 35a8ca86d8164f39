"""Rows of remote Parquet files by number, and the work on a batch of them; independent of the cluster."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset
from numpy.typing import NDArray

from bench_datasets._util.untrusted import open_file
from bench_datasets._util.untrusted_tables import read_parquet
from bench_datasets.benchmark import get_benchmark
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.predictions import read_predictions
from bench_datasets.scoring.batching import ArrowRows
from bench_datasets.scoring.options import ScoreOptions
from bench_datasets.scoring.prepare import UnitScorer, table_features
from bench_datasets.scoring.units import Units
from bench_datasets.scoring.validate import Readings, verify

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_MARK = "\x1e"

KEPT = 4
"""Row groups that a process keeps."""


def locate_parquet(url: str) -> tuple[AbstractFileSystem, list[str]]:
    """The file system and the Parquet files of a URL or path, in order.

    Raises:
        BenchError: there are none.
    """
    from fsspec.core import url_to_fs

    fs, path = url_to_fs(url if "://" in url else os.path.abspath(url))
    files = sorted(fs.glob(f"{path.rstrip('/')}/**/*.parquet")) if fs.isdir(path) else [path]
    files = [file for file in files if not file.rsplit("/", 1)[-1].startswith(".")]
    if not files or not fs.exists(files[0]):
        raise BenchError(f"{url}: expected Parquet files, found none")
    return fs, files


@dataclass
class Blocks:
    """The rows of Parquet files, numbered through; travels to other processes.

    Attributes:
        fs: where they are.
        files: their paths.
    """

    fs: AbstractFileSystem
    files: list[str]
    _cache: OrderedDict[int, pa.Table] = field(default_factory=OrderedDict, repr=False)

    @cached_property
    def groups(self) -> list[tuple[str, int, int]]:
        """File, number in it, and first row of each row group."""
        found, first = [], 0
        for file in self.files:
            with open_file(self.fs, file) as stream:
                metadata = pq.ParquetFile(stream).metadata
            for number in range(metadata.num_row_groups):
                found.append((file, number, first))
                first += metadata.row_group(number).num_rows
        return found

    @cached_property
    def schema(self) -> pa.Schema:
        """Of the first file."""
        with open_file(self.fs, self.files[0]) as stream:
            return pq.read_schema(stream)

    def group(self, number: int) -> pa.Table:
        """The rows of a row group; the last few are kept."""
        if number not in self._cache:
            file, inside, _ = self.groups[number]
            with open_file(self.fs, file) as stream:
                self._cache[number] = read_parquet(stream, file, row_group=inside)
            while len(self._cache) > KEPT:
                self._cache.popitem(last=False)
        self._cache.move_to_end(number)
        return self._cache[number]

    def read(self) -> pa.Table:
        """All rows, without metadata."""
        return self.names(self.schema.names).replace_schema_metadata(None)

    def names(self, columns: Sequence[str]) -> pa.Table:
        """A few columns of all rows."""
        tables = []
        for file in self.files:
            with open_file(self.fs, file) as stream:
                tables.append(read_parquet(stream, file, columns))
        return pa.concat_tables(tables).replace_schema_metadata(self.schema.metadata)

    def __getitem__(self, rows: Sequence[int]) -> pa.Table:
        """Chosen rows, in that order."""
        chosen = np.asarray(rows, np.int64)
        starts = np.array([first for _, _, first in self.groups], np.int64)
        home = np.searchsorted(starts, chosen, side="right") - 1
        tables, order = [], []
        for number in np.unique(home).tolist():
            at = np.flatnonzero(home == number)
            tables.append(self.group(number).take(pa.array(chosen[at] - starts[number])))
            order.append(at)
        back = np.argsort(np.concatenate(order), kind="stable")
        return pa.concat_tables(tables).take(pa.array(back))

    def __getstate__(self) -> dict[str, Any]:
        """The state without loaded rows."""
        return {**self.__dict__, "_cache": OrderedDict()}


@dataclass
class Index:
    """The part of the pairing that tasks need.

    Attributes:
        benchmark: its name.
        options: how to score.
        answers: the predictions.
        units: which belong together.
        rows: the truth row of each key.
        begin: `(rows + 1,) int64`, where each truth row's units begin in `order`.
        order: units by truth row.
    """

    benchmark: str
    options: ScoreOptions
    answers: Blocks
    units: Units
    rows: dict[str, int]
    begin: NDArray[np.int64]
    order: NDArray[np.int64]

    @classmethod
    def of(cls, benchmark: str, options: ScoreOptions, answers: Blocks, keys: Sequence[str], units: Units) -> Index:
        """The index over pairs; the row groups of the answers are looked up once."""
        _ = answers.groups, answers.schema  # looked up here, for all tasks
        order = np.argsort(units.truth, kind="stable").astype(np.int64)
        begin = np.searchsorted(units.truth[order], np.arange(len(keys) + 1)).astype(np.int64)
        return cls(benchmark, options, answers, units, {key: i for i, key in enumerate(keys)}, begin, order)


@contextmanager
def telling() -> Iterator[None]:
    """Errors of ours as text that outlasts any wrapping."""
    try:
        yield
    except BenchError as error:
        told = [error.code, error.key, error.text] if isinstance(error, FaultError) else [str(error)]
        raise RuntimeError(f"{_MARK}{json.dumps(told)}{_MARK}") from error


def told(error: BaseException) -> BenchError | None:
    """The error of ours that `telling` put into the text of another.

    Example:
        >>> try:
        ...     with telling():
        ...         raise FaultError("bad_score", "level_0/7", "a score is NaN")
        ... except RuntimeError as error:
        ...     told(ValueError(f"task failed: {error}"))
        FaultError('level_0/7: a score is NaN [bad_score]')
    """
    pieces = str(error).split(_MARK)
    if len(pieces) < 3:
        return None
    try:
        found = json.loads(pieces[1])
    except ValueError:
        return None
    return FaultError(*found) if len(found) == 3 else BenchError(*found)


def normalised(benchmark: str) -> Callable[[pa.Table], pa.Table]:
    """A function that turns a batch of predictions, as they were given, into the benchmark's prediction columns."""

    def call(batch: pa.Table) -> pa.Table:
        with telling():
            read = read_predictions(benchmark, Dataset(batch.replace_schema_metadata(None)))
        return read.with_format("arrow")[:].replace_schema_metadata(None)

    return call


_indexes: dict[str, Index] = {}


def _index(ray: Any, shared: Any) -> Index:
    """The index, taken out of the cluster's store once a process."""
    name = shared.hex()
    if name not in _indexes:
        _indexes.clear()
        _indexes[name] = ray.get(shared)
    return _indexes[name]


def verified(ray: Any, shared: Any) -> Callable[[pa.Table], pa.Table]:
    """A function that validates the predictions of row groups, by number: their hashes, or the first fault."""

    def call(batch: pa.Table) -> pa.Table:
        index = _index(ray, shared)
        rows = [(lot, *_verify_group(index, lot)) for lot in batch["id"].to_pylist()]
        types = {"lot": pa.int64(), "hashes": pa.list_(pa.string()), "fault": pa.list_(pa.string())}
        return pa.table(
            {name: pa.array([row[k] for row in rows], kind) for k, (name, kind) in enumerate(types.items())}
        )

    return call


def _verify_group(index: Index, lot: int) -> tuple[list[str], list[str]]:
    metric, first = get_benchmark(index.benchmark), index.answers.groups[lot][2]
    table = index.answers.group(lot)
    table = table.select([name for name in metric.prediction_columns if name in table.column_names])
    places = np.flatnonzero((index.units.answers >= first) & (index.units.answers < first + len(table)))
    rows = index.units.answers[places] - first
    names, owners = (
        [given[place] for place in places.tolist()] if given else [] for given in (index.units.names, index.units.rows)
    )
    each = np.arange(len(rows) + 1)
    units = Units(each[:-1], each, rows, names, np.zeros(len(rows), np.bool_), [], rows=owners)
    try:
        return verify(metric, ArrowRows(Dataset(table.replace_schema_metadata(None))), units, index.options).hashes, []
    except FaultError as error:
        return [], [error.code, error.key, error.text]


def scored(ray: Any, shared: Any) -> Callable[[pa.Table], pa.Table]:
    """A function that scores a batch of truth rows."""

    def call(batch: pa.Table) -> pa.Table:
        with telling():
            return score_batch(_index(ray, shared), batch)

    return call


def score_batch(index: Index, batch: pa.Table) -> pa.Table:
    """Score truth rows: one row for each of their units."""
    schema = table_features(index.benchmark, boundary=index.options.boundary).arrow_schema
    truth = [index.rows[key] for key in batch["key"].to_pylist()]
    units = np.concatenate([index.order[index.begin[row] : index.begin[row + 1]] for row in truth])
    if not len(units):
        return schema.empty_table().replace_schema_metadata(None)
    place = {row: i for i, row in enumerate(truth)}
    scorer = _BlockScorer(index, _Rows(batch, place))
    return scorer({"unit": units.tolist()}).cast(schema).replace_schema_metadata(None)


class _BlockScorer(UnitScorer):
    """The same scorer over rows that are somewhere else again."""

    def __init__(self, index: Index, labels: _Rows) -> None:
        self.benchmark, self.options, self.units = index.benchmark, index.options, index.units
        self.labels, self.answers, self.readings = labels, index.answers, Readings()
        wanted = get_benchmark(index.benchmark).prediction_columns
        self.schema = pa.schema([item for item in index.answers.schema if item.name in wanted])


@dataclass
class _Rows:
    """The truth rows of a batch, by their number in the whole."""

    batch: pa.Table
    place: dict[int, int]

    def __getitem__(self, rows: Sequence[int]) -> pa.Table:
        return self.batch.take(pa.array([self.place[row] for row in rows], pa.int64()))
