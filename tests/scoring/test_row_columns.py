"""Columns of rows and predictions in whatever types they come: read as they are meant, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset, load_dataset

import bench_datasets as bd
from bench_datasets.masks import MASK_TYPE

from ..support.dense_pbench import Row
from ..support.pbench_rows import encode, line, predictions_of, truth_of

A, B = line((0, 10)), line((50, 70))
BROKEN = {"size": [1, 100], "counts": "d0n0bQ"}
ROWS = [Row(0, "level_0", [A], [A]), Row(1, "level_0", [A, B], [A]), Row(2, "level_0", [B], [])]
NAMED = {"masks": [[encode(A)]] * 4, "pred_masks": [[encode(A)]] * 4}


@pytest.mark.parametrize(
    "columns",
    [
        {"id": [7, 8, 9, 7], "level": ["level_0", "level_0", "dense", "dense"]},
        {"id": pa.array([7, 8, 9, 7], pa.int32()), "level": [0, 0, 5, 5]},
        {"id": ["7", "8", "9", "7"], "level": pa.array(["level_0", "level_0", "dense", "dense"]).dictionary_encode()},
        {"id": np.array([7, 8, 9, 7]), "level": np.array(["level_0", "level_0", "dense", "dense"])},
        {"id": [7, None, 9, 7], "level": [0, 0, 5, 5], "key": [None, "level_0/8", "", "dense/7"]},
        {"id": [7, 8, 9, 7], "level": ["level_0", None, "dense", "dense"]},
    ],
)
def test_names_of_any_type(columns: dict[str, Any]) -> None:
    scored = bd.scorer("pbench", level="level_0")({**columns, **NAMED})
    assert scored["key"] == scored["cluster"] == ["level_0/7", "level_0/8", "dense/9", "dense/7"]
    assert scored["level"] == ["level_0", "level_0", "dense", "dense"]
    assert scored["matched_intersection"] == [[10]] * 4


def test_images_are_what_is_resampled_where_they_are_known() -> None:
    columns = {"id": [1, 2, 3, 4], "level": [0] * 4, "image_sha256": ["ab", None, "", "ab"], **NAMED}
    assert bd.scorer("pbench")(columns)["cluster"] == ["ab", "level_0/2", "level_0/3", "ab"]


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ({"id": [1, "2", 3, 4]}, "id"),
        ({"expression": ["a", 2, "c", {}]}, "expression"),
        ({"faults": [["a"], 5, [], []]}, "faults"),
    ],
)
def test_columns_that_hold_anything(columns: dict[str, Any], name: str) -> None:
    with pytest.raises(bd.BenchError, match=f"column {name}"):
        bd.scorer("pbench")({"id": [1, 2, 3, 4], "level": [0] * 4, **NAMED, **columns})


@pytest.mark.parametrize(
    "centers", [[[0.5, 0.5]] * 2, [], [[0.5]], [0.5, 0.5], [[0.5, 0.5, 0.5]], ["ab"], [{"x": 1}], 3]
)
def test_centers_of_another_shape(centers: Any) -> None:
    columns = {"id": [1, 2, 3, 4], "level": [0] * 4, "pred_centers": [None, [[0.5, 0.5]], centers, None], **NAMED}
    with pytest.raises(bd.FaultError, match=r"level_0/3.*pred_centers: expected ") as stopped:
        bd.scorer("pbench")(columns)
    assert stopped.value.code == "bad_box"
    scored = bd.scorer("pbench", on_fault="skip-and-report")(columns)
    assert scored["faults"] == [[], [], ["bad_box"], []]
    assert [row and [*row] for row in scored["position_truth"]] == [None, [0], None, None]


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench"])
def test_predictions_many_unsound_alone_are_counted(tmp_path: Path, benchmark: str) -> None:
    """Nothing of it is hashed."""
    if benchmark == "pbench":
        truth, broken = truth_of(ROWS[:1]), Dataset.from_list([{"key": "level_0/0", "pred_masks": [BROKEN]}])
    else:
        truth = load_dataset("instancebench", "sample", split="test").select([0])
        names = [item["expression_id"] for item in truth[0]["expressions"]]
        path = tmp_path / "broken.jsonl"
        path.write_text("".join(json.dumps({"expression_id": name, "mask": BROKEN}) + "\n" for name in names))
        broken = bd.read_predictions(benchmark, str(path))
    scores = bd.score(benchmark, truth, broken, on_fault="skip-and-report")
    assert [row["faults"] for row in scores] == [["malformed_mask"]]
    with pytest.raises(bd.FaultError):
        bd.score(benchmark, truth, broken)


@pytest.mark.parametrize("kind", [pa.null(), pa.int8(), pa.uint8(), pa.int64(), pa.uint64(), pa.string(), pa.float64()])
@pytest.mark.parametrize("number", [7, 70_000, -3])
def test_predictions_named_by_key_beside_ids_of_any_type(kind: pa.DataType, number: int) -> None:
    truth = truth_of([Row(number, "level_0", [A], [A])])
    table = read_predictions_of(Row(number, "level_0", [A], [A])).with_format("arrow")[:]
    place = table.column_names.index("id")
    for faults in (table["pred_faults"], pa.nulls(1)):
        given = table.set_column(place, "id", pa.nulls(1, kind))
        given = given.set_column(given.column_names.index("pred_faults"), "pred_faults", [faults])
        assert bd.score("pbench", truth, Dataset(given))["matched_intersection"] == [[10]]
    filled = table.set_column(place, "id", [pa.array([9], pa.int64())])
    with pytest.raises(bd.FaultError, match="its id 9; the row has id"):
        bd.score("pbench", truth, Dataset(filled))


def read_predictions_of(row: Row) -> Dataset:
    return bd.read_predictions(
        "pbench", Dataset.from_list([{"key": f"{row.level}/{row.id}", "pred_masks": list(map(encode, row.predicted))}])
    )


def test_a_stream_of_truth_scored_by_processes(tmp_path: Path) -> None:
    predictions = predictions_of(ROWS, tmp_path)
    plain = bd.score("pbench", truth_of(ROWS), predictions)
    stream = truth_of(ROWS).to_iterable_dataset()
    assert bd.score("pbench", stream, predictions, num_proc=2).to_list() == plain.to_list()


def test_a_dictionary_may_hold_levels_that_no_row_has() -> None:
    for entries in (["level_0", "foo"], ["level_0", None]):
        levels = pa.DictionaryArray.from_arrays(pa.array([0] * 4, pa.int8()), pa.array(entries))
        assert bd.scorer("pbench")({"id": [1, 2, 3, 4], "level": levels, **NAMED})["level"] == ["level_0"] * 4


@pytest.mark.parametrize("centers", [[0.5, 0.5], [[0.5]], [[0.1, 0.2, 0.3]], "ab", 7, [[[0.5, 0.5]]]])
def test_strange_centers_of_a_row_without_masks(centers: Any) -> None:
    columns = {"id": [7], "level": [0], "masks": [[encode(A)]], "pred_masks": [[]], "pred_centers": [centers]}
    with pytest.raises(bd.FaultError, match="pred_centers: expected a list of one pair") as stopped:
        bd.scorer("pbench")(columns)
    assert stopped.value.code == "bad_box"


LISTS = [pa.list_(pa.string()), pa.large_list(pa.string()), pa.list_view(pa.string()), pa.list_(pa.large_string())]


@pytest.mark.parametrize("kind", LISTS, ids=str)
def test_noted_codes_in_lists_of_any_kind(kind: pa.DataType) -> None:
    codes = pa.array([["b", "a"], ["q"], [], ["z"]], kind)
    rows = pa.table({"id": [1, 2, 3, 4], "level": ["level_0"] * 4, "faults": codes, **table_of(NAMED)})
    for table in (rows, pa.concat_tables([rows[:1], rows[1:]])):
        assert bd.scorer("pbench")(table)["faults"].to_pylist() == [["a", "b"], ["q"], [], ["z"]]


def table_of(columns: dict[str, Any]) -> dict[str, pa.Array]:
    return {name: pa.array(values, pa.list_(MASK_TYPE)) for name, values in columns.items()}


def test_a_column_may_hold_nothing() -> None:
    empty = {
        "faults": pa.nulls(4, pa.string()),
        "pred_faults": pa.nulls(4),
        "expression": ["a", None, float("nan"), "b"],
    }
    assert (
        bd.scorer("pbench")({"id": [1, 2, 3, 4], "level": ["level_0", 1, 2, 5], **NAMED, **empty})["faults"] == [[]] * 4
    )


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"id": [2**70, 1, 2, 3]}, "column id"),
        ({"id": [[1], [2], [3], [4]]}, "column id"),
        ({"expression": ["\ud800", "b", "c", "d"]}, "column expression"),
        ({"level": [["level_0"]] * 4}, "level"),
        ({"level": pa.array([{"a": 1}] * 4)}, "level"),
        ({"expression": ["a", "b"]}, "expected 4 values"),
    ],
)
def test_columns_of_what_can_not_be(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(bd.BenchError, match=words):
        bd.scorer("pbench")({"id": [1, 2, 3, 4], "level": [0] * 4, **NAMED, **columns})
