"""NumPy archives: `<id>.npz` of PBench with `masks` and optional `scores`, and what every archive must be."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from typing import IO, TypeVar

import pyarrow as pa

from bench_datasets._compat import zip_directory_size
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.predictions.coerce import read_scores
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.foreign_fields import wrong_benchmark
from bench_datasets.predictions.formats.npy import read_masks, read_numbers
from bench_datasets.predictions.mask_rows import Row, batches
from bench_datasets.predictions.mask_signature import MASK_SIGNATURE
from bench_datasets.predictions.row_names import name_in, row_of
from bench_datasets.predictions.threads import map_in_threads

UNNAMED = "arr_0"
"""How `np.savez` calls an array without a name."""

MAX_DIRECTORY = 1 << 22
"""Most bytes of an archive's list of members: enough for some 50,000."""

_KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How NumPy compresses; other methods reach ratios at which a few bytes cost minutes."""

_METHODS = {zipfile.ZIP_BZIP2: "bzip2", zipfile.ZIP_LZMA: "lzma"}

Result = TypeVar("Result")


def read(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of one archive or a folder of them, one per row.

    An archive is called `<id>.npz` or `<level>__<id>.npz`, or stands in a folder `<level>/`. It holds `masks`
    `(n, height, width)`, or `(height, width)` for a single one, and `scores` `(n,)` if there are any. An archive with
    one array without a name (`np.savez(file, masks)`) is read, too.

    Raises:
        BenchError: the folder holds no archive.
    """
    if location.kind != "directory":
        return batches([_row((location.name, location))])
    files = [(path, file) for path, file, _ in location.inside() if file.name.lower().endswith(".npz")]
    if not files:
        raise BenchError(f"{location.shown}: expected files <level>__<id>.npz or <id>.npz, found none in the folder")
    return batches(map_in_threads(_row, files))


def _row(named: tuple[str, Location]) -> Row:
    path, file = named
    row = row_of(*name_in(path), file.shown)
    try:
        with_archive(file, lambda archive: _fill(row, archive, file.shown))
    except FaultError:
        raise
    except BenchError as error:
        row.masks, row.scores, row.broken = [], None, {}
        row.faults.append(("unreadable_mask", str(error)))
    return row


def _fill(row: Row, archive: zipfile.ZipFile, shown: str) -> None:
    names = archive.namelist()
    if "mask.npy" in names and "masks.npy" not in names:
        raise wrong_benchmark(shown, MASK_SIGNATURE, "array 'mask'", array="mask")
    name = array_name(archive, "masks", "(n, height, width)", shown)
    with archive.open(f"{name}.npy") as stream:
        row.masks, row.broken = read_masks(stream, f"{shown}: {name}")
    if "scores.npy" in names:
        with archive.open("scores.npy") as stream:
            try:
                numbers = read_numbers(stream, f"{shown}: scores", len(row.masks))
            except BenchError as error:
                row.faults.append(("bad_score", str(error)))
            else:
                row.scores, faults = read_scores(numbers, len(row.masks))
                row.faults += faults


def array_name(archive: zipfile.ZipFile, wanted: str, shape: str, shown: str) -> str:
    """The name of the array that is to be read: the one wanted, or the only one, where it has no name.

    Raises:
        BenchError: there is no such array.
    """
    names = archive.namelist()
    if f"{wanted}.npy" in names:
        return wanted
    if names == [f"{UNNAMED}.npy"]:
        return UNNAMED
    found = ", ".join(sorted(map(ascii, names))[:6]) or "nothing"
    raise BenchError(
        f"{shown}: expected an array {wanted!r} {shape}, found {found}; write np.savez(file, {wanted}=...)"
    )


def _refuse_many(raw: IO[bytes], shown: str) -> None:
    """Stop at an archive whose list of members is too long to be read.

    Raises:
        BenchError: it is.
    """
    size = zip_directory_size(raw)
    if size > MAX_DIRECTORY:
        raise BenchError(
            f"{shown}: expected an archive whose list of members takes at most {MAX_DIRECTORY:,} bytes, found"
            f" {size:,}; write one archive per row"
        )


def with_archive(file: Location, use: Callable[[zipfile.ZipFile], Result]) -> Result:
    """Open an archive and apply a function to it.

    Raises:
        BenchError: the file is no archive as NumPy writes it, or is broken.
    """
    try:
        with file.open() as raw:
            _refuse_many(raw, file.shown)
            archive = zipfile.ZipFile(raw)
            strange = next((member for member in archive.infolist() if member.compress_type not in _KNOWN), None)
            if strange is not None:
                method = _METHODS.get(strange.compress_type, "unknown")
                raise BenchError(
                    f"{file.shown}: expected an archive as NumPy writes it, found {method} compression in"
                    f" {strange.filename!a}; write it with np.savez_compressed"
                )
            return use(archive)
    except BenchError:
        raise
    except Exception as error:  # whatever a broken archive makes zipfile and zlib raise
        text = f"{file.shown}: expected a NumPy archive (.npz), found it broken or cut short: {error}"
        raise BenchError(text) from error
