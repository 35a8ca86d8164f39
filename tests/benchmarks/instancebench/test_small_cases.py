"""Tiny cases that tell right from nearly right, through the builder, the reader, scores and summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

import bench_datasets as bd

from ...support.instancebench_sets import read_lines, values


def cases(shared: Path) -> list[dict[str, Any]]:
    found = json.loads((shared / "data" / "small_cases.json").read_text())
    return [case for case in found if case["benchmark"] == "instancebench"]


def test_every_case_and_no_wrong_reading_of_it(shared: Path, tmp_path: Path) -> None:
    tried = 0
    for k, case in enumerate(cases(shared)):
        folder = tmp_path / str(k)
        folder.mkdir()
        (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in case["truth"]))
        truth = load_dataset("instancebench", data_dir=str(folder), split="test")
        scores = bd.score("instancebench", truth, read_lines(case["predictions"], folder), case["protocol"])
        found = values(bd.summarize("instancebench", scores, draws=0))
        for key, value in case["expect"].items():
            assert found[key] == pytest.approx(value, abs=1e-12), case["name"]
        for reading, wrong in case["wrong_readings"].items():
            for key, value in wrong.items():
                assert abs(found[key] - value) > 1e-3, (case["name"], reading)
        tried += 1
    assert tried == 9
