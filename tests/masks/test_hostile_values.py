"""Python values that are no masks: each is named, none gets out as another error, none takes its neighbours along."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bench_datasets.masks import MaskColumn, MaskError, encode_dense, parse_mask, parse_masks


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


SIZED = {"size": [10, 10]}
HOSTILE: dict[str, Any] = {
    "none": None,
    "a number": 7,
    "text": "d0n0b1",
    "bytes": b"d0n0b1",
    "a set": {1, 2},
    "no counts": {"size": [10, 10]},
    "no size": {"counts": "d0n0b1"},
    "size of one": {"size": [10], "counts": "d0n0b1"},
    "size of three": {"size": [10, 10, 1], "counts": "d0n0b1"},
    "float size": {"size": [10.0, 10.0], "counts": "d0n0b1"},
    "bool size": {"size": [True, True], "counts": "01"},
    "size is text": {"size": "10", "counts": "d0n0b1"},
    "endless size": {"size": [10**5000, 10], "counts": "d0n0b1"},
    "size of 2^31": {"size": [1, 2**31], "counts": [2**31]},
    "size beyond int64": {"size": [2**64, 2**64], "counts": "0"},
    "no ascii": {**SIZED, "counts": "d0n0b\u0661"},
    "a surrogate": {**SIZED, "counts": "d0n0\ud800"},
    "a zero byte": {**SIZED, "counts": "d0n0b1\0"},
    "a line end": {**SIZED, "counts": "d0n0b1\n"},
    "empty list": {**SIZED, "counts": []},
    "float runs": {**SIZED, "counts": [20.0, 30.0, 50.0]},
    "bool runs": {**SIZED, "counts": [True, 99]},
    "nan run": {**SIZED, "counts": [20, math.nan, 50]},
    "text runs": {**SIZED, "counts": ["20", "30", "50"]},
    "null run": {**SIZED, "counts": [20, None, 50]},
    "runs that wrap": {**SIZED, "counts": [2**63, 2**63, 100]},
    "endless run": {**SIZED, "counts": [-(10**5000)]},
    "nested runs": {**SIZED, "counts": nested(5000)},
    "float array": {**SIZED, "counts": np.array([20.0, 30.0, 50.0])},
    "counts are a dict": {**SIZED, "counts": {}},
    "empty polygons": [],
    "nested polygons": nested(5000),
    "two corners": [[0, 0, 1, 1]],
    "odd numbers": [[0, 0, 1, 1, 2]],
    "nan corner": [[0, 0, 1, math.nan, 2, 2]],
    "infinite corner": [[0, 0, 1, math.inf, 2, 2]],
    "endless corner": [[0, 0, 1, 10**400, 2, 2]],
    "far corner": [[0, 0, 1, 1e9, 2, 2]],
    "text corner": [["0", "0", "1", "1", "2", "2"]],
    "bool corner": [[True, False, True, True, False, False]],
    "float mask": np.zeros((10, 10)),
    "flat array": np.zeros(10, bool),
    "no pixels": np.zeros((0, 10), bool),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_mask_value_not_a_mask_is_refused_with_message(name: str) -> None:
    good = {"size": [10, 10], "counts": "d0n0b1"}
    masks, wrong = parse_masks([good, HOSTILE[name], good], height=10, width=10)
    assert list(wrong) == [1]
    assert 0 < len(wrong[1]) < 300
    assert masks.is_valid().to_pylist() == [True, False, True]
    assert MaskColumn.from_arrow(masks).take([0, 2]).areas().tolist() == [30, 30]
    with pytest.raises(MaskError):
        parse_mask(HOSTILE[name], height=10, width=10)


def test_polygons_without_a_size_are_refused() -> None:
    _, wrong = parse_masks([[[0, 0, 4, 0, 4, 4]]])
    assert "height and width" in wrong[0]


def test_what_is_no_mask_is_not_encoded() -> None:
    for value in (np.zeros((2, 2)), np.zeros(4, bool), np.zeros((0, 3), bool), np.zeros((1, 2, 3), bool), "text"):
        with pytest.raises(MaskError, match="expected"):
            encode_dense(value)


def test_dense_arrays_as_lists_are_called_so() -> None:
    dense = np.eye(5, 7, dtype=bool)
    for value in (dense.tolist(), list(dense), dense.astype(int).tolist()):
        with pytest.raises(MaskError, match=r"5 rows of 7 values looks like a dense array; .*encode_dense"):
            parse_mask(value)
    with pytest.raises(MaskError, match="looks like a dense array"):
        parse_mask(dense.tolist(), height=5, width=7)
    assert parse_mask(dense[None]) == encode_dense(dense)
    with pytest.raises(MaskError, match=r"\(height, width\), found one of shape \(2, 5, 7\)"):
        parse_mask(np.stack([dense, dense]))
    masks, wrong = parse_masks([[[0, 0, 1, 0, 1, 1]], [[0, 0, 4, 0, 4, 4], [1, 0, 0, 1, 1, 1]]], height=5, width=7)
    assert (len(masks), wrong) == (2, {})
