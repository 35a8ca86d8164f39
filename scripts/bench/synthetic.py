"""Seeded synthetic masks: blobs of three kinds of edge, drawn in their own window and written as COCO RLE.

The RLE is compressed by pycocotools, so that no mask here has gone through the code that is measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco

KINDS = ("smooth", "ragged", "speckled")
"""Edges: a model's upsampled logits; the same with pixel noise along the edge; noise inside and out, as thresholded
low-quality logits give."""

ASPECT = 4 / 3
WAVES = 5


@dataclass(frozen=True)
class Blob:
    """A blob: middle and mean radius in pixels, and the waves `(WAVES, 2)` (amplitude, phase) of its outline."""

    x: float
    y: float
    radius: float
    waves: tuple[tuple[float, float], ...]
    seed: int

    def moved(self, dx: float, dy: float, scale: float = 1.0) -> Blob:
        """The blob somewhere else and larger or smaller, of the same outline."""
        return replace(self, x=self.x + dx, y=self.y + dy, radius=self.radius * scale)


def image_size(megapixels: float) -> tuple[int, int]:
    """Height and width of a 4:3 image."""
    height = round(math.sqrt(megapixels * 1e6 / ASPECT))
    return height, round(height * ASPECT)


def blobs(rng: np.random.Generator, n: int, size: tuple[int, int], radius: tuple[float, float]) -> list[Blob]:
    """`n` blobs anywhere in an image, their radii log-uniform between two bounds in pixels."""
    height, width = size
    result = []
    for _ in range(n):
        r = math.exp(rng.uniform(math.log(radius[0]), math.log(radius[1])))
        waves = [(float(rng.uniform(0, 0.25) / (k + 1)), float(rng.uniform(0, 2 * math.pi))) for k in range(WAVES)]
        x, y, seed = rng.uniform(0, width), rng.uniform(0, height), int(rng.integers(2**31))
        result.append(Blob(float(x), float(y), r, tuple(waves), seed))
    return result


def sparse(rng: np.random.Generator, n: int, size: tuple[int, int], fill: float = 0.35) -> list[Blob]:
    """`n` blobs on a jittered grid that hardly touch; together they cover about `fill` of the image."""
    height, width = size
    columns = max(1, math.ceil(math.sqrt(n * width / height)))
    rows = math.ceil(n / columns)
    radius = math.sqrt(fill * height * width / (n * math.pi))
    cells = rng.permutation(rows * columns)[:n]
    spread = blobs(rng, n, size, (radius * 0.7, radius * 1.2))
    return [
        replace(
            blob,
            x=(cell % columns + 0.5 + rng.uniform(-0.1, 0.1)) * width / columns,
            y=(cell // columns + 0.5 + rng.uniform(-0.1, 0.1)) * height / rows,
        )
        for blob, cell in zip(spread, cells.tolist(), strict=True)
    ]


def overlapping(rng: np.random.Generator, n: int, size: tuple[int, int]) -> list[Blob]:
    """`n` large blobs, each of about 3 to 15 % of the image, anywhere."""
    area = size[0] * size[1]
    return blobs(rng, n, size, (math.sqrt(0.03 * area / math.pi), math.sqrt(0.15 * area / math.pi)))


def draw(blob: Blob, size: tuple[int, int], kind: str) -> dict[str, Any]:
    """The blob as a COCO RLE, `{"size": [height, width], "counts": bytes}`; cut at the image's edge."""
    height, width = size
    reach = blob.radius * (1 + sum(a for a, _ in blob.waves)) + 2
    x0, x1 = max(0, math.floor(blob.x - reach)), min(width, math.ceil(blob.x + reach))
    y0, y1 = max(0, math.floor(blob.y - reach)), min(height, math.ceil(blob.y + reach))
    if x1 <= x0 or y1 <= y0:
        return _rle(np.zeros(0, np.int64), np.zeros(0, np.int64), size)
    dx = np.arange(x0, x1, dtype=np.float32)[:, None] - np.float32(blob.x)
    dy = np.arange(y0, y1, dtype=np.float32)[None, :] - np.float32(blob.y)
    angle = np.arctan2(dy, dx)
    # The outline from a table: a sine a pixel a wave would be most of the time.
    table = np.linspace(-math.pi, math.pi, 1024, dtype=np.float32)
    outline = np.ones_like(table)
    for k, (amplitude, phase) in enumerate(blob.waves):
        outline += np.float32(amplitude) * np.cos((k + 2) * table + np.float32(phase))
    edge = outline[((angle + math.pi) * (1023 / (2 * math.pi))).astype(np.int32)]
    depth = np.float32(blob.radius) * edge - np.hypot(dx, dy)
    if kind == "ragged":
        depth += np.random.default_rng(blob.seed).uniform(-2.0, 2.0, depth.shape).astype(np.float32)
    inside = depth > 0
    if kind == "speckled":
        inside ^= (np.random.default_rng(blob.seed).random(depth.shape, np.float32) < 0.06) & (depth > -0.15 * reach)
    columns = np.zeros((x1 - x0, y1 - y0 + 2), np.int8)
    columns[:, 1:-1] = inside
    step = np.diff(columns, axis=1)
    starts, ends = np.argwhere(step == 1), np.argwhere(step == -1)
    return _rle((starts[:, 0] + x0) * height + y0 + starts[:, 1], (ends[:, 0] + x0) * height + y0 + ends[:, 1], size)


def draw_all(shapes: Sequence[Blob], size: tuple[int, int], kind: str) -> list[dict[str, Any]]:
    """Each blob as a COCO RLE; see `draw`."""
    return [draw(blob, size, kind) for blob in shapes]


def predicted(
    rng: np.random.Generator, shapes: Sequence[Blob], *, missed: float = 0.05, again: float = 0.05
) -> list[Blob]:
    """What a fair model makes of blobs: a bit off each, some missed, some given twice, in another order."""
    result: list[Blob] = []
    for blob in shapes:
        if rng.random() < missed:
            continue
        times = 2 if rng.random() < again else 1
        for _ in range(times):
            off = blob.radius * 0.15
            moved = blob.moved(rng.uniform(-off, off), rng.uniform(-off, off), float(rng.uniform(0.85, 1.15)))
            result.append(replace(moved, seed=int(rng.integers(2**31))))
    return [result[i] for i in rng.permutation(len(result)).tolist()]


def _rle(starts: NDArray[np.int64], ends: NDArray[np.int64], size: tuple[int, int]) -> dict[str, Any]:
    """Foreground intervals in column-major pixels, in order, as a compressed RLE."""
    height, width = size
    if len(starts):
        apart = np.flatnonzero(starts[1:] != ends[:-1])  # one that ends at the bottom may go on at the next top
        starts, ends = starts[np.concatenate([[0], apart + 1])], ends[np.concatenate([apart, [len(ends) - 1]])]
    bounds = np.stack([starts, ends], axis=1).ravel()
    runs = np.diff(np.concatenate([[0], bounds, [height * width]]))
    if len(runs) > 1 and runs[-1] == 0:
        runs = runs[:-1]
    result: dict[str, Any] = coco.frPyObjects({"size": [height, width], "counts": runs.tolist()}, height, width)
    return result
