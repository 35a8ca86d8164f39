"""The real sets: the known numbers, the same through every door."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import evaluate
import pytest
from datasets import Dataset, Features, List, load_dataset

import bench_datasets as bd
from bench_datasets.cli import main
from bench_datasets.masks import MASK_FEATURE, available_engines
from bench_datasets.results.run_files import write_scores

from ...support.instancebench_sets import same, values

EXPECTED = {
    "miou": 0.4918239, "oiou": 0.4090978, "p@0.7": 6 / 18, "p@0.5": 11 / 18, "all@0.7": 1 / 9, "all@0.9": 0.0,
    "worst_path_iou": 0.2994965, "all_target_id": 3 / 8, "identity_error@0.7": 6 / 11, "same_class_switch@0.7": 4 / 11,
    "unresolved@0.7": 2 / 11, "correct_id_poor_mask@0.7": 5 / 11, "conditional_mask_iou": 0.6730642,
}  # fmt: skip
N = {"miou": 18, "all@0.7": 9, "all_target_id": 8, "identity_error@0.7": 11, "correct_id_poor_mask@0.7": 11}


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "data" / "instancebench_mini"


@pytest.fixture(scope="module")
def file(shared: Path) -> Path:
    return shared / "data" / "predictions_a" / "instancebench.jsonl"


@pytest.fixture(scope="module")
def truth(folder: Path) -> Dataset:
    return load_dataset("instancebench", data_dir=str(folder), split="test", images=False)


@pytest.fixture(scope="module")
def predictions(file: Path) -> Dataset:
    return bd.read_predictions("instancebench", file)


@pytest.fixture(scope="module")
def beside(truth: Dataset, predictions: Dataset) -> Dataset:
    """Truth with masks aligned with the expressions."""
    masks = {row["expression_id"]: row["mask"] for row in predictions}
    column = [[masks[item["expression_id"]] for item in row] for row in truth["expressions"]]
    return truth.add_column("pred_masks", column, feature=Features(x=List(MASK_FEATURE))["x"])


@pytest.fixture(scope="module")
def numbers(truth: Dataset, predictions: Dataset) -> dict[str, float]:
    return values(bd.summarize("instancebench", bd.score("instancebench", truth, predictions), draws=0))


def test_known_values(truth: Dataset, predictions: Dataset, numbers: dict[str, float]) -> None:
    assert {key: numbers[key] for key in EXPECTED} == pytest.approx(EXPECTED, abs=1e-6)
    result = bd.summarize("instancebench", bd.score("instancebench", truth, predictions), draws=200)
    assert {key: result.metrics[key].n for key in N} == N
    assert result.dataset["rows"] == {"scored": 9, "expected": 9}
    assert result.predictions["rows"] == 25
    assert result.predictions["missing"] == 0
    assert result.faults == {"crowd_candidate": {"count": 6, "examples": result.faults["crowd_candidate"]["examples"]}}
    assert result.statistics["unit"] == "tces"
    assert result.comparable_to is None
    low, high = result.metrics["miou"].ci95 or (1, 0)
    assert low <= EXPECTED["miou"] <= high


def test_a_number_is_undefined_or_about_something(numbers: dict[str, float], beside: Dataset) -> None:
    result = bd.summarize("instancebench", bd.map_score(beside, "instancebench"), draws=20)
    for key, metric in result.metrics.items():
        assert math.isnan(metric.value) == (metric.n == 0), key
        assert metric.n or metric.ci95 is None, key
    json.loads(result.to_json())
    assert same(values(bd.Result.from_dict(result.to_dict())), values(result))


def test_map(beside: Dataset, numbers: dict[str, float]) -> None:
    features = bd.score_features("instancebench")
    for size in (1, 4, 1000):
        scores = beside.map(
            bd.scorer("instancebench"), batched=True, batch_size=size, remove_columns=beside.column_names,
            features=features,
        )  # fmt: skip
        assert same(values(bd.summarize("instancebench", scores, draws=0)), numbers)
    arrow = bd.map_score(beside, "instancebench")
    assert arrow.features == features
    assert repr(arrow[:]) == repr(scores[:])
    assert repr(bd.map_score(beside, "instancebench", num_proc=2)[:]) == repr(scores[:])
    backwards = bd.map_score(beside.select(range(8, -1, -1)), "instancebench")
    assert same(values(bd.summarize("instancebench", backwards, draws=0)), numbers)


def test_streams(folder: Path, beside: Dataset, predictions: Dataset, numbers: dict[str, float]) -> None:
    stream = bd.map_score(beside.to_iterable_dataset(num_shards=2), "instancebench")
    assert same(values(bd.summarize("instancebench", stream, draws=0)), numbers)
    truth = load_dataset("instancebench", data_dir=str(folder), split="test", images=False, streaming=True)
    scores = bd.score("instancebench", truth, predictions)
    assert same(values(bd.summarize("instancebench", scores, draws=0)), numbers)


def test_processes_and_engines_give_the_same_bytes(truth: Dataset, predictions: Dataset, tmp_path: Path) -> None:
    ways: list[dict[str, Any]] = [{}, {"num_proc": 2}, {"threads": 2}, *({"engine": e} for e in available_engines())]
    files = [
        write_scores(bd.score("instancebench", truth, predictions, **way), tmp_path / f"{k}.parquet").read_bytes()
        for k, way in enumerate(ways)
    ]
    assert len(set(files)) == 1


def test_row_hash_is_the_same_by_every_entry_point(truth: Dataset, predictions: Dataset, beside: Dataset) -> None:
    scored = bd.score("instancebench", truth, predictions)
    mapped = bd.map_score(beside, "instancebench").sort("key")
    named = beside.map(bd.scorer("instancebench"), batched=True, remove_columns=beside.column_names,
                       features=bd.score_features("instancebench")).sort("key")  # fmt: skip
    assert scored["row_sha256"][:] == mapped["row_sha256"][:] == named["row_sha256"][:]
    assert all(len(item) == 64 for item in scored["row_sha256"])


def test_evaluate(beside: Dataset, numbers: dict[str, float]) -> None:
    predictions, references = list(beside["pred_masks"]), [dict(row) for row in beside.remove_columns("pred_masks")]
    path = bd.metric_path("instancebench")
    assert same(evaluate.load(path).compute(predictions=predictions, references=references), numbers)
    bare = [{name: row[name] for name in ("target", "candidates", "expressions")} for row in references]
    found = evaluate.load(path).compute(predictions=predictions, references=bare, ids=beside["key"][:])
    assert {key: found[key] for key in EXPECTED} == pytest.approx(EXPECTED, abs=1e-6)
    metric = evaluate.load(path)
    for first in range(0, 9, 4):
        metric.add_batch(predictions=predictions[first : first + 4], references=references[first : first + 4])
    assert same(metric.compute(), numbers)
    metric = evaluate.load(path)
    for prediction, reference in zip(predictions, references, strict=True):
        metric.add(prediction=prediction, reference=reference)
    assert same(metric.compute(), numbers)
    both = evaluate.combine([evaluate.load(path), evaluate.load(path)])
    for key, value in both.compute(predictions=predictions, references=references).items():
        name = key.removeprefix("instancebench_0_").removeprefix("instancebench_1_")
        assert repr(value) == repr(numbers[name])


def test_command_line(folder: Path, file: Path, numbers: dict[str, float], tmp_path: Path) -> None:
    given = ["score", "instancebench", "--data", str(folder), "--predictions", str(file)]
    assert run([*given, "--draws", "20", "--out", str(tmp_path / "a")]) == 0
    assert same(values(bd.Result.load(tmp_path / "a")), numbers)
    assert run([*given, "--draws", "0", "--stream", "--by", "category", "--out", str(tmp_path / "b")]) == 0
    result = bd.Result.load(tmp_path / "b")
    assert same(values(result), numbers)
    assert {part.by for part in result.slices} == {"source", "operation", "source/operation", "category"}
    assert run([*given, "--limit", "3", "--draws", "0", "--out", str(tmp_path / "c")]) == 0
    assert bd.Result.load(tmp_path / "c").partial
    (tmp_path / "short.jsonl").write_text("".join(file.read_text().splitlines(True)[:-1]))
    short = [*given[:-1], str(tmp_path / "short.jsonl"), "--draws", "0"]
    assert run(short) == 1
    assert run([*short, "--missing", "empty", "--out", str(tmp_path / "d")]) == 0
    assert bd.Result.load(tmp_path / "d").predictions["missing"] == 1


def run(arguments: list[str]) -> int:
    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code
    return int(code or 0)
