"""Pairing of expressions against a plain search, run by run and condition by condition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_datasets.benchmarks.instancebench.prediction_pairing import pair_expressions
from bench_datasets.benchmarks.instancebench.prediction_rows import FEATURES
from bench_datasets.faults import BenchError

IDS = ["a-0", "a-1", "b-0", "b-1"]
Named = tuple[str | None, str, str]


def predictions(names: Sequence[Named]) -> Dataset:
    columns = {name: [None] * len(names) for name in FEATURES}
    columns |= {"expression_id": [n for n, _, _ in names], "run": [r for _, r, _ in names]}
    return Dataset.from_dict(columns | {"condition": [c for _, _, c in names]}, FEATURES)


def test_runs_and_conditions() -> None:
    rows = [("b-0", "1", "text_swap"), ("a-0", "1", "original"), *((name, "0", "original") for name in IDS[::-1])]
    found = pair_expressions(IDS, predictions(rows))
    assert found.runs == ("0", "1")
    assert found.conditions == (("0", "original"), ("1", "original"), ("1", "text_swap"))
    assert list(found.index) == list(found.conditions)
    np.testing.assert_array_equal(found.index["0", "original"], [5, 4, 3, 2])
    np.testing.assert_array_equal(found.index["1", "original"], [1, -1, -1, -1])
    np.testing.assert_array_equal(found.index["1", "text_swap"], [-1, -1, 0, -1])
    assert [(fault.code, fault.key) for fault in found.faults] == [("missing_prediction", name) for name in IDS[1:]]
    assert "run '1'" in found.faults[0].text


def test_original_is_asked_of_every_run() -> None:
    found = pair_expressions(IDS[:1], predictions([("a-0", "x", "deliberation")]))
    assert found.conditions == (("x", "original"), ("x", "deliberation"))
    assert [fault.code for fault in found.faults] == ["missing_prediction"]


def test_nothing_at_all() -> None:
    found = pair_expressions(IDS, predictions([]))
    assert (found.runs, found.conditions) == (("0",), (("0", "original"),))
    assert [fault.key for fault in found.faults] == IDS
    assert pair_expressions([], predictions([])).faults == []
    assert [fault.code for fault in pair_expressions([], predictions([("a", "0", "original")])).faults] == [
        "unknown_row"
    ]


def test_columns_that_are_not_there() -> None:
    found = pair_expressions(IDS, Dataset.from_dict({"expression_id": ["b-1", "a-0"], "run": ["2", None]}))
    assert found.runs == ("0", "2")
    with pytest.raises(BenchError, match="expected a column expression_id"):
        pair_expressions(IDS, Dataset.from_dict({"run": ["0"]}))


def test_unknown_and_second_predictions() -> None:
    rows = [("a-0", "0", "original"), ("z", "0", "original"), ("a-0", "0", "original"), (None, "0", "original")]
    found = pair_expressions(["a-0"], predictions(rows))
    assert [(fault.code, fault.key) for fault in found.faults] == [
        ("unknown_row", "z"),
        ("duplicate_prediction", "a-0"),
        ("unknown_row", "prediction 3"),
    ]
    assert "predictions 0 and 2" in found.faults[1].text
    assert found.index["0", "original"].tolist() == [0]
    part = pair_expressions(["a-0"], predictions(rows), whole=False)
    assert [fault.code for fault in part.faults] == ["duplicate_prediction"]


def test_what_reading_said_of_a_name_is_told() -> None:
    faults = [{"code": "unknown_row", "text": "out.jsonl:1: expression_id: expected text"}]
    dataset = Dataset.from_dict({"expression_id": [None, "a-0"], "pred_faults": [faults, []]})
    for whole in (True, False):
        (fault,) = pair_expressions(["a-0"], dataset, whole=whole).faults
        assert fault.text.startswith("out.jsonl:1")


def test_the_likely_cause_when_nothing_fits() -> None:
    found = pair_expressions(IDS, predictions([("0", "0", "original"), ("1", "0", "original")]))
    assert "none of the 2 expressions pairs with the truth: they look like 0, 1" in found.faults[0].text
    assert "the truth's like a-0" in found.faults[-1].text


def test_an_expression_that_stands_twice_in_the_truth() -> None:
    found = pair_expressions(["a", "b", "a"], predictions([("a", "0", "original"), ("b", "0", "original")]))
    assert found.index["0", "original"].tolist() == [0, 1, 0]
    assert found.faults == []


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from([*IDS, "z", None]), st.sampled_from(["0", "1", "10"]), st.sampled_from(["original", "x"])
        ),
        max_size=14,
    )
)
def test_against_a_plain_search(rows: list[Named]) -> None:
    found = pair_expressions(IDS, predictions(rows))
    runs = sorted({run for _, run, _ in rows}) or ["0"]
    assert found.runs == tuple(runs)
    missing = 0
    for run, condition in found.conditions:
        expected = [next((i for i, row in enumerate(rows) if row == (name, run, condition)), -1) for name in IDS]
        assert found.index[run, condition].tolist() == expected
        missing += expected.count(-1) if condition == "original" else 0
    assert {(run, condition) for _, run, condition in rows} <= set(found.conditions)
    codes = [fault.code for fault in found.faults]
    known = [row for row in rows if row[0] in IDS]
    assert codes.count("missing_prediction") == missing
    assert codes.count("unknown_row") == len(rows) - len(known)
    assert codes.count("duplicate_prediction") == len(known) - len(set(known))
