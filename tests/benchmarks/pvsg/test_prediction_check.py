"""The check of PVSG predictions, and which video each is for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset, load_dataset

import bench_datasets  # noqa: F401  (registers the builder)
from bench_datasets.benchmarks.pvsg.dangling_ids import noted_faults
from bench_datasets.benchmarks.pvsg.prediction_pairing import pair_videos
from bench_datasets.benchmarks.pvsg.vocabulary import PREDICATES, STUFF, THINGS
from bench_datasets.faults import FAULTS, BenchError
from bench_datasets.predictions import CheckReport, check

from ...support.dense_masks import encode

MASK, SMALL, EMPTY = encode(np.eye(4, dtype=bool)), encode(np.eye(2, dtype=bool)), encode(np.zeros((4, 4), bool))
TRIPLET = {"subject_id": 1, "object_id": 1, "predicate": "on", "score": 0.5, "spans": [[0, 4]]}


def tube(*frames: int, mask: Any = MASK, **more: Any) -> dict[str, Any]:
    return {"tube_id": 1, "category": "adult", "frames": list(frames), "masks": [mask] * len(frames)} | more


def truth(*keys: str) -> Dataset:
    n = len(keys)
    return Dataset.from_dict({"key": list(keys), "height": [4] * n, "width": [4] * n, "num_frames": [5] * n})


def report(tmp_path: Path, *lines: dict[str, Any], against: Dataset | None = None) -> CheckReport:
    path = tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return check("pvsg", path, against)


def counts(groups: Any) -> dict[str, int]:
    return {group.code: group.count for group in groups}


def test_sound_predictions(tmp_path: Path) -> None:
    found = report(tmp_path, {"video_id": "v", "tubes": [tube(0, 4)], "triplets": [TRIPLET]}, against=truth("v"))
    assert (found.ok, found.rows, found.masks, found.errors, found.warnings) == (True, 1, 2, (), ())


def test_everything_at_once(tmp_path: Path) -> None:
    odd = [
        TRIPLET | {"object_id": 7, "predicate": "squeezing"},
        TRIPLET | {"spans": [[0, 5]]},
        TRIPLET | {"spans": []},
    ]
    found = report(
        tmp_path,
        {"video_id": "v", "tubes": [tube(0, 5), tube(tube_id=2, category="adlut")], "triplets": odd},
        {"video_id": "v", "tubes": [], "triplets": []},
        {"video_id": "w", "tubes": [tube(0, 1, mask=SMALL)], "triplets": [TRIPLET | {"score": None}]},
        {"video_id": "x", "tubes": [tube(0, mask=EMPTY), tube(0)], "triplets": [TRIPLET]},
        {"video_id": "y", "tubes": [tube(0, mask=None)], "triplets": [TRIPLET]},
        {"tubes": [], "triplets": [TRIPLET]},
        against=truth("v", "w", "x", "z"),
    )
    assert counts(found.errors) == {
        "unknown_row": 2,
        "duplicate_prediction": 2,
        "missing_prediction": 1,
        "size_mismatch": 1,
        "bad_score": 1,
        "malformed_mask": 1,
    }
    assert counts(found.warnings) == {
        "unknown_category": 1,
        "unknown_tube": 3,
        "tube_without_masks": 2,
        "unknown_predicate": 1,
        "span_outside": 1,
        "frame_outside": 1,
        "no_spans": 1,
        "no_tubes": 2,
        "no_triplets": 1,
        "empty_mask": 1,
        "same_scores": 1,
    }
    examples = {group.code: group.examples[0] for group in (*found.errors, *found.warnings)}
    assert examples["size_mismatch"].key == "w"
    assert "expected 4 x 4 like the video, found 2 x 2 (2 of 2 masks)" in examples["size_mismatch"].text
    assert examples["frame_outside"].text == "tube 1, frame 5 of 5 frames (1 of 2 masks)"
    assert examples["unknown_category"].text == "tube 2: 'adlut'"
    assert all(FAULTS[code].default == "stop" for code in counts(found.errors))


def test_without_truth(tmp_path: Path) -> None:
    lines = [{"video_id": "v", "tubes": [tube(99)], "triplets": [TRIPLET]}] * 2
    found = report(tmp_path, *lines)
    assert (counts(found.errors), found.warnings) == ({"duplicate_prediction": 1}, ())
    with pytest.raises(BenchError, match="expected a column key"):
        report(tmp_path, *lines, against=Dataset.from_dict({"x": [1]}))


def test_names_that_lead_nowhere() -> None:
    names = [("1", "dog", 0), ("2", None, 1), ("3", "water", 1)]
    found = list(noted_faults(names, [{"subject_id": "1", "object_id": None}, {"subject_id": "4", "object_id": "3"}]))
    assert found == [
        ("tube_without_masks", "tube 1"),
        ("unknown_category", "tube 2: null"),
        ("unknown_tube", "triplet 0: object_id null"),
        ("unknown_tube", "triplet 1: subject_id '4'"),
    ]
    assert all(FAULTS[code].default == "noted" for code, _ in found)


def test_pairing() -> None:
    found = pair_videos(["v", "w", "x"], Dataset.from_dict({"key": ["w", None, "v", "w", "y"]}))
    assert found.index.tolist() == [2, 0, -1]
    assert [(fault.code, fault.key) for fault in found.faults] == [
        ("unknown_row", "prediction 1"),
        ("duplicate_prediction", "w"),
        ("unknown_row", "y"),
        ("missing_prediction", "x"),
    ]
    assert "predictions 0 and 3" in found.faults[1].text
    part = pair_videos(["v"], Dataset.from_dict({"key": ["y", "v"]}), whole=False)
    assert (part.index.tolist(), part.faults) == ([1], [])
    hint = pair_videos(["0001_1"], Dataset.from_dict({"key": ["a"]})).faults[0].text
    assert "they look like a, the truth's like 0001_1" in hint
    with pytest.raises(BenchError, match="expected a column key"):
        pair_videos(["v"], Dataset.from_dict({"x": [1]}))


def test_the_vocabulary_is_the_released_one(shared: Path) -> None:
    released = json.loads((shared / "data/pvsg_mini/pvsg.json").read_text())
    assert list(THINGS) == released["objects"]["thing"]
    assert list(STUFF) == released["objects"]["stuff"]
    assert list(PREDICATES) == released["relations"]


def test_the_mini_data(shared: Path) -> None:
    rows = load_dataset("pvsg", data_dir=str(shared / "data/pvsg_mini"), split="test")
    found = check("pvsg", shared / "data/pvsg_mini/predictions", rows)
    assert (found.ok, found.rows, found.masks, found.warnings) == (True, 1, 2210, ())
    everything = load_dataset("pvsg", data_dir=str(shared / "data/pvsg_mini"), split="train")
    assert counts(check("pvsg", shared / "data/pvsg_mini/predictions", everything).errors) == {
        "unknown_row": 1,
        "missing_prediction": 1,
    }
