"""Show a ground truth row: its expression or relations as text, and its masks as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench_datasets.benchmark import BENCHMARKS
from bench_datasets.display.overlay import Seen, overlay
from bench_datasets.faults import BenchError
from bench_datasets.masks import MaskColumn
from bench_datasets.masks.ragged import read_mask_lists

MOST = 12
"""Lines about one row; the rest is counted."""


@dataclass(frozen=True)
class Shown(Seen):
    """A row to look at.

    Attributes:
        key: the row's key.
        text: what it asks for, line by line.
        picture: its masks over the image, or over a plain ground where the row has none.
    """


def show(row: Mapping[str, Any], *, frame: int | None = None) -> Shown:
    """A truth row of any benchmark, with its predictions where it has some, to look at.

    Args:
        row: as the builder gives it, with or without its image; `pred_masks` (PBench, InstanceBench) is drawn over it.
        frame: PVSG: the frame to draw; by default the one in which most objects are seen.

    Returns:
        Words and a picture; truth is blue with stripes that rise, predictions are orange with stripes that fall.

    Raises:
        BenchError: it is no row of a benchmark, or its masks are unsound.

    Example:
        >>> print(show({"id": 7, "level": "level_0", "expression": "dog", "masks": [{"size": [2, 3], "counts": "15"}]}))
        level_0/7: 'dog'
        1 mask, 2 x 3 pixels
          mask 0: 5 pixels
    """
    if not isinstance(row, Mapping):
        raise BenchError(f"show: expected one row, a mapping of its columns, got {type(row).__name__}")
    for benchmark in BENCHMARKS.values():
        if (shown := benchmark.show_row(row, frame)) is not None:
            return shown
    raise BenchError(f"show: expected a row with masks, candidates or tubes, found {', '.join(map(str, row))[:200]}")


def read_masks(values: Any, what: str, key: str) -> MaskColumn:
    """Masks of a row without nulls.

    Raises:
        BenchError: a mask is invalid, or ground truth masks differ in size.
    """
    lists = read_mask_lists([[mask for mask in values or () if mask is not None]])
    wrong = lists.problems().get(0)
    if wrong:
        raise BenchError(f"{key}: {what}: {wrong[0]}; mend it, or look at another row")
    sizes = set(zip(lists.masks.heights.tolist(), lists.masks.widths.tolist(), strict=True))
    if len(sizes) > 1 and what != "pred_masks":
        raise BenchError(f"{key}: {what}: expected masks of one size, found {sorted(sizes)}")
    return lists.masks


def row_size(masks: MaskColumn, row: Mapping[str, Any]) -> tuple[int, int] | None:
    """Height and width of a row's masks, or else of its image."""
    if len(masks):
        return int(masks.heights[0]), int(masks.widths[0])
    height, width = row.get("height"), row.get("width")
    return (int(height), int(width)) if height and width else None


def shorten_lines(lines: list[str], what: str) -> list[str]:
    """The first lines, and how many more there are."""
    return lines[:MOST] + ([f"  and {len(lines) - MOST} {what} more"] if len(lines) > MOST else [])


def show_masks(row: Mapping[str, Any], key: str) -> Shown:
    """A row with a list of masks: its expression, and the masks over the image.

    Args:
        row: with `masks`, and `pred_masks` if it has predictions.
        key: what it is called.

    Raises:
        BenchError: a mask is invalid.
    """
    true = read_masks(row["masks"], "masks", key)
    given = read_masks(row["pred_masks"], "pred_masks", key) if row.get("pred_masks") is not None else None
    size = row_size(true, row)
    shape = f", {size[0]} x {size[1]} pixels" if size else ""
    lines = [f"{key}: {row.get('expression')!r}", f"{len(true)} mask{'' if len(true) == 1 else 's'}{shape}"]
    if given is not None:
        lines.append(f"{len(given)} predicted")
    lines += shorten_lines([f"  mask {i}: {area:,} pixels" for i, area in enumerate(true.areas().tolist())], "masks")
    return Shown(key, "\n".join(lines), overlay(row.get("image"), size, true, given if size else None))
