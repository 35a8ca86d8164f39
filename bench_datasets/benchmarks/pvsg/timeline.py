"""Relations over time as a picture: the truth's spans above, the best triplet's below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PIL import Image, ImageDraw

TRUTH = (0, 114, 178)
"""Blue, filled."""

HIT = (230, 159, 0)
"""Orange, filled: the spans of a triplet that hits."""

MISS = (120, 120, 120)
"""Grey, an outline: the spans of a triplet that does not."""

INK, RULE, GROUND = (40, 40, 40), (205, 205, 205), (255, 255, 255)
LEFT, WIDTH, RIGHT, LINE, TOP, BOTTOM = 300, 600, 110, 34, 34, 28  # pixels
TICKS = 5


class Bar(NamedTuple):
    """One relation.

    Attributes:
        name: subject, predicate, object.
        truth: spans `[first, last]`, both ends in.
        found: spans of the best triplet.
        hit: whether it hits.
        note: its rank and overlap.
    """

    name: str
    truth: Sequence[Sequence[int]]
    found: Sequence[Sequence[int]]
    hit: bool
    note: str


def draw(bars: Sequence[Bar], frames: int) -> Image.Image:
    """A line a relation, frames from left to right.

    Args:
        bars: the relations.
        frames: number of frames of the video.
    """
    height = TOP + LINE * max(len(bars), 1) + BOTTOM
    picture = Image.new("RGB", (LEFT + WIDTH + RIGHT, height), GROUND)
    pen = ImageDraw.Draw(picture)
    pen.rectangle((LEFT, 8, LEFT + 18, 16), fill=TRUTH)
    pen.text((LEFT + 24, 6), "ground truth", fill=INK)
    pen.rectangle((LEFT + 110, 8, LEFT + 128, 16), fill=HIT)
    pen.text((LEFT + 134, 6), "best triplet, hit", fill=INK)
    pen.rectangle((LEFT + 250, 8, LEFT + 268, 16), outline=MISS)
    pen.text((LEFT + 274, 6), "best triplet, no hit", fill=INK)
    last = max(frames - 1, 1)
    for tick in range(TICKS):
        x = LEFT + WIDTH * tick // (TICKS - 1)
        pen.line((x, TOP - 4, x, height - BOTTOM + 4), fill=RULE)
        pen.text((x - 8, height - BOTTOM + 8), str(last * tick // (TICKS - 1)), fill=INK)
    for i, bar in enumerate(bars):
        y = TOP + LINE * i
        pen.text((8, y + 8), _fit(pen, bar.name), fill=INK)
        for first, end in bar.truth:
            pen.rectangle((_x(first, frames), y + 4, _x(end + 1, frames) - 1, y + 13), fill=TRUTH)
        for first, end in bar.found:
            box = (_x(first, frames), y + 17, max(_x(end + 1, frames) - 1, _x(first, frames)), y + 26)
            pen.rectangle(box, fill=HIT if bar.hit else None, outline=HIT if bar.hit else MISS)
        pen.text((LEFT + WIDTH + 10, y + 8), bar.note, fill=INK)
    return picture


def _x(frame: int, frames: int) -> int:
    """The column where a frame begins; what lies outside the video stays at its edge."""
    return LEFT + WIDTH * min(max(frame, 0), frames) // max(frames, 1)


def _fit(pen: ImageDraw.ImageDraw, text: str) -> str:
    if pen.textlength(text) <= LEFT - 20:
        return text
    while text and pen.textlength(text + "...") > LEFT - 20:
        text = text[:-1]
    return text + "..."
