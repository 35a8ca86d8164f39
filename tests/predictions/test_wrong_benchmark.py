"""One benchmark's predictions are never read as another's, whatever the format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from PIL import Image

from bench_datasets.faults import BenchError, FaultError
from bench_datasets.predictions import check, read_predictions

from ..support.dense_masks import encode

MASK = encode(np.eye(4, dtype=bool))
TUBE = {"tube_id": 1, "category": "adult", "frames": [0], "masks": [MASK]}
TRIPLET = {"subject_id": "1", "object_id": "1", "predicate": "on", "score": 0.5, "spans": [[0, 0]]}
ROWS: dict[str, dict[str, Any]] = {
    "pbench": {"id": 7, "masks": [MASK], "scores": [0.5]},
    "instancebench": {"expression_id": "a-0", "mask": MASK},
    "pvsg": {"video_id": "v", "tubes": [TUBE], "triplets": [TRIPLET]},
}
OTHERS = [(given, asked) for given in ROWS for asked in ROWS if given != asked]


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def refused(asked: str, given: str, door: Any, **how: Any) -> None:
    with pytest.raises(FaultError, match=f"expected {asked} predictions .* found {given} ") as caught:
        read_predictions(asked, door, **how)
    assert caught.value.code == "wrong_benchmark"
    assert f"read them as {given!r}" in str(caught.value)


@pytest.mark.parametrize(("given", "asked"), OTHERS)
def test_rows(tmp_path: Path, given: str, asked: str) -> None:
    path = write(tmp_path / "out.jsonl", ROWS[given])
    own = read_predictions(given, path)
    refused(asked, given, path)
    refused(asked, given, path, format="jsonl")
    refused(asked, given, write(tmp_path / "mixed.jsonl", ROWS[asked], ROWS[given]))
    (tmp_path / "out.json").write_text(json.dumps([ROWS[given]]))
    refused(asked, given, tmp_path / "out.json")
    refused(asked, given, Dataset.from_list([ROWS[given]]))
    own.to_parquet(str(tmp_path / "own.parquet"))
    own.save_to_disk(str(tmp_path / "saved"))
    for door in (own, own.to_iterable_dataset(), tmp_path / "own.parquet", tmp_path / "saved"):
        refused(asked, given, door)
    found = check(asked, path)
    assert [(group.code, group.count) for group in found.errors] == [("wrong_benchmark", 1)]


def test_falcon_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "out.jsonl", {"id": 7, "instances": [{"mask_rle": MASK}]})
    for asked in ("instancebench", "pvsg"):
        refused(asked, "pbench", path)


def test_coco_results(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(json.dumps([{"image_id": 7, "segmentation": MASK, "score": 0.5}]))
    refused("pvsg", "pbench", path)
    path.write_text(json.dumps([{"expression_id": "a-0", "segmentation": MASK, "score": 0.5}]))
    refused("pbench", "instancebench", path)
    assert read_predictions("instancebench", path)["expression_id"][:] == ["a-0"]


@pytest.mark.parametrize("marker", ["quantitive/masks.txt", "tubes.json", "panoptic.json"])
@pytest.mark.parametrize("asked", ["pbench", "instancebench"])
def test_folders_of_videos(tmp_path: Path, marker: str, asked: str) -> None:
    path = tmp_path / "v" / marker
    path.parent.mkdir(parents=True)
    path.write_text("[]")
    Image.fromarray(np.eye(4, dtype=np.uint8)).save(tmp_path / "v/0.png")
    refused(asked, "pvsg", tmp_path)


def test_folders_and_archives_of_masks(tmp_path: Path) -> None:
    (tmp_path / "png/level_0").mkdir(parents=True)
    Image.fromarray(np.eye(4, dtype=np.uint8)).save(tmp_path / "png/level_0/7.png")
    refused("instancebench", "pbench", tmp_path / "png")
    with pytest.raises(BenchError, match="expected JSON Lines"):
        read_predictions("pvsg", tmp_path / "png")
    np.savez(tmp_path / "7.npz", masks=np.ones((1, 4, 4), bool))
    refused("instancebench", "pbench", tmp_path / "7.npz")
    np.savez(tmp_path / "a.npz", mask=np.ones((4, 4), bool))
    refused("pbench", "instancebench", tmp_path / "a.npz")
    with pytest.raises(BenchError, match="NumPy arrays, which are not read for videos"):
        read_predictions("pvsg", tmp_path / "a.npz")


TRUTHS: dict[str, dict[str, Any]] = {
    "pbench": {"id": 7, "expression": "x", "count": 1, "masks": [MASK]},
    "instancebench": {"tces_id": "a", "candidates": [{"instance_id": "1"}], "expressions": [{"expression_id": "a-0"}]},
    "pvsg": {"video_id": "v", "objects": [{"object_id": 1}], "relations": [[1, 2, "on", [[0, 1]]]]},
}


@pytest.mark.parametrize("benchmark", TRUTHS)
def test_the_truth_is_no_prediction(tmp_path: Path, benchmark: str) -> None:
    path = write(tmp_path / "truth.jsonl", TRUTHS[benchmark])
    with pytest.raises(BenchError, match="truth's own fields"):
        read_predictions(benchmark, path)
