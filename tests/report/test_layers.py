"""The pictures: what is where in each layer, told by pattern as well as by colour, and images that are broken."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from bench_datasets.masks import MaskColumn
from bench_datasets.report.layers import (
    AGREED,
    EXTRA,
    LONGEST,
    MISSED,
    OTHERS,
    PREDICTION,
    TRUTH,
    Frame,
    base,
    dense,
    difference_layer,
    masks_layer,
)


def pixels(layer: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(layer)).convert("RGBA")).astype(int)


def box(top: int, left: int, height: int = 20, width: int = 20, size: tuple[int, int] = (60, 80)) -> np.ndarray:
    mask = np.zeros(size, bool)
    mask[top : top + height, left : left + width] = True
    return mask


FRAME = Frame.fit((60, 80))


@pytest.mark.parametrize(("predicted", "colour"), [(False, TRUTH), (True, PREDICTION)])
def test_a_mask_has_an_outline_and_stripes(predicted: bool, colour: tuple[int, int, int]) -> None:
    mask = box(10, 10)
    layer = pixels(masks_layer([mask], FRAME, predicted=predicted))
    assert layer.shape == (60, 80, 4)
    assert (layer[~mask, 3] == 0).all()
    assert (layer[mask, 3] > 0).all()
    assert (layer[mask][:, :3] == colour).all()
    assert (layer[10, 10:30, 3] == 255).all()  # the outline
    inside = layer[14:26, 14:26, 3]
    assert len(np.unique(inside)) == 2  # ground and stripes
    strong = inside == inside.max()
    shifted = np.roll(strong, (1, -1 if not predicted else 1), (0, 1))
    assert (strong[1:-1, 1:-1] == shifted[1:-1, 1:-1]).all()  # along which they run


def test_a_difference_is_in_three_parts() -> None:
    truth, given = box(10, 10), box(10, 20)
    layer = pixels(difference_layer([truth], [given], FRAME))
    for region, colour in ((truth & given, AGREED), (truth & ~given, MISSED), (given & ~truth, EXTRA)):
        assert (layer[region][:, :3] == colour).all()
    assert (layer[~(truth | given), 3] == 0).all()
    both = layer[12:28, 22:28, 3]
    assert len(np.unique(both)) == 1  # no stripes where they agree
    assert len(np.unique(layer[12:28, 12:18, 3])) == 2
    assert not pixels(difference_layer([], [], FRAME))[..., 3].any()


def test_what_else_might_be_meant_has_a_thin_line() -> None:
    layer = pixels(masks_layer([box(10, 10)], FRAME, predicted=False, others=[box(30, 50), box(10, 10)]))
    assert (layer[30, 50:70, :3] == OTHERS).all()
    assert layer[40, 60, 3] == 0
    assert (layer[10, 10:30, :3] == TRUTH).all()


def test_large_images_are_shown_small() -> None:
    frame = Frame.fit((3000, 4000))
    assert (frame.height, frame.width) == (LONGEST * 3 // 4, LONGEST)
    speck = np.zeros((3000, 4000), bool)
    speck[1501, 2001] = True
    (shown,) = dense(MaskColumn.from_dense([speck]), frame)
    assert shown.sum() == 1
    assert np.argwhere(shown)[0] == pytest.approx([1501 * 390 / 3000, 2001 * 520 / 4000], abs=1)
    assert dense(MaskColumn.from_dense([np.zeros((3000, 4000), bool)]), frame)[0].sum() == 0


def test_images() -> None:
    buffer = io.BytesIO()
    Image.new("RGBA", (80, 60), (200, 10, 10, 128)).save(buffer, "PNG")
    made = base({"bytes": buffer.getvalue(), "path": None}, FRAME)
    assert made is not None
    assert Image.open(io.BytesIO(made)).size == (80, 60)
    assert base(Image.new("L", (8, 6)), FRAME) is not None
    for broken in (None, {"bytes": None, "path": "/etc/passwd"}, {"bytes": b"\x89PNG rubbish"}, {"bytes": b""}, 7, "x"):
        assert base(broken, FRAME) is None
    cut = buffer.getvalue()[:60]
    assert base({"bytes": cut}, FRAME) is None
