"""Boundary IoU and boundary F as one would write them: masks decoded by pycocotools, filters and distances by scipy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco
from scipy import ndimage

Dense = NDArray[np.bool_]


def outlines(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> NDArray[np.int64]:
    """`(n, 6) int64` of aligned masks, the counts of `masks.BoundaryCounts`."""
    return np.array([_pair(_decode(x), _decode(y)) for x, y in zip(a, b, strict=True)], np.int64).reshape(-1, 6)


def _decode(rle: dict[str, Any]) -> Dense:
    return np.asarray(coco.decode(rle)).astype(np.bool_)


def _pair(a: Dense, b: Dense) -> list[int]:
    diagonal = math.hypot(*a.shape)
    depth, tolerance = max(1, round(0.02 * diagonal)), math.ceil(0.008 * diagonal)
    region_a, region_b = (m & ~ndimage.minimum_filter(m, 2 * depth + 1, mode="constant", cval=0) for m in (a, b))
    line_a, line_b = _contour(a), _contour(b)
    found = (region_a & region_b, region_a | region_b, line_a & _near(line_b, tolerance), line_a)
    return [int(part.sum()) for part in (*found, line_b & _near(line_a, tolerance), line_b)]


def _contour(mask: Dense) -> Dense:
    wide = np.pad(mask, ((0, 1), (0, 1)), mode="edge")
    return np.asarray((mask != wide[1:, :-1]) | (mask != wide[:-1, 1:]) | (mask != wide[1:, 1:]))


def _near(line: Dense, tolerance: int) -> Dense:
    return np.asarray(ndimage.distance_transform_edt(~line) <= tolerance) if line.any() else line
