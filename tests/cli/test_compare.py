"""`compare` on the command line: tables that fit, JSON that is the function's, refusals in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.benchmarks import PBENCH_LEVELS as PARTS
from bench_datasets.builders import open_truth
from bench_datasets.builders.instancebench_vocabulary import OPERATIONS
from bench_datasets.metrics.files import write_run
from bench_datasets.samples import SAMPLE_MODELS, pbench_sample_predictions

FEW = ["--draws", 200, "--permutations", 200]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of the sample's models, as `score --out` writes them."""
    place, truth = tmp_path_factory.mktemp("runs"), open_truth("pbench", "sample")
    for model in SAMPLE_MODELS:
        scores = bd.score("pbench", truth, bd.read_predictions("pbench", pbench_sample_predictions(model)))
        write_run(scores, bd.summarize("pbench", scores, draws=50), place / model)
    return {model: place / model for model in SAMPLE_MODELS}


def test_two_runs(run: Callable[..., Any], runs: dict[str, Path]) -> None:
    done = run("compare", runs["careful"], runs["hasty"], *FEW)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) < 25
    assert lines[1].startswith("careful is better by average; elsewhere the data can't tell.")
    assert [line.split()[0] for line in lines if "]" in line] == ["average", *(f"macro_f1/{part}" for part in PARTS)]
    assert not any(line.startswith("would show from") for line in lines)  # a column that has no room here
    found = json.loads(run("compare", runs["careful"], runs["hasty"], "--json", *FEW).stdout)["pairs"][0]["differences"]
    rest = [
        item for item in found if item["part"] != ["", ""] or not item["metric"].startswith(("average", "macro_f1/"))
    ]
    differing = [item for item in rest if item["difference"] or any(item["ci95"] or ())]
    assert not any(item["better"] for item in differing)
    assert lines[-1] == (
        f"{len(differing)} of {len(rest)} further numbers differ, none of them with a corrected p below .05:"
        " --every shows them, --json holds every number"
    )


def test_two_runs_in_full(run: Callable[..., Any], runs: dict[str, Path]) -> None:
    done = run("compare", runs["careful"], runs["hasty"], "--every", *FEW)
    assert done.exit_code == 0, done.stderr
    assert "careful is better by average; elsewhere the data can't tell." in done.stdout
    assert "macro_f1/level_0" in done.stdout
    assert "by count" in done.stdout
    assert "il_mcc/level_1" not in done.stdout  # undefined in both
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines if line.startswith(("metric", "macro_f1", "il_", "mask_"))) <= 100
    assert lines[-1].startswith("careful is better by average; ")  # the long table does not take it away
    assert lines[-1] == lines[1]
    assert "(left out: " in done.stdout
    assert not [line for line in lines if "[0.00, 0.00]" in line]


def test_slices_that_were_asked_for(run: Callable[..., Any], runs: dict[str, Path]) -> None:
    lines = run("compare", runs["careful"], runs["hasty"], "--by", "level", *FEW).stdout.splitlines()
    first = next(k for k, line in enumerate(lines) if line.endswith("B less A, by level"))
    slices = [line.split()[:2] for line in lines[first:] if "]" in line]
    assert slices == [[f"{level}:", "macro_f1"] for level in sorted(PARTS)]


