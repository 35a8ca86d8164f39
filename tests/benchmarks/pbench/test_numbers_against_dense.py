"""Every number of every protocol, against dense numpy and scipy on rows of any kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bench_datasets as bd
from bench_datasets.scoring.matching import assign

from ...support.dense_pbench import LEVELS, Dense, Row, all_numbers, measure, numbers, suppressed, true_positives
from ...support.pbench_rows import joined, line, values

PROTOCOLS = ("released", "paper", "card")


def draw_mask(generator: np.random.Generator, shape: tuple[int, int]) -> Dense:
    kind = generator.integers(5)
    mask = np.zeros(shape, bool)
    if kind == 1:
        mask[:] = True
    elif kind == 2:
        mask = generator.random(shape) < 0.5
    elif kind > 2:
        y, x = (int(generator.integers(side)) for side in shape)
        mask[y : y + 1 + int(generator.integers(shape[0])), x : x + 1 + int(generator.integers(shape[1]))] = True
    return mask


def draw_row(generator: np.random.Generator, number: int, level: str) -> Row:
    shape = (1, int(generator.integers(2, 14))) if generator.random() < 0.5 else (4, 5)
    truth = [draw_mask(generator, shape) for _ in range(int(generator.integers(0, 5)))]
    predicted: list[Dense] = []
    for _ in range(int(generator.integers(0, 6))):
        choice = generator.random()
        if truth and choice < 0.5:  # a truth mask, some pixels turned
            near = truth[int(generator.integers(len(truth)))]
            predicted.append(near ^ (generator.random(shape) < 0.15))
        elif predicted and choice < 0.65:
            predicted.append(predicted[int(generator.integers(len(predicted)))])
        elif truth and choice < 0.8:  # another size
            other = (int(generator.integers(1, 9)), int(generator.integers(1, 17)))
            predicted.append(draw_mask(generator, other))
        else:
            predicted.append(draw_mask(generator, shape))
    return Row(number, level, truth, predicted)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), levels=st.sampled_from([LEVELS, LEVELS[:1], LEVELS[4:], LEVELS[::2]]))
def test_rows_of_any_kind(seed: int, levels: tuple[str, ...]) -> None:
    generator = np.random.default_rng(seed)
    rows = [draw_row(generator, k, levels[k % len(levels)]) for k in range(18)]
    table = joined(rows).with_format("arrow")[:]
    for protocol in PROTOCOLS:
        result = bd.summarize("pbench", bd.scorer("pbench", protocol)(table), draws=0)
        expected = all_numbers(rows, protocol)
        assert values(result) == pytest.approx(expected, abs=1e-12, nan_ok=True)
        by_count: dict[str, list[dict[str, object]]] = {}
        for row in rows:
            count = len(row.truth)
            by_count.setdefault(str(count) if count < 2 else "2-5", []).append(measure(row, protocol))
        found = {
            part.value: {k: m.value for k, m in part.metrics.items()} for part in result.slices if part.by == "count"
        }
        assert set(found) == set(by_count)
        for name, measured in by_count.items():
            assert found[name] == pytest.approx(numbers(measured, protocol), abs=1e-12, nan_ok=True)


def test_a_number_that_is_not_defined_is_about_nothing() -> None:
    rows = [Row(0, "level_0", [line((0, 9))], []), Row(1, "level_1", [], [line((0, 9))])]
    for protocol in PROTOCOLS:
        result = bd.summarize("pbench", bd.scorer("pbench", protocol)(joined(rows).with_format("arrow")[:]), draws=50)
        undefined = {key: metric for key, metric in result.metrics.items() if np.isnan(metric.value)}
        assert {"il_mcc/level_0", "mask_redundancy_rate/level_0", "pmf1/level_1", "duplicates/level_1"} <= set(
            undefined
        )
        assert {metric.n for metric in undefined.values()} == {0}
        assert {metric.ci95 for metric in undefined.values()} == {None}


def score_of(truth: list[Dense], predicted: list[Dense], protocol: str = "released") -> float:
    table = bd.scorer("pbench", protocol)(joined([Row(1, "level_0", truth, predicted)]).with_format("arrow")[:])
    return values(bd.summarize("pbench", table, draws=0))["macro_f1/level_0"]


def test_the_released_functions_values() -> None:
    a, b = line((0, 10)), line((50, 70))
    assert score_of([a, b], [a]) == pytest.approx(2 / 3)
    assert score_of([line((0, 100))], [line((0, 60))]) == pytest.approx(0.3)
    assert score_of([a], [a, a]) == 1.0  # its duplicate is suppressed
    assert score_of([a], []) == 0.0


def test_one_assignment_not_one_a_threshold() -> None:
    """.52 + 0 at first sight, .45 + .50 in sum: at .5 one pair counts, at .55 none."""
    assert assign([[0.52, 0.45], [0.50, 0.00]]).true.tolist() == [1, 0]
    with pytest.raises(bd.BenchError, match="0, 1"):
        assign([[1.5]])
    with pytest.raises(bd.BenchError, match="shape"):
        assign([0.5])
    assert [len(side) for side in assign(np.zeros((0, 3)))] == [0, 0]


def test_equal_totals_are_settled_in_the_order_of_suppression() -> None:
    """Short lines: many rows have several assignments of one total, which differ in what they reach."""
    generator = np.random.default_rng(5)

    def spans(count: int) -> list[Dense]:
        starts = generator.integers(0, 8, size=count)
        return [line((int(s), int(s + generator.integers(2, 6))), width=12) for s in starts]

    rows = [Row(k, "level_0", spans(3), spans(4)) for k in range(400)]
    table = bd.scorer("pbench")(joined(rows).with_format("arrow")[:])
    result = bd.summarize("pbench", table, by=["key"], draws=0)
    found = {part.value: part.metrics["macro_f1"].value for part in result.slices if part.by == "key"}
    expected = {f"level_0/{row.id}": measure(row, "released")["score"] for row in rows}
    assert found == pytest.approx(expected, abs=1e-12)
    backwards = [true_positives(suppressed(row.predicted)[::-1], row.truth) for row in rows]
    assert any(measure(row, "released")["tp"] != tp for row, tp in zip(rows, backwards, strict=True))


def test_thresholds_of_ones_own() -> None:
    rows = [Row(0, "level_0", [line((0, 100))], [line((0, 60))]), Row(1, "dense", [line((0, 100))], [line((0, 60))])]
    table = bd.scorer("pbench")(joined(rows).with_format("arrow")[:])
    found = values(bd.summarize("pbench", table, thresholds=[0.6], draws=0))
    assert (found["macro_f1/level_0"], found["macro_f1/dense"]) == (1.0, 1.0)
    found = values(bd.summarize("pbench", table, thresholds=[0.5, 0.61], draws=0))
    assert (found["macro_f1/level_0"], found["macro_f1/dense"]) == (0.5, 0.5)
    for thresholds in ([], [0.0], [1.1], [float("nan")]):
        with pytest.raises(bd.BenchError, match="thresholds"):
            bd.summarize("pbench", table, thresholds=thresholds, draws=0)
    card = bd.scorer("pbench", "card")(joined(rows).with_format("arrow")[:])
    with pytest.raises(bd.BenchError, match="thresholds"):
        bd.summarize("pbench", card, thresholds=[0.6], draws=0)
