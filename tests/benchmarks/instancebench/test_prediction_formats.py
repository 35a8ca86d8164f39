"""The same answers through every format, against dense masks and pycocotools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, IterableDataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from pycocotools import mask as coco

from bench_datasets.benchmarks.instancebench.prediction_rows import FEATURES
from bench_datasets.benchmarks.instancebench.predictions import FORM
from bench_datasets.faults import BenchError
from bench_datasets.masks import MASK_TYPE
from bench_datasets.predictions import read_predictions

from ...support.dense_masks import decode, encode, runs

MASK = encode(np.eye(4, dtype=bool))


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def one(path: Any, **how: Any) -> dict[str, Any]:
    (row,) = read_predictions("instancebench", path, **how)
    return row


def test_a_line_of_each_kind(tmp_path: Path) -> None:
    polygon = [[0.0, 0.0, 3.0, 0.0, 3.0, 2.0, 0.0, 2.0]]
    path = write(
        tmp_path / "out.jsonl",
        {"expression_id": "a-0", "mask": MASK},
        {"expression_id": 7, "mask": None, "run": 2, "condition": "text_swap"},
        {"expression_id": "a-2", "segmentation": {"size": [4, 4], "counts": runs(np.eye(4, dtype=bool))}, "score": 0.5},
        {"expression_id": "a-3", "box": [1, 2.5, 3, 0]},
        {"expression_id": "a-4", "candidate_id": 38, "run": "two", "condition": "my own"},
        {"expression_id": "a-5", "mask": polygon, "height": 5, "width": 6},
        {"expression_id": "a-6", "mask": polygon, "size": [5, 6], "box": None, "candidate_id": None, "run": None},
    )
    read = read_predictions("instancebench", path)
    assert read.features == FEATURES
    assert not any(read["pred_faults"])
    assert read["expression_id"][:] == ["a-0", "7", "a-2", "a-3", "a-4", "a-5", "a-6"]
    assert read["run"][:] == ["0", "2", "0", "0", "two", "0", "0"]
    assert read["condition"][:] == ["original", "text_swap", "original", "original", "my own", "original", "original"]
    assert [mask is None for mask in read["mask"]] == [False, True, False, True, True, False, False]
    assert read["mask"][0] == read["mask"][2] == MASK
    drawn = coco.decode(coco.merge(coco.frPyObjects(polygon, 5, 6))).astype(bool)
    np.testing.assert_array_equal(decode(read["mask"][5]), drawn)
    assert read["mask"][5] == read["mask"][6]
    assert read["box"][:] == [None, None, None, [1.0, 2.5, 3.0, 0.0], None, None, None]
    assert read["candidate_id"][:] == [None] * 4 + ["38"] + [None] * 2


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ({"expression_id": "a"}, "malformed_mask", "expected mask (null where nothing was found), box or candidate_id"),
        ({"expression_id": "a", "mask": {"size": [4, 4], "counts": "zz"}}, "malformed_mask", "mask: "),
        ({"expression_id": "a", "mask": []}, "malformed_mask", "polygon"),
        ({"expression_id": "a", "mask": [[0, 0, 1, 0, 1, 1]]}, "malformed_mask", "height and width"),
        ({"expression_id": "a", "mask": "x"}, "malformed_mask", "expected an RLE"),
        ({"expression_id": "a", "masks": [MASK]}, "malformed_mask", "found expression_id, masks"),
        ({"expression_id": "a", "box": [0, 0, 1]}, "bad_box", "four finite numbers"),
        ({"expression_id": "a", "box": [0, 0, -1, 1]}, "bad_box", "no negative width"),
        ({"expression_id": "a", "box": [0, 0, float("nan"), 1]}, "bad_box", "four finite numbers"),
        ({"expression_id": "a", "box": [0, 0, True, 1]}, "bad_box", "four finite numbers"),
        ({"expression_id": "a", "box": "[0, 0]"}, "bad_box", "four finite numbers"),
        ({"expression_id": "a", "candidate_id": [1]}, "malformed_mask", "candidate_id: expected"),
        ({"expression_id": "a", "candidate_id": ""}, "malformed_mask", "candidate_id: expected"),
        ({"expression_id": None, "mask": None}, "unknown_row", "found null"),
        ({"expression_id": "", "mask": None}, "unknown_row", "expression_id: expected text"),
        ({"expression_id": True, "mask": None}, "unknown_row", "found bool"),
        ({"expression_id": "a\ud800", "mask": None}, "unknown_row", "expected text"),
        ({"expression_id": "a", "mask": None, "run": [0]}, "unknown_row", "run: expected text or an integer"),
        ({"expression_id": "a", "mask": None, "condition": 1}, "unknown_row", "condition: expected text, found"),
    ],
)
def test_what_is_wrong_is_told_and_read_as_nothing(tmp_path: Path, line: dict[str, Any], code: str, told: str) -> None:
    row = one(write(tmp_path / "out.jsonl", line))
    assert [fault["code"] for fault in row["pred_faults"]] == [code]
    assert told in row["pred_faults"][0]["text"]
    assert (row["mask"], row["box"], row["candidate_id"]) == (None, None, None)
    assert row["expression_id"] == (None if code == "unknown_row" else "a")


def coco_list(path: Path, *scores: Any, **more: Any) -> Path:
    masks = [encode(np.roll(np.eye(4, dtype=bool), i, axis=0)) for i in range(len(scores))]
    items = [
        {"image_id": "a-0", "category_id": 1, "segmentation": mask} | ({} if score is None else {"score": score})
        for mask, score in zip(masks, scores, strict=True)
    ]
    path.write_text(json.dumps([*items, *more.get("others", [])]))
    return path


def test_coco_results_of_one_answer_each(tmp_path: Path) -> None:
    path = coco_list(tmp_path / "out.json", 0.5, others=[{"image_id": 7, "segmentation": MASK, "score": 0.1}])
    for how in ({}, {"format": "coco"}):
        assert read_predictions("instancebench", path, **how)["expression_id"][:] == ["a-0", "7"]


def test_of_several_coco_results_the_best_is_kept_only_if_asked(tmp_path: Path) -> None:
    others = [{"expression_id": "a-0", "mask": None, "run": "1", "score": 0.0}]
    path = coco_list(tmp_path / "out.json", 0.5, 0.9, 0.9, -1, others=others)
    assert len(read_predictions("instancebench", path)) == 5
    best = read_predictions("instancebench", path, format="coco")
    assert best["run"][:] == ["0", "1"]
    np.testing.assert_array_equal(decode(best["mask"][0]), np.roll(np.eye(4, dtype=bool), 1, axis=0))


@pytest.mark.parametrize("bad", [None, float("nan"), "0.5"])
def test_without_scores_nothing_is_chosen(tmp_path: Path, bad: Any) -> None:
    read = read_predictions("instancebench", coco_list(tmp_path / "out.json", 0.5, bad), format="coco")
    assert len(read) == 2
    assert [bool(faults) for faults in read["pred_faults"]] == [False, bad is not None]


def test_coco_results_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(json.dumps([{"images": [], "annotations": []}]))
    with pytest.raises(BenchError, match="annotation file"):
        read_predictions("instancebench", path, format="coco")
    path.write_text("[]")
    with pytest.raises(BenchError, match="empty list"):
        read_predictions("instancebench", path, format="coco")
    path.write_text(json.dumps([{"image_id": 7, "score": 0.5}, {"image_id": 8, "box": [0, 0, 1, 1]}]))
    read = read_predictions("instancebench", path, format="coco")
    assert [[fault["code"] for fault in faults] for faults in read["pred_faults"]] == [["malformed_mask"], []]


def arrow(kind: str) -> pa.Table:
    masks = [MASK, None, encode(np.ones((2, 3), bool))]
    values: dict[str, Any] = {
        "struct": pa.array(masks, MASK_TYPE),
        "bytes": pa.array(
            [mask and {"size": mask["size"], "counts": mask["counts"].encode()} for mask in masks],
            pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.large_binary())]),
        ),
        "text": pa.array([None if mask is None else json.dumps(mask) for mask in masks]),
        "runs": pa.array(
            [mask and {"size": mask["size"], "counts": runs(decode(mask))} for mask in masks],
            pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.list_(pa.int64()))]),
        ),
    }
    return pa.table({"expression_id": pa.array([1, 2, 3]), "mask": values[kind], "extra": [{}, {}, {}]})


@pytest.mark.parametrize("kind", ["struct", "bytes", "text", "runs"])
def test_tables(tmp_path: Path, kind: str) -> None:
    table = arrow(kind)
    pq.write_table(table.drop_columns("extra"), tmp_path / "out.parquet", row_group_size=2)
    expected = arrow("struct").column("mask").to_pylist()
    for door in (tmp_path / "out.parquet", Dataset(table.slice(0)).with_format("numpy")):
        read = read_predictions("instancebench", door)
        assert read["mask"][:] == expected
        assert read["expression_id"][:] == ["1", "2", "3"]
        assert not any(read["pred_faults"])


def test_tables_of_one_unsound_mask_and_slices(tmp_path: Path) -> None:
    rows = [{"expression_id": f"e{i}", "mask": None if i % 3 else MASK} for i in range(7)]
    rows[3]["mask"] = {"size": [4, 4], "counts": "zz"}
    features = {"expression_id": FEATURES["expression_id"], "mask": FEATURES["mask"]}
    dataset = Dataset.from_list(rows, features=type(FEATURES)(features))
    read = read_predictions("instancebench", dataset.select(range(2, 7)))
    assert read["expression_id"][:] == ["e2", "e3", "e4", "e5", "e6"]
    assert read["mask"][:] == [None, None, None, None, MASK]
    assert [[fault["code"] for fault in faults] for faults in read["pred_faults"]] == [
        [],
        ["malformed_mask"],
        [],
        [],
        [],
    ]


def test_what_was_read_reads_the_same_again(tmp_path: Path) -> None:
    path = write(
        tmp_path / "out.jsonl",
        {"expression_id": "a", "mask": MASK, "box": [0, 0, 1, 1], "candidate_id": 3, "run": 1},
        {"expression_id": None, "mask": MASK},
        {"expression_id": "b", "mask": {"size": [1], "counts": ""}, "box": [0]},
        {"expression_id": "c"},
        {"expression_id": "d", "mask": None},
    )
    read = read_predictions("instancebench", path)
    again = read_predictions("instancebench", read)
    assert again[:] == read[:]
    read.save_to_disk(str(tmp_path / "saved"))
    read.to_parquet(str(tmp_path / "out.parquet"))
    for name in ("saved", "out.parquet"):
        assert read_predictions("instancebench", tmp_path / name)[:] == read[:]


def test_streaming_rows_without_types() -> None:
    stream = IterableDataset.from_generator(lambda: iter([{"expression_id": "a"}]))
    mapped = stream.map(lambda row: {"mask": np.eye(4, dtype=bool)})
    row = one(mapped)
    assert (row["expression_id"], row["mask"], row["pred_faults"]) == ("a", MASK, [])


@pytest.mark.parametrize("columns", [{"mask": [None]}, {"expression_id": ["a"], "text": ["b"]}])
def test_tables_that_lack_columns(columns: dict[str, Any]) -> None:
    with pytest.raises(BenchError, match="expected a column"):
        read_predictions("instancebench", Dataset.from_dict(columns))


@pytest.mark.parametrize("ending", ["png", "npz"])
def test_folders(tmp_path: Path, ending: str) -> None:
    random = np.random.default_rng(3)
    dense = {}
    for run, condition in (("", ""), ("1", ""), ("", "text_swap"), ("1", "deliberation"), ("2", "my own")):
        for name in ("a-0", "a.b-1"):
            mask = random.random((5, 7)) < 0.5
            dense[name, run or "0", condition or "original"] = mask
            path = tmp_path / run / condition / f"{name}.{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            if ending == "png":
                Image.fromarray(mask.astype(np.uint8) * 3).save(path)
            else:
                np.savez(path, mask=np.asfortranarray(mask) if run else mask.astype(np.uint8))
    (tmp_path / "notes.txt").write_text("x")
    read = read_predictions("instancebench", tmp_path)
    assert len(read) == len(dense)
    for row in read:
        assert row["pred_faults"] == []
        np.testing.assert_array_equal(decode(row["mask"]), dense[row["expression_id"], row["run"], row["condition"]])


def test_files_that_cannot_be_read_are_faults(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"rubbish")
    Image.fromarray(np.zeros((3, 3), np.uint8)).save(tmp_path / "b.png")
    bad, empty = read_predictions("instancebench", tmp_path)
    assert (bad["mask"], bad["pred_faults"][0]["code"]) == (None, "unreadable_mask")
    assert not decode(empty["mask"]).any()
    arrays = {
        "float": ({"mask": np.zeros((2, 2))}, "mask > 0.5"),
        "deep": ({"mask": np.zeros((1, 2, 2), bool)}, r"write mask\[0\]"),
        "other": ({"x": np.zeros((2, 2), bool)}, "expected an array 'mask'"),
        "twos": ({"mask": np.full((2, 2), 2)}, "0 and 1"),
        "none": ({"mask": np.zeros((0, 2), bool)}, "pixels"),
        "object": ({"mask": np.array([[None]])}, "never read"),
    }
    for name, (array, told) in arrays.items():
        path = tmp_path / "npz" / f"{name}.npz"
        path.parent.mkdir(exist_ok=True)
        np.savez(path, **array)
        with pytest.raises(AssertionError, match=told):
            assert not one(path)["pred_faults"], one(path)["pred_faults"][0]["text"]
    (tmp_path / "npz/broken.npz").write_bytes((tmp_path / "npz/twos.npz").read_bytes()[:60])
    assert "broken or cut" in one(tmp_path / "npz/broken.npz")["pred_faults"][0]["text"]
    assert len(read_predictions("instancebench", tmp_path / "npz")) == len(arrays) + 1


@pytest.mark.parametrize("format", [None, *FORM.readers])
def test_formats_empty_source_is_refused(tmp_path: Path, format: str | None) -> None:
    with pytest.raises(BenchError, match="nothing there"):
        read_predictions("instancebench", tmp_path / "nowhere", format=format)
    with pytest.raises(BenchError):
        read_predictions("instancebench", tmp_path, format=format)


LINES = st.fixed_dictionaries(
    {"expression_id": st.sampled_from(["a", "b", 3])},
    optional={
        "mask": st.one_of(st.none(), st.integers(0, 2**12 - 1)),
        "box": st.one_of(st.none(), st.lists(st.floats(0, 9), min_size=4, max_size=4)),
        "candidate_id": st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.text(min_size=1, max_size=3)),
        "run": st.sampled_from(["0", "1", 2]),
        "condition": st.sampled_from(["original", "text_swap", "é"]),
    },
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINES, min_size=1, max_size=5))
def test_formats_give_same_rows(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    dense = []
    for line in lines:
        line.setdefault("mask", None)
        bits = line["mask"]
        dense.append(None if bits is None else np.array([bits >> i & 1 for i in range(12)], bool).reshape(3, 4))
        line["mask"] = None if bits is None else encode(dense[-1])
    read = read_predictions("instancebench", write(tmp_path / "out.jsonl", *lines))
    for row, line, mask in zip(read, lines, dense, strict=True):
        assert row["pred_faults"] == []
        given_id = line.get("candidate_id")
        assert row["candidate_id"] == (None if given_id is None else str(given_id))
        assert row["expression_id"] == str(line["expression_id"])
        assert (row["run"], row["condition"]) == (str(line.get("run", "0")), line.get("condition", "original"))
        assert row["box"] == line.get("box")
        assert (row["mask"] is None) == (mask is None)
        if mask is not None:
            np.testing.assert_array_equal(decode(row["mask"]), mask)
    (tmp_path / "out.json").write_text(json.dumps(lines, indent=1))
    assert read_predictions("instancebench", tmp_path / "out.json")[:] == read[:]
    assert read_predictions("instancebench", read)[:] == read[:]


def test_the_mini_file(shared: Path) -> None:
    path = shared / "data/predictions_a/instancebench.jsonl"
    read = read_predictions("instancebench", path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert read["expression_id"][:] == [line["expression_id"] for line in lines]
    assert not any(read["pred_faults"])
    for row, line in zip(read, lines, strict=True):
        np.testing.assert_array_equal(decode(row["mask"]), decode(line["mask"]))
