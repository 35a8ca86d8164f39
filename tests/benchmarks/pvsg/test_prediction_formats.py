"""The same tubes and triplets through every format, against dense masks and pycocotools."""

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
from numpy.typing import NDArray

from bench_datasets.benchmarks.pvsg.prediction_rows import FEATURES
from bench_datasets.benchmarks.pvsg.predictions import FORM
from bench_datasets.faults import BenchError
from bench_datasets.predictions import read_predictions

from ...support.dense_masks import decode, encode, runs

MASK, SMALL = encode(np.eye(4, dtype=bool)), encode(np.eye(2, dtype=bool))
TRIPLET = {"subject_id": 1, "object_id": 2, "predicate": "on", "score": 0.5, "spans": [[0, 4], [6, 6]]}


def tube(*frames: Any, tube_id: Any = 1, masks: Any = None, category: Any = "adult") -> dict[str, Any]:
    masks = [MASK] * len(frames) if masks is None else masks
    return {"tube_id": tube_id, "category": category, "frames": list(frames), "masks": masks}


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def one(path: Any, **how: Any) -> dict[str, Any]:
    (row,) = read_predictions("pvsg", path, **how)
    return row


def line_of(*tubes: Any, triplets: Any = ()) -> dict[str, Any]:
    return {"video_id": "v", "tubes": list(tubes), "triplets": list(triplets)}


def test_a_video(tmp_path: Path) -> None:
    other = encode(np.eye(4, dtype=bool)[::-1])
    path = write(
        tmp_path / "out.jsonl",
        line_of(
            tube(4, 0, 2, masks=[MASK, other, {"size": [4, 4], "counts": runs(np.eye(4, dtype=bool))}]),
            tube(tube_id="x", category="dog"),
            triplets=[TRIPLET | {"score": 1, "extra": 5}, TRIPLET | {"subject_id": "x"}],
        ),
        {"key": "w", "tubes": [], "triplets": None},
        {"video_id": "u", "triplets": [TRIPLET]},
        {"video_id": "t", "tubes": [tube(0, masks=[[[0, 0, 3, 0, 3, 2]]])], "height": 5, "width": 6},
    )
    read = read_predictions("pvsg", path)
    assert read.features == FEATURES
    assert not any(read["pred_faults"])
    assert read["key"][:] == ["v", "w", "u", "t"]
    first, second = read[0]["pred_tubes"]
    assert (first["tube_id"], first["category"], first["frames"]) == ("1", "adult", [0, 2, 4])
    assert first["masks"] == [other, MASK, MASK]
    assert second == {"tube_id": "x", "category": "dog", "frames": [], "masks": []}
    expected = {"subject_id": "1", "object_id": "2", "predicate": "on", "score": 1.0, "spans": [[0, 4], [6, 6]]}
    assert read[0]["pred_triplets"] == [expected, expected | {"subject_id": "x", "score": 0.5}]
    assert read[1] == {"key": "w", "pred_tubes": [], "pred_triplets": [], "pred_faults": []}
    assert (read[2]["pred_tubes"], len(read[2]["pred_triplets"])) == ([], 1)
    assert read[3]["pred_tubes"][0]["masks"][0]["size"] == [5, 6]


@pytest.mark.parametrize(
    ("tubes", "codes", "told", "frames"),
    [
        ([tube(0, 1, 0)], ["malformed_mask"], "tube 1, frame 0: expected one mask a frame", [0, 1]),
        ([tube(0, 1, masks=[MASK])], ["malformed_mask"], "found 2 frames and 1 masks", []),
        ([tube(0, 1, masks=[None, MASK])], ["malformed_mask"], "tube 1, frame 0: the mask is null", [1]),
        ([tube(0, masks=[{"size": [4, 4], "counts": "zz"}])], ["malformed_mask"], "tube 1, frame 0: ", []),
        ([tube(-1, 2)], ["malformed_mask"], "tube 1, mask 0: frame: expected an integer from 0 on", [2]),
        ([tube(True, "1", 1.5, None, 2**31, 3.0)], ["malformed_mask"] * 5, "found bool True", [3]),
        ([tube(0, 1, 2, masks=[MASK, SMALL, MASK])], ["size_mismatch"], "found 2 x 2 (1 of 3 differ)", [0, 1, 2]),
        ([tube(0), tube(5)], ["duplicate_prediction"], "tube_id '1' again", [0]),
        ([tube(0), 5], ["malformed_mask"], "tube number 1: expected {tube_id", [0]),
        ([tube(0), tube(0, tube_id=None)], ["malformed_mask"], "found tube_id null", [0]),
        ([tube(0) | {"frames": None}], ["malformed_mask"], "tube 1: frames: expected a list, found null", []),
        ([tube(0) | {"masks": MASK}], ["malformed_mask"], "tube 1: masks: expected a list, found dict", []),
    ],
)
def test_tubes_that_are_wrong(tmp_path: Path, tubes: Any, codes: list[str], told: str, frames: list[int]) -> None:
    row = one(write(tmp_path / "out.jsonl", {"video_id": "v", "tubes": tubes}))
    assert [fault["code"] for fault in row["pred_faults"]] == codes
    assert told in row["pred_faults"][0]["text"]
    assert [item["frames"] for item in row["pred_tubes"]] == [frames]
    assert None not in row["pred_tubes"][0]["masks"]
    assert one(Dataset.from_dict({"key": ["v"], "pred_tubes": [row["pred_tubes"]]}))["pred_tubes"] == row["pred_tubes"]


