"""Parquet, Arrow files, Datasets and saved folders: the same columns, however they are typed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, IterableDataset, List, Value

from bench_datasets._compat import FIXED_SIZE_NULLS
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.predictions import read_predictions
from bench_datasets.predictions.mask_rows import FEATURES

from ..support.dense_masks import Dense, assert_masks, encode, runs

KINDS = {
    "string": pa.struct([("size", pa.list_(pa.int32(), 2)), ("counts", pa.string())]),
    "binary": pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.binary())]),
    "large": pa.struct([("size", pa.list_(pa.uint32())), ("counts", pa.large_string())]),
    "large binary": pa.struct([("counts", pa.large_binary()), ("size", pa.large_list(pa.int16()))]),
    "runs": pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.list_(pa.int64()))]),
    "text": pa.string(),
}


def table_of(rows: dict[int, Dense], kind: str, lists: Any = pa.list_, prefix: str = "pred_") -> pa.Table:
    def mask(dense: Any) -> Any:
        if kind == "runs":
            return {"size": list(dense.shape), "counts": runs(dense)}
        return json.dumps(encode(dense)) if kind == "text" else encode(dense)

    masks = [[mask(dense) for dense in row] for row in rows.values()]
    scores = [[0.25] * len(row) for row in rows.values()]
    columns = {
        "note": pa.array(["x"] * len(rows)),
        "id": pa.array(list(rows)),
        f"{prefix}masks": pa.array(masks, lists(KINDS[kind])),
        f"{prefix}scores": pa.array(scores, lists(pa.float32())),
    }
    return pa.table(columns)


def assert_rows(read: Dataset, rows: dict[int, Dense]) -> None:
    assert read.features == FEATURES
    assert read["id"][:] == list(rows)
    for row, masks in zip(read, rows.values(), strict=True):
        assert_masks(row["pred_masks"], masks)
        assert row["pred_scores"] == [0.25] * len(masks)
        assert row["pred_faults"] == []


@pytest.mark.parametrize("prefix", ["pred_", ""])
@pytest.mark.parametrize("lists", [pa.list_, pa.large_list])
@pytest.mark.parametrize("kind", KINDS)
def test_parquet(tmp_path: Path, rows: dict[int, Dense], kind: str, lists: Any, prefix: str) -> None:
    pq.write_table(table_of(rows, kind, lists, prefix), tmp_path / "out.parquet", row_group_size=2)
    assert_rows(read_predictions("pbench", tmp_path / "out.parquet"), rows)


@pytest.mark.parametrize("kind", KINDS)
def test_arrow_files_and_streams(tmp_path: Path, rows: dict[int, Dense], kind: str) -> None:
    table = table_of(rows, kind)
    for opener in (pa.ipc.new_file, pa.ipc.new_stream):
        with opener(str(tmp_path / "out.arrow"), table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
        assert_rows(read_predictions("pbench", tmp_path / "out.arrow"), rows)


def test_a_folder_of_shards(tmp_path: Path, rows: dict[int, Dense]) -> None:
    table = table_of(rows, "string")
    pq.write_table(table.slice(0, 2), tmp_path / "part-2.parquet")
    pq.write_table(table.slice(2), tmp_path / "part-10.parquet")
    assert_rows(read_predictions("pbench", tmp_path), rows)


def test_a_folder_of_splits_names_the_split(tmp_path: Path, rows: dict[int, Dense]) -> None:
    table = table_of(rows, "string")
    pq.write_table(table, tmp_path / "level_1-00000-of-00001.parquet")
    pq.write_table(table.drop_columns(["id"]), tmp_path / "level_2.parquet")
    read = read_predictions("pbench", tmp_path)
    assert read["split"][:] == ["level_1"] * 5 + ["level_2"] * 5
    assert read["position"][:] == [None] * 5 + list(range(5))


def test_datasets_with_an_order_of_their_own(rows: dict[int, Dense]) -> None:
    dataset = Dataset(table_of(rows, "string"))
    assert_rows(read_predictions("pbench", dataset), rows)
    some = read_predictions("pbench", dataset.select([4, 1, 3]))
    assert some["id"][:] == [2, 11, 100]
    assert_masks(some[2]["pred_masks"], rows[100])
    assert_rows(read_predictions("pbench", dataset.to_iterable_dataset()), rows)


def test_a_streaming_map_without_types(rows: dict[int, Dense]) -> None:
    def generate() -> Iterator[dict[str, Any]]:
        yield from ({"id": name} for name in rows)

    def model(row: dict[str, Any]) -> dict[str, Any]:
        masks = [encode(mask) for mask in rows[row["id"]]]
        return {
            "pred_masks": [{**m, "counts": m["counts"].encode()} for m in masks],
            "pred_scores": [0.25] * len(masks),
        }

    assert_rows(read_predictions("pbench", IterableDataset.from_generator(generate).map(model)), rows)


def test_saved_folders(tmp_path: Path, rows: dict[int, Dense]) -> None:
    dataset = Dataset(table_of(rows, "string"))
    dataset.save_to_disk(str(tmp_path / "one"))
    assert_rows(read_predictions("pbench", tmp_path / "one"), rows)
    DatasetDict({"level_3": dataset, "dense": dataset}).save_to_disk(str(tmp_path / "several"))
    assert read_predictions("pbench", tmp_path / "several")["split"][:] == ["level_3"] * 5 + ["dense"] * 5


def test_predictions_beside_the_truth(rows: dict[int, Dense]) -> None:
    features = Features(
        {
            "key": Value("string"),
            "id": Value("int64"),
            "level": ClassLabel(names=list(PBENCH_LEVELS)),
            "expression": Value("string"),
            "count": Value("int32"),
            "masks": FEATURES["pred_masks"],
            "pred_masks": FEATURES["pred_masks"],
        }
    )
    truth = [encode(np.ones((2, 2), bool))]
    items = [
        {"key": f"dense/{name}", "id": name, "level": 5, "expression": "x", "count": 1, "masks": truth}
        | {"pred_masks": [encode(mask) for mask in masks]}
        for name, masks in rows.items()
    ]
    read = read_predictions("pbench", Dataset.from_list(items, features=features))
    assert read["key"][:] == [item["key"] for item in items]
    assert read["split"][:] == ["dense"] * 5
    for row, masks in zip(read, rows.values(), strict=True):
        assert_masks(row["pred_masks"], masks)
    with pytest.raises(BenchError, match="truth's own fields"):
        read_predictions("pbench", Dataset.from_list(items, features=features).remove_columns("pred_masks"))


def test_reading_twice_changes_nothing(tmp_path: Path) -> None:
    good = encode(np.eye(3, dtype=bool))
    falcon = {"xy": {"x": 0.5, "y": 2.0}, "hw": {"h": 0.25, "w": 0.5}}
    lines = [
        {"id": 1, "masks": [good, {"size": [3, 3], "counts": "zz"}, None], "scores": [0.5, "x", 1.5]},
        {"id": "one", "masks": [good], "scores": [0.1, 0.2]},
        {"id": 2, "instances": [{**falcon, "mask_rle": good}, {"hw": {"h": 1, "w": 1}, "mask_rle": good}]},
        {"id": 3, "masks": "none"},
        {"key": "dense/3", "masks": []},
    ]
    path = tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    once = read_predictions("pbench", path)
    assert sum(map(len, once["pred_faults"])) == 7
    twice = read_predictions("pbench", once)
    assert twice.data.table.equals(once.data.table)
    if not FIXED_SIZE_NULLS:  # `pred_centers` is a fixed-size list, and null without a box
        return
    once.to_parquet(tmp_path / "out.parquet")
    assert list(read_predictions("pbench", tmp_path / "out.parquet")) == list(once)


def test_null_masks_in_parquet(tmp_path: Path) -> None:
    mask = encode(np.eye(3, dtype=bool))
    kind = pa.list_(pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())]))
    pq.write_table(pa.table({"id": [1], "pred_masks": pa.array([[mask, None]], kind)}), tmp_path / "out.parquet")
    (row,) = read_predictions("pbench", tmp_path / "out.parquet")
    assert row["pred_masks"] == [mask, None]


def test_null_masks_of_fixed_size_in_parquet_read_or_refused_with_a_way_out() -> None:
    """The file has `size` as a fixed-size list, and a null mask: pyarrow 26 wrote it, older ones can't read it."""
    file = Path(__file__).parents[1] / "fixtures" / "null_masks_of_fixed_size.parquet"
    if FIXED_SIZE_NULLS:
        (row,) = read_predictions("pbench", file)
        assert row["pred_masks"] == [{"size": [2, 3], "counts": "15"}, None]
    else:
        with pytest.raises(
            BenchError, match="cannot read null masks from Parquet where `size` is a fixed-size list; use pyarrow 26"
        ):
            read_predictions("pbench", file)


