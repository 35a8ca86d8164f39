"""The engines against each other, dense pixels and rlemasklib: the same integers, on real and many random masks."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as coco

from bench_datasets.masks import (
    MaskColumn,
    available_engines,
    group_hits,
    group_intersections,
    iou,
    nms,
    pair_intersections,
    parse_masks,
    tube_intersections,
    union_overlaps,
    using_engine,
)

ENGINES = available_engines()


def answers(values: list[dict[str, Any]], groups: list[int]) -> list[np.ndarray]:
    """Everything an engine gives for masks in groups of one size each."""
    offsets = np.array(groups)
    column, again = MaskColumn.from_values(values), MaskColumn.from_values(values)
    group = np.repeat(np.arange(len(groups) - 1), np.diff(offsets))
    halves = np.arange(len(values)) % 2 == 0
    return [
        column.areas(),
        column.boxes(),
        column.words()[0],
        pair_intersections(MaskColumn.from_values(values[:-1]), MaskColumn.from_values(values[:-1])),
        group_intersections(column, offsets, again, offsets),
        nms(column, offsets),
        *union_overlaps(len(groups) - 1, (column, np.where(halves, group, -1)), (column, np.where(halves, -1, group))),
        tube_intersections(column, offsets, np.arange(len(values)) % 5, again, offsets, np.arange(len(values)) % 3),
        *group_hits(column, offsets, again, offsets),
    ]


def assert_alike(values: list[dict[str, Any]], groups: list[int]) -> list[np.ndarray]:
    found = {}
    for name in ENGINES:
        for threads in (1, 2) if name == "numba" else (1,):
            with using_engine(name, threads):
                found[name, threads] = answers(values, groups)
    first, *others = found.values()
    for other in others:
        for one, two in zip(first, other, strict=True):
            assert one.dtype == two.dtype
            assert np.array_equal(one, two)
    return first


def by_size(values: list[dict[str, Any]], most: int = 60) -> tuple[list[dict[str, Any]], list[int]]:
    """Masks sorted into groups of one size."""
    ordered = sorted(values, key=lambda value: value["size"])
    groups = [0]
    for i in range(1, len(ordered)):
        if ordered[i]["size"] != ordered[i - 1]["size"] or i - groups[-1] >= most:
            groups.append(i)
    return ordered, [*groups, len(ordered)]


def test_real_images(shared: Path) -> None:
    """All 839 instances and 734 predictions of 100 COCO images."""
    folder = shared / "data/coco_val2014_100"
    images = json.loads((folder / "instances_val2014_100.json").read_text())
    size = {image["id"]: (image["height"], image["width"]) for image in images["images"]}
    predicted = json.loads((folder / "fakesegm100_results.json").read_text())
    values = [item["segmentation"] for item in predicted]
    for item in images["annotations"]:
        height, width = size[item["image_id"]]
        array, wrong = parse_masks([item["segmentation"]], height=height, width=width)
        assert not wrong
        values.append(array.to_pylist()[0])
    assert len(values) == 839 + 734
    ordered, groups = by_size(values)
    found = assert_alike(ordered, groups)
    dense = [coco.decode(value) for value in ordered]
    assert found[0].tolist() == [int(mask.sum()) for mask in dense]
    at = 0
    for first, last in pairwise(groups):
        flat = np.stack([mask.ravel() for mask in dense[first:last]]).astype(np.float32)
        own = (flat @ flat.T).astype(np.int64)
        assert np.array_equal(found[4][at : at + own.size].reshape(own.shape), own)
        at += own.size


def test_real_masklets(shared: Path) -> None:
    """All masks of the tracked objects and their predictions."""
    folder = shared / "data/saco_veval_toy"
    truth = json.loads((folder / "gt_trimmed.json").read_text())["annotations"]
    predicted = json.loads((folder / "pred.json").read_text())
    values = [mask for item in [*truth, *predicted] for mask in item["segmentations"] if mask]
    assert len(values) > 500
    ordered, groups = by_size(values)
    found = assert_alike(ordered, groups)
    assert found[0].tolist() == [int(coco.decode(value).sum()) for value in ordered]


def test_twenty_thousand_random_masks() -> None:
    """Small masks of every shape and filling, 40 at a time, against dense pixels."""
    rng = np.random.default_rng(0)
    values, groups, dense = [], [0], []
    for _ in range(500):
        height, width = rng.integers(1, 24, 2)
        for _ in range(40):
            mask = rng.random((height, width)) < rng.choice([0.0, 0.03, 0.3, 0.7, 1.0])
            dense.append(mask)
            values.append(coco.encode(np.asfortranarray(mask.astype(np.uint8))))
        groups.append(len(values))
    assert len(values) == 20_000
    found = assert_alike(values, groups)
    assert found[0].tolist() == [int(mask.sum()) for mask in dense]
    at = 0
    for first, last in pairwise(groups):
        flat = np.stack([mask.ravel() for mask in dense[first:last]]).astype(np.int64)
        assert np.array_equal(found[4][at : at + (last - first) ** 2].reshape(last - first, -1), flat @ flat.T)
        at += (last - first) ** 2
        left, right = dense[first:last:2], dense[first + 1 : last : 2]
        one, other = np.any(left, axis=0), np.any(right, axis=0)
        k = groups.index(first)
        assert [int(found[6 + i][k]) for i in range(3)] == [int((one & other).sum()), int(one.sum()), int(other.sum())]


@pytest.mark.parametrize("engine", ENGINES)
def test_another_library(engine: str) -> None:
    """IoU as rlemasklib computes it."""
    rlemasklib = pytest.importorskip(
        "rlemasklib", reason="rlemasklib is not installed (it has no wheels for this Python)"
    )
    rng = np.random.default_rng(1)
    masks = [coco.encode(np.asfortranarray((rng.random((40, 60)) < 0.4).astype(np.uint8))) for _ in range(20)]
    expected = [[rlemasklib.iou([a, b]) for b in masks] for a in masks]
    with using_engine(engine):
        column = MaskColumn.from_values(masks)
        assert np.allclose(iou(column, column), expected, atol=1e-12)


def test_nothing_at_all() -> None:
    empty = MaskColumn.from_values([])
    for name in ENGINES:
        with using_engine(name):
            assert group_intersections(empty, [0], empty, [0]).tolist() == []
            assert len(empty.areas()) == 0
