"""PNG files from outside: their pixels, the one mask of a file, the masks of a label map."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL.PngImagePlugin import PngImageFile

from bench_datasets.faults import BenchError
from bench_datasets.masks import encode_dense, encode_label_map
from bench_datasets.predictions.files import Location

MAX_PIXELS = 1 << 27
"""Most pixels a PNG may have; more is refused before it is unpacked."""

MAX_BYTES = 1 << 28
"""Largest PNG file that is read."""

MAX_LABELS = 1 << 16
"""Most masks that one label map may hold."""

IGNORE = 255
"""The label that PASCAL VOC gives to pixels which count for nothing."""

OTHER_IMAGES = (".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif")
"""Endings of image files that are not read."""

_FULL = (1, 255, 65535)
"""Values that a mask of the whole image may have: it has no background by which to tell its value."""

_MANY_LABELS = 8
"""From this number of labels on, a map is tested for being a grey picture."""

_LARGE_PIXELS = 1 << 24
_LARGE = threading.Lock()
"""Held while an image of more than `_LARGE_PIXELS` is read, so that threads never hold several of them."""

_INDEXED = ("1", "L", "P", "I", "I;16", "I;16B", "I;16L")

Result = TypeVar("Result")


def read_png(file: Location) -> NDArray[Any]:
    """Pixels of a PNG: `(height, width)` values or palette indices, or `(height, width, 3)` colours.

    An alpha channel is left out if it is opaque everywhere.

    Raises:
        BenchError: the file is no PNG, is broken, too large, or transparent in part; the message names the file.
    """
    return _with_pixels(file, lambda pixels: pixels)


def read_mask(file: Location) -> dict[str, Any]:
    """The mask of a PNG with two values: background 0, and one other value or colour.

    A PNG of one value is an empty mask (0) or a mask of the whole image (1, 255, 65535 or white).

    Raises:
        BenchError: as `read_png`; or the PNG has more values, as probabilities and photos have, or no background.
    """
    return _with_pixels(file, lambda pixels: encode_dense(_foreground(pixels, file.shown)))


def read_label_map(file: Location) -> dict[int, dict[str, Any]]:
    """The masks of a label map by label, in ascending order: 0 is background, each other value is a mask.

    Raises:
        BenchError: as `read_png`; or the file has colours, too many labels, or looks like a grey picture.
    """

    def encode(pixels: NDArray[Any]) -> dict[int, dict[str, Any]]:
        _validate_labels(pixels, file.shown)
        return encode_label_map(pixels)

    return _with_pixels(file, encode)


def refuse_image(file: Location) -> BenchError:
    """The error about an image file that is no PNG."""
    name = file.name.lower()
    lossy = "; JPEG changes pixel values, so it cannot hold a mask" if name.endswith((".jpg", ".jpeg")) else ""
    return BenchError(f"{file.shown}: expected a PNG, found another image format{lossy}; save masks as PNG")


def _with_pixels(file: Location, use: Callable[[NDArray[Any]], Result]) -> Result:
    """Decode a file and apply a function to its pixels; large images are read one at a time."""
    if not file.name.lower().endswith(".png"):
        raise BenchError(f"{file.shown}: expected a PNG, found another file")
    try:
        with file.open() as stream:
            data = stream.read(1 << 16)  # nearly always all of it
            data += stream.read(MAX_BYTES + 1 - len(data)) if len(data) == 1 << 16 else b""
        if len(data) > MAX_BYTES:
            raise BenchError(f"{file.shown}: expected a PNG of at most {MAX_BYTES} bytes, found more")
        with PngImageFile(io.BytesIO(data)) as image:  # not Image.open, which warns by a bound of its own
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise BenchError(f"{file.shown}: expected at most {MAX_PIXELS} pixels, found {height} x {width}")
            with _LARGE if width * height > _LARGE_PIXELS else nullcontext():
                return use(_plain(stored_values(image, data, file.shown), image.mode, file.shown))
    except BenchError:
        raise
    except Exception as error:  # whatever a broken file makes Pillow and zlib raise
        raise BenchError(f"{file.shown}: expected a readable PNG, found it broken: {error}") from error


def stored_values(image: PngImageFile, data: bytes, shown: str) -> NDArray[Any]:
    """The pixel values of a PNG as the file stores them; Pillow scales grey values of 2 and 4 bits up to 255.

    Args:
        image: the PNG.
        data: its bytes.
        shown: what messages call it.

    Raises:
        BenchError: it is animated; has colours of 16 bits, which Pillow cuts to 8; or has a palette whose index 0 is
            not black although black occurs, so that the background has another index.
    """
    if getattr(image, "is_animated", False):
        raise BenchError(f"{shown}: expected one image, found an animated PNG; save each frame as a file of its own")
    depth, kind = data[24], data[25]
    if depth == 16 and kind not in (0, 3):
        raise BenchError(
            f"{shown}: expected one channel, or channels of 8 bits, found channels of 16 bits; save a mask as 0 and"
            " 255, or a label map of 16 bits in one channel"
        )
    values = np.asarray(image)
    if kind == 0 and depth in (2, 4):
        return np.asarray(values // (255 // (2**depth - 1)))
    if image.mode == "P":
        _check_palette(np.array(image.getpalette("RGB") or [], np.uint8).reshape(-1, 3), values, shown)
    return values


def _check_palette(colours: NDArray[np.uint8], values: NDArray[Any], shown: str) -> None:
    black = (colours == 0).all(axis=1)
    if not black.any() or black[0]:
        return
    used = np.bincount(values.ravel(), minlength=len(colours))[: len(colours)] > 0
    if used[0] and (used & black).any():
        index, colour = int(np.flatnonzero(used & black)[0]), tuple(colours[0].tolist())
        raise BenchError(
            f"{shown}: expected palette index 0 as the background, found index 0 of the colour {colour} and black at"
            f" index {index}; indices are read and not colours, so save ids in one channel, or black as index 0"
        )


def _plain(pixels: NDArray[Any], mode: str, shown: str) -> NDArray[Any]:
    """Pixels without an alpha channel."""
    if mode in _INDEXED or mode == "RGB":
        return pixels
    if mode not in ("LA", "RGBA"):
        raise BenchError(f"{shown}: expected a PNG of one channel, found mode {mode}")
    if (pixels[..., -1] != 255).any():
        raise BenchError(f"{shown}: expected no transparency, found some; save one channel without alpha")
    return pixels[..., 0] if mode == "LA" else pixels[..., :-1]


def _foreground(pixels: NDArray[Any], shown: str) -> NDArray[np.bool_]:
    """Where a mask is; refuse what has other values than background and foreground.

    Raises:
        BenchError: it has.
    """
    if pixels.ndim == 3:
        return _coloured(pixels, shown)
    found: NDArray[np.bool_] = np.not_equal(pixels, 0)
    top = pixels.max()
    if pixels.dtype == np.bool_ or top == 0:
        return found
    if found.all():
        if (pixels != top).any() or int(top) not in _FULL:
            values = _values(pixels)
            several = f"{len(values)} values from {values[0]} to {values[-1]}"
            several = several if len(values) > 1 else f"the value {values[0]} everywhere"
            raise BenchError(
                f"{shown}: expected 0 as the background, found {several} and no 0; apply a threshold to probabilities"
                " first, then save the background as 0 and the mask as 255"
            )
        return found
    if (found & (pixels != top)).any():
        values = _values(pixels)
        raise BenchError(
            f"{shown}: expected two values, 0 for the background and one other, found {len(values)} values from"
            f" {values[0]} to {values[-1]}; apply a threshold to probabilities first (such as pixels > 127), then save"
            " 0 and 255"
        )
    return found


def _coloured(pixels: NDArray[Any], shown: str) -> NDArray[np.bool_]:
    """Where the one colour beside black is.

    Raises:
        BenchError: there are more colours, or no black.
    """
    found = np.asarray(pixels.any(axis=2))
    drawn = pixels[found]
    if not len(drawn):
        return found
    if (drawn != drawn[0]).any():
        raise BenchError(
            f"{shown}: expected black and one other colour, found several colours; save the mask itself, 0 and 255 in"
            " one channel, not a picture with the mask on it"
        )
    if found.all() and (drawn[0] != 255).any():
        raise BenchError(f"{shown}: expected black as the background, found no black; save the background as 0")
    return found


def _validate_labels(pixels: NDArray[Any], shown: str) -> None:
    """Refuse an image that is no label map.

    Raises:
        BenchError: it has colours, too many labels, or is a grey picture.
    """
    if pixels.ndim != 2:
        raise BenchError(f"{shown}: expected a label map of one channel (grey or palette), found colours")
    values = _values(pixels)
    labels = values[values != 0]
    if len(labels) > MAX_LABELS:
        raise BenchError(f"{shown}: expected at most {MAX_LABELS} labels, found more; is it a photo?")
    instead = "save a label map of 0, 1, 2, ... or one file per mask, <id>/<k>.png"
    if len(values) == len(labels) and int(labels[-1]) not in (len(labels), *(_FULL if len(labels) == 1 else ())):
        raise BenchError(
            f"{shown}: expected 0 as the background, found {len(labels)} values from {labels[0]} to {labels[-1]} and"
            f" no 0; apply a threshold to probabilities first, then {instead}"
        )
    if len(labels) >= _MANY_LABELS and 2 * _solid(pixels) < len(labels):
        raise BenchError(
            f"{shown}: expected a label map, found a grey picture: {len(labels)} values from {labels[0]} to"
            f" {labels[-1]}, most of them only in single pixels and thin lines; apply a threshold to probabilities"
            f" first, then {instead}"
        )


def _solid(pixels: NDArray[Any]) -> int:
    """The number of labels that have a pixel whose four neighbours bear the same label."""
    inner = pixels[1:-1, 1:-1]
    same = (inner == pixels[:-2, 1:-1]) & (inner == pixels[2:, 1:-1])
    same &= (inner == pixels[1:-1, :-2]) & (inner == pixels[1:-1, 2:]) & (inner != 0)
    return len(np.unique(inner[same]))


def _values(pixels: NDArray[Any]) -> NDArray[np.int64]:
    """The values that occur, in ascending order."""
    if pixels.dtype == np.uint8:
        return np.flatnonzero(np.bincount(pixels.ravel(), minlength=256))
    return np.unique(pixels).astype(np.int64)
