"""Every number against plain loops over dense masks, and what must hold of any set of answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bench_datasets as bd
from bench_datasets.benchmarks.instancebench import BENCHMARK
from bench_datasets.scoring.options import ScoreOptions

from ...support import dense_instancebench as dense
from ...support.instancebench_sets import Answers, Tces, batch_of, random_sets, values

SEEDS = st.integers(0, 2**32 - 1)


def scored(sets: Sequence[Tces], answers: Mapping[str, Answers], engine: str | None = None) -> pa.Table:
    tables = []
    for condition, found in answers.items():
        asked = [s for s in sets if condition == "original" or any(ask.name in found for ask in s.asks)]
        if asked:
            tables.append(
                BENCHMARK.score_table(batch_of(asked, found, condition), ScoreOptions("default", engine=engine))
            )
    return pa.concat_tables(tables)


def numbers(table: pa.Table) -> dict[str, float]:
    return values(bd.summarize("instancebench", table, draws=0))


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_every_number(seed: int) -> None:
    sets, answers = random_sets(np.random.default_rng(seed))
    found, expected = numbers(scored(sets, answers)), dense.numbers(sets, answers)
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_every_number_of_many_sets() -> None:
    """Enough sets for every contrast, operation and source to occur."""
    rng = np.random.default_rng(5)
    sets, answers = [], {name: {} for name in ("original", "category_only", "text_swap", "deliberation")}
    for k in range(25):
        some, found = random_sets(rng)
        for tces in some:
            names = {ask.name: f"{k} {ask.name}" for ask in tces.asks}
            for ask in tces.asks:
                ask.name = names[ask.name]
            tces.key = f"{k} {tces.key}"
            sets.append(tces)
        for condition, masks in found.items():
            answers[condition] |= {f"{k} {name}": mask for name, mask in masks.items()}
    found, expected = numbers(scored(sets, answers)), dense.numbers(sets, answers)
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)
    undefined = {key for key, value in expected.items() if math.isnan(value)}
    assert {key.split("/")[0] for key in undefined} == {"oracle", "box_acc@0.5"}
    assert all(expected[f"effect/{name}"] != 0 for name in dense.CONTRASTS)


@settings(max_examples=8, deadline=None)
@given(SEEDS, SEEDS)
def test_order_and_cuts_change_nothing(seed: int, other: int) -> None:
    sets, answers = random_sets(np.random.default_rng(seed))
    original = answers["original"]
    whole = BENCHMARK.score_table(batch_of(sets, original), ScoreOptions("default"))
    order = np.random.default_rng(other).permutation(len(sets))
    parts = [BENCHMARK.score_table(batch_of([sets[k]], original), ScoreOptions("default")) for k in order]
    shuffled = pa.concat_tables(parts)
    assert repr(shuffled.sort_by("key").to_pylist()) == repr(whole.sort_by("key").to_pylist())
    a, b = bd.summarize("instancebench", whole, draws=50), bd.summarize("instancebench", shuffled, draws=50)
    assert repr(a.metrics) == repr(b.metrics)
    assert repr(a.slices) == repr(b.slices)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_inequalities(seed: int) -> None:
    sets, answers = random_sets(np.random.default_rng(seed))
    found = numbers(scored(sets, {"original": answers["original"]}))
    # Every set has two core expressions, and no IoU is above 1: all of these rest on that.
    assert found["all@0.9"] <= found["all@0.7"] <= found["p@0.7"] <= found["p@0.5"]
    assert found["all@0.7"] >= 2 * found["p@0.7"] - 1 - 1e-12
    assert found["worst_path_iou"] >= 2 * found["miou"] - 1 - 1e-12
    assert found["worst_path_iou"] <= found["miou"] + 1e-12
    failing = [found[f"{kind}@0.7"] for kind in ("identity_error", "same_class_switch", "unresolved")]
    if math.isfinite(failing[0]):
        assert failing[0] == pytest.approx(failing[1] + failing[2])
        assert failing[0] + found["correct_id_poor_mask@0.7"] == pytest.approx(1.0)
    if math.isfinite(found["all_target_id"]):
        assert found["all_target_id/dense"] <= found["all_target_id"]


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_stricter_identity_means_fewer(seed: int) -> None:
    """Raising either threshold only makes predictions unresolved."""
    sets, answers = random_sets(np.random.default_rng(seed))
    found = numbers(scored(sets, {"original": answers["original"]}))
    grid = [(score, margin) for score in ("0.05", "0.1", "0.15") for margin in ("0", "0.05", "0.1")]
    for low in grid:
        for high in grid:
            if float(low[0]) <= float(high[0]) and float(low[1]) <= float(high[1]):
                loose, strict = (
                    {name: found[f"sensitivity/{score}/{margin}/{name}"] for name in NAMES}
                    for score, margin in (low, high)
                )
                if math.isfinite(loose["all_target_id"]):
                    assert strict["all_target_id"] <= loose["all_target_id"]
                if math.isfinite(loose["unresolved"]):
                    assert strict["same_class_switch"] <= loose["same_class_switch"]
                    assert strict["unresolved"] >= loose["unresolved"]


NAMES = ("all_target_id", "same_class_switch", "unresolved")


@settings(max_examples=8, deadline=None)
@given(SEEDS)
def test_engines_agree(seed: int) -> None:
    from bench_datasets.masks import available_engines, using_engine

    sets, answers = random_sets(np.random.default_rng(seed))
    tables = []
    for engine in available_engines():
        with using_engine(engine):
            tables.append(repr(scored(sets, answers).to_pylist()))
    assert len(set(tables)) == 1
