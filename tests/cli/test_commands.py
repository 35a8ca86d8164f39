from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow.parquet as pq
import pytest

import bench_datasets as bd
from bench_datasets.benchmark import BENCHMARKS
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.cli import console
from bench_datasets.results.result import Result
from bench_datasets.results.run_files import read_scores
from bench_datasets.samples import SAMPLE_MODELS, pbench_sample_dir, pbench_sample_predictions


def test_info(run: Callable[..., Any], shared: Path) -> None:
    source = shared / "data" / "pbench_mini"
    done = run("info", "pbench", "--data", source, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    masks = {
        level: [len(row) for row in pq.read_table(source / f"data/{level}-00000-of-00001.parquet")["masks"].to_pylist()]
        for level in PBENCH_LEVELS
    }
    assert found["rows"]["read"] == 17
    assert {level: part["rows"] for level, part in found["rows"]["by_level"].items()} == {
        level: len(counts) for level, counts in masks.items()
    }
    assert {level: part["masks"] for level, part in found["rows"]["by_level"].items()} == {
        level: sum(counts) for level, counts in masks.items()
    }
    assert sum(found["truth_masks"].values()) == 17
    assert found["truth_masks"]["1"] == Counter(n for counts in masks.values() for n in counts)[1]
    assert [protocol["name"] for protocol in found["protocols"]] == ["released", "paper", "card"]
    assert Path(found["source"]) == source.resolve()
    scored = run(
        "score", "pbench", "--data", source, "--predictions", shared / "data/predictions_a/pbench.jsonl",
        "--draws", 0, "--json",
    )  # fmt: skip
    assert found["content_sha256"] == json.loads(scored.stdout)["dataset"]["content_sha256"]
    assert "licence" in run("info", "pbench", "--data", source).stdout


def test_info_counts_faults(run: Callable[..., Any]) -> None:
    found = json.loads(run("info", "pbench", "--data", "sample", "--json").stdout)
    assert found["faults"]["no_truth"]["count"] == 2
    assert found["faults"]["no_truth"]["examples"] == ["level_0/5", "level_2/18"]
    assert found["source"] == "sample"


def test_check(run: Callable[..., Any], shared: Path) -> None:
    data = shared / "data"
    options = ["pbench", "--data", data / "pbench_mini", "--predictions", data / "predictions_a" / "pbench.jsonl"]
    done = run("check", *options)
    assert done.exit_code == 0
    assert done.stdout.startswith("pbench: 17 predictions, ")
    report = json.loads(run("check", *options, "--split", "level_3", "--json").stdout)
    assert (report["ok"], report["rows"], report["errors"]) == (True, 3, [])


def test_check_goes_on_without_truth(run: Callable[..., Any], shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import HfApi

    def away(*args: object, **options: object) -> None:
        raise ConnectionError("no network")

    monkeypatch.setattr(HfApi, "dataset_info", away)
    monkeypatch.delenv("BENCH_DATASETS_PBENCH", raising=False)
    predictions = ["--predictions", shared / "data/predictions_a/pbench.jsonl"]
    done = run("check", "pbench", *predictions)
    assert done.exit_code == 0
    assert "the ground truth can't be reached" in done.stderr
    done = run("score", "pbench", *predictions)
    assert done.exit_code == 1
    assert "--data" in done.stderr


def test_demo(run: Callable[..., Any], tmp_path: Path) -> None:
    done = run("demo", "--out", tmp_path)
    assert done.exit_code == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["instancebench", "pbench", "pvsg"]
    told = [line.split() for line in done.stdout.splitlines() if line.startswith("  ") and " pbench " in line]
    for words in (line[line.index("pbench") - 1 :] for line in told):
        assert run(*words).exit_code == 0, words
    assert len(told) == 3
    work = bd.read_predictions("pvsg", tmp_path / "pvsg" / "work_dirs")
    assert len(work) == len(bd.read_predictions("pvsg", tmp_path / "pvsg" / "careful.jsonl"))
    for benchmark, key in (("pbench", "average"), ("instancebench", "miou"), ("pvsg", "R@20/0.5")):
        assert (tmp_path / benchmark / "report.html").stat().st_size > 10_000
        for model in SAMPLE_MODELS:
            result = Result.load(tmp_path / benchmark / model)
            again = bd.summarize(benchmark, read_scores(tmp_path / benchmark / model), draws=0)
            assert again.metrics[key].value == result.metrics[key].value
            line = next(line for line in done.stdout.splitlines() if line.startswith(f"{key} "))
            assert f"{100 * result.metrics[key].value:.2f}" in line


def test_demo_for_machines(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BENCHMARKS, "_own", ("pbench",))
    found = json.loads(run("demo", "--json").stdout)
    assert found["pbench"]["written"] == []
    assert found["pbench"]["sample"] == pbench_sample_dir()
    assert set(found["pbench"]["results"]["hasty"]) == {"released", "paper", "card"}


def test_process(spawn: Callable[..., CompletedProcess[str]]) -> None:
    version = spawn("--version")
    assert (version.returncode, version.stdout) == (0, f"bench-datasets {bd.__version__}\n")
    help_text = spawn("-h")
    assert help_text.returncode == 0
    assert all(command in help_text.stdout for command in ("demo", "info", "check", "score"))
    done = spawn("score", "pbench", "--data", "sample", "--predictions", pbench_sample_predictions("hasty"), "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["benchmark"] == "pbench"


@pytest.mark.parametrize("command", ["check", "score"])
def test_help_at_80_columns_breaks_no_name_of_an_option(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = run(command, "--help").stdout
    for name in ("--on-fault", "skip-and-report:", "count-as-wrong:", "--missing", "error|empty"):
        assert name in text, name


@pytest.mark.parametrize("command", ["coco", "refcoco"])
def test_convert_help_at_80_columns_has_whole_paragraphs(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = run("convert", command, "--help").stdout.split("Example:")[0]
    lines = [line.strip() for line in text.splitlines()]
    for line, following in pairwise(lines):
        if line and following and not line.startswith("Usage"):
            assert len(line) + 1 + len(following.split()[0]) > 78, (line, following)


def test_how_it_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "bin" / "bench-datasets"
    own.parent.mkdir()
    for file in (own.with_name("python"), own):
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(own.with_name("python")))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert console.program() == str(own)
    monkeypatch.chdir(tmp_path)
    assert console.program() == "bin/bench-datasets"
    monkeypatch.setenv("PATH", str(own.parent))
    assert console.program() == "bench-datasets"
    monkeypatch.setenv("PATH", str(tmp_path))
    own.unlink()
    assert console.program().endswith("python -m bench_datasets")
