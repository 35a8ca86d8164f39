"""`score --ray`: what it asks for, and what it says where Ray is not installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bench_datasets as bd
from bench_datasets.data import open_truth
from bench_datasets.execution import ray
from bench_datasets.samples import pbench_sample_predictions

WHAT = ["score", "pbench", "--ray", "--predictions", "out.parquet"]


def test_without_ray_it_says_so(run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = run(*WHAT, "--data", "truth.parquet", "--out", tmp_path / "run")
    assert done.exit_code == 1
    assert "bench-datasets[ray]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "run"], "--data must name"),
        (["--out", "run", "--data", "sample"], "--data must name"),
        (["--data", "truth.parquet"], "--out must name"),
        (["--data", "t.parquet", "--out", "run", "--num-proc", "2"], "--num-proc does not go with it"),
        (["--data", "t.parquet", "--out", "run", "--shard", "0/2"], "--shard does not go with it"),
        (["--data", "t.parquet", "--out", "run", "--limit", "3"], "--limit does not go with it"),
        (["--data", "t.parquet", "--out", "run", "--stream"], "--stream does not go with it"),
    ],
)
def test_usage(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*WHAT, *words)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_an_earlier_run_is_told_of_as_without_it(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray's place is taken by scoring here, which is asked to leave the folder alone."""
    folder, asked = tmp_path / "run", []

    def scored_elsewhere(benchmark: str, truth: str, predictions: str, out: str, **options: Any) -> Any:
        asked.append((out, options.pop("write")))
        before = (folder / "scores.parquet").read_bytes() if folder.joinpath("result.json").exists() else None
        found = bd.read_predictions(benchmark, predictions)
        scores = bd.score(benchmark, open_truth(benchmark, "sample"), found, **options)
        assert before is None or before == (folder / "scores.parquet").read_bytes()
        return scores

    monkeypatch.setattr(ray, "score_on_ray", scored_elsewhere)

    def told(model: str, *more: str) -> str:
        words = ["--predictions", pbench_sample_predictions(model), "--out", folder, "--draws", 0, *more]
        done = run("score", "pbench", *words)
        assert done.exit_code == 0, done.stderr
        return str(done.stderr)

    def elsewhere(model: str, *more: str) -> str:
        return told(model, "--ray", "--data", "truth.parquet", *more)

    assert "overwritten" not in elsewhere("hasty")
    assert "overwritten" not in elsewhere("hasty")
    there = elsewhere("hasty", "--protocol", "card")
    assert "an earlier run (pbench, released, made " in there
    assert "of another protocol is overwritten" in there
    assert "of another protocol and predictions is overwritten" in elsewhere("careful")
    told("hasty", "--data", "sample")
    assert "of another predictions is overwritten" in elsewhere("careful")
    assert asked == [(str(folder), False)] * 5
