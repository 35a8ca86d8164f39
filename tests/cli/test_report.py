"""`report` on the command line: a page, a plot, refusals in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bench_datasets as bd
from bench_datasets.data import open_truth
from bench_datasets.results.run_files import write_run
from bench_datasets.samples import pbench_sample_predictions


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two models' runs of the sample."""
    place, truth = tmp_path_factory.mktemp("runs"), open_truth("pbench", "sample")
    for model in ("careful", "hasty"):
        scores = bd.score("pbench", truth, bd.read_predictions("pbench", pbench_sample_predictions(model)))
        write_run(scores, bd.summarize("pbench", scores, draws=50), place / model)
    return place


def test_a_page_and_a_plot(run: Callable[..., Any], runs: Path, tmp_path: Path) -> None:
    page, plot = tmp_path / "deep" / "page.html", tmp_path / "plot.svg"
    done = run(
        "report", runs / "careful", "--out", page, "--data", "sample", "--predictions",
        pbench_sample_predictions("careful"), "--plot", plot, "--name", "Model A", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {"written": [str(page), str(plot)], "bytes": page.stat().st_size}
    assert done.stderr == ""
    text = page.read_text(encoding="utf-8")
    assert "bench-datasets report " in text
    assert "--name &#39;Model A&#39;" in text
    assert plot.read_text(encoding="utf-8").startswith("<?xml")


def test_a_comparison(run: Callable[..., Any], runs: Path, tmp_path: Path) -> None:
    done = run("report", runs / "careful", runs / "hasty", "--out", tmp_path / "two.html", "--draws", 100)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == f"wrote {tmp_path / 'two.html'}\n"
    assert done.stderr == "no pictures: add --data D --predictions P, --predictions once for each run\n"
    assert "Macro-F1 average: hasty is 21.13 points lower than careful (95 % CI " in (
        (tmp_path / "two.html").read_text(encoding="utf-8")
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere"], 1, "error: nowhere: expected a score table"),
        (["{0}/careful", "--predictions", "a", "--predictions", "b"], 2, "expected 1, one per run, got 2"),
        (["{0}/careful", "--name", "a", "--name", "b"], 2, "expected 1, one per run, got 2"),
        (["{0}/careful", "--plot", "plot.gif"], 1, "ends in .svg, .png, .pdf, got plot.gif"),
        (["{0}/careful", "--data", "sample", "--predictions", "{1}"], 1, "expected the predictions that careful was"),
    ],
)  # fmt: skip
def test_refusals(
    run: Callable[..., Any], runs: Path, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    other = pbench_sample_predictions("hasty")
    done = run("report", "--out", tmp_path / "page.html", *(text.format(runs, other) for text in arguments))
    assert done.exit_code == code
    assert said in " ".join(done.stderr.replace("│", " ").split())
