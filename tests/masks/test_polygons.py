"""Polygons: what pycocotools draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as coco

from bench_datasets.masks import MaskColumn, MaskError, parse_mask, parse_masks


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_drawn_as_pycocotools_draws_them(data: st.DataObject) -> None:
    height, width = data.draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
    reach = float(max(height, width))
    corner = st.one_of(st.floats(-2 * reach, 2 * reach), st.integers(0, int(reach)))
    polygons = data.draw(
        st.lists(
            st.integers(3, 8).flatmap(lambda n: st.lists(corner, min_size=2 * n, max_size=2 * n)),
            min_size=1,
            max_size=3,
        )
    )
    floats = [[float(x) for x in polygon] for polygon in polygons]
    expected = coco.decode(coco.merge(coco.frPyObjects(floats, height, width))).astype(bool)
    spelled = [polygons, [np.array(polygon, float) for polygon in polygons], tuple(map(tuple, polygons))]
    if len(polygons) == 1:
        spelled.append(polygons[0])
    masks, wrong = parse_masks(spelled, height=height, width=width)
    assert wrong == {}
    for k in range(len(spelled)):
        np.testing.assert_array_equal(MaskColumn.from_arrow(masks).decode(k), expected)


def test_many_corners_of_a_large_image_are_drawn() -> None:
    angle = np.linspace(0, 2 * np.pi, 20_000, endpoint=False)
    circle = np.stack([1500 + 1400 * np.cos(angle), 1500 + 1400 * np.sin(angle)], axis=1).ravel().tolist()
    masks, wrong = parse_masks([[circle]], height=3000, width=3000)
    assert wrong == {}
    area = int(MaskColumn.from_arrow(masks).areas()[0])
    assert abs(area / (np.pi * 1400**2) - 1) < 1e-3


def test_polygon_part_of_two_points_is_left_out_and_noted() -> None:
    square = [2, 2, 14, 2, 14, 14, 2, 14]
    noted: dict[int, str] = {}
    values = [[square, [20, 5, 21, 6]], [square], [[20, 5, 21, 6], [], square]]
    masks, wrong = parse_masks(values, height=40, width=60, noted=noted)
    assert wrong == {}
    assert MaskColumn.from_arrow(masks).areas().tolist() == [144, 144, 144]
    assert sorted(noted) == [0, 2]
    assert "polygon 1 has 2 points" in noted[0]
    assert "polygon 0 has 2 points, polygon 1 has 0 points" in noted[2]
    drawn = coco.decode(coco.merge(coco.frPyObjects([square, [20, 5, 21, 6]], 40, 60)))
    np.testing.assert_array_equal(MaskColumn.from_arrow(masks).decode(0), drawn.astype(bool))


def test_polygons_without_any_part_of_three_points_are_no_mask() -> None:
    noted: dict[int, str] = {}
    values = [[[1, 1, 2, 2], []], [1, 1, 2, 2], [[]], [[1, 1, 9, 1, 9, 9], [1, 2, 3]], [[1, 1, 9, 1, 9, 9], [None, 2]]]
    _, wrong = parse_masks(values, height=10, width=10, noted=noted)
    assert sorted(wrong) == [0, 1, 2, 3, 4]
    assert noted == {}


def test_parse_mask_rows_of_zeros_and_ones_that_fit_the_image_are_refused_as_dense() -> None:
    rows = [[0, 1, 1, 0, 0, 1], [0, 0, 1, 1, 0, 1], [1, 1, 0, 0, 1, 1]]
    with pytest.raises(MaskError, match="dense array"):
        parse_mask(rows, height=3, width=6)
    # In an image of another size they are three polygons.
    assert parse_mask(rows, height=30, width=60)["size"] == [30, 60]


def test_polygon_in_fractions_of_the_image_is_refused() -> None:
    fractions = [[0.1, 0.2, 0.9, 0.2, 0.9, 0.7]]
    _, wrong = parse_masks(
        [fractions, [[0, 0, 1, 0, 1, 1, 0, 1]], [[0.5, 0.5, 5.5, 0.5, 5.5, 6.5]]], height=10, width=20
    )
    assert list(wrong) == [0]
    assert "lie within 1 pixel of an image of 10 x 20: are they fractions?" in wrong[0]