def test_faults_of_typed_columns(rows: dict[int, Dense]) -> None:
    good = encode(np.eye(3, dtype=bool))
    bad = {"size": [3, 3], "counts": "b'0'"}
    items = {
        "id": [1, 2, 3],
        "pred_masks": [[good, bad, good], None, [None, {"size": [3], "counts": "0"}, {"size": None, "counts": None}]],
        "pred_scores": [[0.5, float("nan"), None], [0.5], [0.1]],
    }
    features = Features(
        {"id": Value("int64"), "pred_masks": List({"size": List(Value("int64")), "counts": Value("string")})}
    )
    features["pred_scores"] = List(Value("float32"))
    read = read_predictions("pbench", Dataset.from_dict(items, features=features))
    assert read["pred_masks"][:] == [[good, None, good], [], [None, None, None]]
    assert read["pred_scores"][:] == [[0.5, None, None], None, None]
    told = [[(fault["code"], fault["text"].split(":")[0]) for fault in faults] for faults in read["pred_faults"]]
    assert told[0] == [("malformed_mask", "mask 1"), ("bad_score", "score 1"), ("bad_score", "score 2")]
    assert told[1] == [("missing_prediction", "masks"), ("bad_score", "scores")]
    assert told[2] == [*(("malformed_mask", f"mask {i}") for i in range(3)), ("bad_score", "scores")]
    assert "b'" in read[0]["pred_faults"][0]["text"]


