"""The suite of InstanceBench: its loops agree with the package; how long anything takes is nobody's business here."""

from __future__ import annotations

import io

import numpy as np
import pytest
from bench import suite_instancebench as suite
from rich.console import Console

import bench_datasets as bd
from bench_datasets.benchmarks.instancebench import BENCHMARK
from bench_datasets.masks import available_engines


@pytest.fixture(scope="module")
def made() -> suite.Sets:
    return suite.make_sets(30, 80, 0.02, seed=1)


def test_sets_are_as_many_as_asked_for(made: suite.Sets) -> None:
    assert (len(made.truth), len(made.answers), len(made.plain)) == (30, 80, 30)
    assert [len(answers) for _, answers in made.plain] == [3] * 20 + [2] * 10
    assert all(4 <= len(candidates) <= 16 for candidates, _ in made.plain)


@pytest.mark.parametrize("engine", available_engines())
def test_the_loop_scores_as_the_package_does(made: suite.Sets, engine: str) -> None:
    metrics = bd.summarize("instancebench", suite._score(made, engine), draws=0).metrics
    found = metrics["miou"].value, metrics["all_target_id"].value
    assert found == pytest.approx(suite.obvious(made.plain), abs=1e-12)
    assert all(0 < value < 1 for value in found)


def test_the_loop_over_draws_gives_the_same_intervals(made: suite.Sets) -> None:
    table = suite._score(made, available_engines()[0]).with_format("arrow")[:]
    numbers = BENCHMARK.statistics(table, "default")["", ""]
    names = [name for name, item in numbers.items() if item.n]
    drawn = suite.gather_rows([numbers[name] for name in names], len(table), 60, 7)
    metrics = bd.summarize("instancebench", table, draws=60, seed=7).metrics
    checked = 0
    for name, values in zip(names, drawn, strict=True):
        interval = metrics[name].ci95
        finite = values[np.isfinite(values)]
        if interval is not None and len(finite):
            assert interval == pytest.approx(np.quantile(finite, [0.025, 0.975]), abs=1e-9), name
            checked += 1
    assert checked > 80


def test_suite_instancebench_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "make_sets", lambda *_: MADE)
    stream = io.StringIO()
    report = suite.run(Console(file=stream, width=120), quick=True)
    assert report["score"]["sets"] == report["memory"]["scored"] == 24
    assert set(report["score"]["seconds"]) == {"loop", *available_engines(), *NO_HASH}
    assert report["intervals"]["numbers"] > 80
    assert "one pycocotools call a pair" in stream.getvalue()


MADE = suite.make_sets(24, 60, 0.01)
NO_HASH = [f"{engine}, no row hash" for engine in available_engines()]
