"""Synthetic masks are what they say: blobs, the same for the same seed, sound wherever they are cut."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bench import synthetic
from pycocotools import mask as coco

from bench_datasets.masks import MaskColumn

SIZE = (60, 80)


def dense(blob: synthetic.Blob, size: tuple[int, int]) -> np.ndarray:
    """A smooth blob pixel by pixel, without window, table or runs."""
    height, width = size
    result = np.zeros(size, bool)
    for y in range(height):
        for x in range(width):
            angle = math.atan2(y - blob.y, x - blob.x)
            edge = 1 + sum(a * math.cos((k + 2) * angle + phase) for k, (a, phase) in enumerate(blob.waves))
            result[y, x] = math.hypot(x - blob.x, y - blob.y) < blob.radius * edge
    return result


@pytest.mark.parametrize(("x", "y", "radius"), [(40, 30, 15), (0, 0, 20), (79, 59, 30), (40, 30, 200), (-90, 10, 8)])
def test_smooth_blob_is_the_drawn_one(x: float, y: float, radius: float) -> None:
    blob = synthetic.Blob(x, y, radius, ((0.2, 0.3), (0.1, 1.0)), 0)
    expected = dense(blob, SIZE)
    found = coco.decode(synthetic.draw(blob, SIZE, "smooth")).astype(bool)
    # The outline comes from a table: a pixel of the edge may fall on the other side.
    assert (found != expected).sum() <= 0.02 * max(expected.sum(), 1)


@pytest.mark.parametrize("kind", synthetic.KINDS)
def test_masks_are_sound_and_repeat(kind: str) -> None:
    shapes = synthetic.overlapping(np.random.default_rng(3), 40, SIZE)
    first, second = (synthetic.draw_all(shapes, SIZE, kind) for _ in range(2))
    assert first == second
    column = MaskColumn.from_values(first)
    assert column.problems() == {}
    assert column.areas().tolist() == [int(coco.decode(rle).sum()) for rle in first]


def test_sparse_blobs_hardly_touch() -> None:
    shapes = synthetic.sparse(np.random.default_rng(0), 30, (300, 400))
    rles = synthetic.draw_all(shapes, (300, 400), "smooth")
    total, union = sum(coco.area(rle) for rle in rles), coco.area(coco.merge(rles))
    assert len(rles) == 30
    assert total <= 1.05 * union
    assert 0.2 < union / (300 * 400) < 0.5


def test_predictions_miss_and_repeat() -> None:
    shapes = synthetic.sparse(np.random.default_rng(0), 200, (300, 400))
    rng = np.random.default_rng(1)
    assert len(synthetic.predicted(rng, shapes, missed=0, again=0)) == 200
    assert len(synthetic.predicted(rng, shapes, missed=1)) == 0
    assert len(synthetic.predicted(rng, shapes, missed=0, again=1)) == 400


def test_image_size() -> None:
    height, width = synthetic.image_size(4)
    assert height * width == pytest.approx(4e6, rel=0.001)
    assert width > height
