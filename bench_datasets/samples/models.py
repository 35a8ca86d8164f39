"""Answers of three imaginary models to the PBench sample: its truth, spoilt in the ways that real models go wrong."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_datasets.data.sample_cache import built
from bench_datasets.faults import BenchError
from bench_datasets.masks import encode_dense
from bench_datasets.samples.pbench import Row, Scene, paint, sample_rows

Mask = NDArray[np.bool_]


class Answer(NamedTuple):
    """One predicted instance: its mask `(height, width) bool` and the model's trust in it, 0 to 1."""

    mask: Mask
    score: float


def spoil(mask: Mask, edge: int = 0, dx: int = 0, dy: int = 0) -> Mask:
    """A mask of the same size, its edge moved outwards (inwards, if negative) and then shifted, all in pixels."""
    from scipy import ndimage  # takes a fifth of a second, and samples are drawn once

    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    result = np.zeros_like(mask)
    if not rows.size:
        return result
    pad = abs(edge) + max(abs(dx), abs(dy)) + 1
    window = np.pad(mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1], pad)
    if edge > 0:
        window = ndimage.binary_dilation(window, iterations=edge)
    elif edge < 0:
        thinner = ndimage.binary_erosion(window, iterations=-edge)
        window = thinner if thinner.any() else window
    top, left = rows[0] - pad + dy, columns[0] - pad + dx
    y0, x0 = max(top, 0), max(left, 0)
    y1, x1 = min(top + window.shape[0], mask.shape[0]), min(left + window.shape[1], mask.shape[1])
    result[y0:y1, x0:x1] = window[y0 - top : y1 - top, x0 - left : x1 - left]
    return result


def _reach(mask: Mask, share: float) -> int:
    """That share of a mask's extent (the root of its area), at least 1 pixel."""
    return max(1, round(share * math.sqrt(np.count_nonzero(mask))))


def _others(row: Row, scene: Scene) -> list[int]:
    """Other objects of the scene: of the same kind if there are any, else all."""
    rest = [label for label in scene.masks if label not in row.things]
    kinds = {scene.names[thing - 1].split("/")[0] for thing in row.things}
    return [label for label in rest if scene.names[label - 1].split("/")[0] in kinds] or rest


def careful(row: Row, scene: Scene, rng: random.Random) -> Iterator[Answer]:
    """Edges within a pixel, few misses, no repeats; says nothing where there is nothing."""
    things = list(row.things)
    if row.level in ("level_3", "level_4") and rng.random() < 0.12:
        things = _others(row, scene)[:1]
    for thing in things:
        if len(things) > 3 and rng.random() < 0.05:
            continue
        mask = scene.labels == thing
        edge, dx, dy = (int(rng.random() * 3) - 1 for _ in range(3))
        if np.count_nonzero(mask) < 400:
            edge = max(edge, 0)
        yield Answer(spoil(mask, edge, dx if edge else 0, dy if edge else 0), 0.8 + 0.19 * rng.random())
    extra = _others(row, scene)[-1:]
    if things and rng.random() < 0.12:
        yield from (Answer(spoil(scene.labels == thing, 1), 0.3 + 0.2 * rng.random()) for thing in extra)


def hasty(row: Row, scene: Scene, rng: random.Random) -> Iterator[Answer]:
    """Answers one by one and strays the longer it goes on: loose edges, merged neighbours, late in a crowd repeats."""
    things = list(row.things) or _others(row, scene)[: 1 + int(rng.random() * 2)]
    total = max(len(things), 12)
    for k, thing in enumerate(things):
        mask = scene.labels == thing
        if rng.random() < 0.05 and k + 1 < len(things):
            mask = mask | (scene.labels == things[k + 1])
        stray = _reach(mask, 0.02 + 0.34 * k / total)
        dx, dy = (round(stray * (2 * rng.random() - 1)) for _ in range(2))
        mask = spoil(mask, _reach(mask, 0.02 + 0.05 * rng.random()), dx, dy)
        yield Answer(mask, 1.0)
        late = k / total > 0.65
        if rng.random() < (0.5 if late else 0.04 if len(things) > 50 else 0.15):
            again = scene.labels == things[int(rng.random() * (k + 1))] if late else mask
            yield Answer(spoil(again, 1, 1, -1), 1.0)


