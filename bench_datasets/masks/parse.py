"""Masks as files and models hand them over, of any kind and in any state, into sound columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pycocotools import mask as coco

from bench_datasets.faults import shorten
from bench_datasets.masks.column import MASK_TYPE, MaskColumn
from bench_datasets.masks.dense import as_array, dense_runs, one_mask
from bench_datasets.masks.rle import Runs, encode_counts
from bench_datasets.masks.status import MAX_COUNTS, MAX_PIXELS, MaskError

MAX_BORDER = 2**24
"""Most points along the borders of one mask's polygons; bounds the time and memory that drawing them takes."""

MAX_BORDERS = 2**28
"""Most points along the borders of all polygons that are parsed together, such as those of one row."""


def parse_masks(
    values: Sequence[object],
    *,
    height: int | None = None,
    width: int | None = None,
    noted: dict[int, str] | None = None,
) -> tuple[pa.StructArray, dict[int, str]]:
    """Read untrusted masks.

    Args:
        values: each an RLE `{"size": [height, width], "counts": str | bytes | list of runs}`, a list of polygons
            `[[x0, y0, x1, y1, ...], ...]` in pixels, a dense `(height, width)` array, tensor or image of bool or
            of 0 and one other integer, or `None`.
        height: pixels; needed for polygons.
        width: pixels; needed for polygons.
        noted: receives, by position, what was left out of a mask that is sound: polygons of fewer than three points
            beside others (fault code `polygon_part_dropped`).

    Returns:
        An array of `MASK_TYPE`, null where a mask is unsound, and what is wrong by position. Every mask that is not
        null is valid; uncompressed runs, polygons and dense arrays have become compressed RLE.

    Example:
        >>> masks, wrong = parse_masks([{"size": [2, 3], "counts": [1, 5]}, {"size": [2, 3], "counts": [1, 4]}])
        >>> masks.to_pylist()[0], wrong
        ({'size': [2, 3], 'counts': '15'}, {1: 'the runs do not sum to height x width (2 x 3 = 6)'})
    """
    wrong: dict[int, str] = {}
    column = _usual(values)
    if column is None:
        column = _read_each(values, height, width, noted, wrong)
    for i, text in column.problems().items():
        wrong.setdefault(i, text)
    if not wrong:
        return column.to_arrow(), wrong
    bad = np.zeros(len(column), np.bool_)
    bad[list(wrong)] = True
    masks = column.to_arrow()
    parts = [masks.field(field.name) for field in MASK_TYPE]
    return pa.StructArray.from_arrays(parts, fields=list(MASK_TYPE), mask=pa.array(bad)), dict(sorted(wrong.items()))


def _usual(values: Sequence[object]) -> MaskColumn | None:
    """The masks if each is compressed RLE in a dictionary of the usual form, as nearly always; they may be invalid."""
    counts, sizes = [], []
    for value in values:
        if type(value) is not dict:
            return None
        text, size = value.get("counts"), value.get("size")
        if type(text) is not str or type(size) is not list or len(size) != 2:
            return None
        height, width = size
        if (
            type(height) is not int
            or type(width) is not int
            or not (height > 0 < width and height * width <= MAX_PIXELS)
        ):
            return None
        counts.append(text)
        sizes += size
    joined = "".join(counts)
    lengths = np.fromiter(map(len, counts), np.int64, len(counts))
    if not joined.isascii() or lengths.max(initial=0) > MAX_COUNTS:
        return None
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    pairs = np.array(sizes, np.int64).reshape(-1, 2)
    return MaskColumn(np.frombuffer(joined.encode(), np.uint8), offsets, pairs[:, 0], pairs[:, 1])


def _read_each(
    values: Sequence[object], height: int | None, width: int | None, noted: dict[int, str] | None, wrong: dict[int, str]
) -> MaskColumn:
    """The masks, value by value; `wrong` receives what is wrong with which."""
    rows: list[tuple[int, int, bytes]] = []
    left = [float(MAX_BORDERS)]
    for i, value in enumerate(values):
        try:
            if isinstance(value, (list, tuple)):
                drawn, dropped = _read_polygons(value, height, width, left)
                rows.append(drawn)
                if dropped and noted is not None:
                    noted[i] = dropped
            else:
                rows.append(_read(value))
        except MaskError as error:
            wrong[i] = str(error)
            rows.append((1, 1, b"1"))
    offsets = np.concatenate([[0], np.cumsum([len(c) for _, _, c in rows], dtype=np.int64)])
    sizes = np.array([(h, w) for h, w, _ in rows], np.int64).reshape(-1, 2)
    present = np.ones(len(rows), np.bool_)
    return MaskColumn(
        np.frombuffer(b"".join(c for _, _, c in rows), np.uint8), offsets, sizes[:, 0], sizes[:, 1], present
    )


