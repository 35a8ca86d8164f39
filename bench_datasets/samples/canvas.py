"""A small painter that knows, for every pixel, which thing is seen there.

Shapes are signed distances (negative inside), so one shape gives both a smooth edge in the picture and an exact mask.
Things are painted back to front: what is painted later hides what was painted before, in the picture and in the map.
The map is made by additions, products and square roots alone, so that it is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Floats = NDArray[np.float64]
Point = tuple[float, float]

_TIE = 1e-6  # pixels; a centre this near to an edge is outside, however the last digit falls


@dataclass(frozen=True)
class Shape:
    """A region of the plane, in pixels.

    Attributes:
        bounds: left, top, right, bottom of a box that holds the region.
        distance: signed distance to the edge at points x, y (arrays that broadcast), negative inside.
    """

    bounds: tuple[float, float, float, float]
    distance: Callable[[Floats, Floats], Floats]

    def __or__(self, other: Shape) -> Shape:
        """Union of two masks."""
        (a, b, c, d), (e, f, g, h) = self.bounds, other.bounds
        bounds = (min(a, e), min(b, f), max(c, g), max(d, h))
        return Shape(bounds, lambda x, y: np.minimum(self.distance(x, y), other.distance(x, y)))

    def __and__(self, other: Shape) -> Shape:
        """Intersection of two masks."""
        (a, b, c, d), (e, f, g, h) = self.bounds, other.bounds
        bounds = (max(a, e), max(b, f), min(c, g), min(d, h))
        return Shape(bounds, lambda x, y: np.maximum(self.distance(x, y), other.distance(x, y)))

    def __sub__(self, other: Shape) -> Shape:
        """Pixels of this mask that are not in the other."""
        return Shape(self.bounds, lambda x, y: np.maximum(self.distance(x, y), -other.distance(x, y)))


def _turned(x: Floats, y: Floats, cx: float, cy: float, angle: float) -> tuple[Floats, Floats]:
    cos, sin = math.cos(angle), math.sin(angle)
    return (x - cx) * cos + (y - cy) * sin, (y - cy) * cos - (x - cx) * sin


def ellipse(cx: float, cy: float, rx: float, ry: float, angle: float = 0.0) -> Shape:
    """An ellipse about (cx, cy) of radii rx and ry, turned clockwise by `angle` (radians)."""
    reach = max(rx, ry)

    def distance(x: Floats, y: Floats) -> Floats:
        u, v = _turned(x, y, cx, cy, angle)
        near = np.sqrt((u / rx) ** 2 + (v / ry) ** 2)
        slope = np.sqrt((u / rx**2) ** 2 + (v / ry**2) ** 2)
        result: Floats = near * (near - 1) / np.maximum(slope, 1e-9)
        return result

    return Shape((cx - reach, cy - reach, cx + reach, cy + reach), distance)


def box(cx: float, cy: float, width: float, height: float, radius: float = 0.0, angle: float = 0.0) -> Shape:
    """A rectangle about (cx, cy) with rounded corners, turned clockwise by `angle` (radians)."""
    reach_x, reach_y = (width / 2, height / 2) if angle == 0 else (max(width, height) * 0.71, max(width, height) * 0.71)

    def distance(x: Floats, y: Floats) -> Floats:
        u, v = _turned(x, y, cx, cy, angle)
        u, v = np.abs(u) - width / 2 + radius, np.abs(v) - height / 2 + radius
        outside = np.sqrt(np.maximum(u, 0) ** 2 + np.maximum(v, 0) ** 2)
        result: Floats = outside + np.minimum(np.maximum(u, v), 0) - radius
        return result

    return Shape((cx - reach_x, cy - reach_y, cx + reach_x, cy + reach_y), distance)


def limb(start: Point, end: Point, radius: float, end_radius: float | None = None) -> Shape:
    """A rounded stroke from `start` to `end`, whose radius goes over to `end_radius`."""
    (ax, ay), (bx, by) = start, end
    last = radius if end_radius is None else end_radius
    length = max((bx - ax) ** 2 + (by - ay) ** 2, 1e-9)
    reach = max(radius, last)

    def distance(x: Floats, y: Floats) -> Floats:
        along = np.clip(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length, 0, 1)
        gap = np.sqrt((x - ax - along * (bx - ax)) ** 2 + (y - ay - along * (by - ay)) ** 2)
        return gap - (radius + along * (last - radius))

    return Shape((min(ax, bx) - reach, min(ay, by) - reach, max(ax, bx) + reach, max(ay, by) + reach), distance)


def polygon(points: Sequence[Point]) -> Shape:
    """The region within a closed line of at least three points (even-odd)."""
    xs, ys = [p[0] for p in points], [p[1] for p in points]

    def distance(x: Floats, y: Floats) -> Floats:
        nearest = np.full(np.broadcast(x, y).shape, np.inf)
        inside = np.zeros(nearest.shape, dtype=bool)
        for (ax, ay), (bx, by) in zip(points, [*points[1:], points[0]], strict=True):
            ex, ey = bx - ax, by - ay
            along = np.clip(((x - ax) * ex + (y - ay) * ey) / max(ex * ex + ey * ey, 1e-9), 0, 1)
            nearest = np.minimum(nearest, (x - ax - along * ex) ** 2 + (y - ay - along * ey) ** 2)
            if ay != by:
                inside ^= ((ay <= y) != (by <= y)) & (x < ax + (y - ay) * ex / ey)
        result: Floats = np.where(inside, -1.0, 1.0) * np.sqrt(nearest)
        return result

    return Shape((min(xs), min(ys), max(xs), max(ys)), distance)


def rgb(colour: str) -> Floats:
    """`#rrggbb` as three values 0 to 255."""
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], dtype=np.float64)


class Canvas:
    """A picture under way and its map of things.

    Attributes:
        pixels: `(height, width, 3) float64`, 0 to 255.
        labels: `(height, width) int32`, the thing that is seen at each pixel; 0 is scenery.
        names: the things' names, `kind/which`; thing k is `names[k - 1]`.
    """

    def __init__(self, width: int, height: int) -> None:
        """A black canvas without things."""
        self.pixels = np.zeros((height, width, 3))
        self.labels = np.zeros((height, width), dtype=np.int32)
        self.names: list[str] = []

    def thing(self, name: str) -> int:
        """A new thing's label."""
        self.names.append(name)
        return len(self.names)

    def fill(
        self,
        shape: Shape,
        colour: str,
        thing: int | None = 0,
        *,
        light: float = 0.14,
        rim: float = 0.16,
        soft: float = 1.0,
        opacity: float = 1.0,
    ) -> None:
        """Paint a shape, lit from the upper left.

        Args:
            shape: what to paint; parts outside the canvas are cut off.
            colour: `#rrggbb`.
            thing: the thing that it belongs to, 0 for scenery; None leaves the map alone (shadows, highlights).
            light: how much brighter the lit side and darker the other side is, as a fraction.
            rim: how much darker the edge is, as a fraction.
            soft: width of the edge in pixels.
            opacity: 0 to 1.
        """
        height, width = self.labels.shape
        left, top, right, bottom = shape.bounds
        x0, y0 = max(math.floor(left - soft - 1), 0), max(math.floor(top - soft - 1), 0)
        x1, y1 = min(math.ceil(right + soft + 1), width), min(math.ceil(bottom + soft + 1), height)
        if x0 >= x1 or y0 >= y1:
            return
        x: Floats = np.arange(x0, x1, dtype=np.float64)[None, :] + 0.5
        y: Floats = np.arange(y0, y1, dtype=np.float64)[:, None] + 0.5
        distance = shape.distance(x, y)
        alpha = np.clip(0.5 - distance / soft, 0, 1)[..., None] * opacity
        across = 0.4 * (x - left) / max(right - left, 1) + 0.6 * (y - top) / max(bottom - top, 1)
        shade = (1 + light * (1 - 2 * across)) * (1 - rim * np.exp(np.minimum(distance, 0) / 2.5))
        window = self.pixels[y0:y1, x0:x1]
        window += alpha * (np.clip(rgb(colour) * shade[..., None], 0, 255) - window)
        if thing is not None:
            self.labels[y0:y1, x0:x1][distance < -_TIE] = thing

    def shadow(self, shape: Shape, strength: float = 0.3, soft: float = 6.0) -> None:
        """Darken softly, for what lies under or behind a thing."""
        self.fill(shape, "#101828", None, light=0, rim=0, soft=soft, opacity=strength)

    def gleam(self, shape: Shape, strength: float = 0.4, soft: float = 4.0) -> None:
        """Lighten softly, for what shines on a thing."""
        self.fill(shape, "#ffffff", None, light=0, rim=0, soft=soft, opacity=strength)

    def gradient(self, *stops: tuple[float, str]) -> None:
        """Fill all with colours from top (0) to bottom (1)."""
        at = (np.arange(self.pixels.shape[0]) + 0.5) / self.pixels.shape[0]
        values = np.array([rgb(colour) for _, colour in stops])
        for channel in range(3):
            self.pixels[..., channel] = np.interp(at, [stop for stop, _ in stops], values[:, channel])[:, None]

    def text(self, words: str, cx: float, cy: float, size: float, colour: str) -> None:
        """Letter something that is there already, about (cx, cy); the map stays as it is."""
        height, width = self.labels.shape
        layer = Image.new("L", (width, height))
        ImageDraw.Draw(layer).text((cx, cy), words, fill=255, font=ImageFont.load_default(size=size), anchor="mm")
        alpha = np.asarray(layer, dtype=np.float64)[..., None] / 255
        self.pixels += alpha * (rgb(colour) - self.pixels)

    def picture(self) -> Image.Image:
        """The picture as it is now."""
        return Image.fromarray(np.rint(np.clip(self.pixels, 0, 255)).astype(np.uint8))

    def png(self) -> bytes:
        """The picture as a PNG file."""
        stream = BytesIO()
        self.picture().save(stream, "PNG")
        return stream.getvalue()


