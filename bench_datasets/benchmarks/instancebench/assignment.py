"""Which of several candidates a predicted mask means: by its cosine with each, not by IoU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-12
"""Both thresholds are met within this: a margin of exactly .05 must not fail on float noise."""

UNRESOLVED = -1
"""Stands for no candidate."""


class Identity(NamedTuple):
    """The candidate that each of n predictions was assigned to.

    Attributes:
        assigned: `(n,) int64`, position of the candidate, `UNRESOLVED` for none.
        score: `(n,) float64`, similarity with the best candidate.
        margin: `(n,) float64`, by which it beats the second best (0 if there is none).
    """

    assigned: NDArray[np.int64]
    score: NDArray[np.float64]
    margin: NDArray[np.float64]


def similarity(
    intersection: NDArray[np.int64], predicted: NDArray[np.int64], candidate: NDArray[np.int64]
) -> NDArray[np.float64]:
    """s(P, G) = |P and G| / sqrt(|P| |G|); 0 where either is empty.

    Args:
        intersection: `int64`, pixels.
        predicted: `int64`, pixels of P.
        candidate: `int64`, pixels of G.

    Source: InstanceBench, definition of identity.

    Example:
        >>> similarity(np.array([30]), np.array([100]), np.array([30])).round(4)
        array([0.5477])
    """
    product = np.sqrt(predicted.astype(np.float64) * candidate.astype(np.float64))
    return np.divide(intersection, product, out=np.zeros(product.shape), where=product > 0)


def identify(
    scores: NDArray[np.float64], offsets: NDArray[np.int64], min_score: float = 0.10, min_margin: float = 0.05
) -> Identity:
    """Assign predictions to candidates.

    A prediction means its best candidate (of equals the first) if its similarity reaches `min_score` and exceeds the
    second best by `min_margin`; all three within `TOLERANCE`. A prediction that shares no pixel with any means none.

    Args:
        scores: similarities of n predictions with their candidates, one prediction behind the other.
        offsets: `(n + 1,) int64`, where each prediction's begin; each has at least one candidate.
        min_score: least similarity.
        min_margin: least margin.

    Source: InstanceBench, definition of identity.

    Example:
        >>> identify(np.array([0.5, 0.45, 0.2, 0.9]), np.array([0, 2, 4])).assigned
        array([0, 1])
        >>> identify(np.array([0.5, 0.46]), np.array([0, 2])).assigned
        array([-1])
    """
    n = len(offsets) - 1
    if not n:
        return Identity(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    row = np.repeat(np.arange(n), np.diff(offsets))
    best = np.maximum.reduceat(scores, offsets[:-1])
    at = np.flatnonzero(scores >= best[row] - TOLERANCE)  # equal ones may differ in their last bit
    first = at[np.unique(row[at], return_index=True)[1]]
    rest = scores.copy()
    rest[first] = 0.0
    second = np.maximum.reduceat(rest, offsets[:-1])
    margin = best - second
    sure = (best >= min_score - TOLERANCE) & (margin >= min_margin - TOLERANCE) & (best > 0)
    return Identity(np.where(sure, first - offsets[:-1], UNRESOLVED), best, margin)
