"""Likely causes of a score near zero, computed from a sample of rows and their predictions."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets._compat import linear_sum_assignment
from bench_datasets.masks import MASK_TYPE, MaskColumn
from bench_datasets.scoring.prepare import Plan, UnitScorer

if TYPE_CHECKING:
    from bench_datasets.results.result import Result

logger = logging.getLogger(__name__)

NEAR_ZERO = 0.05
"""Headline value (a fraction of 1) up to which `score` looks for a cause."""

ROWS = 24
"""Rows that are looked at, spread evenly over all."""

MASKS = 12
"""Masks per row that are looked at."""

GRID = 48
"""Cells per side of the grid on which masks are compared."""

GOOD = 0.5
"""Mean IoU from which a changed reading of the predictions is called the likely cause."""

GAIN = 0.3
"""By how much the mean IoU must rise with the changed reading."""

Grid = NDArray[np.float64]
Change = Callable[[Grid], Grid]

_CHANGES: Mapping[str, Change] = {
    "the masks look inverted (background and foreground exchanged)": lambda grid: 1 - grid,
    "the masks look mirrored from left to right": lambda grid: grid[:, ::-1],
    "the masks look mirrored from top to bottom": lambda grid: grid[::-1],
    "the masks look turned by 180 degrees": lambda grid: grid[::-1, ::-1],
    "the masks look turned by 90 degrees": lambda grid: np.rot90(grid),
    "the masks look turned by 270 degrees": lambda grid: np.rot90(grid, 3),
    "the masks look transposed (rows and columns exchanged)": lambda grid: grid.T,
}


@dataclass(frozen=True)
class MaskPair:
    """Ground truth masks and predicted masks of one row, expression or frame.

    Attributes:
        truth: masks as `{"size", "counts"}`.
        predicted: likewise; None for a mask that could not be read.
    """

    truth: Sequence[Mapping[str, Any] | None]
    predicted: Sequence[Mapping[str, Any] | None]


def explain_near_zero(result: Result, plan: Plan) -> list[str]:
    """Likely causes of a headline of 0 or nearly 0; nothing for a higher one.

    Args:
        result: of the scoring.
        plan: the paired ground truth and predictions that were scored.

    Returns:
        One sentence per cause, the likeliest first; empty if none was found.
    """
    prefix = plan.metric.headline_parts.get(result.protocol["name"])
    names = [name for name in result.metrics if name == result.headline or name.startswith(prefix or "\0")]
    values = [value for name in names if not math.isnan(value := result.metrics[name].value)]
    return causes_in(plan) if values and max(values) <= NEAR_ZERO else []


def causes_in(plan: Plan) -> list[str]:
    """Signs in a sample of a plan's rows that predictions are read in another way than they were meant.

    Args:
        plan: paired ground truth and predictions.

    Returns:
        One sentence per cause, the likeliest first; empty if none was found.
    """
    metric, units = plan.metric, plan.units
    if not len(units):
        return []
    try:
        answered = np.concatenate([[0], np.cumsum(units.answers >= 0)])[units.begin]
        found = np.flatnonzero(np.diff(answered) > 0)
        if not len(found):
            return ["no prediction belongs to a row of the ground truth: do the ids belong to this data?"]
        chosen = found[np.unique(np.linspace(0, len(found) - 1, ROWS).astype(int))]
        table = UnitScorer(plan).attached(list(map(int, chosen)))
        causes: list[str] = metric.likely_causes(table, plan.labels.features)
    except Exception:  # a hint must not end a scoring that is done
        logger.debug("no hints for %s", plan.benchmark, exc_info=True)
        return []
    return causes


def mask_causes(pairs: Sequence[MaskPair], unit: str) -> list[str]:
    """Likely causes that masks alone show.

    Args:
        pairs: ground truth and predicted masks; pairs without ground truth masks are left out.
        unit: what a pair is, in the plural, such as `rows`.

    Returns:
        At most one sentence.

    Example:
        >>> import numpy as np
        >>> from bench_datasets.masks import encode_dense
        >>> corner = np.zeros((8, 8), bool)
        >>> corner[:3, :5] = True
        >>> pair = MaskPair([encode_dense(corner)], [encode_dense(~corner)])
        >>> mask_causes([pair], "rows")[0][:24]
        'the masks look inverted '
    """
    # Predictions of which no mask could be read are faults, and show nothing here.
    pairs = [pair for pair in pairs if any(pair.truth) and (any(pair.predicted) or not pair.predicted)]
    if not pairs:
        return []
    empty = sum(not any(pair.predicted) for pair in pairs)
    if empty > 0.9 * len(pairs):
        return [f"{empty} of {len(pairs)} {unit} looked at have no predicted mask, though the ground truth has masks"]
    pairs = [pair for pair in pairs if any(pair.predicted)]
    truth = np.stack([_coverage(pair.truth) for pair in pairs])
    predicted = np.stack([_coverage(pair.predicted) for pair in pairs])
    if not predicted.any():
        return [f"the predicted masks of all {len(pairs)} {unit} looked at are empty"]
    now = float(_iou(predicted, truth).mean())
    best, text = max(_alternatives(pairs, truth, predicted, now), default=(0.0, ""))
    if best >= max(GOOD, now + GAIN):
        return [f"{text} (mean IoU {best:.2f} instead of {now:.2f} if that is undone, over {len(pairs)} {unit})"]
    if predicted.mean() > 0.98 and truth.mean() < 0.9:
        return [f"the predicted masks cover the whole image ({len(pairs)} {unit} looked at)"]
    if now < 0.01:
        return [
            f"no predicted mask overlaps the ground truth in {len(pairs)} {unit} looked at: are the predictions for"
            " this data?"
        ]
    return []


def _alternatives(pairs: Sequence[MaskPair], truth: Grid, predicted: Grid, now: float) -> list[tuple[float, str]]:
    """Mean IoU under each other reading of the predictions, with the sentence that names the reading."""
    found: list[tuple[float, str]] = []
    exchanged = [_exchange_sides(pair) for pair in pairs]
    if any(masks is not None for masks in exchanged):
        read = np.stack(
            [old if masks is None else _coverage(masks) for masks, old in zip(exchanged, predicted, strict=True)]
        )
        found.append((float(_iou(read, truth).mean()), "height and width look exchanged in `size`"))
    for text, change in _CHANGES.items():
        changed = np.stack([change(grid) for grid in predicted])
        found.append((float(_iou(changed, truth).mean()), text))
    if len(pairs) >= 3:
        every = _iou(predicted[:, None], truth[None])
        row, column = linear_sum_assignment()(every, maximize=True)
        moved = row != column
        if moved.mean() > 0.5:
            text = "each prediction fits another row's ground truth: do the ids and their order belong to this data"
            found.append((float(every[row, column].mean()), text))
    return [(value, text) for value, text in found if value > now]


def _exchange_sides(pair: MaskPair) -> list[Mapping[str, Any] | None] | None:
    """The predicted masks with height and width exchanged, if that is the ground truth's size; else None."""
    size = next(list(mask["size"]) for mask in pair.truth if mask)
    masks = [mask for mask in pair.predicted if mask]
    if size[0] == size[1] or any(list(mask["size"]) != size[::-1] for mask in masks):
        return None
    return [{"size": size, "counts": mask["counts"]} for mask in masks]


