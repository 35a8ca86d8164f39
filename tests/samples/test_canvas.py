"""The painter against shapes whose pixels are known without it."""

from __future__ import annotations

import numpy as np
import pytest

from bench_datasets.samples.canvas import Canvas, Pen, Shape, box, ellipse, limb, polygon


def painted(shape: Shape, width: int = 40, height: int = 30) -> np.ndarray:
    """Where the map shows a shape that is painted alone."""
    canvas = Canvas(width, height)
    canvas.fill(shape, "#ffffff", canvas.thing("thing/one"))
    return canvas.labels == 1


def test_a_box_is_a_slice() -> None:
    """Whole-pixel boxes cover whole pixels."""
    expected = np.zeros((30, 40), dtype=bool)
    expected[5:15, 10:30] = True
    assert np.array_equal(painted(box(20, 10, 20, 10)), expected)


def test_an_ellipse_is_its_equation() -> None:
    """The approximate distance has the exact sign."""
    y, x = np.mgrid[0:30, 0:40] + 0.5
    assert np.array_equal(
        painted(ellipse(17.3, 14.1, 12.7, 8.2)), ((x - 17.3) / 12.7) ** 2 + ((y - 14.1) / 8.2) ** 2 < 1
    )


def test_a_polygon_is_its_half_planes() -> None:
    """A triangle is where three half-planes meet."""
    corners = np.array([(3.2, 4.1), (35.7, 9.3), (12.4, 27.6)])
    y, x = np.mgrid[0:30, 0:40] + 0.5
    sides = [
        (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0
        for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, axis=0), strict=True)
    ]
    assert np.array_equal(painted(polygon([tuple(corner) for corner in corners])), np.logical_and.reduce(sides))


def test_a_limb_is_what_is_near_its_line() -> None:
    """A stroke of one radius is all that is nearer than that to a fine sampling of its line."""
    y, x = np.mgrid[0:30, 0:40] + 0.5
    t = np.linspace(0, 1, 2001)[:, None, None]
    near = np.sqrt((x - (6 + 25 * t)) ** 2 + (y - (8 + 13 * t)) ** 2).min(axis=0)
    shown = painted(limb((6, 8), (31, 21), 4.37))
    assert shown[near < 4.36].all()
    assert not shown[near > 4.38].any()


def test_what_is_painted_later_hides_what_is_behind() -> None:
    """The map holds what is seen; scenery hides things too, shadows and highlights do not."""
    canvas = Canvas(40, 30)
    back, front = canvas.thing("box/back"), canvas.thing("box/front")
    canvas.fill(box(15, 15, 20, 20), "#ff0000", back)
    canvas.fill(box(25, 15, 20, 10), "#00ff00", front)
    canvas.fill(box(20, 22.5, 40, 5), "#0000ff")
    canvas.shadow(box(20, 15, 40, 30))
    canvas.gleam(box(20, 15, 40, 30))
    expected = np.zeros((30, 40), dtype=int)
    expected[5:25, 5:25] = back
    expected[10:20, 15:35] = front
    expected[20:25] = 0
    assert np.array_equal(canvas.labels, expected)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (box(10, 10, 10, 10) | box(20, 10, 10, 10), 200),
        (box(10, 10, 10, 10) & box(15, 10, 10, 10), 50),
        (box(10, 10, 10, 10) - box(15, 10, 10, 10), 50),
    ],
)
def test_shapes_combine(shape: Shape, expected: int) -> None:
    """Either, both, and the one without the other, by their areas."""
    assert painted(shape).sum() == expected


def test_parts_outside_are_cut_off() -> None:
    """A shape may reach over the edge or lie beyond it."""
    assert painted(box(0, 0, 20, 20)).sum() == 100
    assert painted(box(-50, 0, 20, 20)).sum() == 0


def test_a_pen_flips_turns_and_scales() -> None:
    """A thing's own units, placed on the canvas."""
    canvas = Canvas(40, 30)
    assert Pen(canvas, 1, 20, 10, 2).at(3, 4) == (26, 18)
    assert Pen(canvas, 1, 20, 10, 2, -1).at(3, 4) == (14, 18)
    assert Pen(canvas, 1, 20, 10, 2, angle=np.pi / 2).at(3, 4) == pytest.approx((12, 16))


def test_the_picture_is_a_png() -> None:
    """The picture's size and first bytes."""
    canvas = Canvas(40, 30)
    canvas.gradient((0, "#000000"), (1, "#ffffff"))
    canvas.text("A", 20, 15, 14, "#ff0000")
    assert canvas.picture().size == (40, 30)
    assert canvas.png().startswith(b"\x89PNG")