@dataclass(frozen=True)
class Pen:
    """Paints one thing in its own units: x to where it faces, y down, turned and placed on a canvas.

    Attributes:
        canvas: where to paint.
        thing: the thing's label on it.
        x: where the thing's origin lies, pixels.
        y: where the thing's origin lies, pixels.
        scale: pixels a unit.
        flip: -1 to face left.
        angle: clockwise turn, radians.
    """

    canvas: Canvas
    thing: int
    x: float
    y: float
    scale: float = 1.0
    flip: int = 1
    angle: float = 0.0

    def at(self, x: float, y: float) -> Point:
        """A point of the thing, in pixels."""
        u, v = x * self.flip * self.scale, y * self.scale
        if self.angle == 0:
            return self.x + u, self.y + v
        cos, sin = math.cos(self.angle), math.sin(self.angle)
        return self.x + u * cos - v * sin, self.y + u * sin + v * cos

    def ellipse(self, x: float, y: float, rx: float, ry: float, angle: float = 0.0) -> Shape:
        """An ellipse in the thing's units."""
        return ellipse(*self.at(x, y), rx * self.scale, ry * self.scale, self.angle + angle * self.flip)

    def box(self, x: float, y: float, width: float, height: float, radius: float = 0.0, angle: float = 0.0) -> Shape:
        """A rounded rectangle in the thing's units."""
        turn, k = self.angle + angle * self.flip, self.scale
        return box(*self.at(x, y), width * k, height * k, radius * k, turn)

    def limb(self, start: Point, end: Point, radius: float, end_radius: float | None = None) -> Shape:
        """A rounded stroke in the thing's units."""
        last = radius if end_radius is None else end_radius
        return limb(self.at(*start), self.at(*end), radius * self.scale, last * self.scale)

    def polygon(self, *points: Point) -> Shape:
        """A polygon in the thing's units."""
        return polygon([self.at(*point) for point in points])

    def fill(self, shape: Shape, colour: str, *, light: float = 0.14, rim: float = 0.16) -> None:
        """Paint a part of the thing."""
        self.canvas.fill(shape, colour, self.thing, light=light, rim=rim)
