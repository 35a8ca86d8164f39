"""A folder of PNGs: `<id>/<k>.png`, one mask each, or `<id>.png`, a label map; either may stand in `<level>/`."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image

from bench_datasets.benchmarks import PBENCH_LEVELS
from bench_datasets.faults import BenchError
from bench_datasets.masks import encode_dense, encode_label_map
from bench_datasets.predictions.location import Location
from bench_datasets.predictions.paths import row_of
from bench_datasets.predictions.rows import Row, batches

MAX_PIXELS = 1 << 27
"""Most pixels a PNG may have; more is refused before it is unpacked."""

MAX_BYTES = 1 << 28
"""Largest PNG file that is read."""

MAX_LABELS = 1 << 16
"""Most masks that one label map may hold."""

_INDEXED = ("1", "L", "P", "I", "I;16", "I;16B", "I;16L")


def read(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of a folder.

    `<id>/<k>.png` is a mask each, in natural order of k (2 before 10), foreground where a pixel is not zero. A folder
    `<id>/` without files is a row without masks. `<id>.png` is a label map: 0 is void, each other value a mask, in
    ascending order. Palette images are read by index. Above either, a folder `<level>/` makes the name unique.

    Raises:
        BenchError: it is no folder, or holds no PNG and no folder of a row.
    """
    if location.kind != "directory":
        raise BenchError(f"{location.shown}: expected a folder of PNGs (<id>/<k>.png or <id>.png), found one file")
    return batches(_rows(location))


def _rows(location: Location) -> Iterator[Row]:
    folders: dict[tuple[str | None, str], list[Location]] = {}
    maps: list[tuple[tuple[str | None, str], Location]] = []
    shown: dict[tuple[str | None, str], str] = {}
    for relative, item, is_folder in location.inside():
        parts = relative.split("/")
        level = parts.pop(0) if parts[0] in PBENCH_LEVELS or len(parts) == 3 else None
        if not parts:
            continue
        name = (level, parts[0] if is_folder or len(parts) == 2 else parts[0][:-4])
        if is_folder and len(parts) == 1:
            folders.setdefault(name, [])
        elif is_folder:
            continue
        elif len(parts) == 2:
            folders.setdefault(name, []).append(item)
        elif item.name.lower().endswith(".png"):
            maps.append((name, item))
        shown.setdefault(name, item.shown)
    if not folders and not maps:
        raise BenchError(f"{location.shown}: expected PNGs as <id>/<k>.png or <id>.png, found none; see format=")
    # A folder that holds folders is a level of another name, not a row.
    inner = {level for level, _ in folders if level is not None}
    for name, files in folders.items():
        if name[0] is None and name[1] in inner:
            continue
        yield _from_masks(row_of(*name, shown[name]), files)
    for name, file in maps:
        yield _from_map(row_of(*name, file.shown), file)


def _from_masks(row: Row, files: list[Location]) -> Row:
    for i, file in enumerate(files):
        mask: dict[str, Any] | None = None
        try:
            pixels = read_png(file)
            mask = encode_dense(pixels if pixels.ndim == 2 else pixels.any(axis=2))
        except BenchError as error:
            row.broken[i] = str(error)
        row.masks.append(mask)
    return row


def _from_map(row: Row, file: Location) -> Row:
    try:
        pixels = read_png(file)
        if pixels.ndim != 2:
            raise BenchError(f"{file.shown}: expected a label map of one channel (grey or palette), found colours")
        if pixels.dtype.itemsize > 2 and len(np.unique(pixels)) > MAX_LABELS:
            raise BenchError(f"{file.shown}: expected at most {MAX_LABELS} labels, found more; is it a photo?")
        row.masks = list(encode_label_map(pixels).values())
    except BenchError as error:
        row.faults.append(("malformed_mask", str(error)))
    return row


def read_png(file: Location) -> NDArray[Any]:
    """Pixels of a PNG from outside: `(height, width)` values or palette indices, or `(height, width, channels)`.

    An alpha channel is left out if it is opaque everywhere.

    Raises:
        BenchError: the file is no PNG, is broken, too large, or transparent in part; the message names it.
    """
    if not file.name.lower().endswith(".png"):
        raise BenchError(f"{file.shown}: expected a PNG, found another file")
    try:
        if file.size > MAX_BYTES:
            raise BenchError(f"{file.shown}: expected a PNG of at most {MAX_BYTES} bytes, found {file.size}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of what is bounded here
            with Image.open(io.BytesIO(file.read(MAX_BYTES)), formats=["PNG"]) as image:
                width, height = image.size
                if width * height > MAX_PIXELS:
                    raise BenchError(f"{file.shown}: expected at most {MAX_PIXELS} pixels, found {height} x {width}")
                pixels = np.asarray(image)
                mode = image.mode
    except BenchError:
        raise
    except Exception as error:  # whatever a broken file makes Pillow and zlib raise
        raise BenchError(f"{file.shown}: expected a readable PNG, found it broken: {error}") from error
    if mode in _INDEXED:
        return pixels
    if mode in ("LA", "RGBA"):
        if (pixels[..., -1] != 255).any():
            raise BenchError(f"{file.shown}: expected no transparency, found some; save one channel without alpha")
        pixels = pixels[..., :-1]
        return pixels[..., 0] if mode == "LA" else pixels
    if mode == "RGB":
        return pixels
    raise BenchError(f"{file.shown}: expected a PNG of one channel, found mode {mode}")
