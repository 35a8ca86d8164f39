"""The suite `whole`: its data are valid, the obvious implementations find the package's headlines, and it runs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from bench import obvious_whole, suite_whole, whole_data
from rich.console import Console

import bench_datasets as bd
from bench_datasets.data import open_truth


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FRAMES": 12, "OBJECTS": 4, "RELATIONS": 5, "TRIPLETS": 8, "_PATTERNS": 8}.items():
        monkeypatch.setattr(whole_data, name, value)


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("benchmark", suite_whole.HEADLINES)
def test_obvious_implementation_finds_headline_of_score(benchmark: str, every: int, tmp_path: Path) -> None:
    whole_data.make(benchmark, tmp_path, 0.002)
    implementation: Any = getattr(obvious_whole, benchmark)
    headline, keys, *seconds = implementation(tmp_path, every)
    scores = bd.score(benchmark, open_truth(benchmark, str(tmp_path)), str(tmp_path / whole_data.PREDICTIONS))
    rows = [i for i, key in enumerate(scores["key"]) if key in set(keys)]
    metrics = bd.summarize(benchmark, scores.select(rows), draws=0).metrics
    assert metrics[suite_whole.HEADLINES[benchmark]].value == pytest.approx(headline, abs=1e-9)
    assert len(set(keys)) < len(set(scores["key"])) if every > 1 else len(set(keys)) == len(set(scores["key"]))
    assert 0 < headline < 1
    assert all(value > 0 for value in seconds)


def test_suite_whole_measures_commands_in_processes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite_whole, "VARIANTS", (("pycocotools", 1, 0),))
    stream = io.StringIO()
    found = suite_whole.run(
        Console(file=stream, width=120), quick=True, sizes=(0.002,), folder=tmp_path, benchmarks=("instancebench",)
    )
    ((case,),) = found.values()
    (line,) = case["ours"]
    assert line["engine"] == "pycocotools"
    assert min(line["processor"], line["wall"], line["memory_mb"], line["ratio"]) > 0
    assert case["rows"] == 6
    assert "score, pycocotools" in stream.getvalue()
    assert (tmp_path / "instancebench-0.002-0" / whole_data.PREDICTIONS).is_file()


def test_suite_whole_refuses_other_headline(tmp_path: Path) -> None:
    whole_data.make("instancebench", tmp_path, 0.002)
    scores = bd.score(
        "instancebench", open_truth("instancebench", str(tmp_path)), str(tmp_path / whole_data.PREDICTIONS)
    )
    scores.to_parquet(str(tmp_path / "scores.parquet"))
    keys = sorted(set(scores["key"]))
    with pytest.raises(ValueError, match=r"miou: the obvious implementation finds 0\.5"):
        suite_whole._agree("instancebench", tmp_path, {"keys": keys, "headline": 0.5})
