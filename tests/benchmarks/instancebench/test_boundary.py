"""Outlines of InstanceBench's predictions against erosion on dense pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from datasets import load_dataset
from pycocotools import mask as coco
from scipy.ndimage import binary_erosion

import bench_datasets as bd

CORE = (0, 1)


def dense(mask: dict | None, like: np.ndarray | None = None) -> np.ndarray:
    if mask is None:
        assert like is not None
        return np.zeros_like(like)
    return coco.decode({"size": mask["size"], "counts": mask["counts"].encode()}).astype(bool)


def region(mask: np.ndarray) -> np.ndarray:
    depth = max(1, round(0.02 * float(np.hypot(*mask.shape))))
    return mask & ~binary_erosion(np.pad(mask, 1), np.ones((3, 3)), iterations=depth)[1:-1, 1:-1]


@pytest.mark.parametrize("engine", ["numba", "pycocotools"])
def test_the_real_rows(shared: Path, engine: str) -> None:
    truth = load_dataset("instancebench", split="test", data_dir=str(shared / "data/instancebench_mini"), images=False)
    answers = bd.read_predictions("instancebench", shared / "data/predictions_a/instancebench.jsonl")
    masks = {row["expression_id"]: row["mask"] for row in answers}
    expected = []
    for row in truth:
        target = dense(row["candidates"][row["target"]]["mask"])
        for expression in row["expressions"]:
            if expression["role"] in CORE:
                a, b = region(dense(masks[expression["expression_id"]], target)), region(target)
                expected.append((a & b).sum() / (a | b).sum())
    scores = bd.score("instancebench", truth, answers, boundary=True, engine=engine)
    result = bd.summarize("instancebench", scores, draws=0)
    assert result.metrics["boundary_iou/miou"].value == pytest.approx(float(np.mean(expected)), abs=1e-12)
    assert 0 < result.metrics["boundary_f/miou"].value < 1
    assert result.settings["boundary"]
    plain = bd.summarize("instancebench", bd.score("instancebench", truth, answers, engine=engine), draws=0)
    assert not any("boundary" in key for key in plain.metrics)
    assert plain.metrics["miou"].value == result.metrics["miou"].value


def test_a_perfect_answer_and_none() -> None:
    square = np.zeros((12, 12), bool)
    square[3:9, 2:10] = True
    runs = coco.encode(np.asfortranarray(square.astype(np.uint8)))
    mask = {"size": [12, 12], "counts": runs["counts"].decode()}
    row = {
        "key": "a", "source": "coco", "category": "thing", "height": 12, "width": 12, "target": 0,
        "candidates": [{"instance_id": "0", "mask": mask, "iscrowd": False}],
        "expressions": [
            {"expression_id": f"a-{role}", "text": role, "role": role, "operation": "ordinal"}
            for role in ("minimal", "variant")
        ],
        "pred_masks": [mask, None],
    }  # fmt: skip
    scored = bd.scorer("instancebench", boundary=True)({name: [value] for name, value in row.items()})
    inner, union = scored["boundary_intersection"][0], scored["boundary_union"][0]
    assert inner == [int(region(square).sum()), 0]
    assert union == [int(region(square).sum())] * 2
