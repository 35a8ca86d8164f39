"""Boundary IoU and boundary F of one row from pixels, erosions and distance transforms."""

from __future__ import annotations

import math

import numpy as np
from scipy import ndimage

from .dense_pbench import Dense


def counts(predicted: Dense, true: Dense) -> list[int]:
    """Shared and joined region pixels, then contour pixels hit and in all, of the prediction and of the truth."""
    diagonal = math.hypot(*true.shape)
    regions = [mask & ~_eroded(mask, max(1, round(0.02 * diagonal))) for mask in (predicted, true)]
    lines = [_contour(mask) for mask in (predicted, true)]
    close = [_distance(line) <= math.ceil(0.008 * diagonal) for line in lines]
    found = [regions[0] & regions[1], regions[0] | regions[1]]
    found += [lines[0] & close[1], lines[0], lines[1] & close[0], lines[1]]
    return [int(part.sum()) for part in found]


def f_score(predicted: Dense, true: Dense) -> float:
    """F of precision and recall of contour pixels."""
    if not predicted.any() or not true.any():
        return 0.0
    _, _, hit, of, found, wanted = counts(predicted, true)
    if not of and not wanted:
        return 1.0
    precision, recall = hit / of if of else 0.0, found / wanted if wanted else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _eroded(mask: Dense, steps: int) -> Dense:
    return np.asarray(ndimage.binary_erosion(mask, np.ones((3, 3)), iterations=steps, border_value=0))


def _contour(mask: Dense) -> Dense:
    wide = np.pad(mask, ((0, 1), (0, 1)), mode="edge")
    return np.asarray((mask != wide[1:, :-1]) | (mask != wide[:-1, 1:]) | (mask != wide[1:, 1:]))


def _distance(line: Dense) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return ndimage.distance_transform_edt(~line) if line.any() else np.full(line.shape, math.inf)
