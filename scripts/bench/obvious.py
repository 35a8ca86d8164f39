"""The loop that one would write: PBench's released protocol, row by row, pair by pair, with stock pycocotools.

Nothing is validated, nothing is decoded, nothing is remembered from one step to the next. It is what `bd.score` is held
against, and it is written without looking at the package: the two must give the same Macro-F1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pycocotools import mask as coco
from scipy.optimize import linear_sum_assignment

THRESHOLDS = (0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80, 0.85, 0.90, 0.95)

Rle = dict[str, Any]


def macro_f1(truth: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[Rle]]) -> dict[str, float]:
    """Macro-F1 by level.

    Args:
        truth: rows `{"level", "masks"}`, masks as RLE dicts with counts as bytes.
        answers: the predicted masks of each row.
    """
    scores: dict[str, list[float]] = {}
    for row, masks in zip(truth, answers, strict=True):
        f1, _ = score_row(row["masks"], masks, (0.5,) if row["level"] == "dense" else THRESHOLDS)
        scores.setdefault(row["level"], []).append(f1)
    return {level: sum(found) / len(found) for level, found in scores.items()}


def score_row(true: Sequence[Rle], masks: Sequence[Rle], thresholds: Sequence[float]) -> tuple[float, float]:
    """A row's mean F1 over the thresholds, and the IoU of the unions."""
    predicted = suppress(masks)
    iou = np.array([[coco.iou([p], [t], [0])[0][0] for t in true] for p in predicted]).reshape(
        len(predicted), len(true)
    )
    rows, columns = linear_sum_assignment(iou, maximize=True)
    f1 = 0.0
    for threshold in thresholds:
        tp = int((iou[rows, columns] >= threshold).sum())
        fp, fn = len(predicted) - tp, len(true) - tp
        f1 += 2 * tp / (2 * tp + fp + fn)
    union = coco.iou([coco.merge(predicted)], [coco.merge(list(true))], [0])[0][0] if predicted and true else 0.0
    return f1 / len(thresholds), union


def suppress(masks: Sequence[Rle]) -> list[Rle]:
    """Greedy suppression, largest first (of equal ones the later), IoU above .5."""
    areas = [int(coco.area(mask)) for mask in masks]
    order = sorted(range(len(masks)), key=lambda i: (areas[i], i), reverse=True)
    kept: list[Rle] = []
    for i in order:
        if all(coco.iou([masks[i]], [other], [0])[0][0] <= 0.5 for other in kept):
            kept.append(masks[i])
    return kept
