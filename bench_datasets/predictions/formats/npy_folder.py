"""A folder of `.npy` files: `<id>.npy` with all masks of a row, or `<id>/<k>.npy` with one mask each."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from bench_datasets.faults import BenchError
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.formats.npy import read_mask, read_masks
from bench_datasets.predictions.mask_rows import Row, batches
from bench_datasets.predictions.row_names import RowFolder, name_in, note_ignored, note_names, row_of, rows_in
from bench_datasets.predictions.threads import map_in_threads


def read(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of one file or a folder of them.

    `<id>.npy` or `<level>__<id>.npy` holds the masks of a row, `(n, height, width)`, or `(height, width)` for a single
    one; `<id>/<k>.npy` holds one mask `(height, width)` each, in natural order of k. A folder `<id>/` without masks is
    a row without masks. Either may stand in `<level>/`. Masks are bool, or integers 0 and 1.

    Raises:
        BenchError: the folder holds no such file.
    """
    if location.kind != "directory":
        return batches([_from_array((location.name, location))])
    return batches(_rows(location))


def _rows(location: Location) -> Iterator[Row]:
    folders, files = rows_in(location, ".npy")
    yield from map_in_threads(_from_masks, folders)
    yield from map_in_threads(_from_array, [found for found in files if found[1].name.lower().endswith(".npy")])


def _from_array(named: tuple[str, Location]) -> Row:
    path, file = named
    row = row_of(*name_in(path), file.shown)
    try:
        with file.open() as stream:
            row.masks, row.broken = read_masks(stream, file.shown)
    except Exception as error:  # whatever a broken file makes NumPy raise
        row.faults.append(("unreadable_mask", _text(file, error)))
    return row


def _from_masks(own: RowFolder) -> Row:
    row = own.row()
    for file in own.files:
        if not file.name.lower().endswith(".npy"):
            continue
        try:
            with file.open() as stream:
                row.masks.append(read_mask(stream, file.shown))
        except Exception as error:  # whatever a broken file makes NumPy raise
            row.broken[len(row.masks)] = _text(file, error)
            row.masks.append(None)
    note_ignored(row, [file.name for file in own.files if not file.name.lower().endswith(".npy")])
    note_names(row, own, ".npy")
    return row


def _text(file: Location, error: Exception) -> str:
    if isinstance(error, BenchError):
        return str(error)
    return f"{file.shown}: expected a NumPy array (.npy), found it broken or cut short: {error}"
