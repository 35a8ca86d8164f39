"""A look at a few rows: some of each, without a cache, with an honest word on what they tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bench_datasets.cli import app

from ..support.sample_runs import BENCHMARKS, file_of, truth_of

BY = {"pbench": "level", "instancebench": "source", "pvsg": "source"}


def run(benchmark: str, *more: object, predictions: str | None = None) -> Any:
    options = ["--data", "sample", "--predictions", predictions or file_of(benchmark), "--draws", "50"]
    return CliRunner().invoke(app, ["score", benchmark, *options, *map(str, more)])


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_some_of_each(benchmark: str) -> None:
    column = BY[benchmark]
    plain, streamed = (run(benchmark, "--limit", 1, "--by", column, "--json", *more) for more in ([], ["--stream"]))
    assert plain.exit_code == streamed.exit_code == 0, plain.stderr + streamed.stderr
    one, other = json.loads(plain.stdout), json.loads(streamed.stdout)
    assert {**one, "created": ""} == {**other, "created": ""}
    assert one["dataset"]["rows"] == {
        "scored": len(set(truth_of(benchmark)[column])),
        "expected": len(truth_of(benchmark)),
    }
    assert one["protocol"]["comparable_to"] is None
    assert "unknown_row" not in one["faults"]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_stranger_is_a_fault_in_a_part_too(benchmark: str, tmp_path: Path) -> None:
    lines = Path(file_of(benchmark)).read_text().splitlines()
    line = json.loads(lines[-1])
    name = next(name for name in ("expression_id", "video_id", "id") if name in line)
    line[name] = 987654 if name == "id" else "987654"
    odd = tmp_path / "odd.jsonl"
    odd.write_text("\n".join([*lines, json.dumps(line)]) + "\n")
    done = run(benchmark, "--limit", 1, predictions=str(odd))
    assert done.exit_code == 1
    assert "987654" in done.stderr
    assert "[unknown_row]" in done.stderr
    done = run(benchmark, "--limit", 1, "--on-fault", "skip-and-report", "--json", predictions=str(odd))
    assert json.loads(done.stdout)["faults"]["unknown_row"] == {"count": 1, "examples": ["987654"]}


def test_how_far_to_trust_it() -> None:
    done = run("instancebench", "--limit", 2)
    text = " ".join(done.stdout.split())
    line = text[text.index("how far to trust it") :]
    result = json.loads(run("instancebench", "--limit", 2, "--json").stdout)["metrics"]["miou"]
    assert f"n = {result['n']}, an interval {100 * (result['ci95'][1] - result['ci95'][0]):.2f} wide" in line
    assert "fewer than 30" in line
    assert "how far to trust it" not in run("instancebench").stdout
    done = run("pbench", "--limit", 2)
    assert "how far to trust it: these rows alone" in " ".join(done.stdout.split())
