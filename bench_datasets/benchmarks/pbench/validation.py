"""Which PBench rows can't be scored, and why."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.benchmarks.pbench.batch import Rows
from bench_datasets.benchmarks.pbench.protocol import PBenchProtocol
from bench_datasets.faults import Fault
from bench_datasets.masks import list_offsets
from bench_datasets.masks.ragged import MaskLists
from bench_datasets.masks.resize import MAX_RESIZED
from bench_datasets.predictions.arrow_types import odd_masks
from bench_datasets.scoring.faulty_rows import Faulty
from bench_datasets.scoring.mask_batch import prediction_faults
from bench_datasets.scoring.options import ScoreOptions

Problems = Mapping[int, list[str]]
"""What is wrong with masks, by row."""


def find_faults(rows: Rows, unsound_truth: Problems, protocol: PBenchProtocol, options: ScoreOptions) -> Faulty:
    """Rows that can't be scored as they are, with their faults.

    Args:
        rows: n rows.
        unsound_truth: what is wrong with their truth masks.
        protocol: they are scored under.
        options: how.

    Raises:
        FaultError: there is such a row and the options say to stop.
    """
    unsound_predictions = rows.predicted.problems()
    found = Faulty(options)
    for i in np.flatnonzero(_suspects(rows, (unsound_truth, unsound_predictions))).tolist():
        truth = [
            Fault("malformed_mask", rows.key(i), f"masks (ground truth), {_of_source(text)}; correct the source's row")
            for text in unsound_truth.get(i, ())
        ]
        truth = truth or _truth_sizes(rows, i)
        prediction = prediction_faults(
            rows.key(i),
            rows.reading[i].as_py() or (),
            unsound_predictions.get(i, ()),
            bool(rows.predicted.present[i]),
            options.missing,
        )
        if not truth and not prediction:
            prediction = _too_large(rows, i)
        if not truth and not prediction and protocol.row_score == "union_hit":
            prediction = _own_size(rows, i)
        found.add(i, truth, prediction)
    return found


def _of_source(text: str) -> str:
    """Reason why a ground truth mask is refused; the builder stores null for a mask that is not valid."""
    return text.replace("the mask is null", "the source holds no valid RLE, so the builder stored null")


def noted_sizes(rows: Rows) -> dict[int, list[str]]:
    """Rows with predicted masks of another size than the ground truth's, and the codes that say so."""
    given, row = rows.predicted.masks, rows.predicted.row_of
    first = rows.true.groups[:-1][row]
    compared = (np.diff(rows.true.groups) > 0)[row] & given.present
    heights, widths = np.zeros((2, len(given)), np.int64)
    size = rows.true.masks
    heights[compared], widths[compared] = size.heights[first[compared]], size.widths[first[compared]]
    other = compared & ((given.heights != heights) | (given.widths != widths))
    swapped = other & (given.heights == widths) & (given.widths == heights)
    found: dict[int, list[str]] = {}
    for code, some in (("resized", other & ~swapped), ("size_exchanged", swapped)):
        for i in np.unique(row[some]).tolist():
            found.setdefault(i, []).append(code)
    return found


def noted_masks(rows: Rows) -> dict[int, list[str]]:
    """Find the rows with predicted masks that look wrong, and the codes that say so: `noted_sizes`, `odd_masks`."""
    found = noted_sizes(rows)
    given, row = rows.predicted.masks, rows.predicted.row_of
    for code, i in odd_masks(given):
        found.setdefault(int(row[i]), []).append(code)
    return found


def _suspects(rows: Rows, problems: tuple[Problems, Problems]) -> NDArray[np.bool_]:
    """`(n,) bool`, the rows that are worth a closer look: all that have a fault, and few others."""
    suspects: NDArray[np.bool_] = ~rows.predicted.present | _uneven(rows.true) | (np.diff(rows.true.groups) == 0)
    for broken in problems:
        suspects[list(broken)] = True
    suspects |= _sizes_in(rows.reading) > 0
    return suspects


def _sizes_in(column: pa.Array) -> NDArray[np.int64]:
    """`(n,) int64`, items of each row's list; 0 where it is null."""
    return np.diff(list_offsets(column))


def _uneven(lists: MaskLists) -> NDArray[np.bool_]:
    """`(n,) bool`, rows whose masks are of several sizes, or of one beyond all bounds."""
    masks, row = lists.masks, lists.row_of
    first = lists.groups[:-1][row]
    odd = (masks.heights != masks.heights[first]) | (masks.widths != masks.widths[first])
    odd |= masks.heights * masks.widths > MAX_RESIZED
    found = np.zeros(len(lists.present), np.bool_)
    found[row[odd]] = True
    return found


def _truth_sizes(rows: Rows, i: int) -> list[Fault]:
    """Truth masks that differ in size can't be scored."""
    sizes = _sizes_of(rows.true, i)
    if len(sizes) < 2:
        return []
    shown = ", ".join(f"{h} x {w}" for h, w in sorted(sizes))
    text = f"masks (ground truth): expected one size, found {shown}; correct the source's row"
    return [Fault("image_size_mismatch", rows.key(i), text)]


def _too_large(rows: Rows, i: int) -> list[Fault]:
    """Predictions can't be resized to a size beyond all bounds."""
    sizes = _sizes_of(rows.true, i)
    for height, width in sizes:
        if height * width > MAX_RESIZED and _sizes_of(rows.predicted, i) - sizes:
            text = f"pred_masks: too large to resize to the ground truth's {height} x {width}; give them at that size"
            return [Fault("size_mismatch", rows.key(i), text)]
    return []


def _sizes_of(lists: MaskLists, i: int) -> set[tuple[int, int]]:
    """Heights and widths of one row's masks."""
    some = slice(int(lists.groups[i]), int(lists.groups[i + 1]))
    return set(zip(lists.masks.heights[some].tolist(), lists.masks.widths[some].tolist(), strict=True))


def _own_size(rows: Rows, i: int) -> list[Fault]:
    """A row without truth has no size but its predictions' own, which must then be one."""
    sizes = _sizes_of(rows.predicted, i)
    if rows.true.groups[i + 1] > rows.true.groups[i] or len(sizes) < 2:
        return []
    shown = ", ".join(f"{h} x {w}" for h, w in sorted(sizes))
    text = f"pred_masks: the row has no ground truth, so its predictions must be of one size; found {shown}"
    return [Fault("size_mismatch", rows.key(i), text)]
