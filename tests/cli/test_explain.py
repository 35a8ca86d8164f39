"""`explain`: rows by key and the worst rows, in the words of `bd.explain`, for every benchmark and plug-ins."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.data import open_truth

Run = Callable[..., Any]


def options(benchmark: str, model: str = "hasty") -> list[str]:
    answers = getattr(samples, f"{benchmark}_sample_predictions")(model)
    return ["--data", "sample", "--predictions", answers]


def test_a_row_by_key(run: Run) -> None:
    truth = next(row for row in open_truth("pbench", "sample") if row["key"] == "level_2/16")
    given = bd.read_predictions("pbench", samples.pbench_sample_predictions("hasty"))
    answer = next(row for row in given if row["id"] == 16)
    for protocol in ("released", "card"):
        done = run("explain", "pbench", "level_2/16", *options("pbench"), "--protocol", protocol)
        assert done.exit_code == 0, done.stderr
        assert done.stdout.rstrip("\n") == str(bd.explain("pbench", truth, answer, protocol))


def test_the_worst_rows(run: Run) -> None:
    found = json.loads(run("explain", "pbench", "--worst", "40", *options("pbench"), "--json").stdout)
    own = [(one["score"], one["key"]) for one in found["explained"]]
    assert own == sorted(own)
    told = {one["key"]: one["facts"]["score"] for one in found["explained"] if one["facts"]}
    assert len(told) > 20
    assert all(abs(told[key] - score) < 1e-4 for score, key in own if key in told)
    assert found["rows"] == len(open_truth("pbench", "sample"))
    shown = run("explain", "pbench", "--worst", "2", *options("pbench")).stdout.splitlines()
    assert shown[0].startswith(f"the 2 rows with the lowest scores, of {found['rows']} rows")
    assert [line.split(":")[0] for line in shown if "row score" in line] == [key for _, key in own[:2]]


@pytest.mark.parametrize(("benchmark", "count"), [("instancebench", 20), ("pvsg", 3)])
def test_other_benchmarks(run: Run, benchmark: str, count: int, tmp_path: Path) -> None:
    done = run("explain", benchmark, "--worst", "1", *options(benchmark), "--out", tmp_path / "row.png")
    assert done.exit_code == 0, done.stderr
    assert f"the row with the lowest score, of {count} rows" in done.stdout
    pictures = sorted(tmp_path.glob("*.png"))
    assert pictures
    for picture in pictures:
        with Image.open(picture) as image:
            image.verify()


@pytest.mark.parametrize(
    ("benchmark", "key", "line"),
    [
        ("pbench", "level_0/0", {"key": "level_0/9999", "masks": []}),
        ("instancebench", None, {"expression_id": "nobody-0", "mask": None}),
        ("pvsg", None, {"video_id": "nobody", "tubes": [], "triplets": []}),
    ],
)
def test_explain_warns_of_predictions_for_unknown_rows(
    run: Run, tmp_path: Path, benchmark: str, key: str | None, line: dict[str, Any]
) -> None:
    place = tmp_path / "out.jsonl"
    place.write_text(json.dumps(line) + "\n")
    wanted = [key] if key else ["--worst", "1"]
    done = run("explain", benchmark, *wanted, "--data", "sample", "--predictions", place)
    assert done.exit_code == 0, done.stderr
    assert "1 prediction names no row of the ground truth" in done.stderr
    assert "`check` lists all" in done.stderr
    assert "names no row" not in run("explain", benchmark, *wanted, *options(benchmark)).stderr


def test_a_row_without_prediction(run: Run, tmp_path: Path) -> None:
    lines = Path(samples.pbench_sample_predictions("careful")).read_text().splitlines()
    file = tmp_path / "some.jsonl"
    file.write_text("\n".join(line for line in lines if json.loads(line)["id"] != 16))
    done = run("explain", "pbench", "level_2/16", "--data", "sample", "--predictions", file)
    assert done.exit_code == 0
    assert "level_2/16: no prediction" in done.stdout


def test_what_is_refused(run: Run) -> None:
    done = run("explain", "pbench", "level_2/160", *options("pbench"))
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "none such; did you mean level_2/16" in done.stderr
    assert "level_2/16" in run("explain", "pbench", "16", *options("pbench")).stderr
    for wrong in ([], ["level_2/16", "--worst", "1"], ["level_2/16", "--out", "picture.jpg"], ["--worst", "0"]):
        assert run("explain", "pbench", *wrong, *options("pbench")).exit_code == 2
