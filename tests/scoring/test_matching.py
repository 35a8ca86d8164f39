"""Pairs told without solving anything, against the solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from bench_datasets.scoring import matching
from bench_datasets.scoring.matching import ROUNDS, settled

Matrix = NDArray[np.float64]


def solved(iou: Matrix) -> set[tuple[int, int]]:
    """The overlapping pairs that scipy chooses."""
    pairs = zip(*linear_sum_assignment(iou, maximize=True), strict=True)
    return {(int(i), int(j)) for i, j in pairs if iou[i, j] > 0}


def looked_over(matrices: list[Matrix]) -> list[tuple[set[tuple[int, int]], bool]]:
    """Of each of some rows, all looked over at once: the certain pairs, and whether something is left open."""
    shapes = np.array([matrix.shape for matrix in matrices])
    begin = np.concatenate([[[0, 0]], np.cumsum(shapes, axis=0)])
    pairs = [np.nonzero(matrix) for matrix in matrices]
    row = np.repeat(np.arange(len(matrices)), [len(i) for i, _ in pairs])
    i, j = (np.concatenate([pair[k] for pair in pairs]).astype(np.int64) for k in (0, 1))
    iou = np.concatenate([matrix[pair] for matrix, pair in zip(matrices, pairs, strict=True)])
    certain, left_open = settled(i + begin[row, 0], j + begin[row, 1], iou)
    return [
        (set(zip(i[certain & (row == k)].tolist(), j[certain & (row == k)].tolist(), strict=True)),
         bool(left_open[row == k].any()))
        for k in range(len(matrices))
    ]  # fmt: skip


def draw(generator: np.random.Generator) -> Matrix:
    """Dense or sparse; of any IoU, of quotients of small integers (full of ties), or near a diagonal."""
    n, m = (int(side) for side in generator.integers(1, 9, 2))
    kind = generator.integers(3)
    if kind == 0:
        values = generator.random((n, m))
    elif kind == 1:
        values = generator.integers(1, 6, (n, m)) / generator.integers(5, 8, (n, m))
    else:
        values = np.minimum(1, generator.random((n, m)) * 0.3 + 0.7 * np.eye(n, m))
    return np.where(generator.random((n, m)) < generator.random(), np.minimum(values, 1), 0.0)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_is_certain_is_what_the_solver_chooses(seed: int) -> None:
    generator = np.random.default_rng(seed)
    matrices = [draw(generator) for _ in range(25)]
    for matrix, (certain, left_open) in zip(matrices, looked_over(matrices), strict=True):
        assert certain <= solved(matrix)
        assert left_open or certain == solved(matrix)


def test_most_rows_of_a_fair_model_leave_nothing_open() -> None:
    generator = np.random.default_rng(3)
    matrices = [np.triu(np.tril(generator.random((40, 40)) * 0.2, 1), -1) + 0.7 * np.eye(40) for _ in range(30)]
    found = looked_over(matrices)
    assert sum(not left_open for _, left_open in found) == 30
    assert all(certain == solved(matrix) for matrix, (certain, _) in zip(matrices, found, strict=True))


def test_a_pair_is_certain_once_its_rivals_are_gone() -> None:
    # Each pair beats its rivals only when the pair before it has taken one of them away.
    steps = 5
    iou = np.zeros((steps + 1, steps))
    for k in range(steps):
        iou[k, k], iou[k + 1, k] = 0.9 - 0.1 * k, 0.85 - 0.1 * k
    [(certain, left_open)] = looked_over([iou])
    assert certain <= solved(iou)
    assert left_open or certain == solved(iou)


@pytest.mark.parametrize(
    "iou",
    [
        [[0.5, 0.5]],
        [[0.5], [0.5]],
        [[0.5, 0.5], [0.5, 0.5]],
        [[0.6, 0.3], [0.3, 0.0]],  # .6 is what the other two make
        [[0.52, 0.45], [0.50, 0.00]],
        [[0.5, 0.5 - 1e-12]],
    ],
)
def test_what_is_close_is_left_to_the_solver(iou: list[list[float]]) -> None:
    assert looked_over([np.array(iou)]) == [(set(), True)]


def test_a_long_chain_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    best_other = matching._best_other

    def counted(*arguments: NDArray[np.int64]) -> Matrix:
        asked.append(len(arguments[0]))
        return best_other(*arguments)

    monkeypatch.setattr(matching, "_best_other", counted)
    n = 300  # the only certain pair stands at the chain's end, and one more follows each round
    iou = np.zeros((n, n))
    for k in range(n):
        iou[k, k] = 0.6 if k else 0.9
        if k + 1 < n:
            iou[k, k + 1] = 0.59
    [(certain, left_open)] = looked_over([iou])
    assert certain <= solved(iou)
    assert left_open
    assert len(asked) <= 2 * ROUNDS


def test_nothing_at_all() -> None:
    none = np.zeros(0, np.int64)
    certain, left_open = settled(none, none, np.zeros(0))
    assert (certain.tolist(), left_open.tolist()) == ([], [])
