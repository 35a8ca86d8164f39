"""Masks over an image, against scipy's erosion."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import binary_erosion

from bench_datasets.display.overlay import TRUTH, inner_pixels, overlay
from bench_datasets.masks import MaskColumn


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_inner_pixels_random_masks_equal_erosion(steps: int) -> None:
    masks = np.random.default_rng(steps).random((20, 17, 23)) < 0.9
    for mask in masks:
        assert np.array_equal(inner_pixels(mask, steps), binary_erosion(mask, iterations=steps, border_value=0))


def test_overlay_mask_of_whole_image_outlined_at_border() -> None:
    column = MaskColumn.from_dense([np.ones((24, 32), bool)])
    pixels = np.asarray(overlay(None, (24, 32), column, None))
    border = ~binary_erosion(np.ones((24, 32), bool))
    assert (pixels[border] == TRUTH).all()
    assert not (pixels[~border] == TRUTH).all(axis=1).any()
