"""Predictions that are legal but probably not meant: `check` warns of them, `score` counts them in the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import bench_datasets as bd
from bench_datasets.faults import FAULTS, FaultError
from bench_datasets.masks import MASK_TYPE, MaskColumn, encode_dense
from bench_datasets.predictions.arrow_types import odd_masks

from ..support.dense_pbench import Row
from ..support.pbench_rows import truth_of
from ..support.square_masks import MASK, PIXELS, SIZE, instancebench_truth, write


def warned(report: bd.CheckReport) -> dict[str, int]:
    return {group.code: group.count for group in report.warnings}


def counted(benchmark: str, truth: Any, predictions: Any, **options: Any) -> dict[str, int]:
    """Score, and give the count of each fault in the result."""
    scores = bd.score(benchmark, truth, predictions, **options)
    return {code: found["count"] for code, found in bd.summarize(benchmark, scores, draws=0).faults.items()}


def pbench_truth(rows: int = 1) -> Dataset:
    return truth_of([Row(7 + k, "level_0", [PIXELS], []) for k in range(rows)])


@pytest.mark.parametrize(
    ("pixels", "code"),
    [(~PIXELS, "inverted_mask"), (np.ones((40, 60), bool), "whole_image")],
    ids=["inverted", "whole"],
)
def test_odd_mask_is_counted_in_pbench_and_instancebench(tmp_path: Path, pixels: Any, code: str) -> None:
    mask = encode_dense(pixels)
    path = write(tmp_path / "pbench.jsonl", [{"id": 7, "masks": [mask]}])
    assert warned(bd.check("pbench", str(path), pbench_truth())) == {code: 1}
    assert counted("pbench", pbench_truth(), str(path)) == {code: 1}
    truth = instancebench_truth(tmp_path / "truth")
    path = write(tmp_path / "instancebench.jsonl", [{"expression_id": f"a-{k}", "mask": mask} for k in (0, 1)])
    assert warned(bd.check("instancebench", str(path), truth)) == {code: 2}
    assert counted("instancebench", truth, str(path)) == {code: 1}  # one row of two expressions


@pytest.mark.parametrize(
    ("box", "code"),
    [
        ([30, 20, 50, 38], "outside_image"),  # x0, y0, x1, y1
        ([0.1, 0.1, 0.5, 0.5], "small_box"),  # fractions of the image
        ([2, 2, 12, 12], None),
        ([0, 0, 1, 1], None),  # a box of one pixel
    ],
)
def test_box_that_is_not_in_pixels_is_counted(tmp_path: Path, box: list[float], code: str | None) -> None:
    truth = instancebench_truth(tmp_path / "truth")
    path = write(tmp_path / "p.jsonl", [{"expression_id": f"a-{k}", "box": box} for k in (0, 1)])
    expected = {} if code is None else {code: 1}
    assert list(warned(bd.check("instancebench", str(path), truth))) == list(expected)
    assert counted("instancebench", truth, str(path)) == expected


@pytest.mark.parametrize(
    ("corners", "expected"), [(False, {}), (True, {"box_apart_from_mask": 2})], ids=["sides", "corners"]
)
def test_box_that_is_not_its_own_mask_is_counted(tmp_path: Path, corners: bool, expected: dict[str, int]) -> None:
    truth = instancebench_truth(tmp_path / "truth")
    pixels = np.zeros((SIZE["height"], SIZE["width"]), bool)
    pixels[10:14, 20:26] = True
    box = [20, 10, 26, 14] if corners else [20, 10, 6, 4]
    lines = [{"expression_id": f"a-{k}", "mask": encode_dense(pixels), "box": box} for k in (0, 1)]
    path = write(tmp_path / "p.jsonl", lines)
    assert warned(bd.check("instancebench", str(path), truth)) == expected
    assert counted("instancebench", truth, str(path)) == dict.fromkeys(expected, 1)


def test_candidate_id_that_is_a_position_is_counted(tmp_path: Path) -> None:
    truth = instancebench_truth(tmp_path / "truth")
    path = write(tmp_path / "p.jsonl", [{"expression_id": f"a-{k}", "candidate_id": k} for k in (0, 1)])
    assert warned(bd.check("instancebench", str(path), truth)) == {"unknown_candidate": 1}  # the only id is "1"
    assert counted("instancebench", truth, str(path)) == {"unknown_candidate": 1}


@pytest.mark.parametrize("name", ["Category_Only", "category-only", "category only "])
def test_condition_of_other_spelling_is_the_known_one(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "p.jsonl", [{"expression_id": "a-0", "mask": MASK, "condition": name}])
    assert bd.read_predictions("instancebench", str(path))["condition"][:] == ["category_only"]
    folder = tmp_path / "png" / name.strip()
    folder.mkdir(parents=True)
    Image.fromarray(PIXELS).save(folder / "a-0.png")
    row = bd.read_predictions("instancebench", str(tmp_path / "png"))[0]
    assert (row["run"], row["condition"]) == ("0", "category_only")


def save_masks(folder: Path, names: list[str], ending: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        if ending == ".png":
            Image.fromarray(PIXELS).save(folder / f"{name}.png")
        else:
            np.save(folder / f"{name}.npy", PIXELS)
    return folder.parent


@pytest.mark.parametrize("ending", [".png", ".npy"])
def test_mask_file_named_by_a_word_beside_numbers_is_counted(tmp_path: Path, ending: str) -> None:
    path = save_masks(tmp_path / "p" / "7", ["0", "union"], ending)
    assert warned(bd.check("pbench", str(path), pbench_truth()))["odd_file_name"] == 1
    assert counted("pbench", pbench_truth(), str(path)) == {"odd_file_name": 1}


@pytest.mark.parametrize("ending", [".png", ".npy"])
def test_mask_files_named_by_words_alone_are_masks(tmp_path: Path, ending: str) -> None:
    path = save_masks(tmp_path / "p" / "7", ["cat", "dog"], ending)
    assert counted("pbench", pbench_truth(), str(path)) == {}


@pytest.mark.parametrize("ending", [".png", ".npy"])
def test_mask_number_twice_stops(tmp_path: Path, ending: str) -> None:
    path = save_masks(tmp_path / "p" / "7", ["1", "01"], ending)
    with pytest.raises(FaultError, match="both hold mask 1; keep one") as caught:
        bd.score("pbench", pbench_truth(), str(path))
    assert caught.value.code == "duplicate_prediction"


@pytest.mark.parametrize("other", ["sub/b.jsonl", "b.jsonl.zst", "b.jsonl.part"])
def test_file_of_a_folder_that_is_not_read_is_counted(tmp_path: Path, other: str) -> None:
    write(tmp_path / "p" / "a.jsonl", [{"id": 7, "masks": [MASK]}])
    write(tmp_path / "p" / other, [{"id": 8, "masks": [MASK]}])
    path, truth = str(tmp_path / "p"), pbench_truth(2)
    assert counted("pbench", truth, path, missing="empty") == {"ignored_file": 1}
    fault = bd.read_predictions("pbench", path)[0]["pred_faults"][0]
    assert fault["code"] == "ignored_file"
    assert other in fault["text"]


def test_run_inside_a_folder_of_predictions_is_no_fault(tmp_path: Path) -> None:
    write(tmp_path / "p" / "a.jsonl", [{"id": 7, "masks": [MASK]}])
    (tmp_path / "p" / "run").mkdir()
    (tmp_path / "p" / "run" / "result.json").write_text("{}", encoding="utf-8")
    assert bd.read_predictions("pbench", str(tmp_path / "p"))[0]["pred_faults"] == []


def pvsg_truth() -> Dataset:
    tubes = [{"frames": [0, 1, 2], "masks": [MASK] * 3}] * 2
    row = {
        "key": "v", "source": "vidor", **SIZE, "fps": 5.0, "num_frames": 3, "frames_present": 3,
        "objects": [{"object_id": k, "category": "dog", "is_thing": True} for k in (1, 2)], "tubes": tubes,
        "relations": [{"subject_id": 1, "object_id": 2, "predicate": "on", "spans": [[0, 2]]}],
        "relations_left_out": [], "faults": [],
    }  # fmt: skip
    return Dataset.from_list([row])


def triplet(score: float = 0.5, spans: Any = ((0, 2),), predicate: str = "on") -> dict[str, Any]:
    return {"subject_id": 1, "object_id": 2, "predicate": predicate, "score": score, "spans": spans}


@pytest.mark.parametrize(
    ("frames", "triplets", "code"),
    [
        ([0, 1, 2], [triplet(), triplet(0.4, predicate="in")], None),
        ([0, 1, 2, 3], [triplet()], "frame_outside"),
        ([0, 1, 2], [triplet(spans=[[1, 3]])], "span_outside"),  # counted from 1
        ([0, 1, 2], [triplet(spans=[])], "no_spans"),
        ([0, 1, 2], [], "no_triplets"),
    ],
)
def test_pvsg_prediction_beyond_the_video_or_without_content_is_counted(
    tmp_path: Path, frames: list[int], triplets: list[Any], code: str | None
) -> None:
    tubes = [{"tube_id": k, "category": "dog", "frames": frames, "masks": [MASK] * len(frames)} for k in (1, 2)]
    path = write(tmp_path / "p.jsonl", [{"video_id": "v", "tubes": tubes, "triplets": triplets}])
    expected = {} if code is None else {code: 1}
    assert list(warned(bd.check("pvsg", str(path), pvsg_truth()))) == list(expected)
    assert counted("pvsg", pvsg_truth(), str(path)) == expected


@pytest.mark.parametrize(("category", "expected"), [("dog", True), ("floor", False)])
@pytest.mark.parametrize("code", ["inverted_mask", "whole_image"])
def test_pvsg_odd_mask_of_a_countable_object_is_counted(
    tmp_path: Path, category: str, expected: bool, code: str
) -> None:
    pixels = np.ones((SIZE["height"], SIZE["width"]), np.uint8, order="F")
    if code == "inverted_mask":
        pixels[2:4, 2:5] = 0
    mask = encode_dense(pixels.astype(bool))
    tubes = [{"tube_id": k, "category": category, "frames": [0, 1, 2], "masks": [mask] * 3} for k in (1, 2)]
    path = write(tmp_path / "p.jsonl", [{"video_id": "v", "tubes": tubes, "triplets": [triplet()]}])
    assert (code in warned(bd.check("pvsg", str(path), pvsg_truth()))) == expected
    assert counted("pvsg", pvsg_truth(), str(path)) == ({code: 1} if expected else {})


def test_pvsg_video_without_tubes_and_triplets_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps({"video_id": "v", "tubes": [], "triplets": []}), encoding="utf-8")
    assert counted("pvsg", pvsg_truth(), str(path)) == {}


NOTED = (
    *("inverted_mask", "whole_image", "outside_image", "small_box", "unknown_candidate", "odd_file_name"),
    "box_apart_from_mask",
    *("frame_outside", "no_spans", "no_triplets"),
)


@pytest.mark.parametrize("code", NOTED)
def test_probable_mistake_never_stops(code: str) -> None:
    assert FAULTS[code].default == "noted"


def test_odd_masks_leave_out_masks_that_are_not_valid() -> None:
    full = {"size": [3, 3], "counts": "09"}
    broken = {"size": [3, 3], "counts": "08"}  # the runs do not sum to 9
    column = MaskColumn.from_arrow(pa.array([broken, None, full, broken], MASK_TYPE))
    assert list(odd_masks(column)) == [("whole_image", 2)]


def test_map_score_broken_mask_of_foreground_first_is_skipped() -> None:
    good = {"size": [3, 3], "counts": "36"}
    rows = [
        {"id": i, "level": "level_0", "masks": [good], "pred_masks": [mask]}
        for i, mask in enumerate([{"size": [3, 3], "counts": "08"}, good])
    ]
    scores = bd.map_score(rows, "pbench", on_fault="skip-and-report")
    assert scores["skipped"][:] == [True, False]
    assert scores["faults"][:] == [["malformed_mask"], []]


@given(st.integers(0, 2**31), st.integers(1, 7), st.integers(1, 7))
@settings(max_examples=200, deadline=None)
def test_odd_masks_agree_with_dense_masks(seed: int, height: int, width: int) -> None:
    random = np.random.default_rng(seed)
    masks = []
    for _ in range(6):
        mask = random.random((height, width)) < random.random()
        if random.random() < 0.7:
            mask[0], mask[-1], mask[:, 0], mask[:, -1] = True, True, True, True
        masks.append(mask)
    expected = []
    for i, mask in enumerate(masks):
        border = np.concatenate([mask[0], mask[-1], mask[:, 0], mask[:, -1]])
        if border.all():
            expected.append(("whole_image" if mask.all() else "inverted_mask", i))
    assert list(odd_masks(MaskColumn.from_dense(masks))) == expected
