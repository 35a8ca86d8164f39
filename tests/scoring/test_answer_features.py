"""Rows with answers beside them, declared by `answer_features`, scored and written as a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.data import open_truth


def test_masks_and_scores(tmp_path: Path) -> None:
    truth = open_truth("pbench", "sample")
    given = {row["id"]: row for row in bd.read_predictions("pbench", samples.pbench_sample_predictions("careful"))}

    def model(row: dict[str, Any]) -> dict[str, Any]:
        return {name: given[row["id"]][name] for name in ("pred_masks", "pred_scores")}

    features = bd.answer_features("pbench", truth.features, "pred_masks", "pred_scores")
    answered = truth.map(model, features=features)
    scores = bd.map_score(answered, "pbench")
    result = bd.summarize("pbench", scores, draws=0)
    files = bd.write_run(scores, result, tmp_path / "run")
    assert [file.name for file in files] == ["scores.parquet", "result.json"]
    file = samples.pbench_sample_predictions("careful")
    scored = bd.summarize("pbench", bd.score("pbench", truth, bd.read_predictions("pbench", file)), draws=0)
    again = bd.summarize("pbench", bd.read_scores(tmp_path / "run"), draws=0)
    assert again.metrics["average"].value == scored.metrics["average"].value
    assert bd.Result.load(tmp_path / "run").metrics["average"].value == scored.metrics["average"].value


def test_instancebench_and_pvsg() -> None:
    truth = open_truth("instancebench", "sample")

    def perfect(row: dict[str, Any]) -> dict[str, Any]:
        return {"pred_masks": [row["candidates"][row["target"]]["mask"]] * len(row["expressions"])}

    answered = truth.map(perfect, features=bd.answer_features("instancebench", truth.features))
    assert bd.summarize("instancebench", bd.map_score(answered, "instancebench"), draws=0).metrics["miou"].value == 1.0
    films = open_truth("pvsg", "sample")
    features = bd.answer_features("pvsg", films.features)
    silent = films.map(lambda _: {"pred_tubes": [], "pred_triplets": []}, features=features)
    assert bd.summarize("pvsg", bd.map_score(silent, "pvsg"), draws=0).metrics["R@20/0.5"].value == 0.0


def test_what_is_refused(tmp_path: Path) -> None:
    truth = open_truth("pbench", "sample")
    with pytest.raises(bd.BenchError, match="knows pred_masks, pred_scores, pred_centers, pred_sizes, got 'scores'"):
        bd.answer_features("pbench", truth.features, "scores")
    for features in (None, 5, [truth.features]):
        with pytest.raises(bd.BenchError, match=r"expected the ground truth's features \(truth.features\), found"):
            bd.answer_features("pbench", features)
    with pytest.raises(bd.BenchError, match="expected the Result of summarize, got NoneType"):
        bd.write_run(truth, None, tmp_path)  # type: ignore[arg-type]


def test_dense_arrays_out_of_map() -> None:
    truth = open_truth("pbench", "sample").select(range(2))
    answered = truth.map(lambda _: {"pred_masks": [np.eye(4, dtype=bool)]})
    with pytest.raises(bd.BenchError, match=r"looks like a dense array.*encode_dense"):
        bd.map_score(answered, "pbench")
