"""The plug-in through the same doors as any benchmark. Install it first: `pip install examples/plugin_refcoco`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import evaluate
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
    assert "no published results exist for the protocol default" in str(result)


def test_faulty_prediction_counts_as_wrong_or_is_left_out() -> None:
    rows = [{"key": row["key"], "pred_masks": row["masks"]} for row in moved(0)]
    rows[1]["pred_masks"] = [{"size": [40, 60], "counts": "zz"}]
    answers = [{"key": row["key"], "masks": row["pred_masks"]} for row in rows]
    with pytest.raises(bd.FaultError, match="malformed_mask"):
        bd.score(NAME, truth(), answers)
    for on_fault, value in (("skip-and-report", 1.0), ("count-as-wrong", 0.75)):
        result = bd.summarize(NAME, bd.score(NAME, truth(), answers, on_fault=on_fault), draws=0)
        assert result.metrics["miou"].value == pytest.approx(value)
        assert result.faults["malformed_mask"]["count"] == 1
    report = bd.check(NAME, answers, truth())
    assert [(group.code, group.count) for group in report.errors] == [("malformed_mask", 1)]


def test_map_gives_the_same(tmp_path: Path) -> None:
    answers = bd.read_predictions(NAME, write(tmp_path, 3))
    rows = truth().add_column("pred_masks", list(answers["pred_masks"]), feature=answers.features["pred_masks"])
    mapped = bd.summarize(NAME, bd.map_score(rows, NAME), draws=0)
    direct = bd.summarize(NAME, bd.score(NAME, truth(), answers), draws=0)
    assert mapped.metrics == direct.metrics
    assert mapped.dataset["content_sha256"] == direct.dataset["content_sha256"]


def test_evaluate_by_name_gives_the_same(tmp_path: Path) -> None:
    answers = bd.read_predictions(NAME, write(tmp_path, 3))
    direct = bd.summarize(NAME, bd.score(NAME, truth(), answers), draws=0)
    metric = evaluate.load(NAME)
    found = metric.compute(predictions=list(answers["pred_masks"]), references=list(truth()))
    assert found == {name: metric.value for name, metric in direct.metrics.items()}
    for masks, row in zip(answers["pred_masks"], truth(), strict=True):
        metric.add(predictions={"pred_masks": masks}, references=row)
    assert metric.compute() == found


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


def test_report(tmp_path: Path) -> None:
    words = []
    for pixels in (3, 12):
        options = ["--data", "sample", "--predictions", write(tmp_path, pixels)]
        assert CliRunner().invoke(app, ["score", NAME, *options, "--out", f"{tmp_path}/run_{pixels}"]).exit_code == 0
        words += options[2:]
    places = [f"{tmp_path}/run_{pixels}" for pixels in (3, 12)]
    plot = ["--plot", f"{tmp_path}/plot.svg"]
    done = CliRunner().invoke(
        app, ["report", *places, "--data", "sample", *words, "--out", f"{tmp_path}/page.html", *plot]
    )
    assert done.exit_code == 0, done.output
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    assert data["rows"]["caption"] == [f"the {word} square" for word in ("left", "right", "upper", "lower")]
    assert data["runs"][0]["score"] == [round(12 / 18, 4)] * 4
    assert data["runs"][1]["score"][0] == round(3 / 27, 4)
    assert [data["kinds"][k][0] for k in range(2) if data["runs"][1]["kinds"][0] >> k & 1] == ["little"]
    assert len(data["pictures"]) == 4
    assert data["pictures"]["0"]["panels"][0]["runs"][0][2] == "intersection 180, predicted 225, true 225"
