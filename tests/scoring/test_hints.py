"""Likely causes of a score near zero: each is found where it is made, and none where nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from datasets import Dataset, load_dataset
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets.cli import app
from bench_datasets.masks import MaskColumn, encode_dense
from bench_datasets.samples import pbench_sample_predictions
from bench_datasets.scoring.hints import MaskPair, causes_in, explain_near_zero, mask_causes
from bench_datasets.scoring.prepare import Plan, make_plan

Mask = Mapping[str, Any]


def box(top: int, left: int, height: int, width: int, size: tuple[int, int] = (30, 50)) -> Mask:
    pixels = np.zeros(size, bool)
    pixels[top : top + height, left : left + width] = True
    return encode_dense(pixels)


def dense(mask: Mask) -> np.ndarray[Any, Any]:
    return MaskColumn.from_values([mask]).decode(0)


BOXES = [box(2, 3, 9, 11), box(12, 30, 10, 14), box(1, 33, 12, 12), box(16, 4, 11, 18)]

CHANGES: dict[str, tuple[Callable[[Mask], Mask], str]] = {
    "inverted": (lambda m: encode_dense(~dense(m)), "inverted"),
    "sides_exchanged": (lambda m: {**m, "size": list(m["size"])[::-1]}, "height and width look exchanged"),
    "mirrored": (lambda m: encode_dense(dense(m)[:, ::-1]), "left to right"),
    "upside_down": (lambda m: encode_dense(dense(m)[::-1]), "top to bottom"),
    "turned": (lambda m: encode_dense(dense(m)[::-1, ::-1]), "180 degrees"),
    "transposed": (lambda m: encode_dense(np.ascontiguousarray(dense(m).T)), "transposed"),
    "whole_image": (lambda m: encode_dense(np.ones(m["size"], bool)), "cover the whole image"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_mask_causes_changed_masks_names_the_change(name: str) -> None:
    change, text = CHANGES[name]
    found = mask_causes([MaskPair([mask], [change(mask)]) for mask in BOXES], "rows")
    assert len(found) == 1
    assert text in found[0]


def test_mask_causes_rows_without_masks_are_counted_and_unreadable_masks_are_not() -> None:
    [text] = mask_causes([MaskPair([mask], []) for mask in BOXES], "rows")
    assert text.startswith("4 of 4 rows looked at have no predicted mask")
    assert mask_causes([MaskPair([mask], [None]) for mask in BOXES], "rows") == []


def test_mask_causes_same_or_smaller_masks_finds_nothing() -> None:
    assert mask_causes([MaskPair([mask], [mask]) for mask in BOXES], "rows") == []
    smaller = [encode_dense(dense(mask)[::2, ::2]) for mask in BOXES]
    assert mask_causes([MaskPair([a], [b]) for a, b in zip(BOXES, smaller, strict=True)], "rows") == []


def test_mask_causes_inverted_gives_the_mean_iou() -> None:
    # The whole image less the box shares no pixel with the box; inverted again, it is the box.
    [text] = mask_causes([MaskPair([mask], [encode_dense(~dense(mask))]) for mask in BOXES], "rows")
    assert "mean IoU 1.00 instead of" in text


def test_mask_causes_other_order_is_named() -> None:
    moved = [*BOXES[1:], BOXES[0]]
    [text] = mask_causes([MaskPair([a], [b]) for a, b in zip(BOXES, moved, strict=True)], "rows")
    assert "another row's ground truth" in text


def test_mask_causes_other_data_is_named() -> None:
    corner = box(28, 48, 2, 2)
    [text] = mask_causes([MaskPair([mask], [corner]) for mask in BOXES], "rows")
    assert "no predicted mask overlaps" in text


def test_mask_causes_broken_masks_are_left_out() -> None:
    broken = {"size": [30, 50], "counts": "zz"}
    assert mask_causes([MaskPair([mask], [None, broken, mask]) for mask in BOXES], "rows") == []


def plan_of(benchmark: str, truth: Dataset, predictions: Dataset) -> Plan:
    return make_plan(benchmark, truth, predictions, missing="empty", on_fault="skip-and-report")


def likely_causes(benchmark: str, truth: Dataset, predictions: Dataset) -> list[str]:
    return causes_in(plan_of(benchmark, truth, predictions))


def rows(benchmark: str) -> Dataset:
    return load_dataset(benchmark, "sample", split="test", **({} if benchmark == "pvsg" else {"images": False}))


def pvsg_predictions(truth: Dataset, edit: Callable[[dict[str, Any]], None]) -> Dataset:
    """The ground truth as predictions, changed."""
    category = truth.features["objects"].feature["category"]
    predicate = truth.features["relations"].feature["predicate"]

    def predict(row: dict[str, Any]) -> dict[str, Any]:
        found = {
            "pred_tubes": [
                {"tube_id": str(o["object_id"]), "category": category.int2str(o["category"]), **tube}
                for o, tube in zip(row["objects"], row["tubes"], strict=True)
            ],
            "pred_triplets": [
                {
                    "subject_id": str(r["subject_id"]),
                    "object_id": str(r["object_id"]),
                    "predicate": predicate.int2str(r["predicate"]),
                    "score": 1.0,
                    "spans": r["spans"],
                }
                for r in row["relations"]
            ],
        }
        edit(found)
        return found

    features = bd.answer_features("pvsg", truth.features)
    return bd.read_predictions("pvsg", truth.map(predict, features=features, load_from_cache_file=False))


def count_frames_from_1(found: dict[str, Any]) -> None:
    for tube in found["pred_tubes"]:
        tube["frames"] = [frame + 1 for frame in tube["frames"]]


def spans_in_seconds(found: dict[str, Any]) -> None:
    for triplet in found["pred_triplets"]:
        triplet["spans"] = [[first // 30, last // 30] for first, last in triplet["spans"]]


def wrong_categories(found: dict[str, Any]) -> None:
    for tube in found["pred_tubes"]:
        tube["category"] = "zebra"


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (count_frames_from_1, "look counted from 1"),
        (spans_in_seconds, "in frames, not in seconds"),
        (wrong_categories, "no predicted category of a tube"),
    ],
)
def test_likely_causes_pvsg(edit: Callable[[dict[str, Any]], None], text: str) -> None:
    truth = rows("pvsg")
    assert any(text in cause for cause in likely_causes("pvsg", truth, pvsg_predictions(truth, edit)))


def test_likely_causes_pvsg_sound_predictions_finds_nothing() -> None:
    truth = rows("pvsg")
    assert likely_causes("pvsg", truth, pvsg_predictions(truth, lambda found: None)) == []


def test_likely_causes_instancebench_inverted_masks() -> None:
    truth = rows("instancebench")

    answers = [
        {"expression_id": e["expression_id"], "mask": encode_dense(~dense(row["candidates"][row["target"]]["mask"]))}
        for row in truth
        for e in row["expressions"]
    ]
    predictions = bd.read_predictions("instancebench", Dataset.from_list(answers))
    assert "inverted" in likely_causes("instancebench", truth, predictions)[0]


def test_likely_causes_unknown_ids_only() -> None:
    predictions = bd.read_predictions("pbench", Dataset.from_list([{"key": "level_0/99999", "pred_masks": [BOXES[0]]}]))
    assert "do the ids belong to this data" in likely_causes("pbench", rows("pbench"), predictions)[0]


def test_explain_near_zero_good_score_says_nothing() -> None:
    truth = rows("pbench")
    predictions = bd.read_predictions("pbench", pbench_sample_predictions("careful"))
    result = bd.summarize("pbench", bd.score("pbench", truth, predictions), draws=0)
    assert explain_near_zero(result, plan_of("pbench", truth, predictions)) == []


def test_score_command_zero_prints_a_hint(tmp_path: Any) -> None:
    truth = rows("pbench")
    turned = truth.map(
        lambda row: {"pred_masks": [CHANGES["sides_exchanged"][0](mask) for mask in row["masks"]]},
        features=bd.answer_features("pbench", truth.features),
    )
    turned.select_columns(["key", "pred_masks"]).to_parquet(tmp_path / "turned.parquet")
    done = CliRunner().invoke(
        app, ["score", "pbench", "--data", "sample", "--predictions", str(tmp_path / "turned.parquet"), "--draws", "0"]
    )
    assert done.exit_code == 0, done.output
    assert "hint: height and width look exchanged" in done.stderr


@pytest.mark.parametrize("output", [[], ["--json"]], ids=["text", "json"])
def test_check_command_inverted_masks_prints_a_hint(output: list[str], tmp_path: Any) -> None:
    truth = rows("pbench")
    inverted = truth.map(
        lambda row: {"pred_masks": [CHANGES["inverted"][0](mask) for mask in row["masks"][:1]]},
        features=bd.answer_features("pbench", truth.features),
    )
    inverted.select_columns(["key", "pred_masks"]).to_parquet(tmp_path / "inverted.parquet")
    done = CliRunner().invoke(
        app, ["check", "pbench", "--data", "sample", "--predictions", str(tmp_path / "inverted.parquet"), *output]
    )
    assert done.exit_code == 0, done.output
    assert "the masks look inverted" in " ".join(done.stdout.split())
    assert ("hint: the masks" in " ".join(done.stdout.split())) is (not output)
