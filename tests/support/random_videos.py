"""Small random videos: label maps with void, tubes that miss, spill over and overlap, triplets of equal scores."""

from __future__ import annotations

import numpy as np

from .dense_pvsg import Video

CATEGORIES = ("adult", "child", "floor")
PREDICATES = ("on", "beside")


def random_spans(random: np.random.Generator, frames: int) -> list[list[int]]:
    """Up to three spans, which may overlap, touch and reach past the end."""
    spans = []
    for _ in range(random.integers(0, 4)):
        first = int(random.integers(0, frames + 1))
        spans.append([first, first + int(random.integers(0, frames + 2))])
    return spans


def random_video(random: np.random.Generator, *, apart: bool = False) -> Video:
    """A video; with `apart` no two predicted tubes overlap."""
    frames, height, width = int(random.integers(1, 8)), int(random.integers(1, 4)), int(random.integers(2, 7))
    count = int(random.integers(1, 5))
    ids = sorted(random.choice(np.arange(1, 9), count, replace=False).tolist())
    base = random.choice([0, *ids], (1, height, width))
    labels = np.repeat(base, frames, axis=0)
    noise = random.random(labels.shape) < 0.25
    labels[noise] = random.choice([0, *ids], int(noise.sum()))
    objects = [(i, str(random.choice(CATEGORIES))) for i in ids]
    relations = [
        (*(int(i) for i in random.choice(ids, 2)), str(random.choice(PREDICATES)), random_spans(random, frames))
        for _ in range(random.integers(0, 5))
    ]
    tubes = []
    taken = np.zeros(labels.shape, bool)
    for _ in range(random.integers(0, 6)):
        target = int(random.choice(ids))
        masks = {}
        for f in range(frames):
            mask = (labels[f] == target) ^ (random.random((height, width)) < 0.15)
            if apart:
                mask &= ~taken[f]
                taken[f] |= mask
            if random.random() < 0.85:
                masks[f] = mask
        if random.random() < 0.3:
            masks[frames + int(random.integers(0, 3))] = random.random((height, width)) < 0.5
        category = dict(objects)[target] if random.random() < 0.8 else str(random.choice(CATEGORIES))
        tubes.append((category, masks))
    triplets = [
        (
            int(random.integers(len(tubes))), int(random.integers(len(tubes))), str(random.choice(PREDICATES)),
            float(random.integers(0, 4)) / 4, random_spans(random, frames),
        )
        for _ in range(random.integers(0, 13) if tubes else 0)
    ]  # fmt: skip
    return Video(labels, objects, relations, tubes, triplets)
