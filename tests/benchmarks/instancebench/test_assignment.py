"""Whom a prediction means: ties, margins, tolerance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_datasets.benchmarks.instancebench.assignment import UNRESOLVED, identify, similarity


def assign(*scores: float, least: float = 0.1, margin: float = 0.05) -> int:
    return int(identify(np.array(scores), np.array([0, len(scores)]), least, margin).assigned[0])


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((0.10,), 0),
        ((0.09999999,), UNRESOLVED),
        ((0.1 - 1e-13,), 0),
        ((0.30, 0.25), 0),
        ((0.85, 0.80), 0),  # .85 - .80 is below .05 in binary
        ((0.25, 0.30), 1),
        ((0.30, 0.26), UNRESOLVED),
        ((0.5, 0.5), UNRESOLVED),
        ((0.5, 0.2, 0.5), UNRESOLVED),
        ((0.0, 0.0), UNRESOLVED),
        ((0.0,), UNRESOLVED),
        ((0.2, 0.0, 0.9), 2),
    ],
)
def test_thresholds(scores: tuple[float, ...], expected: int) -> None:
    assert assign(*scores) == expected


def test_ties_go_to_the_first() -> None:
    assert assign(0.5, 0.5, margin=0.0) == 0
    assert assign(0.2, 0.5, 0.5, margin=0.0) == 1
    assert assign(0.0, 0.0, least=0.0, margin=0.0) == UNRESOLVED


def test_a_tie_that_floats_break() -> None:
    """1 / sqrt(2 x 1) and 3 / sqrt(2 x 9) are one number, and two floats."""
    scores = similarity(np.array([1, 3]), np.array([2, 2]), np.array([1, 9]))
    assert scores[0] < scores[1]
    assert assign(*scores, margin=0.0) == 0


def test_similarity_is_no_iou() -> None:
    shared, predicted, candidate = np.array([30, 0, 0]), np.array([100, 0, 5]), np.array([30, 30, 5])
    assert similarity(shared, predicted, candidate).tolist() == [30 / math.sqrt(3000), 0.0, 0.0]
    huge = np.array([2**31 - 1])
    assert similarity(huge, huge, huge).tolist() == [1.0]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.04, 0.1, 0.12, 0.15, 0.17, 0.5, 0.55, 1.0]), min_size=1, max_size=5)),
    st.sampled_from([0.0, 0.05, 0.1, 0.15]),
    st.sampled_from([0.0, 0.05, 0.1]),
)
def test_against_a_loop(rows: list[list[float]], least: float, margin: float) -> None:
    offsets = np.cumsum([0, *map(len, rows)])
    found = identify(np.array([s for row in rows for s in row], np.float64), offsets, least, margin)
    for k, row in enumerate(rows):
        order = sorted(range(len(row)), key=lambda i: (-row[i], i))
        second = row[order[1]] if len(row) > 1 else 0.0
        sure = row[order[0]] > 0 and round(row[order[0]] - least, 9) >= 0
        sure = sure and round(row[order[0]] - second - margin, 9) >= 0
        assert found.assigned[k] == (order[0] if sure else UNRESOLVED)
        assert found.score[k] == row[order[0]]
        assert found.margin[k] == pytest.approx(row[order[0]] - second)


def test_no_prediction() -> None:
    found = identify(np.zeros(0), np.zeros(1, np.int64))
    assert [len(part) for part in found] == [0, 0, 0]
