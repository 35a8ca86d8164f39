"""`evaluate` as its users know it: modules by name, `add` with either names, columns that come late, `combine`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pytest

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.data import open_truth
from bench_datasets.hf_evaluate.loading import serve_by_name

FULL = np.ones((3, 4), bool)
HALF = FULL & (np.arange(4) < 2)
IMPORTS = """
import bench_datasets, sys
assert "evaluate" not in sys.modules
import evaluate
assert [type(evaluate.load(name)).__name__ for name in ("pbench", "pvsg")] == ["Pbench", "Pvsg"]
"""


def test_load_by_name_when_evaluate_is_imported_later(tmp_path: Path) -> None:
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": root, "HF_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def test_load_by_name_leaves_other_names_to_evaluate() -> None:
    before = evaluate.loading.evaluation_module_factory
    serve_by_name()
    assert evaluate.loading.evaluation_module_factory is before  # wrapped once
    assert type(evaluate.load("pbench")) is type(evaluate.load(bd.metric_path("pbench")))
    with pytest.raises(FileNotFoundError, match="nobench"):
        evaluate.load("nobench")


@pytest.mark.parametrize("names", [("prediction", "reference"), ("predictions", "references")])
def test_add_takes_both_names_of_its_arguments(names: tuple[str, str]) -> None:
    metric = evaluate.load("pbench")
    for mask in (FULL, HALF):
        metric.add(**{names[0]: [mask], names[1]: [FULL], "levels": "level_0"})
    # IoU 1 reaches all ten thresholds, IoU .5 the first
    assert metric.compute()["macro_f1/level_0"] == pytest.approx((1 + 0.1) / 2)


def test_combine_add_gives_what_add_batch_gives() -> None:
    both = evaluate.combine({"one": evaluate.load("pbench"), "two": evaluate.load("pbench")}, force_prefix=True)
    for mask in (FULL, HALF):
        both.add(prediction=[mask], reference=[FULL], levels="dense")
    found = both.compute()
    batch = {"predictions": [[FULL], [HALF]], "references": [[FULL], [FULL]]}
    expected = evaluate.load("pbench").compute(**batch, levels="dense")["giou/dense"]
    assert found["one_giou/dense"] == found["two_giou/dense"] == expected == 0.75


@pytest.mark.parametrize("levels", ["level_1", ["level_1", 1], np.array(["level_1", "level_1"])])
def test_levels_may_come_with_compute(levels: Any) -> None:
    metric = evaluate.load("pbench")
    metric.add_batch(predictions=[[FULL]], references=[[FULL]])
    metric.add(predictions=[HALF], references=[FULL], levels="level_0")
    found = metric.compute(levels=levels)
    assert (found["giou/level_1"], found["giou/level_0"]) == (1.0, 0.5)  # what a row was added with holds


def test_levels_that_never_came_are_asked_for() -> None:
    metric = evaluate.load("pbench")
    metric.add_batch(predictions=[[FULL]] * 2, references=[[FULL]] * 2)
    with pytest.raises(bd.BenchError, match=r"a level for each of the 2 rows.* none for row 0; give levels= to add"):
        metric.compute()
    metric = evaluate.load("pbench")
    metric.add_batch(predictions=[[FULL]] * 2, references=[[FULL]] * 2)
    with pytest.raises(bd.BenchError, match=r"expected as many as rows were added \(2\), found 3"):
        metric.compute(levels=["dense"] * 3)


@pytest.mark.parametrize("benchmark", ["instancebench", "pvsg"])
def test_add_row_by_row_gives_the_numbers_of_score(benchmark: str) -> None:
    model = {"instancebench": "crowd_shy", "pvsg": "careful"}[benchmark]
    predictions = bd.read_predictions(benchmark, getattr(samples, f"{benchmark}_sample_predictions")(model))
    truth = open_truth(benchmark, "sample")
    metric = evaluate.load(benchmark)
    if benchmark == "pvsg":
        given = {row["key"]: {n: row[f"pred_{n}"] for n in ("tubes", "triplets")} for row in predictions}
    else:
        masks = dict(zip(predictions["expression_id"], predictions["mask"], strict=True))
        given = {row["key"]: [masks[one["expression_id"]] for one in row["expressions"]] for row in truth}
    for row in truth:
        metric.add(predictions=given[row["key"]], references=row)
    scored = bd.summarize(benchmark, bd.score(benchmark, truth, predictions), draws=0)
    assert repr(metric.compute()) == repr({name: number.value for name, number in scored.metrics.items()})