@pytest.mark.parametrize(
    ("change", "code", "told", "read"),
    [
        ({"score": None}, "bad_score", "triplet 0: score: expected a finite number, found null", {"score": None}),
        ({"score": float("inf")}, "bad_score", "triplet 0: score", {"score": None}),
        ({"score": "0.5"}, "bad_score", "triplet 0: score", {"score": None}),
        ({"spans": [[3, 2], [0, 1]]}, "bad_span", "span 0: expected [first, last]", {"spans": [[0, 1]]}),
        ({"spans": [[-1, 2]]}, "bad_span", "found list [-1, 2]", {"spans": []}),
        ({"spans": [[0, 2**31]]}, "bad_span", "span 0", {"spans": []}),
        ({"spans": [[0, 1, 2]]}, "bad_span", "span 0", {"spans": []}),
        ({"spans": [0]}, "bad_span", "span 0: expected [first, last]", {"spans": []}),
        ({"spans": "x"}, "bad_span", "spans: expected a list", {"spans": []}),
        ({"subject_id": None, "predicate": ["on"]}, None, "", {"subject_id": None, "predicate": None}),
        ({"spans": None}, None, "", {"spans": []}),
    ],
)
def test_triplets_that_are_wrong(
    tmp_path: Path, change: dict[str, Any], code: str | None, told: str, read: dict[str, Any]
) -> None:
    row = one(write(tmp_path / "out.jsonl", line_of(triplets=[TRIPLET | change, TRIPLET])))
    assert [fault["code"] for fault in row["pred_faults"]] == ([] if code is None else [code])
    assert told in "".join(fault["text"] for fault in row["pred_faults"])
    sound = TRIPLET | {"subject_id": "1", "object_id": "2"}
    assert row["pred_triplets"] == [sound | read, sound]


def test_a_triplet_that_is_none_keeps_its_place(tmp_path: Path) -> None:
    row = one(write(tmp_path / "out.jsonl", line_of(triplets=[7, TRIPLET])))
    assert row["pred_triplets"][0] == dict.fromkeys(TRIPLET) | {"spans": []}
    assert [fault["code"] for fault in row["pred_faults"]] == ["bad_score"]


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"tubes": []}, "video_id: expected the video's id, found none"),
        ({"video_id": [], "tubes": []}, "video_id: expected text"),
        ({"video_id": "v", "key": "w", "tubes": []}, "found 'v', but key 'w'"),
    ],
)
def test_names_of_videos(tmp_path: Path, record: dict[str, Any], told: str) -> None:
    row = one(write(tmp_path / "out.jsonl", record))
    assert row["key"] is None
    assert [fault["code"] for fault in row["pred_faults"]] == ["unknown_row"]
    assert told in row["pred_faults"][0]["text"]


def test_neither_tubes_nor_triplets_nor_lists(tmp_path: Path) -> None:
    path = write(tmp_path / "out.jsonl", {"video_id": "v"}, {"video_id": "w", "tubes": 5, "triplets": 5})
    faults = [[fault["text"].split(",")[0] for fault in row["pred_faults"]] for row in read_predictions("pvsg", path)]
    assert faults[0] == ["tubes: expected tubes and triplets"]
    assert faults[1] == ["tubes: expected a list of tubes", "triplets: expected a list of triplets"]


def test_tables_of_every_type(tmp_path: Path) -> None:
    lines = [
        line_of(tube(4, 0), tube(3, tube_id=2), triplets=[TRIPLET]),
        {"video_id": "w", "tubes": [], "triplets": []},
    ]
    expected = read_predictions("pvsg", write(tmp_path / "out.jsonl", *lines))
    kind = pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.large_binary())])
    tubes = pa.list_(
        pa.struct(
            [
                ("tube_id", pa.int64()),
                ("category", pa.string()),
                ("frames", pa.large_list(pa.int64())),
                ("masks", pa.list_(kind)),
            ]
        )
    )
    for line in lines:
        for item in line["tubes"]:
            item["masks"] = [{"size": m["size"], "counts": m["counts"].encode()} for m in item["masks"]]
    table = pa.table(
        {
            "video_id": ["v", "w"],
            "tubes": pa.array([line["tubes"] for line in lines], tubes),
            "triplets": [line["triplets"] for line in lines],
            "note": ["x", "y"],
        }
    )
    pq.write_table(table, tmp_path / "out.parquet")
    assert read_predictions("pvsg", tmp_path / "out.parquet")[:] == expected[:]
    assert read_predictions("pvsg", Dataset(table).select([1, 0]))[:]["key"] == ["w", "v"]
    slow = Dataset.from_dict({"key": ["v"], "tubes": [json.dumps(expected[0]["pred_tubes"])], "triplets": [[TRIPLET]]})
    assert one(slow) == expected[0]


