"""Resizing: pixel for pixel what Pillow's NEAREST gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from bench_datasets.masks import MaskColumn, MaskError, resize
from bench_datasets.masks.engine import Engine

from ..support.slow_masks import Dense, messy, random_mask

SIDES = st.one_of(st.integers(1, 12), st.integers(1, 120))


def pillow(mask: Dense, height: int, width: int) -> Dense:
    image = Image.fromarray(mask.astype(np.uint8) * 255)
    return np.asarray(image.resize((width, height), Image.Resampling.NEAREST)) > 0


@settings(max_examples=250, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), old=st.tuples(SIDES, SIDES), new=st.tuples(SIDES, SIDES))
def test_any_size_to_any(seed: int, old: tuple[int, int], new: tuple[int, int]) -> None:
    generator = np.random.default_rng(seed)
    mask = random_mask(generator, *old) if seed % 2 else generator.random(old) < 0.5
    column = MaskColumn.from_values([messy(generator, mask), MaskColumn.from_dense([mask]).to_pylist()[0]])
    resized = resize(column, np.full(2, new[0]), np.full(2, new[1]))
    assert resized.problems() == {}
    for k in range(2):
        np.testing.assert_array_equal(resized.decode(k), pillow(mask, *new))
    assert resized.to_pylist()[0] == resized.to_pylist()[1] or old == new


def test_every_side_from_and_to() -> None:
    """Rows and columns alone, where the sums of steps are near a pixel's edge."""
    generator = np.random.default_rng(2)
    for old in (1, 2, 3, 7, 100, 427, 640, 1023):
        line = generator.random((1, old)) < 0.5
        for new in [*range(1, 40), *(int(side) for side in generator.integers(40, 3000, size=40))]:
            column = MaskColumn.from_dense([line, line.T])
            resized = resize(column, np.array([1, new]), np.array([new, 1]))
            np.testing.assert_array_equal(resized.decode(0), pillow(line, 1, new))
            np.testing.assert_array_equal(resized.decode(1), pillow(line.T, new, 1))


def test_photographs() -> None:
    generator = np.random.default_rng(4)
    for old, new in (((427, 640), (1024, 683)), ((1080, 1920), (359, 640)), ((64, 64), (2001, 1333))):
        mask = generator.random(old) < 0.3
        resized = resize(MaskColumn.from_dense([mask]), np.array([new[0]]), np.array([new[1]]))
        np.testing.assert_array_equal(resized.decode(0), pillow(mask, *new))


def test_several_at_once_each_to_its_own(engine: Engine) -> None:
    generator = np.random.default_rng(6)
    masks = [random_mask(generator, int(generator.integers(1, 20)), int(generator.integers(1, 20))) for _ in range(80)]
    heights, widths = generator.integers(1, 25, size=(2, 80))
    heights[::5], widths[::5] = [m.shape[0] for m in masks[::5]], [m.shape[1] for m in masks[::5]]
    column = MaskColumn.from_values([messy(generator, mask) for mask in masks])
    resized = resize(column, heights, widths)
    assert resized.heights.tolist() == heights.tolist()
    for k, mask in enumerate(masks):
        np.testing.assert_array_equal(resized.decode(k), pillow(mask, int(heights[k]), int(widths[k])))
    assert resized.areas().tolist() == [int(resized.decode(k).sum()) for k in range(80)]
    assert len(resize(column.take([]), np.zeros(0, int), np.zeros(0, int))) == 0


@pytest.mark.parametrize("size", [(0, 5), (5, -1), (2**16, 2**16)])
def test_sizes_that_are_none(size: tuple[int, int]) -> None:
    with pytest.raises(MaskError, match="resize"):
        resize(MaskColumn.from_dense([np.ones((2, 2), bool)]), np.array([size[0]]), np.array([size[1]]))
