"""PBench's option `boundary`: its columns and numbers against pixels, and that nothing changes without it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset, load_dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as coco
from scipy import ndimage
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets.cli import app
from bench_datasets.execution import merge, score_shard
from bench_datasets.execution.fingerprint import look_over
from bench_datasets.masks import MaskColumn, available_engines
from bench_datasets.masks.rle import Runs
from bench_datasets.results.run_files import read_scores
from bench_datasets.scoring.prepare import make_plan

from ...support.dense_outlines import counts, f_score
from ...support.dense_pbench import LEVELS, Dense, Row, at_size, mean, ratio, suppressed, union_of
from ...support.pbench_rows import joined, predictions_of, truth_of, values

NAMES = (
    "boundary_intersection", "boundary_union", "contour_predicted_hit", "contour_predicted", "contour_true_hit",
    "contour_true",
)  # fmt: skip
KEYS = ("boundary_iou/giou", "boundary_iou/ciou", "boundary_f/giou")
PROTOCOLS = ("released", "paper", "card")


def draw_mask(generator: np.random.Generator, shape: tuple[int, int]) -> Dense:
    kind = generator.integers(5)
    if kind < 2:
        return np.full(shape, bool(kind))
    if kind == 2:
        return np.asarray(ndimage.gaussian_filter(generator.random(shape), 4) > 0.5)
    mask = np.zeros(shape, bool)
    y, x = (int(generator.integers(side)) for side in shape)
    mask[y : y + 1 + int(generator.integers(shape[0])), x : x + 1 + int(generator.integers(shape[1]))] = True
    return mask


def draw_row(generator: np.random.Generator, number: int) -> Row:
    shape = (int(generator.integers(1, 60)), int(generator.integers(1, 60)))
    truth = [draw_mask(generator, shape) for _ in range(int(generator.integers(0, 4)))]
    predicted = [draw_mask(generator, shape) for _ in range(int(generator.integers(0, 4)))]
    if truth and generator.random() < 0.7:
        predicted += [np.roll(truth[0], int(generator.integers(-3, 4)), axis=1)] * 2
    if truth and generator.random() < 0.3:
        predicted.append(draw_mask(generator, (shape[0] + 7, shape[1])))
    return Row(number, LEVELS[number % 2], truth, predicted)


def unions(row: Row, protocol: str) -> tuple[Dense, Dense]:
    """The union of what is scored and that of the truth."""
    if not row.truth:
        shape = row.predicted[0].shape if row.predicted else (1, 1)
        return union_of(row.predicted if protocol == "card" else [], shape), np.zeros(shape, bool)
    shape = row.truth[0].shape
    raw = [at_size(mask, shape) for mask in row.predicted]
    return union_of(raw if protocol == "card" else suppressed(raw), shape), union_of(row.truth, shape)


def expected(rows: list[Row], protocol: str) -> dict[str, float]:
    """The option's numbers of rows of one level, without its name."""
    some = [row for row in rows if row.truth or protocol == "card"]
    pairs = [unions(row, protocol) for row in some]
    found = [counts(*pair) for pair in pairs]
    nothing = [not row.truth and not row.predicted for row in some]
    return {
        "boundary_iou/giou": mean(
            [1.0 if no else c[0] / c[1] if c[1] else 0.0 for c, no in zip(found, nothing, strict=True)]
        ),
        "boundary_iou/ciou": ratio(sum(c[0] for c in found), sum(c[1] for c in found)),
        "boundary_f/giou": mean([1.0 if no else f_score(*pair) for pair, no in zip(pairs, nothing, strict=True)]),
    }


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), engine=st.sampled_from(available_engines()))
def test_rows_of_any_kind(seed: int, engine: str) -> None:
    generator = np.random.default_rng(seed)
    rows = [draw_row(generator, k) for k in range(12)]
    for protocol in PROTOCOLS:
        table = joined(rows).with_format("arrow")[:]
        scores = bd.scorer("pbench", protocol, boundary=True, engine=engine)(table)
        found = list(zip(*(scores[name].to_pylist() for name in NAMES), strict=True))
        assert found == [tuple(counts(*unions(row, protocol))) for row in rows]
        result = bd.summarize("pbench", scores, draws=0)
        for level in LEVELS[:2]:
            wanted = expected([row for row in rows if row.level == level], protocol)
            got = {key: result.metrics[f"{key}/{level}"].value for key in KEYS}
            assert got == pytest.approx(wanted, abs=1e-12, nan_ok=True)
            assert {result.metrics[f"{key}/{level}"].n for key in KEYS} == {result.metrics[f"giou/{level}"].n}


