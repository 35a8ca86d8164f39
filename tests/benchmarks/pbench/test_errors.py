"""Error kinds: drawn rows whose errors are plain to see, and what every kind must sum to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bench_datasets as bd
from bench_datasets.data import open_truth
from bench_datasets.results.error_kinds import Errors, find_errors
from bench_datasets.samples import SAMPLE_MODELS, instancebench_sample_predictions, pvsg_sample_predictions

from ...support.dense_pbench import Row
from ...support.pbench_rows import joined, line

CASES = {
    # name: truth, predictions, what is wrong (with the masks at hand)
    "right": ([(0, 20), (40, 60)], [(0, 20), (40, 60)], {}),
    "nearly right": ([(0, 20)], [(0, 16)], {}),  # IoU .8
    "missed": ([(0, 20), (40, 60)], [(0, 20)], {"missed": 1, "count_drift": 1}),
    "extra": ([(0, 20)], [(0, 20), (70, 80)], {"extra": 1, "count_drift": 1}),
    "duplicate": ([(0, 20)], [(0, 20), (1, 20)], {"duplicate": 1, "count_drift": 1}),
    "poor": ([(0, 20)], [(8, 28)], {"poor_boundary": 1}),
    "just poor": ([(0, 100)], [(0, 74)], {"poor_boundary": 1}),
    "just clear": ([(0, 100)], [(0, 75)], {}),
    "elsewhere": ([(0, 20)], [(50, 70)], {"wrong_instance": 1}),
    "all elsewhere": ([(0, 20), (30, 40)], [(50, 70)], {"wrong_instance": 2, "count_drift": 1}),
    "merged": ([(0, 20), (22, 42)], [(0, 42)], {"merged": 2, "count_drift": 1}),
    "split": ([(0, 60)], [(0, 20), (22, 42), (44, 60)], {"split": 1, "count_drift": 2}),
    "silent": ([(0, 20), (40, 60)], [], {"empty": 2, "count_drift": 2}),
    "without a pixel": ([(0, 20)], [()], {"empty": 1, "extra": 1}),
    "no truth, no answer": ([], [], {}),
    "no truth": ([], [(0, 9)], {"extra": 1, "count_drift": 1}),
}


def rows() -> list[Row]:
    def mask(span: tuple[int, ...]) -> np.ndarray:
        return line((span[0], span[1])) if span else line()

    return [
        Row(i, "level_0", list(map(mask, truth)), list(map(mask, predicted)))
        for i, (truth, predicted, _) in enumerate(CASES.values())
    ]


def in_parts(table: pa.Table) -> Iterator[pa.Table]:
    for first in range(0, len(table), 5):
        yield table.slice(first, 5)


@pytest.fixture(scope="module")
def found() -> Errors:
    beside = joined(rows())
    return find_errors("pbench", bd.map_score(beside, "pbench"), in_parts(beside.with_format("arrow")[:]))


@pytest.mark.parametrize("name", CASES)
def test_what_is_plain_to_see(found: Errors, name: str) -> None:
    key = f"level_0/{list(CASES).index(name)}"
    row = found.table.to_pylist()[found.table["key"].to_pylist().index(key)]
    shown = {kind.name: row[kind.name] for kind in found.kinds if row[kind.name]}
    assert shown == CASES[name][2]


def test_without_the_masks() -> None:
    """Merged and split masks look poor, missed or elsewhere; the rest is the same."""
    found = find_errors("pbench", bd.map_score(joined(rows()), "pbench")).table.to_pylist()
    by_key = {row["key"]: row for row in found}
    for i, (name, (_, _, expected)) in enumerate(CASES.items()):
        row = by_key[f"level_0/{i}"]
        assert row["merged"] == row["split"] == 0
        if name not in ("merged", "split"):
            assert {k: v for k, v in row.items() if k not in ("key", "level") and v} == expected, name


@pytest.mark.parametrize("seed", range(4))
def test_every_truth_mask_has_one_fate(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def masks() -> list[np.ndarray]:
        starts = rng.integers(0, 90, rng.integers(0, 6))
        return [line((int(a), int(a + rng.integers(1, 40)))) for a in starts]

    drawn = joined([Row(i, "level_1", masks(), masks()) for i in range(40)])
    scores = bd.map_score(drawn, "pbench")
    table = find_errors("pbench", scores, [drawn.with_format("arrow")[:]]).table.to_pylist()
    for row, scored in zip(table, sorted(scores, key=lambda r: r["key"]), strict=True):
        pairs = zip(scored["matched_intersection"], scored["matched_union"], strict=True)
        clear = sum(a / b >= 0.75 for a, b in pairs)
        fates = ("missed", "merged", "split", "wrong_instance", "poor_boundary", "empty")
        assert clear + sum(row[name] for name in fates) == scored["true_count"]
        assert min(row[kind] for kind in row if kind not in ("key", "level")) >= 0
        assert row["count_drift"] == abs(scored["true_count"] - scored["raw_count"])
        assert row["extra"] <= scored["kept_count"]


def test_counts_by_level_and_by_row(found: Errors) -> None:
    total = found.counts()["level_0"]
    assert total["empty"] == 3
    assert total["merged"] == 2
    assert found.rows()["level_0"]["merged"] == 1
    assert sum(total.values()) == found.matrix().sum()
    assert "level_0" in str(found)
    assert "<table>" in found._repr_html_()


@pytest.fixture(scope="module", params=["hasty", "crowd_shy"])  # models of a single run
def sets(request: pytest.FixtureRequest) -> tuple[Errors, bd.Result]:
    truth = open_truth("instancebench", "sample")
    predictions = bd.read_predictions("instancebench", instancebench_sample_predictions(request.param))
    scores = bd.score("instancebench", truth, predictions)
    return find_errors("instancebench", scores), bd.summarize("instancebench", scores, draws=0)


def test_every_expression_has_one_fate(sets: tuple[Errors, bd.Result]) -> None:
    """The kinds against the paper's own failures, whose shares the summary gives."""
    errors, result = sets
    assert errors.matrix().sum(axis=1).max() == 1
    chosen = [
        row for row in errors.table.to_pylist()
        if row["condition"] == "original" and row["role"] in ("minimal", "variant") and row["run"] == "0"
    ]  # fmt: skip
    failing = [row for row in chosen if sum(row[kind.name] for kind in errors.kinds)]
    everything = result.metrics
    # A set with one candidate is not eligible for identities; the sample's all have two.
    n = everything["identity_error@0.7"].n
    assert len(failing) == n
    poor = sum(row["poor_boundary"] for row in failing)
    assert poor / n == pytest.approx(everything["correct_id_poor_mask@0.7"].value)
    assert 1 - poor / n == pytest.approx(everything["identity_error@0.7"].value)