def parse_mask(value: object, *, height: int | None = None, width: int | None = None) -> dict[str, Any]:
    """One untrusted mask as `{"size": [height, width], "counts": str}`; see `parse_masks`.

    Raises:
        MaskError: the mask is unsound; the message says what is wrong.
    """
    masks, wrong = parse_masks([value], height=height, width=width)
    if wrong:
        raise MaskError(wrong[0])
    return masks[0].as_py()  # type: ignore[no-any-return]


def _read(value: object) -> tuple[int, int, bytes]:
    """Height, width and compressed counts (not yet validated) of one value that is no list."""
    if isinstance(value, Mapping):
        return _read_rle(value)
    array = as_array(value)
    if array is not None:
        runs, h, w = dense_runs(one_mask(array))
        return h, w, _compress(runs)
    if value is None:
        raise MaskError("the mask is null")
    raise MaskError(f"expected an RLE {{size, counts}} or a list of polygons, found {_show(value)}")


def _read_rle(value: Mapping[Any, Any]) -> tuple[int, int, bytes]:
    if "counts" not in value:
        raise MaskError(f"expected an RLE with size and counts, found keys {shorten(sorted(map(str, value)))}")
    height, width = _read_size(value.get("size"))
    counts = value["counts"]
    if isinstance(counts, str):
        # What is no ASCII becomes a byte outside the alphabet, which validation refuses by position.
        return (
            height,
            width,
            counts.encode("ascii", "replace").replace(b"?", b"\xff") if not counts.isascii() else counts.encode(),
        )
    if isinstance(counts, (bytes, bytearray, memoryview)):
        return height, width, bytes(counts)
    if isinstance(counts, np.ndarray) and counts.ndim == 1:
        counts = counts.tolist()
    if isinstance(counts, (list, tuple)):
        return height, width, _compress(_read_runs(counts, height, width))
    if counts is None:
        raise MaskError("counts are null")
    raise MaskError(f"expected counts as a string or a list of runs, found {_show(counts)}")


def _read_size(size: object) -> tuple[int, int]:
    if size is None:
        raise MaskError("the mask has no size; expected [height, width]")
    items = size.tolist() if isinstance(size, np.ndarray) else size
    if not isinstance(items, (list, tuple)) or len(items) != 2 or not all(_is_int(item) for item in items):
        raise MaskError(f"size must be two positive integers [height, width], found {_show(size)}")
    height, width = int(items[0]), int(items[1])
    if height <= 0 or width <= 0:
        raise MaskError(f"size must be two positive integers [height, width], found {shorten([height, width])}")
    if height * width > MAX_PIXELS:
        raise MaskError(
            f"size is too large: height x width must be below 2^31 pixels, found {shorten([height, width])}"
        )
    return height, width


def _read_runs(counts: Sequence[Any], height: int, width: int) -> NDArray[np.int64]:
    """An uncompressed list of runs, whose sum is checked here: a sum that wraps around must not pass."""
    if not counts:
        raise MaskError("counts are empty")
    if len(counts) > MAX_COUNTS:
        raise MaskError(f"counts hold {len(counts)} runs; at most {MAX_COUNTS} are read")
    total = 0
    for run in counts:
        if not _is_int(run):
            raise MaskError(f"counts hold {_show(run)}, expected integers")
        if run < 0:
            raise MaskError(f"counts hold a negative run ({shorten(run)})")
        total += int(run)
    if total != height * width:
        raise MaskError(f"the runs do not sum to height x width ({height} x {width} = {height * width})")
    return np.array(counts, np.int64)


