"""The real rows: the known numbers, the same through every door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import evaluate
import pytest
from datasets import Dataset, Features, List, load_dataset

import bench_datasets as bd
from bench_datasets.masks import MASK_FEATURE, available_engines

from ...support.dense_pbench import Row, all_numbers
from ...support.pbench_rows import same, values

EXPECTED = {
    "released": {
        "macro_f1/level_0": 0.2666667, "macro_f1/level_1": 0.4333333, "macro_f1/level_2": 0.1,
        "macro_f1/level_3": 0.4333333, "macro_f1/level_4": 0.0, "macro_f1/dense": 0.6555556, "average": 0.3148148,
        "mask_redundancy_rate/level_3": 1 / 4, "mask_redundancy_rate/dense": 6 / 36,
    },
    "card": {
        "accuracy/level_0": 2 / 3, "accuracy/level_1": 2 / 3, "accuracy/level_2": 1.0, "accuracy/level_3": 2 / 3,
        "accuracy/level_4": 0.0, "accuracy/dense": 2 / 3, "accuracy": 8 / 14,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def truth(shared: Path) -> Dataset:
    return load_dataset("pbench", data_dir=str(shared / "data" / "pbench_mini"), split="test", images=False)


@pytest.fixture(scope="module")
def predictions(shared: Path) -> Dataset:
    return bd.read_predictions("pbench", shared / "data" / "predictions_a" / "pbench.jsonl")


@pytest.fixture(scope="module")
def beside(truth: Dataset, predictions: Dataset) -> Dataset:
    """Truth with the predictions beside it."""
    masks = {row["id"]: row["pred_masks"] for row in predictions}
    column = [masks[number] for number in truth["id"]]
    return truth.add_column("pred_masks", column, feature=Features(x=List(MASK_FEATURE))["x"])


@pytest.fixture(scope="module")
def numbers(truth: Dataset, predictions: Dataset) -> dict[str, dict[str, float]]:
    """Every number by protocol, through `score`."""
    return {
        protocol: values(bd.summarize("pbench", bd.score("pbench", truth, predictions, protocol), draws=0))
        for protocol in ("released", "paper", "card")
    }


def test_known_values(numbers: dict[str, dict[str, float]]) -> None:
    for protocol, expected in EXPECTED.items():
        assert {key: numbers[protocol][key] for key in expected} == pytest.approx(expected, abs=1e-6)
    assert {k: v for k, v in numbers["paper"].items() if "f1" in k or k == "average"} == pytest.approx(
        {k: v for k, v in numbers["released"].items() if "f1" in k or k == "average"}, nan_ok=True
    )


def test_against_pixels(beside: Dataset, numbers: dict[str, dict[str, float]]) -> None:
    from pycocotools import mask as coco

    def dense(masks: list[dict[str, Any]]) -> list[Any]:
        return [coco.decode({**mask, "counts": mask["counts"].encode()}).astype(bool) for mask in masks]

    name = beside.features["level"].int2str
    rows = [Row(r["id"], name(r["level"]), dense(r["masks"]), dense(r["pred_masks"])) for r in beside]
    for protocol, found in numbers.items():
        assert found == pytest.approx(all_numbers(rows, protocol), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("protocol", ["released", "card"])
def test_map(beside: Dataset, numbers: dict[str, dict[str, float]], protocol: str) -> None:
    features = bd.score_features("pbench", protocol)
    scorer = bd.scorer("pbench", protocol)
    for size in (1, 5, 1000):
        scores = beside.map(
            scorer, batched=True, batch_size=size, remove_columns=beside.column_names, features=features
        )
        assert same(values(bd.summarize("pbench", scores, draws=0)), numbers[protocol])
    arrow = bd.map_score(beside, "pbench", protocol)
    assert arrow.features == features
    assert arrow[:] == scores[:]
    assert bd.map_score(beside, "pbench", protocol, num_proc=2)[:] == scores[:]
    backwards = bd.map_score(beside.select(range(16, -1, -1)), "pbench", protocol)
    assert same(values(bd.summarize("pbench", backwards, draws=0)), numbers[protocol])


def test_streams(shared: Path, beside: Dataset, predictions: Dataset, numbers: dict[str, dict[str, float]]) -> None:
    stream = bd.map_score(beside.to_iterable_dataset(num_shards=3), "pbench")
    assert same(values(bd.summarize("pbench", stream, draws=0)), numbers["released"])
    root = str(shared / "data" / "pbench_mini")
    truth = load_dataset("pbench", data_dir=root, split="test", images=False, streaming=True)
    scores = bd.score("pbench", truth, predictions)
    assert same(values(bd.summarize("pbench", scores, draws=0)), numbers["released"])
    with pytest.raises(bd.BenchError, match="num_proc"):
        bd.map_score(beside.to_iterable_dataset(), "pbench", num_proc=2)


def test_processes_and_engines_give_the_same_bytes(truth: Dataset, predictions: Dataset, tmp_path: Path) -> None:
    from bench_datasets.results.run_files import write_scores

    files = [
        write_scores(bd.score("pbench", truth, predictions, **options), tmp_path / f"{k}.parquet").read_bytes()
        for k, options in enumerate(
            [{}, {"num_proc": 2}, *({"engine": engine} for engine in available_engines()), {"threads": 2}]
        )
    ]
    assert len(set(files)) == 1


def test_evaluate(beside: Dataset, numbers: dict[str, dict[str, float]]) -> None:
    columns = {
        "predictions": list(beside["pred_masks"]),
        "references": list(beside["masks"]),
        "levels": list(beside["level"]),
    }
    path = bd.metric_path("pbench")
    for protocol in ("released", "card"):
        assert same(evaluate.load(path).compute(**columns, protocol=protocol), numbers[protocol])
    named = [beside.features["level"].int2str(level) for level in columns["levels"]]
    metric = evaluate.load(path)
    for first in range(0, 17, 6):
        part = slice(first, first + 6)
        metric.add_batch(
            predictions=columns["predictions"][part], references=columns["references"][part], levels=named[part]
        )
    assert same(metric.compute(), numbers["released"])
    metric = evaluate.load(path)
    for prediction, reference, level in zip(*columns.values(), strict=True):
        metric.add(prediction=prediction, reference=reference, levels=level)
    assert same(metric.compute(), numbers["released"])
    both = evaluate.combine([evaluate.load(path), evaluate.load(path)])
    combined = both.compute(**columns)
    assert {key for key in combined if key.endswith("average")}
    for key, value in combined.items():
        name = key.removeprefix("pbench_0_").removeprefix("pbench_1_")
        assert repr(value) == repr(numbers["released"][name])


def test_the_sources_own_rows(shared: Path, predictions: Dataset, numbers: dict[str, dict[str, float]]) -> None:
    """Split by split as `tiiuae/PBench` has them: the level is the split's name, or said."""
    parquet = {level: str(shared / "data" / "pbench_mini" / "data" / f"{level}-*") for level in ("level_3", "dense")}
    for level, files in parquet.items():
        raw = load_dataset("parquet", data_files={level: files}, split=level)
        masks = {row["id"]: row["pred_masks"] for row in predictions}
        column = [masks[number] for number in raw["id"]]
        beside = raw.add_column("pred_masks", column, feature=Features(x=List(MASK_FEATURE))["x"])
        own = predictions.filter(lambda row, ids=set(raw["id"]): row["id"] in ids)
        unnamed = load_dataset("parquet", data_files=files, split="train")
        for scores in (
            bd.map_score(beside, "pbench"),
            bd.score("pbench", raw, own),
            bd.score("pbench", unnamed, own, level=level),
            beside.map(
                bd.scorer("pbench", level=level), batched=True, remove_columns=beside.column_names,
                features=bd.score_features("pbench"),
            ),
        ):  # fmt: skip
            found = values(bd.summarize("pbench", scores, draws=0))
            assert same(found, {k: v for k, v in numbers["released"].items() if k.endswith(f"/{level}")})
        with pytest.raises(bd.BenchError, match="level"):
            bd.score("pbench", unnamed, own)
        with pytest.raises(bd.BenchError, match="level"):
            bd.scorer("pbench")(beside[:])
