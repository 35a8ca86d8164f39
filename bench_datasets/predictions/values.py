"""Rows that are handed over in Python: lists of dictionaries, DataFrames, Arrow tables, dictionaries of columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from datasets import Dataset, IterableDataset

from bench_datasets.data import open_truth
from bench_datasets.faults import BenchError
from bench_datasets.masks import MaskError, plain
from bench_datasets.predictions.coerce import as_list, show

Rows: TypeAlias = Dataset | IterableDataset | list[Mapping[str, Any]]

EXPECTED = "a path, a Dataset, a list of dictionaries, a DataFrame or a dictionary of columns"


def given_rows(value: Any, what: str) -> Rows:
    """Rows in any Python form as a Dataset or as a list of dictionaries.

    Args:
        value: a Dataset, streaming or not; a DatasetDict of one split; a DataFrame of pandas; a table of Arrow, Polars
            or another library with Arrow's C interface; a dictionary of columns; or dictionaries in a list or any other
            iterable.
        what: the argument's name, for messages.

    Raises:
        BenchError: it is none of these; the message says what was expected and what to do.

    Example:
        >>> given_rows({"id": [7, 8], "masks": [[], []]}, "predictions")
        [{'id': 7, 'masks': []}, {'id': 8, 'masks': []}]
    """
    if isinstance(value, (Dataset, IterableDataset)):
        return value
    if isinstance(value, Mapping):
        if value and all(isinstance(part, (Dataset, IterableDataset)) for part in value.values()):
            return _only_split(value, what)
        return _from_columns(value, what)
    if hasattr(value, "to_dict") and hasattr(value, "columns") and hasattr(value, "index"):
        return _from_pandas(value)
    if hasattr(value, "__arrow_c_stream__"):
        return Dataset(pa.table(value))
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return list(_mappings(value, what))
    raise BenchError(f"{what}: expected {EXPECTED}, found {show(value)}")


def read_truth(benchmark: str, truth: Any) -> Dataset | IterableDataset:
    """Ground truth in any form as a Dataset.

    Args:
        benchmark: its name.
        truth: a folder, a file or a URL (its split `test`); `sample` for the built-in rows; or what `given_rows` takes.

    Raises:
        BenchError: it is none of these, or its values are of no kind that Arrow takes.

    Example:
        >>> read_truth("pbench", [{"id": 7, "level": "level_0", "masks": []}]).column_names
        ['id', 'level', 'masks']
    """
    if isinstance(truth, (str, os.PathLike)):
        found: Dataset = open_truth(benchmark, os.fspath(truth))
        return found
    return as_dataset(given_rows(truth, "truth"), "truth")


def as_dataset(rows: Rows, what: str) -> Dataset | IterableDataset:
    """Rows as a Dataset: their masks as RLE, their pictures left out.

    Args:
        rows: what `given_rows` gave.
        what: the argument's name, for messages.

    Raises:
        BenchError: a mask can't be encoded, or a column holds values of several kinds.
    """
    if not isinstance(rows, list):
        return rows
    columns: dict[str, list[Any]] = {str(name): [] for row in rows for name in row if not _is_picture(row[name])}
    for i, row in enumerate(rows):
        try:
            values = plain({name: row.get(name) for name in columns}, **_size(row))
        except MaskError as error:
            raise BenchError(f"{what}: row {i}{_called(row)}: {error}") from error
        for name, value in values.items():
            columns[name].append(value)
    arrays = {}
    for name, column in columns.items():
        try:
            arrays[name] = pa.array(column)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise BenchError(f"{what}: column {name}: expected values of one kind, found others ({error})") from error
    return Dataset(pa.table(arrays))


def _only_split(parts: Mapping[str, Any], what: str) -> Dataset | IterableDataset:
    names = list(map(str, parts))
    if len(names) == 1:
        found: Dataset | IterableDataset = next(iter(parts.values()))
        return found
    raise BenchError(
        f"{what}: expected one split, found a {type(parts).__name__} of {len(names)}: {', '.join(names)}; choose one,"
        f' {what}["{names[0]}"], or name it: load_dataset(..., split="{names[0]}")'
    )


def _from_columns(value: Mapping[Any, Any], what: str) -> list[Mapping[str, Any]]:
    columns = {str(name): as_list(column) for name, column in value.items()}
    sizes = {name: None if column is None else len(column) for name, column in columns.items()}
    if None in sizes.values() or len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name}: {'no list' if n is None else n}" for name, n in list(sizes.items())[:6])
        raise BenchError(
            f"{what}: expected {EXPECTED}; found a dictionary whose values are not columns of one length ({shown}); put"
            " a single row into a list"
        )
    lists = [column or [] for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def _from_pandas(frame: Any) -> list[Mapping[str, Any]]:
    """Rows of a DataFrame, a named index among their columns; NaN of a column with gaps is None."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    rows: list[Mapping[str, Any]] = frame.to_dict("records")
    return [{str(name): None if value is None or _is_nan(value) else value for name, value in r.items()} for r in rows]


def _is_nan(value: Any) -> bool:
    return (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")


def _mappings(rows: Iterable[Any], what: str) -> Iterator[Mapping[str, Any]]:
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise BenchError(f"{what}: row {i}: expected a dictionary of the row's fields, found {show(row)}")
        yield row


def _is_picture(value: Any) -> bool:
    """Whether it is a decoded image, or an encoded one as `datasets` keeps it."""
    return hasattr(value, "getpixel") or (isinstance(value, Mapping) and set(value) == {"bytes", "path"})


def _size(row: Mapping[str, Any]) -> dict[str, int | None]:
    sides = {side: row.get(side) for side in ("height", "width")}
    return {side: int(value) if hasattr(value, "__index__") else None for side, value in sides.items()}  # type: ignore[arg-type]


def _called(row: Mapping[str, Any]) -> str:
    name: Sequence[Any] = [row[field] for field in ("key", "id", "tces_id", "video_id") if row.get(field) is not None]
    return f" ({name[0]})" if name else ""
