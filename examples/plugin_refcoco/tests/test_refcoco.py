"""The plug-in through the same doors as any benchmark. Install it first: `pip install examples/plugin_refcoco`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset, load_dataset
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets.cli import app
from bench_datasets.masks import encode_dense

NAME = "refcoco_toy"


def truth() -> Dataset:
    return load_dataset(NAME, "sample", split="test")


def moved(pixels: int) -> list[dict[str, object]]:
    """Squares of 15 x 15, too far right by some pixels."""
    rows = []
    for key, (y, x) in zip(truth()["key"], ((5, 5), (5, 35), (2, 20), (22, 20)), strict=True):
        mask = np.zeros((40, 60), bool)
        mask[y : y + 15, x + pixels : x + pixels + 15] = True
        rows.append({"key": key, "masks": [encode_dense(mask)]})
    return rows


def write(folder: Path, pixels: int) -> str:
    file = folder / f"moved_{pixels}.jsonl"
    file.write_text("\n".join(map(json.dumps, moved(pixels))), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("pixels", [0, 3, 7, 15])
def test_against_arithmetic(pixels: int) -> None:
    answers = Dataset.from_list([{"key": row["key"], "pred_masks": row["masks"]} for row in moved(pixels)])
    result = bd.summarize(NAME, bd.score(NAME, truth(), answers))
    iou = (15 - pixels) / (15 + pixels)
    assert result.metrics["miou"].value == pytest.approx(iou, abs=1e-15)
    assert result.metrics["oiou"].value == pytest.approx(iou, abs=1e-15)
    assert result.metrics["p@0.5"].value == (iou >= 0.5)
    assert result.headline == "miou"
    assert result.comparable_to is None


def test_map_gives_the_same(tmp_path: Path) -> None:
    answers = bd.read_predictions(NAME, write(tmp_path, 3))
    rows = truth().add_column("pred_masks", list(answers["pred_masks"]), feature=answers.features["pred_masks"])
    mapped = bd.summarize(NAME, bd.map_score(rows, NAME), draws=0)
    direct = bd.summarize(NAME, bd.score(NAME, truth(), answers), draws=0)
    assert mapped.metrics == direct.metrics
    assert mapped.dataset["content_sha256"] == direct.dataset["content_sha256"]


def test_faults() -> None:
    answers = Dataset.from_list([{"key": row["key"], "pred_masks": row["masks"]} for row in moved(0)[1:]])
    with pytest.raises(bd.FaultError, match="test/0"):
        bd.score(NAME, truth(), answers)
    small = [{"key": key, "pred_masks": [encode_dense(np.ones((2, 3), bool))]} for key in truth()["key"]]
    with pytest.raises(bd.FaultError, match="40 x 60"):
        bd.score(NAME, truth(), Dataset.from_list(small))
    skipped = bd.score(NAME, truth(), Dataset.from_list(small), on_fault="skip-and-report")
    assert skipped["skipped"][:] == [True] * 4


def test_command_line(tmp_path: Path) -> None:
    def run(*words: object) -> str:
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.stdout

    for pixels in (0, 3):
        options = [NAME, "--data", "sample", "--predictions", write(tmp_path, pixels)]
        assert "ok" in run("check", *options)
        assert "miou" in run("score", *options, "--draws", 100, "--out", tmp_path / f"run_{pixels}")
    assert json.loads(run("info", NAME, "--data", "sample", "--json"))["rows"]["read"] == 7
    assert "run_3" in run("compare", tmp_path / "run_0", tmp_path / "run_3", "--draws", 100)
    assert "miou" in run("leaderboard", tmp_path)
    for part in (0, 1):
        run("score", *options, "--out", tmp_path / "parts", "--shard", f"{part}/2")
    run("merge", tmp_path / "parts", "--out", tmp_path / "merged", "--draws", 100)
    names = [(tmp_path / folder / "scores.parquet").read_bytes() for folder in ("merged", "run_3")]
    assert names[0] == names[1]
    done = CliRunner().invoke(app, ["report", str(tmp_path / "run_0"), "--out", str(tmp_path / "page.html")])
    assert done.exit_code == 1
    assert "no module for report" in done.stderr
