"""Masks of another size than the ground truth's: PBench resizes and says so, the other benchmarks stop and say why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, List, Value

import bench_datasets as bd
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.faults import FaultError
from bench_datasets.masks import MASK_FEATURE, encode_dense

HEIGHT, WIDTH = 6, 10


def box(height: int, width: int) -> dict[str, Any]:
    """A mask of the upper left quarter."""
    mask = np.zeros((height, width), bool)
    mask[: height // 2, : width // 2] = True
    return encode_dense(mask)


TRUE = box(HEIGHT, WIDTH)
EXCHANGED = {"size": [WIDTH, HEIGHT], "counts": TRUE["counts"]}
GIVEN = {
    "as it is": [TRUE],
    "half": [box(3, 5)],
    "exchanged": [EXCHANGED],
    "both": [EXCHANGED, box(3, 5)],
    "none": [],
}
CODES = {
    "as it is": [],
    "half": ["resized"],
    "exchanged": ["size_exchanged"],
    "both": ["resized", "size_exchanged"],
    "none": [],
}


def rows(*columns: str) -> Dataset:
    features = Features(
        {
            "key": Value("string"),
            "id": Value("int64"),
            "level": ClassLabel(names=list(PBENCH_LEVELS)),
            "expression": Value("string"),
            "masks": List(MASK_FEATURE),
            "pred_masks": List(MASK_FEATURE),
        }
    )
    made = [
        {"key": f"level_0/{i}", "id": i, "level": 0, "expression": name, "masks": [TRUE], "pred_masks": masks}
        for i, (name, masks) in enumerate(GIVEN.items())
    ]
    return Dataset.from_list(made, features=features).select_columns(list(columns))


TRUTH = ("key", "id", "level", "expression", "masks")


def test_pbench_score_notes_masks_that_are_resized_or_exchanged() -> None:
    expected = list(CODES.values())
    scored = bd.score("pbench", rows(*TRUTH), rows("id", "pred_masks"))
    assert scored["faults"][:] == expected
    mapped = bd.map_score(rows(*TRUTH, "pred_masks"), "pbench")
    assert mapped["faults"][:] == expected
    assert not any(scored["skipped"])
    result = bd.summarize("pbench", scored, draws=0)
    assert {code: entry["count"] for code, entry in result.faults.items()} == {"resized": 2, "size_exchanged": 2}


def test_pbench_check_warns_as_score_notes() -> None:
    report = bd.check("pbench", rows("id", "pred_masks"), rows(*TRUTH))
    found = {group.code: group.count for group in report.warnings if group.code in ("resized", "size_exchanged")}
    assert report.ok
    assert found == {"resized": 2, "size_exchanged": 2}
    assert "a mask of 10 x 6, the truth's are 6 x 10" in str(report)


def test_pbench_square_masks_are_never_exchanged() -> None:
    square = box(4, 4)
    truth = Dataset.from_list([{"id": 0, "level": "level_0", "masks": [square], "pred_masks": [square]}])
    assert bd.map_score(truth, "pbench")["faults"][:] == [[]]


def tces(mask: dict[str, Any]) -> dict[str, Any]:
    expressions = [
        {"expression_id": f"a-{role}", "text": "a", "role": role, "operation": "ordinal"}
        for role in ("minimal", "variant")
    ]
    return {
        "key": "a", "image_id": "1", "source": "coco", "category": "dog", "height": HEIGHT, "width": WIDTH, "target": 0,
        "candidates": [{"instance_id": str(i), "mask": TRUE, "iscrowd": False} for i in range(2)],
        "expressions": expressions, "faults": [], "pred_masks": [mask, mask],
    }  # fmt: skip


@pytest.mark.parametrize(("mask", "told"), [(EXCHANGED, "height and width are exchanged"), (box(3, 5), "resize it")])
def test_instancebench_size_mismatch_says_when_sides_are_exchanged(mask: dict[str, Any], told: str) -> None:
    with pytest.raises(FaultError, match=told) as caught:
        bd.map_score(Dataset.from_list([tces(mask)]), "instancebench")
    assert caught.value.code == "size_mismatch"
    ids = ["a-minimal"]  # the other expression has no prediction, which stops the row, too
    answers = Dataset.from_list([{"expression_id": name, "mask": mask} for name in ids])
    report = bd.check("instancebench", answers, Dataset.from_list([tces(mask)]).remove_columns("pred_masks"))
    texts = [fault.text for group in report.errors if group.code == "size_mismatch" for fault in group.examples]
    assert [("exchanged" in text) for text in texts] == [mask is EXCHANGED] * len(ids)


@pytest.mark.parametrize(("size", "told"), [([10, 6], "are exchanged"), ([12, 5], "not resized")])
def test_pvsg_size_mismatch_says_when_sides_are_exchanged(size: list[int], told: str) -> None:
    tube = {"tube_id": "1", "category": "dog", "frames": [0], "masks": [{"size": size, "counts": TRUE["counts"]}]}
    row = {
        "key": "v", "height": HEIGHT, "width": WIDTH, "num_frames": 1,
        "objects": [{"object_id": 1, "category": "dog", "is_thing": True}],
        "tubes": [{"frames": [0], "masks": [TRUE]}], "relations": [], "relations_left_out": [], "faults": [],
    }  # fmt: skip
    given = {"video_id": "v", "tubes": [tube], "triplets": []}
    with pytest.raises(FaultError, match=told) as caught:
        bd.explain("pvsg", row, given)
    assert caught.value.code == "size_mismatch"
