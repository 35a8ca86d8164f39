"""Pairing against a plain search through all rows, and what it says where nothing fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_datasets.predictions import pair
from bench_datasets.predictions.mask_rows import FEATURES

KEYS = ["level_0/7", "level_0/8", "level_1/7", "level_0/9", "level_0/9#2", "dense/5"]
IDS = [7, 8, 7, 9, 9, 5]
LEVELS = ["level_0", "level_0", "level_1", "level_0", "level_0", "dense"]


def predictions(*names: dict[str, Any]) -> Dataset:
    empty: dict[str, Any] = dict.fromkeys(FEATURES)
    rows = [{**empty, "pred_masks": [], "pred_faults": [], **name} for name in names]
    return Dataset.from_dict({column: [row[column] for row in rows] for column in FEATURES}, FEATURES)


def test_every_way_to_name_a_row() -> None:
    found = pair(
        KEYS,
        IDS,
        LEVELS,
        predictions({"id": 8}, {"id": 7, "split": "level_1"}, {"key": "level_0/9#2"}, {"key": "level_0/9", "id": 9}),
    )
    np.testing.assert_array_equal(found.index, [-1, 0, 1, 3, 2, -1])
    assert [(fault.code, fault.key) for fault in found.faults] == [
        ("missing_prediction", "level_0/7"),
        ("missing_prediction", "dense/5"),
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ({"id": 7}, "levels level_0, level_1; name the row by key or give its split"),
        ({"id": 9}, "2 times in level_0; name the row by its key (level_0/9, level_0/9#2)"),
        ({"id": 9, "split": "level_0"}, "2 times in level_0"),
        ({"id": 6}, "no row has id 6"),
        ({"id": 5, "split": "level_0"}, "no row has split 'level_0' and id 5"),
        ({"key": "level_0/6"}, "no row has the key 'level_0/6'"),
        ({"key": "dense/5", "id": 7}, "the row has id 5"),
        ({"key": "dense/5", "split": "level_0"}, "its split 'level_0'"),
        ({}, "neither a key nor an id"),
        ({"pred_faults": [{"code": "unknown_row", "text": "out.jsonl:1: id: expected"}]}, "out.jsonl:1"),
        ({"split": "level_2", "position": 0}, "1 predictions without a name are to pair with 0 rows"),
    ],
)
def test_rows_that_are_not_there(name: dict[str, Any], told: str) -> None:
    found = pair(KEYS, IDS, LEVELS, predictions({"id": 8}, name))
    np.testing.assert_array_equal(found.index, [-1, 0, -1, -1, -1, -1])
    assert found.faults[0].code == "unknown_row"
    assert told in found.faults[0].text


def test_two_for_one_row() -> None:
    found = pair(KEYS, IDS, LEVELS, predictions({"id": 5}, {"key": "dense/5"}, {"id": 5, "split": "dense"}))
    assert found.index[-1] == 0
    doubled = [fault for fault in found.faults if fault.code == "duplicate_prediction"]
    assert [fault.key for fault in doubled] == ["dense/5", "dense/5"]
    assert "predictions 0 and 2" in doubled[1].text


def test_by_order() -> None:
    lines = [{"split": "level_0", "position": i} for i in range(4)]
    found = pair(KEYS, IDS, LEVELS, predictions(*lines[::-1]))
    np.testing.assert_array_equal(found.index, [3, 2, -1, 1, 0, -1])
    for count in (3, 5):
        lines = [{"split": "level_0", "position": i} for i in range(count)]
        found = pair(KEYS, IDS, LEVELS, predictions(*lines))
        assert (found.index == -1).all()
        assert f"{count} predictions without a name are to pair with 4 rows" in found.faults[0].text
        part = pair(KEYS, IDS, LEVELS, predictions(*lines), whole=False)
        np.testing.assert_array_equal(part.index, [0, 1, -1, 2, 3 if count == 5 else -1, -1])


def test_a_part_of_the_truth_has_no_unknown_rows() -> None:
    found = pair(KEYS[:2], IDS[:2], LEVELS[:2], predictions({"id": 8}, {"id": 7}, {"id": 5}), whole=False)
    np.testing.assert_array_equal(found.index, [1, 0])
    assert found.faults == []


def test_the_likely_cause_when_nothing_fits() -> None:
    found = pair(KEYS, IDS, LEVELS, predictions(*({"id": 1000 + i} for i in range(17))))
    assert "none of the 17 ids pairs with the truth: they look like 1000, 1001, 1002, ..., 1016" in found.faults[0].text
    assert "the truth's like 7, 8, 9, ..., 5" in found.faults[0].text
    found = pair(KEYS, IDS, LEVELS, predictions({"key": "7"}))
    assert (
        "none of the 1 keys pairs with the truth: they look like 7, the truth's like level_0/7" in found.faults[0].text
    )


def test_nothing_at_all() -> None:
    assert pair([], [], [], predictions()).faults == []
    found = pair(KEYS, IDS, LEVELS, predictions())
    assert len(found.faults) == len(KEYS)
    assert pair([], [], [], predictions({"id": 1})).faults[0].code == "unknown_row"


NAMES = st.one_of(
    st.fixed_dictionaries({"key": st.sampled_from([*KEYS, "dense/6"])}),
    st.fixed_dictionaries({"id": st.sampled_from([4, 5, 7, 8, 9])}),
    st.fixed_dictionaries(
        {"id": st.sampled_from([5, 7, 8, 9]), "split": st.sampled_from(["level_0", "level_1", "dense"])}
    ),
)


@settings(max_examples=60, deadline=None)
@given(names=st.lists(NAMES, max_size=8))
def test_against_a_plain_search(names: list[dict[str, Any]]) -> None:
    expected = [-1] * len(KEYS)
    unknown = doubled = 0
    for i, name in enumerate(names):
        fitting = [
            row
            for row in range(len(KEYS))
            if name.get("key", KEYS[row]) == KEYS[row]
            and name.get("id", IDS[row]) == IDS[row]
            and name.get("split", LEVELS[row]) == LEVELS[row]
        ]
        if len(fitting) != 1:
            unknown += 1
        elif expected[fitting[0]] >= 0:
            doubled += 1
        else:
            expected[fitting[0]] = i
    found = pair(KEYS, IDS, LEVELS, predictions(*names))
    np.testing.assert_array_equal(found.index, expected)
    codes = [fault.code for fault in found.faults]
    assert codes.count("unknown_row") == unknown
    assert codes.count("duplicate_prediction") == doubled
    assert codes.count("missing_prediction") == expected.count(-1)
