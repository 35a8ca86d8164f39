"""Masks done slowly and plainly: a character at a time, a pixel at a time. Nothing of the package is used here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco

Dense = NDArray[np.bool_]


def coco_encode(mask: Dense) -> dict[str, Any]:
    """By pycocotools, counts as text."""
    rle = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"size": [int(side) for side in rle["size"]], "counts": rle["counts"].decode("ascii")}


def dense_runs(mask: Dense) -> list[int]:
    """Run lengths, background first, counted pixel by pixel."""
    lengths, colour = [0], False
    for pixel in mask.ravel(order="F").tolist():
        if pixel != colour:
            lengths.append(0)
            colour = pixel
        lengths[-1] += 1
    return lengths


def write_varint(value: int, characters: int | None = None) -> bytes:
    """One number, in as few characters as will do or in more."""
    if characters is None:
        characters = next(n for n in range(1, 14) if -(1 << (5 * n - 1)) <= value < 1 << (5 * n - 1))
    digits = [(value >> (5 * k)) & 31 for k in range(characters)]
    return bytes(48 + digit + (32 if k < characters - 1 else 0) for k, digit in enumerate(digits))


def write_runs(runs: Sequence[int], characters: Sequence[int | None] | int | None = None) -> bytes:
    """Run lengths as a compressed string; from the fourth on, differences from the one two before."""
    if characters is None or isinstance(characters, int):
        characters = [characters] * len(runs)
    values = [run - runs[k - 2] if k > 2 else run for k, run in enumerate(runs)]
    return b"".join(write_varint(value, n) for value, n in zip(values, characters, strict=True))


def read_runs(height: int, width: int, text: bytes) -> list[int] | None:
    """A string's runs by the book, or `None` where it is not sound."""
    if height <= 0 or width <= 0 or height * width >= 2**31 or not text:
        return None
    runs: list[int] = []
    value = place = 0
    for character in text:
        digit = character - 48
        if not 0 <= digit <= 63 or place == 7:
            return None
        value |= (digit & 31) << (5 * place)
        place += 1
        if digit & 32:
            continue
        if digit & 16:
            value -= 1 << (5 * place)
        if len(runs) > 2:
            value += runs[-2]
        if value < 0:
            return None
        runs.append(value)
        value = place = 0
    return runs if place == 0 and sum(runs) == height * width else None


def fill(height: int, width: int, runs: Sequence[int]) -> Dense:
    """The pixels that runs stand for."""
    pixels: list[bool] = []
    for k, run in enumerate(runs):
        pixels += [k % 2 == 1] * run
    return np.array(pixels, bool).reshape(width, height).T


def random_mask(generator: np.random.Generator, height: int, width: int) -> Dense:
    """Empty, full, a point, a line, a blob or noise."""
    kind = generator.integers(7)
    mask = np.zeros((height, width), bool)
    y, x = int(generator.integers(height)), int(generator.integers(width))
    if kind == 1:
        mask[:] = True
    elif kind == 2:
        mask[y, x] = True
    elif kind == 3:
        mask[y] = True
    elif kind == 4:
        mask[:, x] = True
    elif kind == 5:
        mask[y : y + int(generator.integers(1, height + 1)), x : x + int(generator.integers(1, width + 1))] = True
    elif kind == 6:
        mask = generator.random((height, width)) < generator.random()
    return mask


def messy(generator: np.random.Generator, mask: Dense) -> dict[str, Any]:
    """The same mask as a legal string that no encoder writes: runs of length 0, varints longer than need be."""
    runs: list[int] = []
    for run in dense_runs(mask):
        if generator.random() < 0.3:
            part = int(generator.integers(0, run + 1))
            runs += [part, 0, run - part]
        else:
            runs.append(run)
    runs = [0, 0] * int(generator.integers(0, 3)) + runs + [0] * int(generator.integers(0, 4))
    values = [run - runs[k - 2] if k > 2 else run for k, run in enumerate(runs)]
    least = [len(write_varint(value)) for value in values]
    characters = [int(generator.integers(n, 8)) if generator.random() < 0.5 else n for n in least]
    return {"size": list(mask.shape), "counts": write_runs(runs, characters).decode("ascii")}


def greedy_nms(masks: Sequence[Dense], threshold: float = 0.5) -> list[bool]:
    """Largest first, of equal areas the later one; dropped above the threshold with one that is kept."""
    order = sorted(range(len(masks)), key=lambda i: (-int(masks[i].sum()), -i))
    kept: list[int] = []
    for i in order:
        if all(dense_iou(masks[i], masks[j]) <= threshold for j in kept):
            kept.append(i)
    return [i in kept for i in range(len(masks))]


def dense_iou(a: Dense, b: Dense) -> float:
    """IoU by pixels; 0 where both are empty."""
    union = int((a | b).sum())
    return int((a & b).sum()) / union if union else 0.0
