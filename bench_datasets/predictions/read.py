"""`read_predictions`: any supported format of a benchmark's predictions as one Dataset."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, TypeAlias

import pyarrow as pa
from datasets import Dataset

from bench_datasets.benchmark import get_benchmark
from bench_datasets.data.provenance import without_secrets
from bench_datasets.data.source import is_of_the_way, why
from bench_datasets.faults import BenchError
from bench_datasets.predictions import mask_lines, tables
from bench_datasets.predictions.detect import detect_format
from bench_datasets.predictions.files import Location, locate, unread_in
from bench_datasets.predictions.form import PredictionForm
from bench_datasets.predictions.spool import Spool

Predictions: TypeAlias = Any
"""Types that `read_predictions` accepts as predictions."""


_SIDE_BY_SIDE = {
    **dict.fromkeys(("jsonl", "falcon", "coco"), mask_lines.ENDINGS),
    **dict.fromkeys(("parquet", "arrow"), tables.ENDINGS),
}
"""Endings of the files that a folder holds side by side, by format."""

_ROW_BY_ROW: dict[str, tuple[str, ...]] = {"npz": (".npz",), "npy": (".npy",), "png": (".png",)}
"""Endings of the files that a folder holds one or more per row, by format."""

_LAYOUT = (".json", ".png", ".npz", ".npy", ".txt")
"""Endings of the files that a folder with a layout of its own may hold."""

_PREDICTIONS = (
    ".jsonl", ".ndjson", ".jsonlines", ".json", ".npz", ".npy", ".png", ".parquet", ".arrow", ".feather",
)  # fmt: skip
"""Endings of files of predictions, in any format."""

_OWN = ("result.json", "scores.parquet")
"""Files of a run, which may lie in a folder of predictions."""


def read_predictions(benchmark: str, path: Predictions, *, format: str | None = None) -> Dataset:
    """Predictions in any supported format, as a Dataset of the benchmark's prediction columns.

    Invalid masks, scores or boxes become null and are listed in `pred_faults`; only an unreadable file raises an error.
    Large files are read in batches: the rows lie in a temporary Arrow file, which is removed with the Dataset.

    Args:
        benchmark: name of the benchmark.
        path: a file or a folder, local or any URL that fsspec opens (`hf://`, `memory://`, ...); or predictions in
            Python: a Dataset, streaming or not, a DatasetDict, a list of dictionaries with the fields of a line of JSON
            Lines, a DataFrame (pandas, Polars), an Arrow table, a dictionary of columns, or a dictionary by name
            (`{7: [masks]}`; InstanceBench `{"x-0": mask}`). Masks in lists, dictionaries and DataFrames of pandas may
            be arrays, tensors and images, too.
        format: name of the format, where it is not to be recognised: `jsonl`, `parquet`, `arrow` or `saved` (by
            `save_to_disk`); for PBench also `falcon`, `coco`, `npz`, `npy`, `png`, for InstanceBench `coco`, `npz`,
            `npy`, `png`, for PVSG `research`, `davis`, `panoptic`.

    Returns:
        One row a prediction (for PVSG a video), in the order of the file, with the columns of the benchmark's
        prediction form.

    Raises:
        BenchError: nothing is there, it is in no known format, broken, cut short, names no rows, or belongs to another
            benchmark; the message says what was expected, what was found and what to do.

    Example:
        >>> import fsspec
        >>> with fsspec.open("memory://out.jsonl", "w") as file:
        ...     _ = file.write('{"id": 7, "masks": [{"size": [2, 3], "counts": [1, 5]}]}')
        >>> read_predictions("pbench", "memory://out.jsonl")[0]["pred_masks"]
        [{'size': [2, 3], 'counts': '15'}]
        >>> read_predictions("pbench", [{"id": 7, "masks": [{"size": [2, 3], "counts": [1, 5]}]}])["id"][0]
        7
    """
    return _read(benchmark, path, format, validate=True)


def read_for_scoring(benchmark: str, path: Predictions, *, format: str | None = None) -> Dataset:
    """Read predictions like `read_predictions`, but leave masks undecoded where the format allows it.

    Invalid masks may stay in the rows: whoever scores them must validate every mask.

    Args:
        benchmark: name of the benchmark.
        path: as for `read_predictions`.
        format: as for `read_predictions`.

    Raises:
        BenchError: as for `read_predictions`.
    """
    return _read(benchmark, path, format, validate=False)


def _read(benchmark: str, path: Predictions, format: str | None, *, validate: bool) -> Dataset:
    form = get_benchmark(benchmark).prediction_form()
    given = not isinstance(path, (str, os.PathLike))
    shown = f"the {type(path).__name__}" if given else str(path)
    try:
        with Spool(form.features.arrow_schema) as spool:
            for batch in _batches(form, path, given, format, validate=validate):
                spool.write(batch)
        return spool.dataset(form.features)
    except (BenchError, ImportError, MemoryError):  # the last two are no matter of the input
        raise
    except Exception as error:  # whatever a broken file or a file system raises
        name = without_secrets(shown)
        if is_of_the_way(error):
            raise BenchError(f"{name}: the predictions cannot be read: {why(error)}; run it again") from error
        raise BenchError(
            f"{name}: expected predictions of {benchmark}, found something that cannot be read: "
            f"{type(error).__name__}: {error}"
        ) from error


def _batches(
    form: PredictionForm, path: Any, given: bool, format: str | None, *, validate: bool
) -> Iterator[pa.RecordBatch]:
    if format is not None and format not in form.readers:
        raise BenchError(f"format: expected one of {', '.join(form.readers)}, got {format!r}")
    if given:
        return form.read_dataset(path)
    location = locate(path)
    if format is None:
        format = detect_format(location, form)
    reader = form.readers[format] if validate else form.unvalidated_readers.get(format, form.readers[format])
    batches: Iterator[pa.RecordBatch] = reader(location)
    if location.kind == "directory" and format != "saved":
        unread = [name for name in _unread(location, format) if name.rsplit("/", 1)[-1] not in _OWN]
        return _noting(batches, unread, format) if unread else batches
    return batches


def _unread(location: Location, format: str) -> list[str]:
    """Files of a folder that its format passes over though their names speak of predictions."""
    side_by_side = _SIDE_BY_SIDE.get(format)
    read = side_by_side or _ROW_BY_ROW.get(format, _LAYOUT)
    found = unread_in(location, side_by_side) if side_by_side else []
    for relative, item, is_folder in location.inside():
        name = item.name.lower()
        plain = name.removesuffix(".gz").removesuffix(".tmp")
        if is_folder or name.endswith(read) or relative in found or not plain.endswith(_PREDICTIONS):
            continue
        if format in _ROW_BY_ROW and "/" in relative:  # beside a row's masks; the row notes it
            continue
        found.append(relative)
    return found


def _noting(batches: Iterator[pa.RecordBatch], unread: list[str], format: str) -> Iterator[pa.RecordBatch]:
    """The same batches; the first row bears a fault `ignored_file` that names files of the folder that are not read."""
    more = f" and {len(unread) - 3} more" if len(unread) > 3 else ""
    text = f"{', '.join(map(ascii, unread[:3]))}{more}: not read; the folder is read as {format}: put all files of"
    text += " predictions side by side, in one format"
    for batch in batches:
        if text and len(batch) and "pred_faults" in batch.schema.names:
            faults = batch.column("pred_faults").to_pylist()
            faults[0] = [*(faults[0] or []), {"code": "ignored_file", "text": text}]
            at = batch.schema.get_field_index("pred_faults")
            batch = batch.set_column(at, batch.schema.field(at), pa.array(faults, batch.schema.field(at).type))
            text = ""
        yield batch
