"""`info` of every benchmark: rows by level or by split, faults, and the hash that a scoring gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.builders import open_truth


@pytest.mark.parametrize(
    ("benchmark", "by", "rows", "fault"),
    [
        ("pbench", "level", 35, "no_truth"),
        ("instancebench", "split", 20, "crowd_candidate"),
        ("pvsg", "split", 4, "unknown_predicate"),
    ],
)
def test_every_benchmark(run: Callable[..., Any], benchmark: str, by: str, rows: int, fault: str) -> None:
    done = run("info", benchmark, "--data", "sample", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["rows"]["read"] == rows == sum(part["rows"] for part in found["rows"][f"by_{by}"].values())
    assert found["faults"][fault]["count"] >= 1
    predictions = bd.read_predictions(benchmark, getattr(samples, f"{benchmark}_sample_predictions")("hasty"))
    scores = bd.score(benchmark, open_truth(benchmark, "sample"), predictions)
    assert found["content_sha256"] == bd.summarize(benchmark, scores, draws=0).dataset["content_sha256"]
    shown = run("info", benchmark, "--data", "sample")
    assert shown.exit_code == 0
    assert by in shown.stdout
    assert fault in shown.stdout
