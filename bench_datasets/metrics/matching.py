"""One assignment of predicted to true masks a row, and what is counted from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from bench_datasets.faults import BenchError
from bench_datasets.masks import quotient

IOU_GRID: tuple[float, ...] = (0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80, 0.85, 0.90, 0.95)
"""IoU thresholds of Macro-F1, as literals: 0.50 + 0.05 * k would miss 0.85 by a rounding."""


class Assignment(NamedTuple):
    """Pairs of one row; predictions and truths that got no partner are in none.

    Attributes:
        predicted: `(p,) int64`, index of the prediction.
        true: `(p,) int64`, index of the truth.
    """

    predicted: NDArray[np.int64]
    true: NDArray[np.int64]


def assign(iou: ArrayLike) -> Assignment:
    """The assignment that maximises total IoU, made **once** and cut at each threshold afterwards.

    Args:
        iou: `(n, m) float`, IoU in [0, 1] of n predictions, in the order the benchmark's scorer sees them, with m
            truths; either may be 0. Assignments of equal total are settled as scipy's solver settles them.

    Raises:
        BenchError: `iou` is not two-dimensional or holds a value outside [0, 1].

    Source: Falcon Perception (arXiv 2603.27365), appendix on metrics, and its released scorer.

    Example:
        >>> assign([[0.52, 0.45], [0.50, 0.00]]).true     # .45 + .50 beats .52 + .00
        array([1, 0])
    """
    table = np.asarray(iou, dtype=np.float64)
    if table.ndim != 2:
        raise BenchError(f"iou: expected shape (n, m), got {table.shape}")
    if table.size and not (table.min() >= 0 and table.max() <= 1):
        raise BenchError(f"iou: expected values in [0, 1], got {table.min():g} to {table.max():g}")
    predicted, true = linear_sum_assignment(table, maximize=True)
    return Assignment(predicted, true)


def true_positives(intersections: ArrayLike, unions: ArrayLike, thresholds: ArrayLike) -> NDArray[np.int64]:
    """Pairs whose IoU reaches each threshold.

    Args:
        intersections: `(p,) int64`, pixels.
        unions: `(p,) int64`, pixels.
        thresholds: `(t,) float`; a pair counts from IoU >= threshold on.

    Returns:
        `(t,) int64`.

    Example:
        >>> true_positives([17], [20], [0.85, 0.90])
        array([1, 0])
    """
    reached = quotient(intersections, unions)[:, None] >= np.asarray(thresholds, np.float64)
    total: NDArray[np.int64] = reached.sum(axis=0, dtype=np.int64)
    return total
