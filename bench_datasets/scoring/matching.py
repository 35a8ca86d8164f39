"""Assignment of predicted masks to ground truth masks, once per row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench_datasets._compat import linear_sum_assignment
from bench_datasets.faults import BenchError
from bench_datasets.masks import quotient

MARGIN = 1e-9
"""By how much a pair must beat its rivals to be called certain: far above what sums of quotients lose to rounding."""

ROUNDS = 8
"""How often `settled` looks again at what is left; what is still open then is for the solver."""


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
    predicted, true = linear_sum_assignment()(table, maximize=True)
    return Assignment(predicted, true)


def settled(
    predicted: NDArray[np.int64], true: NDArray[np.int64], iou: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Pairs that `assign` must choose, found without solving the assignment.

    A pair whose IoU exceeds the sum of its two best rivals', the best other pair of its prediction and the best other
    pair of its truth, is in every assignment of the largest total: one without it has at most these two in its place,
    and would gain by the exchange. With such pairs and all their rivals gone, others may become certain.

    Args:
        predicted: `(p,) int64`, rising; the prediction of each pair that shares a pixel, of any number of rows.
        true: `(p,) int64`, its truth.
        iou: `(p,) float64`, above 0.

    Returns:
        `(p,) bool`, the pairs that are certain, and `(p,) bool`, those that are left open. In a row without open ones
        the certain ones are all that `assign` chooses; in any other row it has to be asked.

    Example:
        >>> settled(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([0.9, 0.2, 0.6]))
        (array([ True, False,  True]), array([False, False, False]))
        >>> settled(np.array([0, 1]), np.array([0, 0]), np.array([0.5, 0.5]))[1]     # a tie is for the solver
        array([ True,  True])
    """
    chosen, left = np.zeros(len(iou), np.bool_), np.arange(len(iou))
    by_truth = np.argsort(true, kind="stable")
    for _ in range(ROUNDS):
        if not len(left):
            break
        p, t, w = predicted[left], true[left], iou[left]
        rivals = _best_other(p, w, np.arange(len(left)))
        rivals += _best_other(t, w, by_truth)
        certain = w > rivals + MARGIN
        if not certain.any():
            break
        chosen[left[certain]] = True
        gone = np.isin(p, p[certain]) | np.isin(t, t[certain])
        place = np.cumsum(~gone) - 1
        by_truth = place[by_truth[~gone[by_truth]]]
        left = left[~gone]
    still = np.zeros(len(iou), np.bool_)
    still[left] = True
    return chosen, still


def _best_other(end: NDArray[np.int64], weight: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.float64]:
    """`(p,) float64`, for each pair the largest weight among the others at one of its ends; 0 if it is alone there.

    Args:
        end: `(p,) int64`, what a pair has at that end.
        weight: `(p,) float64`, above 0.
        order: `(p,) int64`, the pairs sorted by `end`.
    """
    sorted_end, w = end[order], weight[order]
    first = np.flatnonzero(np.concatenate([[True], sorted_end[1:] != sorted_end[:-1]]))
    sizes = np.diff(np.append(first, len(w)))
    best = np.repeat(np.maximum.reduceat(w, first), sizes)
    top = w == best
    shared = np.repeat(np.add.reduceat(top.astype(np.int64), first), sizes) > 1
    second = np.repeat(np.maximum.reduceat(np.where(top, 0.0, w), first), sizes)
    result = np.empty(len(w))
    result[order] = np.where(top & ~shared, second, best)
    return result


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
