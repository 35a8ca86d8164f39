"""NumPy archives `<level>__<id>.npz` with `masks` (n, height, width) and optional `scores`; never pickles."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy

from bench_datasets.faults import BenchError, FaultError
from bench_datasets.masks import encode_dense
from bench_datasets.predictions.belonging import wrong_benchmark
from bench_datasets.predictions.fields import Found, read_scores
from bench_datasets.predictions.location import Location
from bench_datasets.predictions.paths import row_of
from bench_datasets.predictions.rows import Row, batches

MAX_PIXELS = 1 << 27
"""Most pixels one mask may have."""

MAX_MASKS = 1 << 16
"""Most masks one archive may hold."""

MAX_WHOLE = 1 << 30
"""Largest array that is read at once, in bytes; arrays in C order are read a mask at a time and may be larger."""


class _Header(NamedTuple):
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


def read(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of one archive or a folder of them, called `<level>__<id>.npz` or `<id>.npz`.

    Raises:
        BenchError: the folder holds no archive.
    """
    files = location.files(".npz") if location.kind == "directory" else [location]
    if not files:
        raise BenchError(f"{location.shown}: expected files <level>__<id>.npz or <id>.npz, found none in the folder")
    return batches(_row(file) for file in files)


def _row(file: Location) -> Row:
    stem = file.name[: -len(".npz")] if file.name.lower().endswith(".npz") else file.name
    level, _, name = stem.rpartition("__")
    row = row_of(level or None, name, file.shown)
    try:
        with file.open() as raw, zipfile.ZipFile(raw) as archive:
            row.masks, row.broken = _masks(archive, file.shown)
            if "scores.npy" in archive.namelist():
                row.scores, faults = _scores(archive, file.shown, len(row.masks))
                row.faults += faults
    except FaultError:
        raise
    except BenchError as error:
        row.masks, row.scores = [], None
        row.faults.append(("unreadable_mask", str(error)))
    except Exception as error:  # whatever a broken archive makes zipfile and zlib raise
        row.masks, row.scores = [], None
        text = f"{file.shown}: expected a NumPy archive (.npz), found it broken or cut short: {error}"
        row.faults.append(("unreadable_mask", text))
    return row


def _masks(archive: zipfile.ZipFile, shown: str) -> tuple[list[Any], dict[int, str]]:
    """Masks, and what is wrong with which."""
    if "masks.npy" not in archive.namelist():
        if "mask.npy" in archive.namelist():
            raise wrong_benchmark(shown, "pbench", "instancebench", "array 'mask'")
        names = ", ".join(sorted(map(ascii, archive.namelist()))[:6]) or "nothing"
        raise BenchError(f"{shown}: expected an array 'masks' (n, height, width), found {names}")
    with archive.open("masks.npy") as stream:
        header = _header(stream, f"{shown}: masks")
        shape, dtype = header.shape, header.dtype
        if len(shape) >= 1 and shape[0] == 0:
            return [], {}
        if len(shape) != 3:
            advice = "; write masks[None] for a single one" if len(shape) == 2 else ""
            raise BenchError(f"{shown}: masks: expected shape (n, height, width), found {shape}{advice}")
        _integers(dtype, f"{shown}: masks", "masks")
        n, height, width = shape
        if min(shape) <= 0 or height * width > MAX_PIXELS or n > MAX_MASKS:
            expected = f"at most {MAX_MASKS} masks of 1 to {MAX_PIXELS} pixels"
            raise BenchError(f"{shown}: masks: expected {expected}, found shape {shape}")
        masks: list[Any] = []
        wrong: dict[int, str] = {}
        for i, pixels in enumerate(_planes(stream, header, f"{shown}: masks")):
            if _is_binary(pixels):
                masks.append(encode_dense(pixels))
            else:
                wrong[i] = "expected integers 0 and 1, found others; write masks > 0"
                masks.append(None)
    return masks, wrong


def read_mask(archive: zipfile.ZipFile, shown: str) -> dict[str, Any]:
    """The single array `mask` (height, width) of an archive, as a mask.

    Raises:
        BenchError: it is of another shape or dtype, too large, or cut short.
    """
    with archive.open("mask.npy") as stream:
        header = _header(stream, f"{shown}: mask")
        shape = header.shape
        if len(shape) != 2:
            advice = "; write mask[0]" if len(shape) == 3 and shape[0] == 1 else ""
            raise BenchError(f"{shown}: mask: expected shape (height, width), found {shape}{advice}")
        _integers(header.dtype, f"{shown}: mask", "mask")
        if min(shape) <= 0 or shape[0] * shape[1] > MAX_PIXELS:
            raise BenchError(f"{shown}: mask: expected 1 to {MAX_PIXELS} pixels, found shape {shape}")
        (pixels,) = _planes(stream, header._replace(shape=(1, *shape)), f"{shown}: mask")
        if not _is_binary(pixels):
            raise BenchError(f"{shown}: mask: expected integers 0 and 1, found others; write mask > 0")
        return encode_dense(pixels)


def _integers(dtype: np.dtype[Any], what: str, name: str) -> None:
    if dtype.kind not in "biu":
        advice = f" (cut probabilities at a threshold first: {name} > 0.5)" if dtype.kind == "f" else ""
        raise BenchError(f"{what}: expected bool, or integers 0 and 1, found {dtype}{advice}")


def _is_binary(pixels: Any) -> bool:
    return pixels.dtype.kind == "b" or bool(((pixels == 0) | (pixels == 1)).all())


def _planes(stream: IO[bytes], header: _Header, what: str) -> Iterator[Any]:
    n, height, width = header.shape
    size = height * width * header.dtype.itemsize
    if header.fortran:
        if n * size > MAX_WHOLE:
            raise BenchError(f"{what}: expected C order in an array this large ({n * size} bytes), found Fortran order")
        yield from np.frombuffer(_exactly(stream, n * size, what), header.dtype).reshape(header.shape, order="F")
        return
    for _ in range(n):
        yield np.frombuffer(_exactly(stream, size, what), header.dtype).reshape(height, width)


def _scores(archive: zipfile.ZipFile, shown: str, masks: int) -> tuple[list[float | None] | None, Found]:
    with archive.open("scores.npy") as stream:
        shape, _, dtype = _header(stream, f"{shown}: scores")
        if len(shape) != 1 or dtype.kind not in "iuf" or not 0 <= shape[0] <= MAX_MASKS:
            return None, [
                ("bad_score", f"{shown}: scores: expected shape ({masks},) of numbers, found {shape} {dtype}")
            ]
        data = _exactly(stream, shape[0] * dtype.itemsize, f"{shown}: scores")
    return read_scores(np.frombuffer(data, dtype).astype(np.float64).tolist(), masks)


def _header(stream: IO[bytes], what: str) -> _Header:
    """Shape, order and dtype of an array, read before any of its data."""
    version = npy.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = npy.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, fortran, dtype = npy.read_array_header_2_0(stream)
    else:
        raise BenchError(f"{what}: expected .npy format 1 or 2, found version {version}")
    if dtype.hasobject:
        raise BenchError(f"{what}: expected numbers, found Python objects (a pickle), which are never read")
    return _Header(shape, bool(fortran), dtype)


def _exactly(stream: IO[bytes], size: int, what: str) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise BenchError(f"{what}: expected {size} bytes more, found {len(data)}; the array is cut short")
    return data