def test_beside_the_truth_the_truth_is_not_read(tmp_path: Path) -> None:
    row = one(write(tmp_path / "out.jsonl", line_of(tube(1), triplets=[TRIPLET])))
    truth = {"objects": [[{"object_id": 1}]], "relations": [[{"subject_id": 1}]], "tubes": [[{"frames": [9]}]]}
    both = Dataset.from_dict({"key": ["v"], **truth, "pred_tubes": [row["pred_tubes"]]} | {"fps": [5]})
    assert one(both)["pred_tubes"] == row["pred_tubes"]
    triplets = Dataset.from_dict({"key": ["v"], **truth, "pred_triplets": [row["pred_triplets"]]})
    assert one(triplets) == row | {"pred_tubes": []}
    with pytest.raises(BenchError, match="truth's own fields"):
        read_predictions("pvsg", Dataset.from_dict({"key": ["v"], **truth}))


def test_what_was_read_reads_the_same_again(tmp_path: Path) -> None:
    path = write(
        tmp_path / "out.jsonl",
        line_of(tube(4, 0, 0), tube(3, tube_id=2, masks=[None]), triplets=[TRIPLET | {"score": None}, 5]),
        {"tubes": []},
        {"video_id": "w"},
    )
    read = read_predictions("pvsg", path)
    assert read_predictions("pvsg", read)[:] == read[:]
    read.save_to_disk(str(tmp_path / "saved"))
    read.to_parquet(str(tmp_path / "out.parquet"))
    for name in ("saved", "out.parquet"):
        assert read_predictions("pvsg", tmp_path / name)[:] == read[:]


def test_streaming_rows_without_types() -> None:
    stream = IterableDataset.from_generator(lambda: iter([{"video_id": "v"}]))
    mapped = stream.map(lambda row: {"tubes": [tube(2, 0, masks=[np.eye(4, dtype=bool)] * 2)]})
    (found,) = one(mapped)["pred_tubes"]
    assert (found["frames"], found["masks"]) == ([0, 2], [MASK, MASK])


@pytest.mark.parametrize("columns", [{"tubes": [[]]}, {"video_id": ["v"], "note": ["x"]}])
def test_tables_that_lack_columns(columns: dict[str, Any]) -> None:
    with pytest.raises(BenchError, match="expected"):
        read_predictions("pvsg", Dataset.from_dict(columns))


@pytest.mark.parametrize("format", [None, *FORM.readers])
def test_formats_empty_source_is_refused(tmp_path: Path, format: str | None) -> None:
    with pytest.raises(BenchError, match="nothing there"):
        read_predictions("pvsg", tmp_path / "nowhere", format=format)
    with pytest.raises(BenchError):
        read_predictions("pvsg", tmp_path, format=format)


@st.composite
def videos(draw: st.DrawFn) -> list[tuple[dict[str, Any], dict[str, dict[int, NDArray[np.bool_]]]]]:
    """Lines, and the masks by tube and frame that they hold."""
    found = []
    for i in range(draw(st.integers(1, 3))):
        tubes, dense = [], {}
        for name in draw(st.lists(st.sampled_from(["a", "b", "7"]), unique=True)):
            frames = draw(st.lists(st.integers(0, 20), unique=True, max_size=4))
            bits = [draw(st.integers(0, 2**6 - 1)) for _ in frames]
            masks = [np.array([bit >> k & 1 for k in range(6)], bool).reshape(2, 3) for bit in bits]
            dense[name] = dict(zip(frames, masks, strict=True))
            tubes.append(tube(*frames, tube_id=name, masks=[encode(mask) for mask in masks]))
        found.append(({"video_id": f"v{i}", "tubes": tubes, "triplets": []}, dense))
    return found


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=videos())
def test_formats_give_same_rows(tmp_path: Path, lines: Any) -> None:
    read = read_predictions("pvsg", write(tmp_path / "out.jsonl", *(line for line, _ in lines)))
    for row, (line, dense) in zip(read, lines, strict=True):
        assert (row["key"], row["pred_faults"]) == (line["video_id"], [])
        assert [item["tube_id"] for item in row["pred_tubes"]] == list(dense)
        for item, frames in zip(row["pred_tubes"], dense.values(), strict=True):
            assert item["frames"] == sorted(frames)
            for frame, mask in zip(item["frames"], item["masks"], strict=True):
                np.testing.assert_array_equal(decode(mask), frames[frame])
    assert read_predictions("pvsg", read)[:] == read[:]
    read.to_parquet(str(tmp_path / "out.parquet"))
    assert read_predictions("pvsg", tmp_path / "out.parquet")[:] == read[:]
