"""The three models' answers: sound, of their format, and good and bad in the ways that are said of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as coco

from bench_datasets.faults import BenchError
from bench_datasets.masks import parse_masks
from bench_datasets.samples import SAMPLE_MODELS, pbench_sample_predictions
from bench_datasets.samples.models import spoil, write_predictions


def answers(model: str) -> dict[int, dict[str, Any]]:
    """A model's lines by id."""
    lines = [json.loads(line) for line in Path(pbench_sample_predictions(model)).read_text("utf-8").splitlines()]
    by_id = {line["id"]: line for line in lines}
    assert len(by_id) == len(lines)
    return by_id


def masks_of(line: dict[str, Any]) -> list[dict[str, Any]]:
    """A line's masks in either format."""
    return line["masks"] if "masks" in line else [instance["mask_rle"] for instance in line["instances"]]


def overlaps(line: dict[str, Any], row: dict[str, Any]) -> np.ndarray:
    """`(n, m) float`, pycocotools' IoU of predicted with true masks of one size."""
    first, second = (
        [{"size": mask["size"], "counts": mask["counts"].encode()} for mask in masks]
        for masks in (masks_of(line), row["masks"])
    )
    return np.asarray(coco.iou(first, second, [0] * len(second))).reshape(len(first), len(second))


@pytest.fixture(params=sorted(SAMPLE_MODELS))
def model(request: pytest.FixtureRequest, sample_cache: Path) -> str:
    """Each model in turn."""
    return str(request.param)


def test_every_row_is_answered_with_sound_masks(model: str, rows: list[dict[str, Any]]) -> None:
    """The ids are the sample's, the masks valid, never empty and of the image's size (or half of it)."""
    lines = answers(model)
    assert sorted(lines) == sorted(row["id"] for row in rows)
    sizes = {row["id"]: row["masks"][0]["size"] for row in rows if row["masks"]}
    for key, line in lines.items():
        masks = masks_of(line)
        assert parse_masks(masks)[1] == {}
        for mask in masks:
            assert coco.area({"size": mask["size"], "counts": mask["counts"].encode()}) > 0
            if key in sizes:
                assert mask["size"] == [side // (2 if model == "crowd_shy" else 1) for side in sizes[key]]
        if model != "hasty":
            assert len(line["scores"]) == len(masks)
            assert all(0 <= score <= 1 for score in line["scores"])


def test_the_same_bytes_again(model: str, tmp_path: Path) -> None:
    """The answers are seeded."""
    write_predictions(model, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == Path(pbench_sample_predictions(model)).read_bytes()


def test_centres_and_sizes_are_those_of_the_masks(sample_cache: Path) -> None:
    """Falcon Perception's format: the box about each mask, as fractions of the image."""
    for line in answers("hasty").values():
        for instance in line["instances"]:
            height, width = instance["mask_rle"]["size"]
            counts = instance["mask_rle"]["counts"].encode()
            x, y, w, h = coco.toBbox({"size": [height, width], "counts": counts})
            expected = {"x": (x + w / 2) / width, "y": (y + h / 2) / height}
            assert instance["xy"] == pytest.approx(expected, abs=1e-4)
            assert instance["hw"] == pytest.approx({"h": h / height, "w": w / width}, abs=1e-4)


def test_sample_models_match_their_descriptions(rows: list[dict[str, Any]]) -> None:
    """Careful finds the crowd; hasty repeats itself late and drifts; crowd-shy says nothing there."""
    (crowd,) = [row for row in rows if row["count"] > 150]
    careful, hasty, shy = (answers(model)[crowd["id"]] for model in ("careful", "hasty", "crowd_shy"))
    assert masks_of(shy) == []

    good = overlaps(careful, crowd).max(axis=1)
    assert len(good) > 150
    assert np.median(good) > 0.85

    loose = overlaps(hasty, crowd)
    assert len(loose) > crowd["count"]
    best = loose.max(axis=1)
    assert best[:50].mean() > best[-50:].mean() + 0.1
    found = loose.argmax(axis=1)
    again = np.array([found[k] in found[:k] for k in range(len(found))])
    assert again[-70:].mean() > 2 * again[:70].mean()


def test_a_mask_is_spoilt_by_whole_pixels() -> None:
    """Grown, thinned and shifted; what leaves the image is cut off, and thinning never empties a mask."""
    mask = np.zeros((20, 30), dtype=bool)
    mask[5:10, 8:16] = True
    moved = np.zeros_like(mask)
    moved[8:13, 6:14] = True
    assert np.array_equal(spoil(mask, 0, -2, 3), moved)
    assert spoil(mask, -1).sum() == 3 * 6
    assert spoil(mask, 1).sum() == 5 * 8 + 2 * (5 + 8)
    assert spoil(mask, 0, -10, 0).sum() == 5 * 6
    assert np.array_equal(spoil(mask, -9), mask)
    assert not spoil(np.zeros_like(mask), 2, 1, 1).any()


def test_no_such_model() -> None:
    """The message names those there are."""
    with pytest.raises(BenchError, match="careful, hasty, crowd_shy"):
        pbench_sample_predictions("perfect")