@pytest.mark.parametrize("cut", [0.999, 0.6, 0.1])
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_files_cut_short(tmp_path: Path, rows: dict[int, Dense], ending: str, cut: float) -> None:
    path = tmp_path / f"out.{ending}"
    if ending == "parquet":
        pq.write_table(table_of(rows, "string"), path)
    else:
        with pa.ipc.new_file(str(path), table_of(rows, "string").schema) as writer:
            writer.write_table(table_of(rows, "string"))
    path.write_bytes(path.read_bytes()[: int(cut * path.stat().st_size)])
    with pytest.raises(BenchError, match=rf"out\.{ending}: expected a whole"):
        read_predictions("pbench", path)


def test_an_arrow_file_whose_offsets_lie_is_refused(tmp_path: Path, rows: dict[int, Dense]) -> None:
    array = pa.ListArray.from_buffers(
        pa.list_(pa.int64()), 2, [None, pa.py_buffer(np.array([0, 2**30, 1], np.int32))], children=[pa.array([1])]
    )
    with pa.ipc.new_file(str(tmp_path / "out.arrow"), pa.schema([("pred_masks", array.type)])) as writer:
        writer.write_batch(pa.record_batch([array], ["pred_masks"]))
    with pytest.raises(BenchError, match=r"out\.arrow"):
        read_predictions("pbench", tmp_path / "out.arrow")


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"id": [1], "boxes": [[1]]}, "expected a column pred_masks"),
        ({"pred_masks": [[]]}, "expected a key"),
        ({"id": [1], "pred_tubes": [[]]}, "pvsg"),
        ({"expression_id": ["x"], "mask": ["y"]}, "instancebench"),
        ({"candidates": [[]], "expressions": [[]], "pred_masks": [[]]}, "instancebench"),
    ],
)
def test_other_columns(columns: dict[str, Any], told: str) -> None:
    with pytest.raises(BenchError, match=told) as caught:
        read_predictions("pbench", Dataset.from_dict(columns))
    assert isinstance(caught.value, FaultError) == ("bench" in told or told == "pvsg")


def test_no_rows_are_no_error() -> None:
    read = read_predictions("pbench", Dataset.from_dict({"id": [], "pred_masks": []}))
    assert len(read) == 0
    assert read.features == FEATURES


@pytest.mark.parametrize("ids", [["1", "2"], [1.0, 2.0], np.array([1, 2], np.uint8)])
def test_ids_of_other_types(ids: Any) -> None:
    read = read_predictions("pbench", Dataset.from_dict({"id": ids, "masks": [[], []]}))
    assert read["id"][:] == [1, 2]
