"""Predictions are read once: what validation read is what scoring would read, and makes no difference to the scores."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.data import open_truth
from bench_datasets.masks import Decoded, MaskColumn, available_engines, using_engine
from bench_datasets.scoring import validate
from bench_datasets.scoring.prepare import Plan, make_plan

BENCHMARKS = ("pbench", "instancebench", "pvsg")


@cache
def inputs(benchmark: str) -> tuple[Dataset, Dataset]:
    """Truth and predictions of the built-in sample."""
    file = str(getattr(samples, f"{benchmark}_sample_predictions")("hasty"))
    return open_truth(benchmark, "sample"), bd.read_predictions(benchmark, file)


def plan_of(benchmark: str, **options: Any) -> Plan:
    return make_plan(benchmark, *inputs(benchmark), **options)


@pytest.fixture(params=available_engines())
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with using_engine(request.param):
        yield request.param


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, engine: str) -> list[int]:
    """How many masks the engine was given to decode, call by call."""
    calls: list[int] = []
    with using_engine(engine) as used:
        decode = type(used).decode

        def counted(self: Any, column: MaskColumn) -> Decoded:
            calls.append(len(column))
            return decode(self, column)

        monkeypatch.setattr(type(used), "decode", counted)
    return calls


@pytest.mark.parametrize("lot", [1, 3, 1000])
def test_each_mask_is_decoded_once(read: list[int], lot: int, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, answers = inputs("pbench")
    counts = {name: sum(map(len, rows)) for name, rows in (("true", truth["masks"]), ("given", answers["pred_masks"]))}
    read.clear()
    monkeypatch.setattr("bench_datasets.scoring.prepare.rows_at_a_time", lambda *_: lot)
    plan = plan_of("pbench")
    for row, masks in zip(plan.units.answers.tolist(), truth["masks"], strict=True):
        sizes = {tuple(mask["size"]) for mask in [*masks, *answers[row]["pred_masks"]]}
        assert len(sizes) <= 1, "else some are resized, and read again at their new size"
    assert sum(read) == counts["given"]
    # Scored in lots that straddle those of the validation.
    monkeypatch.setattr("bench_datasets.scoring.prepare.rows_at_a_time", lambda *_: 4)
    plan.score(plan.everything)
    assert sum(read) == counts["given"] + counts["true"]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
@pytest.mark.parametrize("room", [0, 4096, 1 << 28])
def test_what_is_kept_changes_nothing(benchmark: str, room: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "KEPT_BYTES", room)
    monkeypatch.setattr("bench_datasets.scoring.prepare.rows_at_a_time", lambda *_: 5)
    plan = plan_of(benchmark)
    copy = pickle.loads(pickle.dumps(plan))
    scores = plan.score(plan.everything)
    again = plan.score(plan.everything)  # when everything has been handed out
    elsewhere = copy.score(copy.everything)  # in another process, where nothing was kept
    assert repr(again.to_pylist()) == repr(elsewhere.to_pylist()) == repr(scores.to_pylist())
    some = list(plan.everything)[1::2]
    assert repr(plan.score(some).to_pylist()) == repr(scores.take(some).to_pylist())


def test_readings_are_those_of_the_masks(engine: str) -> None:
    plan = plan_of("instancebench")
    for first, last in ((0, 3), (3, 4), (5, len(plan.units))):
        plan_again = plan_of("instancebench")
        found = plan_again.readings.take(range(first, last))
        assert found is not None
        rows = plan.units.answers[plan.units.begin[first] : plan.units.begin[last]]
        masks = [mask for mask in plan.answers[rows[rows >= 0].tolist()]["mask"].to_pylist() if mask is not None]
        fresh = MaskColumn.from_values(masks).decoded
        assert np.array_equal(found.status, fresh.status)
        assert np.array_equal(found.areas, fresh.areas)
        assert all(np.array_equal(a, b) for a, b in zip(found.runs, fresh.runs, strict=True))
        heights = np.array([mask["size"][0] for mask in masks])
        assert np.array_equal(found.corners(heights), fresh.corners(heights))


def test_decoded_masks_put_together_and_spread(engine: str) -> None:
    rng = np.random.default_rng(4)
    dense = [rng.random((7, 9)) < p for p in (0.0, 0.2, 0.5, 1.0, 0.1)]
    column = MaskColumn.from_dense(dense)
    parts = [MaskColumn.from_dense(dense[:2]).decoded, column.decoded.part(2, 2), column.decoded.part(2, 5)]
    again = MaskColumn.from_dense(dense)
    again.remember(Decoded.joined(parts))
    assert np.array_equal(again.areas(), [mask.sum() for mask in dense])
    assert np.array_equal(again.boxes(), MaskColumn.from_dense(dense).boxes())
    assert all(np.array_equal(again.decode(i), mask) for i, mask in enumerate(dense))

    there = np.array([False, True, True, False, True, True, True, False])
    values = iter(column.to_pylist())
    gaps = [next(values) if yes else None for yes in there]
    fresh = Dataset.from_dict({"mask": gaps}).with_format("arrow")[:]["mask"]
    expected, found = MaskColumn.from_arrow(fresh).decoded, column.decoded.spread(there)
    assert np.array_equal(found.status, expected.status)
    assert np.array_equal(found.areas, expected.areas)
    assert np.array_equal(found.corners(np.full(8, 7)), expected.corners(np.full(8, 7)))
    assert all(np.array_equal(a, b) for a, b in zip(found.runs, expected.runs, strict=True))
    assert column.decoded.part(0, 0).spread(np.zeros(2, np.bool_)).status.tolist() == [1, 1]


def test_readings_of_other_masks_are_refused() -> None:
    column = MaskColumn.from_dense([np.ones((2, 2), np.bool_)])
    with pytest.raises(ValueError, match="expected 2 masks, found 1"):
        MaskColumn.from_dense([np.ones((2, 2), np.bool_)] * 2).remember(column.decoded)