@pytest.mark.parametrize(
    ("benchmark", "shown"),
    [
        ("instancebench", ["miou", *(f"miou/operation/{name}" for name in OPERATIONS)]),
        (
            "pvsg",
            [
                *(f"{name}@20/0.5" for name in ("R", "mR", "pair_recall", "timeless_recall")),
                *(f"loss/{stage}_stage@20/0.5" for stage in ("first", "second")),
                "tube_recall@0.5",
                "tube_recall@0.1",
            ],
        ),
    ],
)
def test_the_main_table_of_others(run: Callable[..., Any], tmp_path: Path, benchmark: str, shown: list[str]) -> None:
    truth = open_truth(benchmark, "sample")
    for model in ("hasty", "crowd_shy"):
        answers = bd.read_predictions(benchmark, getattr(samples, f"{benchmark}_sample_predictions")(model))
        scores = bd.score(benchmark, truth, answers)
        write_run(scores, bd.summarize(benchmark, scores, draws=0), tmp_path / model)
    lines = run("compare", tmp_path / "hasty", tmp_path / "crowd_shy", *FEW).stdout.splitlines()
    named = [line.split()[0] for line in lines if "]" in line and line.startswith(tuple(shown))]
    assert set(named) <= set(shown)
    assert named[0] == shown[0]
    assert len(named) >= 5
    assert len(lines) < 25
    assert lines[-1].endswith(": --every shows them, --json holds every number")


@pytest.mark.parametrize("width", [60, 80, 140, 250])
def test_widths(run: Callable[..., Any], runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    done = run("compare", runs["careful"], runs["hasty"], "--headline", *FEW)
    table = [line for line in done.stdout.splitlines() if line.startswith(("average", "macro_f1"))]
    assert len(table) == 7
    assert all(len(line) <= width for line in table)
    assert ("would show from: the smallest difference" in done.stdout) == (width >= 140)
    assert "further numbers" not in done.stdout


def test_json_is_what_the_function_gives(run: Callable[..., Any], runs: dict[str, Path]) -> None:
    done = run("compare", runs["careful"], runs["hasty"], "--by", "level", "--seed", 3, "--json", *FEW)
    found = bd.compare([runs["careful"], runs["hasty"]], by=["level"], seed=3, draws=200, permutations=200)
    assert done.stdout == found.to_json()
    assert {item["part"][0] for item in json.loads(done.stdout)["pairs"][0]["differences"]} == {"", "count", "level"}


def test_many_runs_and_files(run: Callable[..., Any], runs: dict[str, Path]) -> None:
    done = run("compare", *(place / "scores.parquet" for place in runs.values()), *FEW)
    assert done.exit_code == 0, done.stderr
    assert "careful against crowd_shy: careful is better by average" in done.stdout
    assert "places" in done.stdout
    named = run("compare", runs["careful"], runs["hasty"], "--name", "new", "--name", "old", "--json", *FEW)
    assert json.loads(named.stdout)["names"] == ["new", "old"]


def test_a_run_with_itself(run: Callable[..., Any], runs: dict[str, Path]) -> None:
    done = run("compare", runs["hasty"], runs["hasty"], *FEW)
    assert "hasty and hasty (2) give the same numbers everywhere." in done.stdout
    assert "(A) or (B)" not in done.stdout  # notes on tables that are not there


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["{careful}"], 2, "expected two runs or more, got 1"),
        (["{careful}", "{hasty}", "--name", "x"], 2, "expected 2, one a run, got 1"),
        (["{careful}", "nowhere"], 1, "error: nowhere: expected a score table"),
        (["{careful}", "{hasty}", "--by", "nothing"], 1, "error: by: expected count, position or one of"),
        (["{careful}", "{hasty}", "--draws", "0"], 2, "--draws"),
    ],
)
def test_refusals(run: Callable[..., Any], runs: dict[str, Path], arguments: list[str], code: int, said: str) -> None:
    done = run("compare", *(text.format(**runs) for text in arguments))
    assert done.exit_code == code
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_runs_that_differ(run: Callable[..., Any], runs: dict[str, Path], tmp_path: Path) -> None:
    scores = bd.score("pbench", open_truth("pbench", "sample"), bd.read_predictions(
        "pbench", pbench_sample_predictions("careful")), "card")  # fmt: skip
    write_run(scores, bd.summarize("pbench", scores, draws=50), tmp_path / "card")
    done = run("compare", runs["careful"], tmp_path / "card")
    assert done.exit_code == 1
    assert done.stderr.strip() == (
        "error: compare: careful was scored under released@1, card under card@1; score both alike"
    )
