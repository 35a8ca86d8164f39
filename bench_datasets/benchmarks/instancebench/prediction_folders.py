"""One file per expression: `<expression_id>.png` with two values, `.npy`, or `.npz` with `mask`."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import pyarrow as pa

from bench_datasets.benchmark import known_parts
from bench_datasets.benchmarks.instancebench.prediction_rows import Row, batches, condition_of
from bench_datasets.benchmarks.instancebench.schema import CONDITIONS
from bench_datasets.benchmarks.instancebench.signature import SIGNATURE
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.foreign_fields import wrong_benchmark
from bench_datasets.predictions.formats import npy, npz, png
from bench_datasets.predictions.threads import map_in_threads

MaskDict = dict[str, object]


def read_png(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of a folder of PNGs.

    `<expression_id>.png` is a mask: 0 is background, one other value or colour is the mask; a black one is an empty
    mask. It may stand in `<run>/`, in `<condition>/` (one that the benchmark knows) or in `<run>/<condition>/`. Another
    image format is refused, unless a PNG of the same name stands beside it. Other files are left alone.

    Raises:
        BenchError: it is no folder, or holds no PNG.
    """
    if location.kind != "directory":
        raise BenchError(f"{location.shown}: expected a folder of <expression_id>.png, found one file")
    return batches(_rows(location, ".png", png.read_mask))


def read_npz(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of one archive `<expression_id>.npz` with `mask` (height, width), or a folder.

    Subfolders as in `read_png`.

    Raises:
        BenchError: the folder holds no archive.
    """
    if location.kind == "directory":
        return batches(_rows(location, ".npz", _from_npz))
    return batches([_row([], location, _from_npz)])


def read_npy(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of one array `<expression_id>.npy` (height, width), or a folder of them.

    Masks are bool, or integers 0 and 1. Subfolders as in `read_png`.

    Raises:
        BenchError: the folder holds no array.
    """
    if location.kind == "directory":
        return batches(_rows(location, ".npy", _from_npy))
    return batches([_row([], location, _from_npy)])


def _rows(location: Location, ending: str, read: Callable[[Location], MaskDict]) -> Iterator[Row]:
    files: list[tuple[list[str], Location]] = []
    pictures: list[tuple[list[str], Location]] = []
    for relative, file, is_folder in location.inside():
        folders = relative.split("/")[:-1]
        if is_folder:
            if relative in known_parts():
                raise wrong_benchmark(location.shown, SIGNATURE, f"folder {relative}", array="masks")
        elif file.name.lower().endswith(ending):
            files.append((folders, file))
        elif file.name.lower().endswith(png.OTHER_IMAGES):
            pictures.append((folders, file))
    if not files:
        raise BenchError(f"{location.shown}: expected files <expression_id>{ending}, found none in the folder")
    yield from map_in_threads(lambda found: _row(*found, read), files)
    known = {(*folders, PurePosixPath(file.name).stem) for folders, file in files}
    for folders, file in pictures:  # one beside the mask of the same name is a picture of it
        if ending == ".png" and (*folders, PurePosixPath(file.name).stem) not in known:
            yield _row(folders, file, _refuse)


def _row(folders: list[str], file: Location, read: Callable[[Location], MaskDict]) -> Row:
    row = Row(expression_id=PurePosixPath(file.name).stem)
    if len(folders) == 1 and condition_of(folders[0]) in CONDITIONS:
        row.condition = condition_of(folders[0])
    elif folders:
        row.run, row.condition = folders[0], condition_of(folders[1]) if len(folders) > 1 else row.condition
    try:
        row.mask = read(file)
    except FaultError:
        raise
    except BenchError as error:
        row.faults.append(("unreadable_mask", f"mask: {error}"))
    return row


def _refuse(file: Location) -> MaskDict:
    raise png.refuse_image(file)


def _from_npz(file: Location) -> MaskDict:
    return npz.with_archive(file, lambda archive: _member(archive, file.shown))


def _member(archive: zipfile.ZipFile, shown: str) -> MaskDict:
    names = archive.namelist()
    if "masks.npy" in names and "mask.npy" not in names:
        raise wrong_benchmark(shown, SIGNATURE, "array 'masks'", array="masks")
    name = npz.array_name(archive, "mask", "(height, width)", shown)
    with archive.open(f"{name}.npy") as stream:
        return npy.read_mask(stream, f"{shown}: {name}")


def _from_npy(file: Location) -> MaskDict:
    try:
        with file.open() as stream:
            return npy.read_mask(stream, file.shown)
    except BenchError:
        raise
    except Exception as error:  # whatever a broken file makes NumPy raise
        text = f"{file.shown}: expected a NumPy array (.npy), found it broken or cut short: {error}"
        raise BenchError(text) from error
