"""Score tables as files: Parquet that keeps the provenance, the same bytes for the same scores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import Dataset, DatasetInfo, IterableDataset

from bench_datasets._util.atomic import replacing
from bench_datasets._util.untrusted import open_regular
from bench_datasets.benchmark import get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.results.result import Result
from bench_datasets.results.summarize import read_table
from bench_datasets.scoring.prepare import table_features

SCORES = "scores.parquet"
RESULT = "result.json"
"""The names of a run's two files in its folder."""

_NEEDED = ("key", "protocol", "row_sha256")
"""Columns that every benchmark's score table has."""

MAX_FILE = 1 << 30
"""Most bytes of a score file that is read."""

MAX_DECODED = 1 << 31
"""Most bytes that a score file may take in memory."""

MAX_COLUMNS = 2_000
"""Most columns of a score file, and most row groups."""

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_ENCODINGS = {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "BIT_PACKED"}
"""Encodings whose pages hold every value, or a number for it: what Arrow and `datasets` write."""


def write_scores(scores: Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a score table as Parquet, its provenance included; the same scores give the same bytes.

    Args:
        scores: what `score` gave, n rows.
        path: the file, or an existing folder, which gets it as `scores.parquet`. It appears whole or not at all.

    Returns:
        The file.

    Raises:
        OSError: it cannot be written.
    """
    target = Path(path)
    target = target / SCORES if target.is_dir() else target
    with replacing(target) as (partial,):
        _write(scores, partial)
    return target


def write_run(scores: Dataset | IterableDataset, result: Result, folder: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write a run's `scores.parquet` and `result.json`; both are there in full before either takes its place.

    The folder is what `compare`, `report`, `leaderboard` and `publish results` take, as one of `score --out` is.

    Args:
        scores: what `score` or `map_score` gave. A streaming score table of `Dataset.map(scorer(...))` is read here
            once more, which runs the model behind it again; `map_score` reads it once and gives a Dataset.
        result: what `summarize` made of it.
        folder: is made where it is absent; other files in it are left alone.

    Returns:
        The two files.

    Raises:
        BenchError: the scores are no table that is whole.
        OSError: the files cannot be written; those of an earlier run are then as they were.

    Example:
        >>> write_run(scores, summarize("pbench", scores), "run")                            # doctest: +SKIP
    """
    if not isinstance(result, Result):
        raise BenchError(f"write_run: expected the Result of summarize, got {type(result).__name__}")
    if isinstance(scores, IterableDataset):
        table = read_table(scores, get_benchmark(result.benchmark))
        features = table_features(result.benchmark, boundary=bool(result.settings.get("boundary")))
        scores = Dataset(table.cast(features.arrow_schema), info=DatasetInfo(features=features))
    if not isinstance(scores, Dataset):
        raise BenchError(f"write_run: expected the score table of score or map_score, got {type(scores).__name__}")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    files = place / SCORES, place / RESULT
    with replacing(*files) as (of_scores, of_result):
        _write(scores, of_scores)
        of_result.write_text(result.to_json(), encoding="utf-8")
    return files


_GIVE = "give the folder that `score --out` wrote"


def read_scores(path: str | os.PathLike[str], *, limit: int = MAX_FILE) -> Dataset:
    """Read a score table that `write_scores` wrote, with its provenance.

    Args:
        path: the file, the folder that holds it as `scores.parquet`, or any URL that fsspec opens.
        limit: most bytes that the file may hold.

    Returns:
        The score table, as `score` gave it.

    Raises:
        BenchError: nothing is there, the file is cut off, too large or no Parquet, or it holds something other than
            scores.

    Example:
        >>> result = summarize("pbench", read_scores("run/scores.parquet"))                  # doctest: +SKIP
    """
    shown = os.fspath(path)
    expected = "expected a score table (scores.parquet)"
    try:
        table = _read(shown, limit)
    except BenchError as error:
        raise error if str(error).startswith(shown) else BenchError(f"{shown}: {error}") from error
    except FileNotFoundError as error:
        raise BenchError(f"{shown}: {expected}, found no such file; {_GIVE}") from error
    except (pa.ArrowException, OSError, ValueError, ImportError) as error:
        text = " ".join(str(error).split())[:200]
        raise BenchError(f"{shown}: {expected}, found a file that can't be read ({text}); {_GIVE}") from error
    absent = [name for name in _NEEDED if table.column_names.count(name) != 1]
    if absent:
        found = ", ".join(table.column_names[:6]) or "no columns"
        raise BenchError(f"{shown}: {expected} with the columns {', '.join(_NEEDED)}, ..., found {found}")
    try:
        return Dataset(table)
    except Exception as error:  # whatever foreign metadata makes of `datasets`
        raise BenchError(f"{shown}: {expected}, found metadata that `datasets` can't read ({error})") from error


def _read(path: str, limit: int) -> pa.Table:
    import fsspec

    if "://" not in path and os.path.isdir(path):
        path = os.path.join(path, SCORES)
    local = "://" not in path
    with open_regular(path) if local else fsspec.open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size > limit:
            raise BenchError(f"{path}: expected a score table of at most {limit:,} bytes, found {size:,}")
        file.seek(0)
        source = pa.PythonFile(file, "r")
        parquet = pq.ParquetFile(source)
        _check_size(parquet.metadata, source)
        return parquet.read()


def _check_size(metadata: pq.FileMetaData, source: Any) -> None:
    """Refuse a file that takes much more memory than it should, before its values are decoded.

    Raises:
        BenchError: it has too many columns or values, or an encoding whose values have no bound.
    """
    if max(metadata.num_columns, metadata.num_row_groups) > MAX_COLUMNS:
        raise BenchError(f"expected a score table of at most {MAX_COLUMNS:,} columns and row groups, found more")
    total, texts = 0, set[int]()
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            if unknown := set(chunk.encodings) - _ENCODINGS:
                raise BenchError(
                    f"column {chunk.path_in_schema}: the encoding {min(unknown)} is not read; write it again"
                )
            width = _WIDTHS.get(chunk.physical_type, max(metadata.schema.column(column).length or 0, 4))
            total += chunk.num_values * (width + 4) + chunk.total_uncompressed_size
            texts |= {column} if chunk.physical_type == "BYTE_ARRAY" else set()
    _require_room(total)
    for column in sorted(texts):
        total += _text_bytes(source, metadata.schema.column(column).path)
        _require_room(total)


def _require_room(total: int) -> None:
    if total > MAX_DECODED:
        raise BenchError(f"expected a score table of at most {MAX_DECODED:,} bytes in memory, found {total:,}")


def _text_bytes(source: Any, path: str) -> int:
    """Bytes of a text column's values, each counted as often as it occurs; a value is decoded once."""
    total = 0
    parquet = pq.ParquetFile(source, read_dictionary=[path])
    for batch in parquet.iter_batches(1 << 16, columns=[path]):
        values = batch.column(0)
        while not pa.types.is_dictionary(values.type):
            if pa.types.is_struct(values.type):
                values = values.field(0)
            elif pa.types.is_nested(values.type):
                values = values.flatten()
            else:
                return 0
        lengths = pc.binary_length(values.dictionary)
        total += pc.sum(lengths.cast(pa.int64()).take(values.indices)).as_py() or 0
    return total


def scores_bytes(scores: Dataset) -> bytes:
    """The bytes of the file that `write_scores` writes."""
    sink = pa.BufferOutputStream()
    _write(scores, sink)
    return bytes(sink.getvalue())


def _write(scores: Dataset, path: Any) -> None:
    # One chunk a column, so that pages do not depend on how the rows were put together.
    table = scores.with_format("arrow")[:].combine_chunks()
    table = table.replace_schema_metadata(scores.data.schema.metadata)
    pq.write_table(table, path, compression="zstd", compression_level=3, version="2.6", row_group_size=1 << 16)
