"""A folder of `.npy` files: `<id>.npy` with all masks of a row, or `<id>/<k>.npy` with one mask each."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from bench_datasets.benchmarks import PBENCH_LEVELS
from bench_datasets.faults import BenchError
from bench_datasets.predictions.location import Location
from bench_datasets.predictions.npy import read_mask, read_masks
from bench_datasets.predictions.paths import name_in, row_of
from bench_datasets.predictions.rows import Row, batches
from bench_datasets.predictions.threads import map_in_threads


def read(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of one file or a folder of them.

    `<id>.npy` or `<level>__<id>.npy` holds the masks of a row, `(n, height, width)`, or `(height, width)` for a single
    one; `<id>/<k>.npy` holds one mask `(height, width)` each, in natural order of k. Either may stand in `<level>/`.
    Masks are bool, or integers 0 and 1.

    Raises:
        BenchError: the folder holds no such file.
    """
    if location.kind != "directory":
        return batches([_from_array((location.name, location))])
    return batches(_rows(location))


def _rows(location: Location) -> Iterator[Row]:
    arrays: list[tuple[str, Location]] = []
    folders: dict[tuple[str | None, str], list[Location]] = {}
    for path, file, is_folder in location.inside():
        *parents, _ = path.split("/")
        if is_folder or not file.name.lower().endswith(".npy"):
            continue
        if not parents or (len(parents) == 1 and parents[0] in PBENCH_LEVELS):
            arrays.append((path, file))
        else:
            folders.setdefault((parents[-2] if len(parents) > 1 else None, parents[-1]), []).append(file)
    if not arrays and not folders:
        raise BenchError(f"{location.shown}: expected <id>.npy or <id>/<k>.npy, found none in the folder")
    yield from map_in_threads(_from_masks, folders.items())
    yield from map_in_threads(_from_array, arrays)


def _from_array(named: tuple[str, Location]) -> Row:
    path, file = named
    row = row_of(*name_in(path), file.shown)
    try:
        with file.open() as stream:
            row.masks, row.broken = read_masks(stream, file.shown)
    except Exception as error:  # whatever a broken file makes NumPy raise
        row.faults.append(("unreadable_mask", _text(file, error)))
    return row


def _from_masks(named: tuple[tuple[str | None, str], list[Location]]) -> Row:
    name, files = named
    row = row_of(*name, files[0].shown.rsplit("/", 1)[0])
    for i, file in enumerate(files):
        try:
            with file.open() as stream:
                row.masks.append(read_mask(stream, file.shown))
        except Exception as error:  # whatever a broken file makes NumPy raise
            row.masks.append(None)
            row.broken[i] = _text(file, error)
    return row


def _text(file: Location, error: Exception) -> str:
    if isinstance(error, BenchError):
        return str(error)
    return f"{file.shown}: expected a NumPy array (.npy), found it broken or cut short: {error}"
