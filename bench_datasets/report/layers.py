"""Pictures in layers: the image, the ground truth, a prediction, and their difference."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bench_datasets.display.overlay import PREDICTION, TRUTH, Mask, inner_pixels, stripes
from bench_datasets.masks import MaskColumn, resize

LONGEST = 520
"""Pixels of a picture's longer side; larger images are shown smaller."""

MAX_IMAGE_PIXELS = 1 << 28
"""Images above that are not opened."""

QUALITY = 74
"""Of the JPEGs."""

AGREED, MISSED, EXTRA = (0, 158, 115), (0, 114, 178), (213, 94, 0)
OTHERS = (90, 90, 90)
"""Colours that people who see few colours tell apart (Okabe and Ito)."""

FILL, STRIPE, EDGE = 70, 190, 255
"""How opaque a mask's ground, its stripes and its outline are, of 255."""


@dataclass(frozen=True)
class Frame:
    """Size of a picture and of its original, in pixels."""

    height: int
    width: int
    of: tuple[int, int]

    @classmethod
    def fit(cls, size: tuple[int, int], longest: int = LONGEST) -> Frame:
        """The frame of an image of `size` (height, width).

        Example:
            >>> Frame.fit((1000, 2000))
            Frame(height=260, width=520, of=(1000, 2000))
        """
        scale = min(1.0, longest / max(*size, 1))
        return cls(max(1, round(size[0] * scale)), max(1, round(size[1] * scale)), size)


def base(image: Any, frame: Frame) -> bytes | None:
    """The image as a JPEG of the frame's size; `None` where there is none, or none that opens.

    Args:
        image: a PIL image, `{"bytes": ...}` or `{"path": ...}` as `datasets` holds it, or `None`.
        frame: of the picture.
    """
    opened = _open(image)
    if opened is None:
        return None
    buffer = io.BytesIO()
    small = opened.convert("RGB").resize((frame.width, frame.height), Image.Resampling.LANCZOS)
    small.save(buffer, "JPEG", quality=QUALITY, optimize=True, subsampling=2)
    return buffer.getvalue()


def _open(image: Any) -> Image.Image | None:
    try:
        if isinstance(image, Mapping):
            if not image.get("bytes"):
                return None
            image = Image.open(io.BytesIO(image["bytes"]))
        if not isinstance(image, Image.Image) or image.width * image.height > MAX_IMAGE_PIXELS:
            return None
        image.load()
    except Exception:  # whatever a broken file raises: the masks are shown on a plain ground
        return None
    return image


def dense(masks: MaskColumn, frame: Frame) -> list[Mask]:
    """The masks at the frame's size, each `(height, width) bool`; small ones keep a pixel at least."""
    n = len(masks)
    small = resize(masks, np.full(n, frame.height), np.full(n, frame.width))
    boxes = masks.boxes() if n else np.zeros((0, 4), np.int64)
    found = []
    for i in range(n):
        mask = small.decode(i).copy()
        if not mask.any() and boxes[i, 2]:
            x, y, w, h = boxes[i].tolist()
            row = min(frame.height - 1, (y + h // 2) * frame.height // max(int(masks.heights[i]), 1))
            mask[row, min(frame.width - 1, (x + w // 2) * frame.width // max(int(masks.widths[i]), 1))] = True
        found.append(mask)
    return found


def masks_layer(masks: list[Mask], frame: Frame, *, predicted: bool, others: Sequence[Mask] = ()) -> bytes:
    """Masks as a transparent PNG: an outline each, a light ground, stripes that rise (truth) or fall (prediction).

    Args:
        masks: at the frame's size.
        frame: of the picture.
        predicted: whether they are predictions.
        others: what else might have been meant: a thin grey outline each.
    """
    striped = stripes(frame.height, frame.width)[int(predicted)]
    level = np.zeros((frame.height, frame.width), np.uint8)
    for mask in others:
        level[mask & ~inner_pixels(mask, 1)] = 4
    for mask in masks:
        level[mask] = np.maximum(level[mask] % 4, np.where(striped, 2, 1)[mask])
    for mask in masks:
        level[mask & ~inner_pixels(mask, 2 if mask.sum() > 400 else 1)] = 3
    colour = PREDICTION if predicted else TRUTH
    return _png(level, [(colour, FILL), (colour, STRIPE), (colour, EDGE), (OTHERS, 200)][: 4 if others else 3])


def difference_layer(truth: list[Mask], predicted: list[Mask], frame: Frame) -> bytes:
    """The difference of two unions: agreement, missed pixels (rising stripes), surplus pixels (falling stripes)."""
    rising, falling = stripes(frame.height, frame.width)
    one, other = _union(truth, frame), _union(predicted, frame)
    level = np.zeros((frame.height, frame.width), np.uint8)
    level[one & other] = 1
    for region, striped, first in ((one & ~other, rising, 2), (other & ~one, falling, 5)):
        level[region] = np.where(striped, first + 1, first)[region]
        level[region & ~inner_pixels(region, 1)] = first + 2
    shades = [(FILL, AGREED)] + [(a, c) for c in (MISSED, EXTRA) for a in (FILL, 220, EDGE)]
    return _png(level, [(colour, alpha) for alpha, colour in shades])


def _union(masks: list[Mask], frame: Frame) -> Mask:
    result = np.zeros((frame.height, frame.width), np.bool_)
    for mask in masks:
        result |= mask
    return result


def _png(level: NDArray[np.uint8], colours: list[tuple[tuple[int, int, int], int]]) -> bytes:
    picture = Image.fromarray(level, "P")
    palette = [0, 0, 0] + [part for colour, _ in colours for part in colour]
    picture.putpalette(palette)
    buffer = io.BytesIO()
    alphas = bytes([0, *(alpha for _, alpha in colours)])
    picture.save(buffer, "PNG", optimize=True, transparency=alphas, bits=4 if len(alphas) > 4 else 2)
    return buffer.getvalue()
