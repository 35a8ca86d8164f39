"""`info` of every benchmark: rows by level or by split, faults, and the hash that a scoring gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.data import open_truth


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


def test_info_no_row_can_be_scored_lists_the_faults(run: Callable[..., Any], tmp_path: Path) -> None:
    size = pa.list_(pa.int64())
    masks = pa.array([[{"size": [40, 60], "counts": "zz"}]], pa.list_(pa.struct({"size": size, "counts": pa.string()})))
    table = pa.table({"expression": ["a"], "masks": masks, "count": pa.array([1], pa.int32()), "id": [7]})
    (tmp_path / "data").mkdir()
    pq.write_table(table, tmp_path / "data" / "level_0-00000-of-00001.parquet")
    done = run("info", "pbench", "--data", tmp_path, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["faults"]["malformed_mask"]["examples"] == ["level_0/7"]