def crowd_shy(row: Row, scene: Scene, rng: random.Random) -> Iterator[Answer]:
    """Sees coarsely, gives up before a crowd, and picks a wrong one where layout or relations tell things apart."""
    if len(row.things) > 50:
        return
    things = list(row.things)
    others = _others(row, scene)
    if row.level in ("level_3", "level_4") and rng.random() < 0.6:
        things = [others[int(rng.random() * len(others))]]
    if not things and rng.random() < 0.5:
        things = others[:1]
    for thing in things:
        if len(things) > 1 and rng.random() < 0.15:
            continue
        mask = scene.labels == thing
        edge = _reach(mask, 0.05) * (1 if rng.random() < 0.7 else -1)
        dx, dy = (int(rng.random() * 5) - 2 for _ in range(2))
        yield Answer(spoil(mask, edge, dx, dy)[::2, ::2], 0.4 + 0.5 * rng.random())


_MODELS: Mapping[str, Callable[[Row, Scene, random.Random], Iterator[Answer]]] = {
    "careful": careful,
    "hasty": hasty,
    "crowd_shy": crowd_shy,
}

SAMPLE_MODELS: Mapping[str, str] = {
    "careful": "tight edges, few misses, silent where there is nothing",
    "hasty": "loose edges, repeats and merged neighbours, worse the longer it goes on (in Falcon Perception's format)",
    "crowd_shy": "half resolution, wrong instances of layout and relations, no answer before a crowd",
}
"""The sample's models: what each is like, by name."""


def _plain(row: Row, answers: list[Answer]) -> dict[str, object]:
    return {
        "id": row.id,
        "masks": [encode_dense(answer.mask) for answer in answers],
        "scores": [round(answer.score, 4) for answer in answers],
    }


def _falcon(row: Row, answers: list[Answer]) -> dict[str, object]:
    """Centres and sizes as fractions of the image, then the mask; no scores."""
    instances = []
    for mask, _ in answers:
        height, width = mask.shape
        ys, xs = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        top, bottom, left, right = (int(ys[0]), int(ys[-1]) + 1, int(xs[0]), int(xs[-1]) + 1)
        instances.append(
            {
                "xy": {"x": round((left + right) / 2 / width, 4), "y": round((top + bottom) / 2 / height, 4)},
                "hw": {"h": round((bottom - top) / height, 4), "w": round((right - left) / width, 4)},
                "mask_rle": encode_dense(mask),
            }
        )
    return {"id": row.id, "instances": instances}


def write_predictions(model: str, file: Path) -> None:
    """Write a model's answers to all rows of the sample, one line of JSON each."""
    line = _falcon if model == "hasty" else _plain
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="\n") as stream:
        for row in sample_rows():
            answers = [
                answer
                for answer in _MODELS[model](row, paint(row.scene), random.Random(f"{model}/{row.id}"))
                if answer.mask.any()
            ]
            stream.write(json.dumps(line(row, answers)) + "\n")


def pbench_sample_predictions(model: str) -> str:
    """File of one model's answers to the built-in PBench sample: JSON Lines, made on first use.

    Args:
        model: one of `SAMPLE_MODELS`. "hasty" is in Falcon Perception's own format (`instances` in the order they were
            generated), the others are `{"id", "masks", "scores"}`; "crowd_shy" has masks of half the image's size.

    Raises:
        BenchError: there is no model of that name.

    Example:
        >>> pbench_sample_predictions("careful").endswith("careful.jsonl")
        True
    """
    if model not in _MODELS:
        raise BenchError(f"model: expected one of {', '.join(_MODELS)}, got {model!r}")
    name = f"{model}.jsonl"
    return str(built("predictions", [name], lambda folder: write_predictions(model, folder / name)) / name)