def _coverage(masks: Sequence[Mapping[str, Any] | None]) -> Grid:
    """`(GRID, GRID) float64`, the share of each cell that the union of the masks covers; broken masks are left out."""
    column = MaskColumn.from_arrow(pa.array([mask for mask in masks if mask][:MASKS], MASK_TYPE))
    broken = column.problems()
    column = column.take([i for i in range(len(column)) if i not in broken and column.pixels[i]])
    union: NDArray[np.bool_] | None = None
    for i in range(len(column)):
        mask = column.decode(i)
        union = mask if union is None or union.shape != mask.shape else union | mask
    return np.zeros((GRID, GRID)) if union is None else _shrink(_shrink(union.astype(np.float64)).T).T


def _shrink(image: Grid) -> Grid:
    """Mean over `GRID` bands of rows; an image of fewer rows repeats them."""
    edges = np.linspace(0, len(image), GRID + 1)
    begin = np.minimum(edges[:-1].astype(int), len(image) - 1)
    stop = np.maximum(edges[1:].astype(int), begin + 1)
    total = np.concatenate([np.zeros((1, image.shape[1])), np.cumsum(image, axis=0)])
    bands: Grid = (total[stop] - total[begin]) / (stop - begin)[:, None]
    return bands


def _iou(a: Grid, b: Grid) -> Grid:
    """Soft IoU of grids over their last two axes; 0 where both are empty."""
    shared, union = np.minimum(a, b).sum((-2, -1)), np.maximum(a, b).sum((-2, -1))
    quotient: Grid = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return quotient
