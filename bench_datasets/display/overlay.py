"""Masks over an image: ground truth and prediction differ in pattern and in colour."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bench_datasets._util.grid import render_html
from bench_datasets.masks import MaskColumn, resize

LONGEST = 1024
"""Pixels of the longer side; larger images are shown smaller."""

TRUTH, PREDICTION = (0, 114, 178), (230, 159, 0)
"""Blue with stripes that rise, orange with stripes that fall; people who see few colours tell them apart."""

Mask = NDArray[np.bool_]


_HTML = '<pre dir="auto">{{ text }}</pre><img alt="{{ first }}" src="data:image/png;base64,{{ data }}">'


@dataclass(frozen=True)
class Seen:
    """A row in words and as a picture; a notebook shows both.

    Attributes:
        key: the row's key.
        text: what is said of it, line by line.
        picture: its masks over the image, or over a plain ground where the row has none.
    """

    key: str
    text: str
    picture: Image.Image

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        buffer = io.BytesIO()
        self.picture.save(buffer, "PNG")
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        first = self.text.split("\n", 1)[0]
        return render_html(_HTML, text=self.text, first=first, data=data)


def overlay(image: Any, size: tuple[int, int] | None, truth: MaskColumn, predicted: MaskColumn | None) -> Image.Image:
    """Masks over an image.

    Args:
        image: a PIL image, `{"bytes": ...}` as `datasets` holds it, or `None` for a plain ground.
        size: height, width in pixels; `None` for a row without truth, which is shown without masks.
        truth: truth masks of that size.
        predicted: predicted masks of that size, or `None`.
    """
    picture = _open(image)
    if size is None:
        size = (picture.height, picture.width) if picture else (240, 320)
    scale = min(1.0, LONGEST / max(size))
    height, width = max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
    if picture is None:
        canvas = np.full((height, width, 3), 236, np.float32)
    else:
        grey = picture.convert("L").resize((width, height), Image.Resampling.BILINEAR)
        canvas = np.repeat(np.asarray(grey, np.float32)[..., None], 3, axis=2) * 0.6 + 90
    rising, falling = stripes(height, width)
    _paint(canvas, truth, TRUTH, rising)
    if predicted is not None:
        _paint(canvas, predicted, PREDICTION, falling)
    return Image.fromarray(canvas.clip(0, 255).astype(np.uint8))


def stripes(height: int, width: int) -> tuple[Mask, Mask]:
    """Stripes that rise and stripes that fall, each `(height, width) bool`.

    Example:
        >>> rising, falling = stripes(8, 8)
        >>> rising[0, :3].tolist(), falling[0, :3].tolist()
        ([True, True, False], [True, False, False])
    """
    rows, columns = np.mgrid[:height, :width]
    return (rows + columns) % 8 < 2, (rows - columns) % 8 < 2


def inner_pixels(mask: Mask, steps: int = 1) -> Mask:
    """A mask without its outline, which is `steps` pixels wide; pixels at the image's border are outline.

    Example:
        >>> int(inner_pixels(np.ones((4, 5), bool)).sum())
        6
    """
    inner = mask
    for _ in range(steps):
        padded = np.pad(inner, 1)
        inner = inner & padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return inner


def _paint(canvas: NDArray[np.float32], masks: MaskColumn, colour: tuple[int, int, int], striped: Mask) -> None:
    height, width = striped.shape
    small = resize(masks, np.full(len(masks), height), np.full(len(masks), width))
    for i in range(len(small)):
        mask = small.decode(i)
        canvas[mask & striped] = 0.35 * canvas[mask & striped] + 0.65 * np.array(colour, np.float32)
        canvas[mask & ~inner_pixels(mask)] = colour


def _open(image: Any) -> Image.Image | None:
    if isinstance(image, Image.Image):
        return image
    if isinstance(image, Mapping) and image.get("bytes"):
        return Image.open(io.BytesIO(image["bytes"]))
    return None
