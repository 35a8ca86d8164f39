"""A row to look at: words and a picture, and rows that can't be shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bench_datasets as bd
from bench_datasets.data import open_truth

MASK = {"size": [10, 10], "counts": "d0n0b1"}


@pytest.mark.parametrize(
    ("benchmark", "words"),
    [
        ("pbench", "'apple'"),
        ("instancebench", "minimal: 'the second person from the left'"),
        ("pvsg", "child 1 riding"),
    ],
)
def test_rows_of_the_samples(benchmark: str, words: str) -> None:
    truth = open_truth(benchmark, "sample")
    shown = [bd.show(row) for row in truth]
    assert [item.key for item in shown] == list(truth["key"])
    assert any(words in str(item) for item in shown)
    assert all(len(item.text.splitlines()) <= 16 for item in shown)
    page = shown[0]._repr_html_()
    assert page.startswith("<pre")
    assert 'src="data:image/png;base64,' in page


def test_predictions_are_drawn_too() -> None:
    row = {"key": "k", "expression": "<b>", "masks": [MASK], "pred_masks": [{"size": [10, 10], "counts": "0T3"}]}
    alone, both = bd.show({k: v for k, v in row.items() if k != "pred_masks"}), bd.show(row)
    assert "1 predicted" in str(both)
    assert not np.array_equal(np.asarray(alone.picture), np.asarray(both.picture))
    assert "&lt;b&gt;" in both._repr_html_()
    assert "<b>" not in both._repr_html_()


def test_a_frame_of_ones_choice() -> None:
    row = open_truth("pvsg", "sample")[0]
    assert "frame 12" in str(bd.show(row, frame=12))
    assert "frame 999" in str(bd.show(row, frame=999))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([], "expected one row, a mapping of its columns, got list"),
        ({"a": 1}, "expected a row with masks, candidates or tubes, found a"),
        ({"id": 1, "level": 0, "masks": [{"size": [10, 10], "counts": "zzz"}]}, r"level_0/1: masks: mask 0: "),
        ({"id": 1, "level": 0, "masks": [MASK, {"size": [1, 1], "counts": "1"}]}, "expected masks of one size"),
        ({"key": "t", "target": 3, "candidates": []}, "target: expected one of 0 candidates, found 3"),
    ],
)
def test_what_is_no_row(row: Any, said: str) -> None:
    with pytest.raises(bd.BenchError, match=said):
        bd.show(row)
