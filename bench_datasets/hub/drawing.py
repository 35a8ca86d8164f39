"""Masks as a small picture: each in a colour of its own, over an image or a plain ground; and many of them as one."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, ImageOps

from bench_datasets.masks import MaskColumn, resize

LONGEST = 320
"""Pixels of an overlay's longer side."""

_FINE = 2  # an overlay is drawn that many times larger, and made smaller at the end: its edges are then smooth

PALETTE = np.array(
    [
        (230, 110, 0), (0, 114, 178), (0, 158, 115), (204, 80, 160), (235, 185, 30), (86, 180, 233), (120, 94, 190),
        (200, 60, 50), (60, 190, 190), (150, 160, 40),
    ],
    np.float32,
)  # fmt: skip
"""Colours that are told apart by people who see few of them, too; they come again from the start."""

PLAIN = 240.0
"""Grey of the plain ground."""

_OTHER = np.array([70, 110, 150], np.float32)
_INK, _PAPER = (32, 36, 42), (255, 255, 255)
_TILE, _GAP, _LINE = (320, 214), 14, 19  # a mosaic's tile, the space between, and a line of its captions: pixels


def overlay(
    ground: Any,
    size: tuple[int, int] | None,
    masks: MaskColumn,
    *,
    names: Sequence[str] = (),
    target: int | None = None,
) -> Image.Image:
    """Masks drawn over an image.

    Args:
        ground: bytes of an image file; None for a plain ground.
        size: height and width of the masks in pixels; None where there is neither a mask nor an image.
        masks: n sound masks of that size; small ones are drawn over large ones.
        names: a word to write on each; none for an empty list.
        target: the position of the one that is drawn strongly, all others faintly; None where they are all alike.

    Returns:
        The picture, `LONGEST` pixels on its longer side at most.
    """
    picture = None if ground is None else _open(ground)
    if size is None:
        size = (240, 320) if picture is None else (picture.height, picture.width)
    scale = LONGEST / max(size)
    small = tuple(max(1, round(side * min(1.0, scale))) for side in size)
    height, width = (side * _FINE for side in small)
    if picture is None:
        canvas = np.full((height, width, 3), PLAIN, np.float32)
    else:
        canvas = np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR), np.float32)
        canvas = 0.8 * canvas.mean(axis=2, keepdims=True) + 0.2 * canvas
        canvas = canvas * 0.75 + 60
    fitted = resize(masks, np.full(len(masks), height), np.full(len(masks), width)) if len(masks) else masks
    labels = np.full((height, width), -1, np.int32)
    order = np.argsort(-fitted.areas(), kind="stable") if len(fitted) else np.zeros(0, np.int64)
    if target is not None:
        order = np.append(order[order != target], target)
    for k in order.tolist():
        labels[fitted.decode(k)] = k
    canvas = _paint(canvas, labels, target, plain=picture is None)
    image = Image.fromarray(canvas.clip(0, 255).astype(np.uint8))
    image = image.resize((small[1], small[0]), Image.Resampling.BOX)
    if names:
        _write(image, fitted, names)
    return image


def png(image: Image.Image) -> bytes:
    """The picture as a small PNG file, in 256 colours; the same picture gives the same bytes."""
    stream = io.BytesIO()
    image.quantize(256, dither=Image.Dither.NONE).save(stream, "PNG", compress_level=7)
    return stream.getvalue()


def mosaic(tiles: Sequence[tuple[bytes, str, str]], columns: int = 4) -> bytes:
    """Overlays beside and below one another, each with two lines of words.

    Args:
        tiles: a PNG, its first line and its second, which may be empty.
        columns: most tiles in a row.

    Returns:
        A PNG.

    Raises:
        ValueError: there are no tiles.
    """
    if not tiles:
        raise ValueError("mosaic: expected tiles, got none")
    columns = min(columns, len(tiles))
    rows = -(-len(tiles) // columns)
    wide, high = _TILE
    below = 2 * _LINE + 8
    sheet = Image.new("RGB", (columns * (wide + _GAP) + _GAP, rows * (high + below + _GAP) + _GAP), _PAPER)
    draw, strong, plain = ImageDraw.Draw(sheet), ImageFont.load_default(14), ImageFont.load_default(13)
    for k, (data, first, second) in enumerate(tiles):
        x, y = _GAP + k % columns * (wide + _GAP), _GAP + k // columns * (high + below + _GAP)
        tile = _open(data)
        tile.thumbnail(_TILE, Image.Resampling.LANCZOS)
        sheet.paste(tile, (x + (wide - tile.width) // 2, y + (high - tile.height) // 2))
        lines = _fit(draw, first, strong, wide, 1 if second else 2)
        lines += _fit(draw, second, plain, wide, 1) if second else []
        for n, line in enumerate(lines):
            font, ink = (strong, _INK) if n == 0 or not second else (plain, (100, 106, 114))
            draw.text((x, y + high + 6 + n * _LINE), line, ink, font)
    return png(sheet)


def _paint(
    canvas: NDArray[np.float32], labels: NDArray[np.int32], target: int | None, *, plain: bool
) -> NDArray[np.float32]:
    """Fill and outline every labelled region."""
    drawn = labels >= 0
    colours = PALETTE[labels % len(PALETTE)]
    strength = np.full(labels.shape, 0.62 if plain else 0.55, np.float32)
    if target is not None:
        colours = np.where((labels == target)[..., None], PALETTE[0], _OTHER)
        strength = np.where(labels == target, 0.7, 0.3).astype(np.float32)
    edge = np.zeros(labels.shape, np.bool_)
    for axis in (0, 1):
        for step in (-1, 1, -2, 2):
            moved = np.roll(labels, step, axis)
            if step > 0:
                moved[(slice(None),) * axis + (slice(0, step),)] = -1
            else:
                moved[(slice(None),) * axis + (slice(step, None),)] = -1
            edge |= moved != labels
    filled = canvas * (1 - strength[..., None]) + colours * strength[..., None]
    result = np.where(drawn[..., None], filled, canvas)
    return np.where((edge & drawn)[..., None], colours * 0.72, result).astype(np.float32)


def _write(image: Image.Image, masks: MaskColumn, names: Sequence[str]) -> None:
    """Words in the middle of the masks' boxes, dark on a light edge."""
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(12)
    for (x, y, w, h), name in zip((masks.boxes() / _FINE).tolist(), names, strict=True):
        if w > 0 and h > 0:
            left = min(max(x + w / 2, draw.textlength(name, font) / 2 + 2), image.width - 2)
            draw.text((left, y + h / 2), name, _INK, font, anchor="mm", stroke_width=2, stroke_fill=_PAPER)


def _fit(draw: Any, text: str, font: Any, width: int, lines: int) -> list[str]:
    """The text in so many lines at most, cut where there is more."""
    words, found = text.split(), [""]
    for word in words:
        longer = f"{found[-1]} {word}".strip()
        if draw.textlength(longer, font) <= width or not found[-1]:
            found[-1] = longer
        elif len(found) < lines:
            found.append(word)
        else:
            found[-1] += "..."
            break
    for k, line in enumerate(found):
        while draw.textlength(line, font) > width and len(line) > 4:
            line = line.removesuffix("...")[:-1] + "..."
        found[k] = line
    return found


def _open(data: bytes) -> Image.Image:
    with Image.open(io.BytesIO(data)) as image:
        return ImageOps.exif_transpose(image).convert("RGB")
