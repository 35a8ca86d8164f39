"""Ground truth that several runs and conditions share is read once, and the scores are those of reading it anew."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset, concatenate_datasets
from hypothesis import given
from hypothesis import strategies as st

import bench_datasets as bd
from bench_datasets.benchmarks.instancebench import batch, interventions
from bench_datasets.data import open_truth
from bench_datasets.faults import BenchError
from bench_datasets.samples import instancebench_sample_predictions
from bench_datasets.scoring import shared_truth
from bench_datasets.scoring.batching import ArrowRows
from bench_datasets.scoring.hashes import canonical_json, table_json
from bench_datasets.scoring.prepare import Plan


@cache
def truth() -> Dataset:
    return open_truth("instancebench", "sample")


@cache
def answers(runs: int = 3) -> Dataset:
    """The sample's predictions, in which conditions answer some of the sets, as several runs; the second has less."""
    given = bd.read_predictions("instancebench", instancebench_sample_predictions("hasty"))
    parts = []
    for run in range(runs):
        part = given.remove_columns("run").add_column("run", [str(run)] * len(given))
        some = [k for k, name in enumerate(part["condition"]) if run != 1 or name == "original" or k % 7]
        parts.append(part.select(some).select_columns(given.column_names))
    return concatenate_datasets(parts)


def outcome(predictions: Dataset, **options: Any) -> Any:
    try:
        scores = bd.score("instancebench", truth(), predictions, **options)
    except BenchError as error:
        return str(error)
    return scores.data.table.combine_chunks()


def anew(predictions: Dataset, **options: Any) -> Any:
    """The same where ground truth is read anew for every batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_truth, "MOST_BYTES", -1)
        return outcome(predictions, **options)


def same(one: Any, other: Any) -> bool:
    sinks = []
    for value in (one, other):
        if isinstance(value, str):
            return bool(one == other)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as stream:
            stream.write_table(value)
        sinks.append(sink.getvalue().to_pybytes())
    return sinks[0] == sinks[1]


@pytest.mark.parametrize("lot", [1, 5, 1000])
@pytest.mark.parametrize("boundary", [False, True])
def test_score_with_shared_truth_equals_score_without(
    lot: int, boundary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plan, "lot", lot)
    monkeypatch.setattr(shared_truth, "LEAST_ROWS", 0)
    assert same(outcome(answers(), boundary=boundary), anew(answers(), boundary=boundary))


@pytest.mark.parametrize("on_fault", ["stop", "skip-and-report", "count-as-wrong"])
def test_score_of_faulty_predictions_with_shared_truth_equals_score_without(on_fault: str) -> None:
    rows = answers().to_list()
    rows[4]["pred_faults"] = [{"code": "malformed_mask", "text": "mask: no mask"}]
    rows[-3]["mask"] = {"size": [1, 2], "counts": "11"}
    del rows[9]
    predictions = Dataset.from_list(rows, features=answers().features)
    found = outcome(predictions, on_fault=on_fault)
    assert same(found, anew(predictions, on_fault=on_fault))
    assert isinstance(found, str) == (on_fault == "stop")


def test_score_of_several_runs_reads_truth_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    monkeypatch.setattr(shared_truth, "LEAST_ROWS", 1)
    real = batch.read_sets
    monkeypatch.setattr(batch, "read_sets", lambda table: reads.append(len(table)) or real(table))
    outcome(answers())
    assert reads == [len(truth())]


def test_truth_cache_is_empty_in_another_process() -> None:
    cache = shared_truth.TruthCache()
    cache._asked = True
    assert not pickle.loads(pickle.dumps(cache))._asked


@given(st.lists(st.integers(0, 19), max_size=30), st.lists(st.integers(1, 7), min_size=1, max_size=6), st.booleans())
def test_arrow_rows_gather_any_rows_in_their_order(numbers: Sequence[int], cuts: Sequence[int], chosen: bool) -> None:
    table = pa.table({"n": range(20), "list": [[k, None] for k in range(20)], "text": [str(k) * k for k in range(20)]})
    bounds = [0, *np.minimum(np.cumsum(cuts), 20).tolist(), 20]
    pieces = [table.slice(a, b - a) for a, b in itertools.pairwise(bounds)]
    dataset = Dataset(pa.concat_tables(pieces))
    values = list(range(20))
    if chosen:
        dataset, values = dataset.select(values[::-1]), values[::-1]
    rows = ArrowRows(dataset, ["n", "text", "list"])
    for each in (rows, pickle.loads(pickle.dumps(rows))):
        found = each[numbers]
        assert found["n"].to_pylist() == [values[k] for k in numbers]
        assert found["list"].to_pylist() == [[values[k], None] for k in numbers]
        assert found.column_names == ["n", "text", "list"]


TEXTS = st.text(st.characters(exclude_categories=("Cs",)))
COLUMNS = st.sampled_from([
    (pa.string(), TEXTS), (pa.int64(), st.integers(-(2**63), 2**63 - 1)), (pa.null(), st.none()),
    (pa.bool_(), st.booleans()), (pa.float64(), st.floats(allow_nan=False)), (pa.large_string(), TEXTS),
    (pa.list_(pa.float64()), st.lists(st.floats(allow_nan=False))), (pa.list_(pa.string()), st.lists(TEXTS)),
])  # fmt: skip


@given(st.data(), st.dictionaries(TEXTS, COLUMNS, max_size=5), st.integers(0, 6))
def test_table_json_equals_canonical_json_of_rows(data: Any, columns: dict[str, Any], rows: int) -> None:
    values = {
        name: pa.array([data.draw(st.none() | value) for _ in range(rows)], kind)
        for name, (kind, value) in columns.items()
    }
    table = pa.table(values)
    assert list(table_json(table)) == [canonical_json(row) for row in table.to_pylist()]


def test_score_of_sample_file_is_that_of_its_rows(tmp_path: Path) -> None:
    path = instancebench_sample_predictions("hasty")
    assert same(outcome(path), outcome(bd.read_predictions("instancebench", path)))


def places(first: Sequence[tuple[str, str]], second: Sequence[tuple[str, str]]) -> list[int]:
    """`_places` of two lists of a set's key and an expression's id."""
    given = []
    for pairs in (first, second):
        keys = sorted({key for key, _ in pairs})
        row = np.array([keys.index(key) for key, _ in pairs], np.int64)
        ids = np.array([name for _, name in pairs], np.str_)
        given.append(SimpleNamespace(keys=np.array(keys, np.str_), row=row, ids=ids))
    found: list[int] = interventions._places(*given).tolist()
    return found


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([("s", "a"), ("s", "b")], [("s", "a"), ("s", "b")], [0, 1]),
        ([("s", "a"), ("s", "b"), ("t", "c")], [("s", "b"), ("t", "c")], [1, 2]),
        ([("s", "a"), ("t", "b")], [("s", "b"), ("t", "b")], [-1, 1]),
        ([("s", "a"), ("s", "a")], [("s", "a"), ("s", "a")], [1, 1]),
        ([("s", "a"), ("t", "a")], [("s", "a"), ("t", "a")], [0, 1]),
        ([("s", "a")], [("t", "a")], [-1]),
    ],
)
def test_places_of_changed_expressions(
    first: list[tuple[str, str]], second: list[tuple[str, str]], expected: list[int]
) -> None:
    assert places(first, second) == expected
