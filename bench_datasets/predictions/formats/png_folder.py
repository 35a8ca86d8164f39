"""A folder of PNGs: `<id>/<k>.png`, one mask each, or `<id>.png`, a label map; either may stand in `<level>/`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import pyarrow as pa

from bench_datasets.faults import BenchError
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.formats.png import IGNORE, OTHER_IMAGES, read_label_map, read_mask, refuse_image
from bench_datasets.predictions.mask_rows import Row, batches
from bench_datasets.predictions.row_names import Name, RowFolder, name_in, note_ignored, note_names, row_of, rows_in
from bench_datasets.predictions.threads import map_in_threads

METADATA = "metadata.csv"
"""File that SAM's automatic mask generator adds to its masks; no metric needs it."""


def read(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of a folder.

    `<id>/<k>.png` is one mask each, in natural order of k (2 before 10): 0 is background, one other value or colour is
    the mask. A folder `<id>/` without masks is a row without masks. `<id>.png` is a label map: 0 is background, each
    other value is a mask, in ascending order. Palette images are read by index. Above either, a folder `<level>/` makes
    the name unique. Other files in `<id>/` are left alone and named in a fault `ignored_file`; other image formats are
    refused where a mask is expected.

    Raises:
        BenchError: it is no folder, or holds no PNG and no folder of a row.
    """
    if location.kind != "directory":
        raise BenchError(f"{location.shown}: expected a folder of PNGs (<id>/<k>.png or <id>.png), found one file")
    return batches(_rows(location))


def _rows(location: Location) -> Iterator[Row]:
    folders, files = rows_in(location, ".png")
    yield from map_in_threads(_from_masks, folders)
    maps = [(name_in(path), file) for path, file in files if file.name.lower().endswith(".png")]
    yield from map_in_threads(_from_map, maps)
    known = {*(own.name for own in folders), *(name for name, _ in maps)}
    for path, file in files:  # another image that cannot name a row is a picture of something else
        row = row_of(*name_in(path), file.shown)
        if file.name.lower().endswith(OTHER_IMAGES) and name_in(path) not in known and not row.faults:
            row.faults.append(("unreadable_mask", str(refuse_image(file))))
            yield row


def _from_masks(own: RowFolder) -> Row:
    """The row of a folder with one PNG per mask."""
    row = own.row()
    stems = {file.name[:-4] for file in own.files if file.name.lower().endswith(".png")}
    ignored: list[str] = []
    for file in own.files:
        problem: str | None = None
        try:
            if file.name.lower().endswith(".png"):
                row.masks.append(read_mask(file))
                continue
            if _is_mask(file, stems):
                raise refuse_image(file)
        except BenchError as error:
            problem = str(error)
        if problem is not None:
            row.broken[len(row.masks)] = problem
            row.masks.append(None)
        elif file.name.lower() != METADATA:
            ignored.append(file.name)
    note_ignored(row, ignored)
    note_names(row, own, ".png")
    return row


def _is_mask(file: Location, stems: set[str]) -> bool:
    """Whether an image that is no PNG stands where a mask is expected: it has a mask's name, or no PNG is there."""
    if not file.name.lower().endswith(OTHER_IMAGES):
        return False
    stem = PurePosixPath(file.name).stem
    return not stems or (stem.isdigit() and stem not in stems)


def _from_map(named: tuple[Name, Location]) -> Row:
    """The row of a label map."""
    name, file = named
    row = row_of(*name, file.shown)
    try:
        masks = read_label_map(file)
    except BenchError as error:
        row.faults.append(("unreadable_mask", str(error)))
        return row
    row.masks = list(masks.values())
    if IGNORE in masks and len(masks) > 1:
        text = f"{file.shown}: label {IGNORE} counts as a mask; set these pixels to 0 if it means 'ignore', as in VOC"
        row.faults.append(("ignore_label", text))
    return row