def square(top: int, left: int, size: int, shape: tuple[int, int] = (100, 100)) -> Dense:
    mask = np.zeros(shape, bool)
    mask[top : top + size, left : left + size] = True
    return mask


@pytest.mark.parametrize(
    ("truth", "predicted", "iou", "f"),
    [
        ([square(20, 20, 40)], [square(20, 20, 40)], 1.0, 1.0),
        # Depth 3, tolerance 2: rings of 40^2 - 34^2 = 444 pixels, which share 40 * 38 - 2 * 34 * 34 + 34 * 32 = 296.
        ([square(20, 20, 40)], [square(20, 22, 40)], 296 / 592, 1.0),
        ([square(0, 0, 40)], [square(60, 60, 40)], 0.0, 0.0),
        ([square(20, 20, 40)], [], 0.0, 0.0),
        ([square(0, 0, 100)], [square(0, 0, 100)], 1.0, 1.0),
        ([square(0, 0, 100)], [], 0.0, 0.0),
        ([square(0, 0, 100)], [square(20, 20, 40)], 0.0, 0.0),
        ([square(0, 0, 100)], [np.zeros((100, 100), bool)], 0.0, 0.0),
        ([square(0, 0, 10), square(0, 10, 10)], [square(0, 0, 10), square(0, 10, 10)], 1.0, 1.0),
    ],
)
def test_one_row(truth: list[Dense], predicted: list[Dense], iou: float, f: float) -> None:
    row = Row(0, "level_0", truth, predicted)
    result = bd.summarize("pbench", bd.map_score(joined([row]), "pbench", boundary=True), draws=0)
    assert result.metrics["boundary_f/giou/level_0"].value == f
    assert result.metrics["boundary_iou/giou/level_0"].value == iou
    assert result.metrics["boundary_iou/ciou/level_0"].value == iou


def test_a_row_with_nothing_in_it() -> None:
    rows = joined([Row(0, "level_0", [], [])])
    card = values(bd.summarize("pbench", bd.map_score(rows, "pbench", "card", boundary=True), draws=0))
    assert (card["boundary_iou/giou/level_0"], card["boundary_f/giou/level_0"]) == (1, 1)
    assert math.isnan(card["boundary_iou/ciou/level_0"])
    released = bd.summarize("pbench", bd.map_score(rows, "pbench", boundary=True), draws=0)
    assert [released.metrics[f"{key}/level_0"].n for key in KEYS] == [0, 0, 0]


def test_a_prediction_that_claims_a_huge_image() -> None:
    """Without truth it is nobody's size; its outline is counted, and its pixels are never laid out."""
    side = 46340
    huge = MaskColumn.from_runs(Runs(np.array([0, side * side]), np.array([0, 2])), [side], [side]).to_pylist()
    rows = Dataset.from_list([{"id": 0, "level": "level_0", "masks": [], "pred_masks": huge}])
    scores = bd.map_score(rows, "pbench", "card", boundary=True)
    inside = side - 2 * round(0.02 * math.hypot(side, side))
    assert scores[0]["boundary_union"] == side**2 - inside**2


# ---------------------------------------------------------------------- doors


@pytest.fixture
def some() -> list[Row]:
    generator = np.random.default_rng(11)
    return [draw_row(generator, k) for k in range(10)]


def test_nothing_changes_without_it(some: list[Row], tmp_path: Path) -> None:
    truth, predictions = truth_of(some), predictions_of(some, tmp_path)
    plain, more = (bd.score("pbench", truth, predictions, boundary=option) for option in (False, True))
    assert set(more.column_names) - set(plain.column_names) == set(NAMES)
    assert more.select_columns(plain.column_names).to_list() == plain.to_list()
    assert plain.features == bd.score_features("pbench")
    assert more.features == bd.score_features("pbench", boundary=True)
    short, long = bd.summarize("pbench", plain, draws=50), bd.summarize("pbench", more, draws=50)
    assert (short.settings["boundary"], long.settings["boundary"]) == (False, True)
    assert {key: long.metrics[key] for key in short.metrics} == pytest.approx(short.metrics, nan_ok=True)
    levels = {row.level for row in some}
    assert set(long.metrics) - set(short.metrics) == {f"{key}/{level}" for key in KEYS for level in levels}
    assert all("boundary_iou/giou" in part.metrics for part in long.slices if part.by == "count")


