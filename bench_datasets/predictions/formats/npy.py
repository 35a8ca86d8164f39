"""Masks in NumPy arrays (`.npy`, and the members of `.npz`), read mask by mask; never a pickle."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bench_datasets.faults import BenchError
from bench_datasets.masks import encode_dense

MAX_PIXELS = 1 << 27
"""Most pixels one mask may have."""

MAX_MASKS = 1 << 16
"""Most masks one array may hold."""

MAX_TOTAL = 1 << 31
"""Most pixels of all masks of one array; bounds the time that a small compressed file may take."""

MAX_WHOLE = 1 << 30
"""Largest array that is read at once, in bytes; arrays in C order are read one mask at a time and may be larger."""

_MAX_HEADER = 10_000
_LARGE_BYTES = 1 << 26
_LARGE = threading.Lock()
"""Held while more than `_LARGE_BYTES` are read at once, so that threads never hold several such arrays."""

_NARROW = 32
"""No image is as narrow as that and four times narrower than both other axes of its array."""


class Header(NamedTuple):
    """Header of an array: shape, order and dtype."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


def read_masks(stream: IO[bytes], what: str) -> tuple[list[dict[str, Any] | None], dict[int, str]]:
    """The masks of an array `(n, height, width)`, or the one mask of an array `(height, width)`.

    Args:
        stream: at the beginning of a `.npy` file.
        what: how messages call the array.

    Returns:
        The masks, None where one holds other values than 0 and 1, and what is wrong with which.

    Raises:
        BenchError: the array has another shape or dtype, is too large, or cut short.
    """
    header = read_header(stream, what)
    shape = header.shape
    if len(shape) >= 1 and shape[0] == 0:
        return [], {}
    if len(shape) == 2:
        header = header._replace(shape=(1, *shape))
    elif len(shape) != 3:
        advice = "; write masks[:, 0]" if len(shape) == 4 and shape[1] == 1 else ""
        raise BenchError(f"{what}: expected shape (n, height, width), found {shape}{advice}")
    _validate(header, what, "masks")
    n, height, width = header.shape
    if len(shape) == 3 and width <= _NARROW and 4 * width <= min(n, height):
        raise BenchError(
            f"{what}: expected shape (n, height, width), found {shape}, which looks like (height, width, n); write"
            " masks.transpose(2, 0, 1)"
        )
    masks: list[dict[str, Any] | None] = []
    wrong: dict[int, str] = {}
    for i, pixels in enumerate(_planes(stream, header, what)):
        if _is_binary(pixels):
            masks.append(encode_dense(pixels))
        else:
            wrong[i] = f"{what}: expected 0 and 1, {_found(pixels)}; {_advice(pixels, 'masks')}"
            masks.append(None)
    return masks, wrong


def read_mask(stream: IO[bytes], what: str, name: str = "mask") -> dict[str, Any]:
    """The one mask of an array `(height, width)`.

    Args:
        stream: at the beginning of a `.npy` file.
        what: how messages call the array.
        name: what the advice calls it.

    Raises:
        BenchError: the array has another shape, dtype or other values, is too large, or cut short.
    """
    header = read_header(stream, what)
    shape = header.shape
    if len(shape) != 2:
        advice = f"; write {name}[0]" if len(shape) == 3 and shape[0] == 1 else ""
        raise BenchError(f"{what}: expected shape (height, width), found {shape}{advice}")
    header = header._replace(shape=(1, *shape))
    _validate(header, what, name)
    (pixels,) = _planes(stream, header, what)
    if not _is_binary(pixels):
        raise BenchError(f"{what}: expected 0 and 1, {_found(pixels)}; {_advice(pixels, name)}")
    return encode_dense(pixels)


def read_numbers(stream: IO[bytes], what: str, count: int) -> list[float]:
    """The numbers of an array `(count,)`.

    Raises:
        BenchError: the array has another shape or dtype, or is cut short.
    """
    shape, _, dtype = read_header(stream, what)
    if len(shape) != 1 or dtype.kind not in "iuf" or not 0 <= shape[0] <= MAX_MASKS:
        raise BenchError(f"{what}: expected shape ({count},) of numbers, found {shape} {dtype}")
    data = _exactly(stream, shape[0] * dtype.itemsize, what)
    return np.frombuffer(data, dtype).astype(np.float64).tolist()  # type: ignore[no-any-return]


def read_header(stream: IO[bytes], what: str) -> Header:
    """Shape, order and dtype of an array, read before any of its data.

    Raises:
        BenchError: the stream does not begin with the header of an array of numbers.
    """
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise BenchError(f"{what}: expected .npy format 1 or 2, found version {version}")
    length = _exactly(stream, 2 if version == (1, 0) else 4, what)
    if int.from_bytes(length, "little") > _MAX_HEADER:
        raise BenchError(f"{what}: expected a header of at most {_MAX_HEADER} bytes, found a longer one")
    text = io.BytesIO(length + _exactly(stream, int.from_bytes(length, "little"), what))
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(text)
    if dtype.hasobject:
        raise BenchError(f"{what}: expected numbers, found Python objects (a pickle), which are never read")
    return Header(shape, bool(fortran), dtype)


def _validate(header: Header, what: str, name: str) -> None:
    """Refuse an array that holds no masks, or too much.

    Raises:
        BenchError: it does.
    """
    shape, dtype = header.shape, header.dtype
    if dtype.kind not in "biu":
        advice = f"; apply a threshold to probabilities first: {name} > 0.5" if dtype.kind == "f" else ""
        raise BenchError(f"{what}: expected bool, or integers 0 and 1, found {dtype}{advice}")
    n, height, width = shape
    if min(shape) <= 0 or height * width > MAX_PIXELS or n > MAX_MASKS or n * height * width > MAX_TOTAL:
        expected = f"at most {MAX_MASKS} masks of 1 to {MAX_PIXELS} pixels, together at most {MAX_TOTAL}"
        raise BenchError(f"{what}: expected {expected}, found shape {shape}")


def _planes(stream: IO[bytes], header: Header, what: str) -> Iterator[NDArray[Any]]:
    """The masks of an array one after another, each `(height, width)`."""
    n, height, width = header.shape
    size = height * width * header.dtype.itemsize
    if header.fortran:
        if n * size > MAX_WHOLE:
            raise BenchError(f"{what}: expected C order in an array this large ({n * size} bytes), found Fortran order")
        with _LARGE if n * size > _LARGE_BYTES else nullcontext():
            yield from np.frombuffer(_exactly(stream, n * size, what), header.dtype).reshape(header.shape, order="F")
        return
    with _LARGE if size > _LARGE_BYTES else nullcontext():
        for _ in range(n):
            yield np.frombuffer(_exactly(stream, size, what), header.dtype).reshape(height, width)


def _is_binary(pixels: NDArray[Any]) -> bool:
    return pixels.dtype.kind == "b" or bool(((pixels == 0) | (pixels == 1)).all())


def _found(pixels: NDArray[Any]) -> str:
    return f"found values from {pixels.min()} to {pixels.max()}"


def _advice(pixels: NDArray[Any], name: str) -> str:
    """Advice for an array with values other than 0 and 1."""
    top = pixels.max()
    if ((pixels == 0) | (pixels == top)).all():
        return f"write {name} > 0"
    return f"apply a threshold to probabilities first, such as {name} > 127"


def _exactly(stream: IO[bytes], size: int, what: str) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise BenchError(f"{what}: expected {size} bytes more, found {len(data)}; the array is cut short")
    return data
