"""`compare` on the command line: tables that fit, JSON that is the function's, refusals in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.benchmarks.instancebench.vocabulary import OPERATIONS
from bench_datasets.benchmarks.pbench.schema import LEVELS as PARTS
from bench_datasets.cli import app
from bench_datasets.data import open_truth
from bench_datasets.results.run_files import read_scores, write_run
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
    assert len(lines) < 40
    said = " ".join(done.stdout.split())
    assert "Macro-F1 average: hasty is 21.13 points lower than careful (95 % CI " in said
    assert "Significant at 0.05." in said
    named = [line.split()[0] for line in lines if "]" in line and line.startswith(("average", "macro"))]
    assert named == ["average", *(f"macro_f1/{part}" for part in PARTS)]
    assert any(line.startswith("metric") and "min. detectable" in line for line in lines)  # in the second block
    found = json.loads(run("compare", runs["careful"], runs["hasty"], "--json", *FEW).stdout)["pairs"][0]["differences"]
    rest = [
        item for item in found if item["part"] != ["", ""] or not item["metric"].startswith(("average", "macro_f1/"))
    ]
    differing = [item for item in rest if item["difference"] or any(item["ci95"] or ())]
    assert not any(item["better"] for item in differing)
    assert said.endswith(
        f"Not shown: {len(rest)} further metrics; {len(differing)} differ, none of them significantly. --every shows"
        " them, --json holds every number."
    )


def test_two_runs_in_full(run: Callable[..., Any], runs: dict[str, Path]) -> None:
    done = run("compare", runs["careful"], runs["hasty"], "--every", *FEW)
    assert done.exit_code == 0, done.stderr
    assert "macro_f1/level_0" in done.stdout
    assert "by count" in done.stdout
    assert "il_mcc/level_1" not in done.stdout  # undefined in both
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines if line.startswith(("metric", "macro_f1", "il_", "mask_"))) <= 100
    said = [line for line in lines if line.startswith("Macro-F1 average: hasty is ")]
    assert len(said) == 2  # once above and once below the long tables
    assert said[0] == said[1]
    assert "(not shown: " in done.stdout
    assert run("compare", runs["careful"], runs["hasty"], "--all", *FEW).stdout == done.stdout
    assert not [line for line in lines if "[0.00, 0.00]" in line]


def test_slices_that_were_asked_for(run: Callable[..., Any], runs: dict[str, Path]) -> None:
    lines = run("compare", runs["careful"], runs["hasty"], "--by", "level", *FEW).stdout.splitlines()
    first = next(k for k, line in enumerate(lines) if line.endswith("(B), by level"))
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
    assert len(lines) < 45
    assert " ".join(lines).endswith("--every shows them, --json holds every number.")


@pytest.mark.parametrize("width", [60, 80, 140, 250])
def test_widths(run: Callable[..., Any], runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    done = run("compare", runs["careful"], runs["hasty"], "--headline", *FEW)
    lines = done.stdout.splitlines()
    names = ["average", *(f"macro_f1/{part}" for part in PARTS)]
    table = [line for line in lines if line.split()[:1] and line.split()[0] in names]
    heads = [line for line in lines if line.startswith("metric")]
    assert [line.split()[0] for line in table] == names * len(heads)  # whole names, once per block
    assert all(len(line) <= width for line in [*table, *heads])
    shown = " ".join(line.removeprefix("metric") for line in heads).split()
    expected = "careful hasty difference 95 % CI p p (Holm) win / tie / loss n min. detectable"
    assert " ".join(shown) == expected
    assert "further metrics" not in done.stdout


def test_compare_in_a_pipe_prints_each_row_on_one_line(
    run: Callable[..., Any], runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    lines = CliRunner().invoke(app, ["compare", str(runs["careful"]), str(runs["hasty"]), "--headline"]).stdout
    (row,) = [line for line in lines.splitlines() if line.startswith("macro_f1/level_4 ")]
    assert row.count("[") == 1
    assert len(re.findall(r" / ", row)) == 2
    assert len([line for line in lines.splitlines() if line.startswith("metric ")]) == 1


def test_compare_runs_and_conditions(run: Callable[..., Any], tmp_path: Path) -> None:
    truth = open_truth("instancebench", "sample")
    for model in ("careful", "hasty"):
        answers = bd.read_predictions("instancebench", samples.instancebench_sample_predictions(model))
        scores = bd.score("instancebench", truth, answers)
        write_run(scores, bd.summarize("instancebench", scores, draws=0), tmp_path / model)
    done = run("compare", tmp_path / "careful", tmp_path / "hasty", *FEW)
    assert done.exit_code == 0, done.stderr
    assert "Each number is the mean over a model's runs: careful 3 runs, hasty 1 run." in done.stdout
    one = run("compare", tmp_path / "careful", tmp_path / "hasty", "--run", "0", "--json", *FEW)
    assert json.loads(one.stdout)["rows"] == 20
    refused = run("compare", tmp_path / "careful", tmp_path / "hasty", "--condition", "text_swap", *FEW)
    assert refused.stderr.strip() == (
        "error: compare: condition: expected one of careful's conditions, original; got 'text_swap'"
    )


def test_json_is_what_the_function_gives(run: Callable[..., Any], runs: dict[str, Path]) -> None:
    done = run("compare", runs["careful"], runs["hasty"], "--by", "level", "--seed", 3, "--json", *FEW)
    found = bd.compare([runs["careful"], runs["hasty"]], by=["level"], seed=3, draws=200, permutations=200)
    assert done.stdout == found.to_json()
    assert {item["part"][0] for item in json.loads(done.stdout)["pairs"][0]["differences"]} == {"", "count", "level"}


def test_compare_runs_on_other_rows_says_what_to_do(
    run: Callable[..., Any], runs: dict[str, Path], tmp_path: Path
) -> None:
    scores = read_scores(runs["hasty"])
    few = scores.select(range(len(scores) - 2))
    write_run(few, bd.summarize("pbench", few, draws=0), tmp_path / "few")
    done = run("compare", runs["careful"], tmp_path / "few", *FEW)
    assert done.exit_code == 1
    assert "careful has 2 rows that few lacks" in done.stderr
    assert "score both on the same rows" in done.stderr


def test_many_runs_and_files(run: Callable[..., Any], runs: dict[str, Path]) -> None:
    done = run("compare", *(place / "scores.parquet" for place in runs.values()), *FEW)
    assert done.exit_code == 0, done.stderr
    assert "careful vs. crowd_shy: Macro-F1 average: crowd_shy is " in done.stdout
    assert "places" in done.stdout
    named = run("compare", runs["careful"], runs["hasty"], "--name", "new", "--name", "old", "--json", *FEW)
    assert json.loads(named.stdout)["names"] == ["new", "old"]


def test_a_run_with_itself(run: Callable[..., Any], runs: dict[str, Path]) -> None:
    done = run("compare", runs["hasty"], runs["hasty"], *FEW)
    assert "hasty and hasty (2) have the same value in every metric." in done.stdout
    assert "further metrics; none of them differs. --every" in done.stdout
    assert "(A)/(B)" not in done.stdout  # notes on tables that are not there


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["{careful}"], 2, "expected two runs or more, got 1"),
        (["{careful}", "{hasty}", "--name", "x"], 2, "expected 2, one per run, got 1"),
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
