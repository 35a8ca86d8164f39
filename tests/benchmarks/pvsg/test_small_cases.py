"""Tiny cases that tell the right reading from each nearly right one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_datasets.benchmarks.pvsg import BENCHMARK
from bench_datasets.scoring.options import ScoreOptions

from ...support.dense_pvsg import Video
from ...support.pvsg_rows import batch, summed_up, truth_row

CASES = Path(__file__).resolve().parents[4] / "shared" / "data" / "small_cases.json"


def cases() -> list[dict[str, Any]]:
    if not CASES.is_file():
        return []
    return [case for case in json.loads(CASES.read_text()) if case["benchmark"] == "pvsg"]


def video_of(entry: dict[str, Any]) -> Video:
    height, width = entry["meta"]["height"], entry["meta"]["width"]
    return Video(
        np.array(entry["label_maps"]).reshape(-1, height, width),
        [(item["object_id"], item["category"]) for item in entry["objects"]],
        [tuple(item) for item in entry["relations"]],
    )


def found(case: dict[str, Any], protocol: str) -> dict[str, float]:
    rows = [truth_row(video_of(entry), entry["video_id"]) for entry in case["truth"]]
    by_video = {item["video_id"]: item for item in case["predictions"]}
    columns = batch(rows, [by_video[row["key"]] for row in rows])
    ranks = sorted({int(key.split("@")[1].split("/")[0]) for key in case["expect"]})
    metrics, _ = summed_up(BENCHMARK.score_table(columns, ScoreOptions(protocol)), protocol, ranks)
    return {key: metric.value for key, metric in metrics.items()}


@pytest.mark.skipif(not CASES.is_file(), reason=f"real inputs are absent: no file {CASES}")
def test_small_cases_file_has_cases() -> None:
    assert len(cases()) == 13


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    numbers = found(case, case["protocol"])
    assert {key: numbers[key] for key in case["expect"]} == pytest.approx(case["expect"])
    for reading, expect in case["wrong_readings"].items():
        assert any(abs(numbers[key] - value) > 1e-6 for key, value in expect.items()), reading


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_wrong_readings_by_name(case: dict[str, Any]) -> None:
    """Where the wrong reading is another protocol's right one, that protocol gives it."""
    for reading, expect in case["wrong_readings"].items():
        if reading in ("as volume", "as official"):
            numbers = found(case, reading.removeprefix("as "))
            assert {key: numbers[key] for key in expect} == pytest.approx(expect)
