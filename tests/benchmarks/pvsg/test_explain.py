"""A video's relations in words and as a picture, and the `evaluate` module's manners."""

from __future__ import annotations

import math
from typing import Any

import evaluate
import numpy as np
import pytest
from datasets import Dataset

import bench_datasets as bd
from bench_datasets.faults import BenchError, FaultError

from ...support.pvsg_rows import numbers, prediction, truth_row
from ...support.random_videos import random_video


def test_explain_text_and_image(mini_truth: Dataset, mini_predictions: Dataset) -> None:
    found = bd.explain("pvsg", mini_truth[0], mini_predictions[0])
    assert "hit at overlap 0.5 within K = 20: 6 of 11" in found.text
    assert "adult 2 wearing cloth 9, frames 0-145" in found.text
    assert "rank 2 (score 0.93), overlap 0.7534; hit at 0.5 by rank 2" in found.text
    assert "100-145" in found.text  # the clipped span
    assert found.facts["relations"][0]["hit_rank"] == {"0.5": 1, "0.1": 1}
    assert found.picture.size[1] > 34 * 11
    pixels = np.asarray(found.picture).reshape(-1, 3)
    for colour in ((0, 114, 178), (230, 159, 0), (120, 120, 120)):
        assert (pixels == colour).all(axis=1).any()


@pytest.mark.parametrize("protocol", ["official", "volume", "card", "weak_official"])
def test_any_video_can_be_explained(protocol: str) -> None:
    random = np.random.default_rng(5)
    for _ in range(10):
        video = random_video(random)
        text = str(bd.explain("pvsg", truth_row(video), prediction(video), protocol))
        assert text.startswith(f"v under {protocol}: {len(video.relations)} relations")


def test_another_videos_prediction_is_refused(mini_truth: Dataset, mini_predictions: Dataset) -> None:
    mine, other = mini_truth[0]["key"], "0001_4164158586"
    assert mine == mini_predictions[0]["key"]
    for name in ("key", "video_id"):
        answer = {"tubes": mini_predictions[0]["pred_tubes"], "triplets": mini_predictions[0]["pred_triplets"]}
        assert bd.explain("pvsg", mini_truth[0], {**answer, name: mine}).key == mine
        with pytest.raises(BenchError, match=f"row {mine}, got the one for {other}"):
            bd.explain("pvsg", mini_truth[0], {**answer, name: other})


class TestEvaluate:
    @pytest.fixture
    def module(self) -> Any:
        return evaluate.load(bd.metric_path("pvsg"))

    @pytest.mark.parametrize("protocol", ["official", "volume"])
    def test_the_same_numbers(self, module: Any, protocol: str) -> None:
        random = np.random.default_rng(8)
        videos = [random_video(random) for _ in range(4)]
        rows = [truth_row(video, f"v{i}") for i, video in enumerate(videos)]
        answers = [prediction(video) for video in videos]
        expected = numbers(videos, protocol, (2, 20))
        found = module.compute(predictions=answers, references=rows, protocol=protocol, k=(2, 20))
        assert found == pytest.approx(expected, nan_ok=True)
        for row, answer in zip(rows, answers, strict=True):
            module.add(prediction=answer, reference=row)
        assert module.compute(protocol=protocol, k=(2, 20)) == pytest.approx(expected, nan_ok=True)

    def test_errors_name_the_video(self, module: Any) -> None:
        video = random_video(np.random.default_rng(8))
        row, answer = truth_row(video, "clip"), prediction(video)
        broken = {**answer, "tubes": [{"tube_id": 0, "category": "adult", "frames": [0], "masks": [{"size": [1, 1]}]}]}
        with pytest.raises(FaultError, match="clip: predictions, tube 0, frame 0"):
            module.compute(predictions=[broken], references=[row])
        with pytest.raises(FaultError, match="my own name"):
            module.compute(predictions=[broken], references=[row], ids=["my own name"])
        with pytest.raises(BenchError, match="as many as references"):
            module.compute(predictions=[], references=[row])
        with pytest.raises(BenchError, match=r"expected \{'tubes'"):
            module.compute(predictions=[[]], references=[row])
        with pytest.raises(FaultError, match="missing"):
            module.compute(predictions=[None], references=[row])
        found = module.compute(predictions=[None], references=[row], missing="empty")
        assert found["R@20/0.5"] == 0 or math.isnan(found["R@20/0.5"])
        with pytest.raises(BenchError, match="expected protocol"):
            module.compute(predictions=[answer], references=[row], ranks=(3,))