@pytest.mark.parametrize("protocol", ["official", "volume", "card"])
@pytest.mark.parametrize("model", sorted(SAMPLE_MODELS))
def test_every_relation_has_one_fate(model: str, protocol: str) -> None:
    """The stages against the losses that the summary gives."""
    truth = open_truth("pvsg", "sample")
    scores = bd.score("pvsg", truth, bd.read_predictions("pvsg", pvsg_sample_predictions(model)), protocol)
    for k in (1, 3, 20):
        metrics = bd.summarize("pvsg", scores, draws=0, k=(k,)).metrics
        for t in (0.5, 0.1):
            errors = find_errors("pvsg", scores, threshold=t, k=k)
            matrix = errors.matrix()
            assert matrix.sum(axis=1).max(initial=0) <= 1
            n = len(errors)
            assert 1 - matrix.sum() / n == pytest.approx(metrics[f"R@{k}/{t:g}"].value)
            assert matrix[:, 0].sum() / n == pytest.approx(metrics[f"loss/first_stage@{k}/{t:g}"].value)
            assert matrix[:, 1:].sum() / n == pytest.approx(metrics[f"loss/second_stage@{k}/{t:g}"].value)


def test_a_table_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(bd.BenchError, match="expected a score table"):
        find_errors("pbench", pa.table({"key": ["a"]}))