def _read_polygons(
    value: Sequence[Any], height: int | None, width: int | None, left: list[float]
) -> tuple[tuple[int, int, bytes], str | None]:
    """Polygons through pycocotools, once every number is known to be finite and near the image.

    Args:
        value: the polygons.
        height: pixels.
        width: pixels.
        left: how many points may still be drawn along borders; brought up to date.

    Returns:
        Height, width and compressed counts, and which polygons were left out (those of fewer than three points).
    """
    if _looks_dense(value, height, width):
        raise MaskError(
            f"a list of {len(value)} rows of {len(value[0])} values looks like a dense array; give"
            " bench_datasets.masks.encode_dense(array) in its place, of probabilities encode_dense(array > 0.5), or"
            " wrap the model's function in bench_datasets.predictor before `map`"
        )
    if value and isinstance(value[0], Mapping):
        raise MaskError(f"expected one mask, found a list of {len(value)}; give the RLE {{size, counts}} itself")
    if height is None or width is None:
        raise MaskError(f"polygons need the image's height and width, and the row has none{_runs_advice(value)}")
    height, width = _read_size([height, width])
    if value and all(isinstance(item, (int, float)) for item in value):
        value = [value]
    if not value:
        raise MaskError("expected at least one polygon, found an empty list")
    limit = 2.0 * max(height, width)
    polygons: list[list[float]] = []
    short: list[tuple[int, int]] = []
    for place, polygon in enumerate(value):
        numbers = polygon.tolist() if isinstance(polygon, np.ndarray) else polygon
        if not isinstance(numbers, (list, tuple)) or len(numbers) % 2:
            raise MaskError(f"expected a polygon as [x0, y0, x1, y1, x2, y2, ...], found {_show(polygon)}")
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, (int, float)) or number != number:
                raise MaskError(f"a polygon holds {_show(number)}, expected finite numbers")
            if abs(number) > limit:
                raise MaskError(
                    f"a polygon's corner lies far outside the image of {height} x {width}, found {_show(number)}"
                    + _runs_advice(value)
                )
        if len(numbers) < 6:
            short.append((place, len(numbers) // 2))
        else:
            polygons.append([float(number) for number in numbers])
    if not polygons:
        raise MaskError(f"expected a polygon as [x0, y0, x1, y1, x2, y2, ...], found {_show(value[0])}")
    corners = np.concatenate(polygons)
    if corners.min() >= 0 and corners.max() <= 1 and (corners % 1).any() and max(height, width) > 2:
        raise MaskError(
            f"all corners of the polygons lie within 1 pixel of an image of {height} x {width}: are they fractions?"
            " Multiply x by the width and y by the height"
        )
    steps = sum(_border(np.array(polygon)) for polygon in polygons)
    if steps > MAX_BORDER:
        raise MaskError(f"the polygons' borders are too long: {steps:,.0f} steps, at most {MAX_BORDER:,} are drawn")
    left[0] -= steps
    if left[0] < 0:
        raise MaskError(
            f"the borders of the row's polygons are too long: at most {MAX_BORDERS:,} steps are drawn; write RLE"
        )
    merged = coco.merge(coco.frPyObjects(polygons, height, width))
    shown = ", ".join(f"polygon {place} has {n} point{'' if n == 1 else 's'}" for place, n in short[:3])
    more = f" and {len(short) - 3} more" if len(short) > 3 else ""
    dropped = f"{shown}{more}; fewer than 3 draw nothing, left out" if short else None
    return (height, width, bytes(merged["counts"])), dropped


def _looks_dense(value: Sequence[Any], height: int | None, width: int | None) -> bool:
    """Whether a list holds the rows of a dense mask.

    Rows of booleans do. Rows of zeros and ones do if they fit the image, or if its size is not known. So do more than
    three rows of other numbers that fit the image, or of numbers from 0 to 1 if its size is not known: probabilities.
    """
    first = value[0] if value else None
    if not isinstance(first, (list, tuple, np.ndarray)) or not len(first):
        return False
    if not all(isinstance(row, (list, tuple, np.ndarray)) and len(row) == len(first) for row in value):
        return False
    if all(isinstance(item, (bool, np.bool_)) for item in first):
        return True
    fits = height is None or width is None or (len(value), len(first)) == (height, width)
    if not fits or len(value) < 2:
        return False
    if all(_is_int(item) and item in (0, 1) for row in value for item in row):
        return True
    if len(value) < 4 or not all(_is_number(item) for row in value for item in row):
        return False
    return height is not None or all(0 <= item <= 1 for row in value for item in row)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _runs_advice(value: Sequence[Any]) -> str:
    """Advice for starts and lengths as Transformers and Kaggle write them; empty for other values."""
    numbers = value[0] if len(value) == 1 and isinstance(value[0], (list, tuple)) else value
    if len(numbers) < 2 or len(numbers) % 2 or not all(map(_is_int, numbers)):
        return ""
    ends = [start + length for start, length in zip(numbers[::2], numbers[1::2], strict=True)]
    if numbers[0] < 1 or any(end > start for end, start in zip(ends, numbers[2::2], strict=False)):
        return ""
    return (
        "; it looks like starts and lengths of runs, as binary_mask_to_rle of Transformers and Kaggle write them:"
        " decode them to an array, and write bench_datasets.masks.encode_dense(array)"
    )


def _border(polygon: NDArray[np.float64]) -> float:
    """Number of points that pycocotools sets along a polygon's border: five per pixel of each edge's longer side."""
    corners = polygon.reshape(-1, 2)
    edges = np.abs(corners - np.roll(corners, -1, axis=0))
    return 5 * float(edges.max(axis=1).sum()) + len(corners)


def _compress(runs: NDArray[np.int64]) -> bytes:
    data, _ = encode_counts(Runs(runs, np.array([0, len(runs)])))
    return data.tobytes()


def _is_int(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _show(value: object) -> str:
    return "null" if value is None else f"{type(value).__name__} {shorten(value)}"
