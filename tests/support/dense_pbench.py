"""PBench's numbers from pixels, scipy and the definitions alone, slowly. Nothing of the package is used here."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.optimize import linear_sum_assignment

Dense = NDArray[np.bool_]
LEVELS = ("level_0", "level_1", "level_2", "level_3", "level_4", "dense")
THRESHOLDS = (0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80, 0.85, 0.90, 0.95)


@dataclass
class Row:
    """One row of truth with its prediction."""

    id: int
    level: str
    truth: list[Dense]
    predicted: list[Dense] = field(default_factory=list)


def iou(a: Dense, b: Dense) -> float:
    union = int((a | b).sum())
    return int((a & b).sum()) / union if union else 0.0


def at_size(mask: Dense, shape: tuple[int, ...]) -> Dense:
    if mask.shape == shape:
        return mask
    image = Image.fromarray(mask.astype(np.uint8) * 255)
    return np.asarray(image.resize((shape[1], shape[0]), Image.Resampling.NEAREST)) > 0


def by_area(masks: list[Dense]) -> list[int]:
    """Largest first; of equal areas the later one first."""
    return sorted(range(len(masks)), key=lambda i: (-int(masks[i].sum()), -i))


def suppressed(masks: list[Dense]) -> list[Dense]:
    kept: list[Dense] = []
    for i in by_area(masks):
        if all(iou(masks[i], other) <= 0.5 for other in kept):
            kept.append(masks[i])
    return kept


def true_positives(predicted: list[Dense], truth: list[Dense]) -> list[int]:
    """One assignment, cut at each threshold."""
    table = np.array([[iou(p, t) for t in truth] for p in predicted]).reshape(len(predicted), len(truth))
    pairs = zip(*linear_sum_assignment(table, maximize=True), strict=True)
    reached = [table[pair] for pair in pairs]
    return [sum(value >= t for value in reached) for t in THRESHOLDS]


def union_of(masks: list[Dense], shape: tuple[int, ...]) -> Dense:
    return np.any([np.zeros(shape, bool), *masks], axis=0)


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def ratio(top: float, bottom: float) -> float:
    return top / bottom if bottom else math.nan


def measure(row: Row, protocol: str) -> dict[str, Any]:
    """What one row adds to the numbers."""
    shape = row.truth[0].shape if row.truth else (row.predicted[0].shape if row.predicted else (1, 1))
    raw = [at_size(mask, shape) for mask in row.predicted] if row.truth else row.predicted
    after_nms = suppressed(raw) if row.truth else raw
    clean = raw if protocol == "card" else after_nms
    tp = true_positives(clean, row.truth)
    total = len(clean) + len(row.truth)
    f1 = [2 * hits / total if total else math.nan for hits in tp]
    left, right = union_of(clean, shape), union_of(row.truth, shape)
    if row.truth:
        score = mean(f1[:1] if row.level == "dense" else f1)
        union_iou = iou(left, right)
    else:
        score = float(not row.predicted)
        union_iou = score
    if protocol == "card":
        score = float(union_iou >= 0.5)
    overlap = [[iou(mask, truth) >= 0.5 for mask in raw] for truth in row.truth]
    return {
        "score": score, "counted": bool(row.truth) or protocol != "released",
        "tp": tp, "masks": total, "union_iou": union_iou,
        "shared": int((left & right).sum()), "joined": int((left | right).sum()),
        "raw": len(raw), "removed": len(raw) - len(after_nms), "truth": len(row.truth),
        "duplicates": sum(max(0, sum(hits) - 1) for hits in overlap),
        "error": abs(len(raw) - len(row.truth)),
    }  # fmt: skip


def numbers(measured: list[dict[str, Any]], protocol: str) -> dict[str, float]:
    """Every number of some rows, without a level in its name."""
    with_truth = [m for m in measured if m["truth"]]
    pooled = [ratio(2 * sum(m["tp"][t] for m in with_truth), sum(m["masks"] for m in with_truth)) for t in range(10)]
    tp = sum(1 for m in measured if m["truth"] and m["raw"])
    tn = sum(1 for m in measured if not m["truth"] and not m["raw"])
    fp = sum(1 for m in measured if not m["truth"] and m["raw"])
    fn = sum(1 for m in measured if m["truth"] and not m["raw"])
    mcc = ratio(tp * tn - fp * fn, math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))
    unions = measured if protocol == "card" else with_truth
    return {
        "accuracy" if protocol == "card" else "macro_f1": mean([m["score"] for m in measured if m["counted"]]),
        "pmf1": mean(pooled),
        "il_mcc": mcc,
        "cgf1": mean(pooled) * mcc,
        "giou": mean([m["union_iou"] for m in unions]),
        "ciou": ratio(sum(m["shared"] for m in unions), sum(m["joined"] for m in unions)),
        "micro_f1@0.5": pooled[0],
        "mask_redundancy_rate": ratio(sum(m["removed"] for m in with_truth), sum(m["raw"] for m in with_truth)),
        "duplicates": mean([m["duplicates"] for m in with_truth]),
        "count_error": mean([m["error"] for m in measured]),
        "collapse": mean([float(not m["raw"]) for m in with_truth]),
        "il_tp": tp,
        "il_tn": tn,
        "il_fp": fp,
        "il_fn": fn,
    }


def all_numbers(rows: list[Row], protocol: str) -> dict[str, float]:
    """Every number by level, and the one over the levels."""
    by_level = {level: [measure(row, protocol) for row in rows if row.level == level] for level in LEVELS}
    result = {
        f"{name}/{level}": value
        for level, measured in by_level.items()
        if measured
        for name, value in numbers(measured, protocol).items()
    }
    if protocol == "card":
        hits = [m["score"] for level in LEVELS[:5] for m in by_level[level]]
        result["accuracy"] = mean(hits)
    elif all(any(m["counted"] for m in by_level[level]) for level in LEVELS):
        result["average"] = mean([result[f"macro_f1/{level}"] for level in LEVELS])
    return result
