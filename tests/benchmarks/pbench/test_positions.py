"""By place in the generated sequence: against a loop over the predictions as they came."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bench_datasets as bd

from ...support.dense_pbench import Dense, Row, at_size, iou
from ...support.pbench_rows import predictions_of, truth_of

BUCKETS = {"1": (1, 1), "2-5": (2, 5), "6-10": (6, 10), "11-20": (11, 20)}


def middle(mask: Dense) -> tuple[float, float] | None:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    return (columns[0] + columns[-1] + 1) / 2, (rows[0] + rows[-1] + 1) / 2


def plainly(rows: list[Row], centers: dict[int, Any]) -> dict[str, dict[str, tuple[float, int]]]:
    """Value and n of each number by place."""
    seen: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row.id not in centers:
            continue
        claimed: set[int] = set()
        for place, (mask, center) in enumerate(zip(row.predicted, centers[row.id], strict=True), 1):
            bucket = next(name for name, (low, high) in BUCKETS.items() if low <= place <= high)
            lists = seen.setdefault(bucket, {"precision@0.5": [], "duplicate_rate": [], "drift": []})
            overlaps = [iou(at_size(mask, truth.shape), truth) for truth in row.truth]
            best = max(range(len(overlaps)), key=lambda k: (overlaps[k], -k)) if overlaps else None
            good = best is not None and overlaps[best] >= 0.5
            lists["precision@0.5"].append(float(good and best not in claimed))
            lists["duplicate_rate"].append(float(good and best in claimed))
            if good:
                claimed.add(best)
            at = middle(mask)
            if at is not None:
                height, width = mask.shape
                away = math.hypot(center[0] * width - at[0], center[1] * height - at[1])
                lists["drift"].append(away / math.hypot(width, height))
    return {
        bucket: {name: (math.fsum(v) / len(v) if v else math.nan, len(v)) for name, v in lists.items()}
        for bucket, lists in seen.items()
    }


def test_places_in_the_sequence(tmp_path: Path) -> None:
    generator = np.random.default_rng(9)

    def block(shape: tuple[int, int]) -> Dense:
        mask = np.zeros(shape, bool)
        y, x = (int(generator.integers(side)) for side in shape)
        mask[y : y + int(generator.integers(0, 4)), x : x + int(generator.integers(0, 4))] = True
        return mask

    rows, centers = [], {}
    for number in range(25):
        truth = [block((6, 8)) for _ in range(int(generator.integers(0, 6)))]
        predicted = [
            truth[int(generator.integers(len(truth)))] if truth and generator.random() < 0.6 else block((6, 8))
            for _ in range(int(generator.integers(0, 14)))
        ]
        if truth and predicted:
            predicted[0] = block((12, 5))
        rows.append(Row(number, "dense", truth, predicted))
        if number % 5:
            centers[number] = generator.random((len(predicted), 2)).tolist()
    scores = bd.score("pbench", truth_of(rows), predictions_of(rows, tmp_path, pred_centers=centers))
    result = bd.summarize("pbench", scores, draws=0)
    found = {
        part.value: {key: (metric.value, metric.n) for key, metric in part.metrics.items()}
        for part in result.slices
        if part.by == "position"
    }
    expected = plainly(rows, centers)
    assert set(found) == set(expected) == set(BUCKETS)
    for name, metrics in expected.items():
        for key, (value, n) in metrics.items():
            assert found[name][key] == pytest.approx((value, n), nan_ok=True), (name, key)
    unordered = [row for row in scores if int(row["key"].split("/")[1]) % 5 == 0]
    assert {str(row["position_truth"]) for row in unordered} == {"None"}


def test_without_centers_there_are_none(tmp_path: Path) -> None:
    rows = [Row(0, "dense", [np.ones((2, 2), bool)], [np.ones((2, 2), bool)])]
    scores = bd.score("pbench", truth_of(rows), predictions_of(rows, tmp_path))
    assert {part.by for part in bd.summarize("pbench", scores, draws=0).slices} == {"count"}


def test_as_many_centers_as_masks(tmp_path: Path) -> None:
    rows = [Row(0, "dense", [np.ones((2, 2), bool)], [np.ones((2, 2), bool)])]
    with pytest.raises(bd.FaultError, match="dense/0"):
        bd.score("pbench", truth_of(rows), predictions_of(rows, tmp_path, pred_centers={0: [[0.5, 0.5]] * 2}))
