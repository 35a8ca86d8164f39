"""Columns of tables from outside: what type they have, faults kept from an earlier reading."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from datasets import ClassLabel, Features
from numpy.typing import NDArray

from bench_datasets.masks import MASK_TYPE, MaskColumn
from bench_datasets.predictions.coerce import Found

WHOLE_IMAGE = "masks that cover every pixel of the image; is that meant, or was a soft mask cut at 0?"
"""Message of `check` for `whole_image`."""

INVERTED_MASK = "masks that cover the image's whole border; are object and background exchanged?"
"""Message of `check` for `inverted_mask`."""


def class_names(schema: pa.Schema, name: str) -> list[str]:
    """Names of a `ClassLabel` column, from the schema's own metadata; empty if it is none."""
    if name not in schema.names or not pa.types.is_integer(schema.field(name).type):
        return []
    try:
        feature = Features.from_arrow_schema(schema).get(name)
    except (ValueError, TypeError, KeyError):
        return []
    return list(feature.names) if isinstance(feature, ClassLabel) else []


def is_list(kind: pa.DataType) -> bool:
    """Whether it is a list of any sort."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_numbers(kind: pa.DataType) -> bool:
    """Whether it is a list of numbers, or of nothing."""
    if pa.types.is_null(kind):
        return True
    return is_list(kind) and bool(pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type))


def is_mask(kind: pa.DataType) -> bool:
    """Whether it is a struct of compressed masks, which can be validated as it lies."""
    if not pa.types.is_struct(kind):
        return False
    fields = {field.name: field.type for field in kind}
    if {"size", "counts"} - set(fields):
        return False
    size, counts = fields["size"], fields["counts"]
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return is_list(size) and bool(pa.types.is_signed_integer(size.value_type)) and any(test(counts) for test in texts)


def sound_masks(values: pa.Array) -> tuple[pa.StructArray, dict[int, str]]:
    """Masks as they lie, validated.

    Args:
        values: an array that `is_mask`.

    Returns:
        An array of `MASK_TYPE`, null where a mask is unsound, and what is wrong by position.
    """
    column = MaskColumn.from_arrow(values)
    wrong = column.problems()
    masks = column.to_arrow()
    if not wrong:
        return masks, wrong
    bad = np.zeros(len(masks), np.bool_)
    bad[list(wrong)] = True
    parts = [masks.field(field.name) for field in MASK_TYPE]
    return pa.StructArray.from_arrays(parts, fields=list(MASK_TYPE), mask=pa.array(bad)), wrong


def empty_masks(column: MaskColumn) -> list[int]:
    """Places of the masks without a pixel, in a column known to be sound.

    Only short counts are read: a mask of no pixel is one run (or it and zero-length ones).
    """
    short = np.flatnonzero(np.diff(column.offsets) <= 32)
    return short[column.take(short).areas() == 0].tolist()  # type: ignore[no-any-return]


def odd_masks(column: MaskColumn) -> Iterator[tuple[str, int]]:
    """Masks that cover the whole image, or whose background looks like the object.

    Args:
        column: n masks; those that are not valid are left out.

    Yields:
        `whole_image` and the place of each mask that covers every pixel; `inverted_mask` and the place of each mask
        that covers the image's whole border, but not every pixel, as a mask with exchanged values does.

    Example:
        >>> full, hole = {"size": [3, 3], "counts": "09"}, {"size": [3, 3], "counts": "0410"}
        >>> list(odd_masks(MaskColumn.from_values([full, hole])))
        [('whole_image', 0), ('inverted_mask', 1)]
    """
    first = _begin_with_a_full_column(column)
    if not len(first):
        return
    some = column.take(first)
    broken = some.problems()
    if broken:
        valid = np.setdiff1d(np.arange(len(first)), list(broken))
        first, some = first[valid], some.take(valid)
    runs, n = some.runs, len(first)
    ends = np.cumsum(runs.lengths)
    begins = ends - runs.lengths
    row = np.repeat(np.arange(n), np.diff(runs.offsets))
    origin = np.append(begins, 0)[runs.offsets[:-1]]
    begins, ends = begins - origin[row], ends - origin[row]
    background = (np.arange(len(row)) - runs.offsets[:-1][row]) % 2 == 0
    background &= runs.lengths > 0
    row, begins, ends = row[background], begins[background], ends[background]
    height, width = some.heights[row], some.widths[row]
    x = begins // height
    # A background run lies inside if it stays in one column and touches no side of the image.
    inside = (x == (ends - 1) // height) & (x > 0) & (x < width - 1)
    inside &= (begins % height > 0) & ((ends - 1) % height < height - 1)
    runs_in, touching = np.bincount(row, minlength=n), np.bincount(row[~inside], minlength=n)
    for i in np.flatnonzero(touching == 0).tolist():
        yield "inverted_mask" if runs_in[i] else "whole_image", int(first[i])


def _begin_with_a_full_column(column: MaskColumn) -> NDArray[np.int64]:
    """Places of masks whose first run of foreground begins at the first pixel and fills a column or more.

    Only the first two numbers of each string are read, so that this costs little for all other masks.
    """
    starts, stops = column.offsets[:-1], column.offsets[1:]
    found = np.flatnonzero(stops > starts + 1)
    found = found[column.data[starts[found]] == ord("0")]  # no background before the first pixel
    place, length = starts[found] + 1, np.zeros(len(found), np.int64)
    going = np.ones(len(found), np.bool_)
    for shift in range(0, 35, 5):
        going &= place < stops[found]
        if not going.any():
            break
        digit = column.data[np.where(going, place, 0)].astype(np.int64) - 48
        length += np.where(going, (digit & 31) << shift, 0)
        going &= (digit & 32) > 0
        place += 1
    heights = column.heights[found]
    full: NDArray[np.int64] = found[(heights > 0) & (length >= heights)]
    return full


def odd_boxes(
    boxes: NDArray[np.float64], heights: NDArray[np.int64], widths: NDArray[np.int64]
) -> Iterator[tuple[str, int]]:
    """Find boxes that are probably not [x, y, width, height] in pixels.

    Args:
        boxes: `(n, 4) float64`, finite.
        heights: `(n,) int64`, height of each box's image in pixels; 0 where it is not known.
        widths: `(n,) int64`, likewise.

    Yields:
        `outside_image` and the place of each box that reaches more than one pixel beyond its image; `small_box` and
        the place of each box within [0, 1] x [0, 1] whose numbers are not all whole, as fractions are.

    Example:
        >>> boxes = np.array([[5.0, 5.0, 30.0, 20.0], [5.0, 5.0, 60.0, 20.0], [0.1, 0.1, 0.5, 0.4]])
        >>> list(odd_boxes(boxes, np.array([40, 40, 40]), np.array([60, 60, 60])))
        [('outside_image', 1), ('small_box', 2)]
    """
    ends = boxes[:, :2] + boxes[:, 2:]
    beyond = (ends[:, 0] > widths + 1) | (ends[:, 1] > heights + 1) | (boxes[:, :2] < -1).any(axis=1)
    fraction = (boxes >= 0).all(axis=1) & (ends <= 1).all(axis=1) & (boxes != np.floor(boxes)).any(axis=1)
    for code, some in (("outside_image", beyond & (heights > 0)), ("small_box", fraction)):
        for i in np.flatnonzero(some).tolist():
            yield code, i


def boxes_apart(boxes: NDArray[np.float64], masks: MaskColumn) -> NDArray[np.int64]:
    """Find predictions whose box and mask are about different places.

    A box `[x1, y1, x2, y2]` in place of `[x, y, width, height]` is found so, too.

    Args:
        boxes: `(n, 4) float64`, finite.
        masks: n valid masks; those without a pixel are left out.

    Returns:
        Places of the predictions whose two boxes have an IoU below 0.5, `(k,) int64`.

    Example:
        >>> masks = MaskColumn.from_values([{"size": [2, 3], "counts": "42"}] * 2)  # the last column
        >>> boxes_apart(np.array([[2.0, 0.0, 1.0, 2.0], [0.0, 0.0, 1.0, 1.0]]), masks).tolist()
        [1]
    """
    x, y, w, h = masks.boxes().astype(np.float64).T
    left, top, width, height = boxes.T
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        across = np.maximum(0.0, np.minimum(x + w, left + width) - np.maximum(x, left))
        down = np.maximum(0.0, np.minimum(y + h, top + height) - np.maximum(y, top))
        iou = across * down / (w * h + width * height - across * down)
    return np.flatnonzero((masks.areas() > 0) & ~(iou >= 0.5))


def size_advice(found: tuple[int, int], expected: tuple[int, int], otherwise: str = "") -> str:
    """Advice for a mask of another size: the end of a message, with its separator.

    Args:
        found: height and width of the mask, in pixels.
        expected: height and width that it should have.
        otherwise: the advice where the sides are not exchanged.

    Example:
        >>> size_advice((60, 40), (40, 60))
        '; height and width are exchanged: write size as [height, width]'
    """
    if exchanged(found, expected):
        return "; height and width are exchanged: write size as [height, width]"
    return f"; {otherwise}" if otherwise else ""


def exchanged(found: tuple[int, int], expected: tuple[int, int]) -> bool:
    """Whether a size is the expected one with height and width exchanged."""
    return found[0] != found[1] and (int(found[1]), int(found[0])) == (int(expected[0]), int(expected[1]))


def keep_earlier(column: pa.Array | None, faults: list[Found]) -> None:
    """Put the faults of an earlier reading first, and drop the faults that its nulls would repeat.

    Args:
        column: `pred_faults`, or `None` where the table has none.
        faults: by row, to be changed.
    """
    if column is None:
        return
    for row, items in enumerate(column.to_pylist()):
        earlier = [(str(item["code"]), str(item["text"])) for item in items or [] if item]
        if earlier:
            said = {_about(fault) for fault in earlier}
            faults[row][:] = earlier + [fault for fault in faults[row] if _about(fault) not in said]


def _about(fault: tuple[str, str]) -> tuple[str, str]:
    """The kind of a fault and its place; a mask that could not be read is null, which is the same fault."""
    code = "malformed_mask" if fault[0] == "unreadable_mask" else fault[0]
    return code, fault[1].split(":", 1)[0]
