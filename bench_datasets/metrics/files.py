"""Score tables as files: Parquet that keeps the provenance, the same bytes for the same scores."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, DatasetInfo, IterableDataset

from bench_datasets.benchmarks import get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.metrics.planning import table_features
from bench_datasets.metrics.summarizing import read_table
from bench_datasets.results import Result

SCORES = "scores.parquet"
RESULT = "result.json"
"""The names of a run's two files in its folder."""

_NEEDED = ("key", "protocol", "row_sha256")
"""Columns that every benchmark's score table has."""


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
    _appear({target: lambda file: _write(scores, file)})
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
        table = read_table(scores, get_benchmark(result.benchmark).metric_module())
        features = table_features(result.benchmark, boundary=bool(result.settings.get("boundary")))
        scores = Dataset(table.cast(features.arrow_schema), info=DatasetInfo(features=features))
    if not isinstance(scores, Dataset):
        raise BenchError(f"write_run: expected the score table of score or map_score, got {type(scores).__name__}")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    files = place / SCORES, place / RESULT
    _appear({files[0]: lambda file: _write(scores, file), files[1]: result.save})
    return files


def read_scores(path: str | os.PathLike[str]) -> Dataset:
    """Read a score table that `write_scores` wrote, with its provenance.

    Args:
        path: the file, the folder that holds it as `scores.parquet`, or any URL that fsspec opens.

    Returns:
        The score table, as `score` gave it.

    Raises:
        BenchError: nothing is there, the file is cut off or no Parquet, or it holds something other than scores.

    Example:
        >>> result = summarize("pbench", read_scores("run/scores.parquet"))                  # doctest: +SKIP
    """
    shown = os.fspath(path)
    expected = "expected a score table (scores.parquet)"
    try:
        table = _read(shown)
    except FileNotFoundError as error:
        raise BenchError(f"{shown}: {expected}, found no such file") from error
    except (pa.ArrowException, OSError, ValueError, ImportError) as error:
        text = " ".join(str(error).split())[:200]
        raise BenchError(f"{shown}: {expected}, found a file that can't be read ({text}); write it again") from error
    absent = [name for name in _NEEDED if name not in table.column_names]
    if absent:
        found = ", ".join(table.column_names[:6]) or "no columns"
        raise BenchError(f"{shown}: {expected} with the columns {', '.join(_NEEDED)}, ..., found {found}")
    try:
        return Dataset(table)
    except Exception as error:  # whatever foreign metadata makes of `datasets`
        raise BenchError(f"{shown}: {expected}, found metadata that `datasets` can't read ({error})") from error


def _read(path: str) -> pa.Table:
    import fsspec

    if "://" not in path and os.path.isdir(path):
        path = os.path.join(path, SCORES)
    with fsspec.open(path, "rb") as file:
        return pq.ParquetFile(pa.PythonFile(file, "r")).read()


def _write(scores: Dataset, path: Path) -> None:
    # One chunk a column, so that pages do not depend on how the rows were put together.
    table = scores.with_format("arrow")[:].combine_chunks()
    table = table.replace_schema_metadata(scores.data.schema.metadata)
    pq.write_table(table, path, compression="zstd", compression_level=3, version="2.6", row_group_size=1 << 16)


def _appear(files: dict[Path, Callable[[Path], Any]]) -> None:
    """Write every file under another name in its folder, then give each its own."""
    partial = {target: target.with_name(f".{target.name}.{os.getpid()}") for target in files}
    try:
        for target, write in files.items():
            try:
                write(partial[target])
            except OSError as error:
                raise named(error, target) from error
        for target, file in partial.items():
            os.replace(file, target)
    finally:
        for file in partial.values():
            with contextlib.suppress(OSError):
                file.unlink()


def named(error: OSError, target: Path) -> OSError:
    """The same error about the file that was asked for; Arrow's own name neither it nor the reason in `strerror`."""
    found = re.search(r"\[errno (\d+)\]", str(error))
    number = error.errno or (int(found[1]) if found else None)
    return OSError(number, os.strerror(number), str(target)) if number else OSError(f"{target}: {error}")
