"""Tiny cases that tell right from nearly right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, Features, List, Value

import bench_datasets as bd
from bench_datasets.masks import MASK_FEATURE, parse_masks

from ...support.pbench_rows import values

FEATURES = Features(id=Value("int64"), level=Value("string"), masks=List(MASK_FEATURE), count=Value("int32"))


def cases(shared: Path) -> list[dict[str, Any]]:
    found = json.loads((shared / "data" / "small_cases.json").read_text())
    return [case for case in found if case["benchmark"] == "pbench"]


def test_every_case_and_no_wrong_reading_of_it(shared: Path, tmp_path: Path) -> None:
    tried = 0
    for case in cases(shared):
        rows = [{**row, "masks": parse_masks(row["masks"])[0].to_pylist()} for row in case["truth"]]
        path = tmp_path / "predictions.jsonl"
        path.write_text("".join(json.dumps(prediction) + "\n" for prediction in case["predictions"]))
        scores = bd.score(
            "pbench", Dataset.from_list(rows, features=FEATURES), bd.read_predictions("pbench", path), case["protocol"]
        )
        found = values(bd.summarize("pbench", scores, draws=0))
        for key, value in case["expect"].items():
            assert found[key] == pytest.approx(value, abs=1e-12), case["name"]
        for reading, wrong in case["wrong_readings"].items():
            for key, value in wrong.items():
                assert abs(found[key] - value) > 1e-3, (case["name"], reading)
        tried += 1
    assert tried == 12