def test_boundary_entry_points_give_same_scores(some: list[Row], tmp_path: Path) -> None:
    whole = bd.score("pbench", truth_of(some), predictions_of(some, tmp_path), boundary=True).to_list()
    both = bd.score("pbench", truth_of(some), predictions_of(some, tmp_path), boundary=True, num_proc=2).to_list()
    rows = joined(some)
    mapped = sorted(bd.map_score(rows, "pbench", boundary=True), key=lambda row: str(row["key"]))
    streamed = list(bd.map_score(rows.to_iterable_dataset(), "pbench", boundary=True))
    assert whole == both == mapped == sorted(streamed, key=lambda row: str(row["key"]))


def test_a_stream_of_scores_is_summed_up(some: list[Row]) -> None:
    rows = joined(some)
    stream = bd.map_score(rows.to_iterable_dataset(), "pbench", boundary=True)
    result = bd.summarize("pbench", stream, draws=0)
    assert values(result) == pytest.approx(
        values(bd.summarize("pbench", bd.map_score(rows, "pbench", boundary=True), draws=0)), nan_ok=True
    )
    assert result.settings["boundary"] is True


def test_a_skipped_row_has_zeros() -> None:
    rows: Any = joined([Row(0, "level_0", [square(20, 20, 40)], [square(20, 20, 40)])]).to_list()
    rows[0]["pred_masks"][0]["counts"] = "no"
    scores = bd.map_score(Dataset.from_list(rows), "pbench", boundary=True, on_fault="skip-and-report")
    assert scores[0]["skipped"]
    assert [scores[0][name] for name in NAMES] == [0] * 6


def test_a_benchmark_without_it_says_so() -> None:
    with pytest.raises(bd.BenchError, match="boundary: pvsg compares no outlines"):
        bd.scorer("pvsg", boundary=True)
    with pytest.raises(bd.BenchError, match="boundary: pvsg compares no outlines"):
        bd.score_features("pvsg", boundary=True)


def test_the_sample() -> None:
    truth = load_dataset("pbench", "sample", split="test")
    rows = truth.add_column("pred_masks", truth["masks"][:], feature=truth.features["masks"])
    found = values(bd.summarize("pbench", bd.map_score(rows, "pbench", boundary=True), draws=0))
    chosen = {key: value for key, value in found.items() if key.startswith("boundary_")}
    assert len(chosen) == 3 * len(LEVELS)
    assert set(chosen.values()) == {1.0}


def test_the_tables_have_a_row_for_each_number(some: list[Row]) -> None:
    text = str(bd.summarize("pbench", bd.map_score(joined(some), "pbench", boundary=True), draws=0))
    heads = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert [heads.count(key) for key in KEYS] == [1, 1, 1]


def test_parts_keep_the_columns(some: list[Row], tmp_path: Path) -> None:
    truth, predictions = truth_of(some), predictions_of(some, tmp_path)
    plan = make_plan("pbench", truth, predictions, boundary=True)
    assert look_over(plan).sha256 != look_over(make_plan("pbench", truth, predictions)).sha256
    for index in range(3):
        score_shard(plan, index, 3, tmp_path)
    whole = bd.score("pbench", truth, predictions, boundary=True)
    assert merge([tmp_path]).to_list() == whole.to_list()


def test_real_rows_from_the_command_line(shared: Path, tmp_path: Path) -> None:
    data, answers = shared / "data" / "pbench_mini", shared / "data" / "predictions_a" / "pbench.jsonl"
    options = ["--data", data, "--predictions", answers, "--boundary", "--draws", 0, "--out", tmp_path, "--json"]
    done = CliRunner().invoke(app, ["score", "pbench", *map(str, options)])
    assert done.exit_code == 0, done.stderr
    scores, result = read_scores(tmp_path), bd.Result.load(tmp_path)
    assert result.settings["boundary"] is True
    predicted = {row["id"]: row["masks"] for row in map(json.loads, answers.read_text().splitlines())}
    truth = load_dataset("pbench", split="test", data_dir=str(data)).remove_columns("image")
    rows = {
        row["key"]: Row(row["id"], LEVELS[row["level"]], decode(row["masks"]), decode(predicted[row["id"]]))
        for row in truth
    }
    for row in scores:
        assert [row[name] for name in NAMES] == counts(*unions(rows[row["key"]], "released"))
    for level in LEVELS:
        wanted = expected([row for row in rows.values() if row.level == level], "released")
        assert {key: result.metrics[f"{key}/{level}"].value for key in KEYS} == pytest.approx(wanted, abs=1e-12)


def decode(masks: list[dict[str, Any]]) -> list[Dense]:
    return [coco.decode({**mask, "counts": mask["counts"].encode()}).astype(bool) for mask in masks]
