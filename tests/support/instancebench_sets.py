"""Expression sets of dense masks, written the way files, datasets and `evaluate` hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray
from pycocotools import mask as coco

import bench_datasets as bd
from bench_datasets.benchmarks.instancebench.truth import truth_features
from bench_datasets.benchmarks.instancebench.vocabulary import FAMILY_OF, OPERATIONS, track_of

Dense = NDArray[np.bool_]
Answers = Mapping[str, Dense | None]
"""Predicted masks by expression; None is an answer without a mask."""


@dataclass
class Thing:
    """A candidate."""

    name: str
    mask: Dense
    crowd: bool = False


@dataclass
class Ask:
    """An expression."""

    name: str
    role: str
    operation: str
    text: str = "the left one"
    tags: tuple[str, ...] = ()
    donor: Dense | None = None

    @property
    def track(self) -> str:
        return track_of(self.role, self.operation)


@dataclass
class Tces:
    """An image, its candidates, the position of the target, and what is asked for."""

    key: str
    things: list[Thing]
    asks: list[Ask]
    target: int = 0
    source: str = "coco"
    category: str = "thing"
    faults: list[str] = field(default_factory=list)


def line(*spans: tuple[int, int], width: int = 100) -> Dense:
    """A mask one pixel high: its foreground by first and last (exclusive) pixel."""
    mask = np.zeros((1, width), bool)
    for first, last in spans:
        mask[0, first:last] = True
    return mask


def simple(key: str, **changes: Any) -> Tces:
    """A set of two candidates, [0, 50) (the target) and [50, 100), and the two core expressions."""
    things = [Thing("a", line((0, 50))), Thing("b", line((50, 100)))]
    asks = [Ask(f"{key}-0", "minimal", "ordinal"), Ask(f"{key}-1", "variant", "extremal")]
    return Tces(**{"key": key, "things": things, "asks": asks, **changes})


def encode(mask: Dense | None) -> dict[str, Any] | None:
    if mask is None:
        return None
    rle = coco.encode(np.asfortranarray(np.asarray(mask).astype(np.uint8)))
    return {"size": [int(side) for side in rle["size"]], "counts": rle["counts"].decode("ascii")}


def row_of(tces: Tces) -> dict[str, Any]:
    """The truth row."""
    height, width = tces.things[0].mask.shape if tces.things else (1, 100)
    return {
        "key": tces.key,
        "image_id": f"image {tces.key}",
        "source": tces.source,
        "category": tces.category,
        "height": height,
        "width": width,
        "target": tces.target,
        "candidates": [{"instance_id": t.name, "mask": encode(t.mask), "iscrowd": t.crowd} for t in tces.things],
        "expressions": [
            {
                "expression_id": ask.name, "text": ask.text, "role": ask.role, "operation": ask.operation,
                "family": FAMILY_OF[ask.operation], "track": ask.track, "tags": list(ask.tags),
                "donor_mask": encode(ask.donor),
            }
            for ask in tces.asks
        ],
        "faults": tces.faults,
    }  # fmt: skip


def truth_of(sets: Sequence[Tces]) -> Dataset:
    return Dataset.from_list([row_of(tces) for tces in sets], features=truth_features(False))


def predictions_of(given: Mapping[tuple[str, str], Answers], folder: Path) -> Dataset:
    """Answers by run and condition, through a file of JSON Lines."""
    lines = [
        {"expression_id": name, "mask": encode(mask), "run": run, "condition": condition}
        for (run, condition), answers in given.items()
        for name, mask in answers.items()
    ]
    return read_lines(lines, folder)


def read_lines(lines: Sequence[Mapping[str, Any]], folder: Path) -> Dataset:
    path = folder / "predictions.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in lines))
    return bd.read_predictions("instancebench", path)


def batch_of(sets: Sequence[Tces], answers: Answers, condition: str = "original", run: str = "0") -> dict[str, Any]:
    """Columns by name, truth with the predictions beside it, as `Dataset.map` hands them over."""
    rows = [row_of(tces) for tces in sets]
    return {
        **{name: [row[name] for row in rows] for name in rows[0]},
        "pred_masks": [[encode(answers.get(ask.name)) for ask in tces.asks] for tces in sets],
        "pred_answered": [[ask.name in answers for ask in tces.asks] for tces in sets],
        "pred_run": [run] * len(sets),
        "pred_condition": [condition] * len(sets),
    }


def values(result: bd.Result) -> dict[str, float]:
    return {key: metric.value for key, metric in result.metrics.items()}


def same(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
    """Equal to the last bit, NaN equal to NaN."""
    return {key: repr(float(value)) for key, value in a.items()} == {k: repr(float(v)) for k, v in b.items()}


def random_sets(rng: np.random.Generator, most: int = 6) -> tuple[list[Tces], dict[str, Answers]]:
    """Sets of rectangles on small images with everything that may be there, and answers by condition."""
    sets, answers = [], {"original": {}, "category_only": {}, "text_swap": {}, "deliberation": {}}
    for i in range(int(rng.integers(1, most + 1))):
        size = int(rng.integers(3, 7)), int(rng.integers(3, 7))
        things = [Thing(f"t{k}", box(rng, size), bool(rng.random() < 0.15)) for k in range(int(rng.integers(1, 5)))]
        if rng.random() < 0.2 and len(things) > 1:
            things[-1].mask = things[0].mask
        roles = ["minimal", "variant", *["paraphrase"] * int(rng.integers(0, 3)), *["extra"] * int(rng.integers(0, 3))]
        asks = [
            Ask(
                f"s{i}-{k}", role, OPERATIONS[int(rng.integers(9))], " ".join(["word"] * int(rng.integers(1, 5))),
                ("spatial_relation",) if rng.random() < 0.5 else (), box(rng, size) if rng.random() < 0.4 else None,
            )
            for k, role in enumerate(rng.permutation(roles).tolist())
        ]  # fmt: skip
        target = int(rng.integers(len(things)))
        source, category = ("coco", "openimages")[int(rng.integers(2))], "ab"[int(rng.integers(2))]
        sets.append(Tces(f"s{i}", things, asks, target, source, category))
        for condition, found in answers.items():
            for ask in asks:
                if condition == "original" or rng.random() < 0.4:
                    found[ask.name] = answer(rng, things, target, size)
    return sets, answers


def box(rng: np.random.Generator, size: tuple[int, int]) -> Dense:
    mask = np.zeros(size, bool)
    top, left = (int(rng.integers(side)) for side in size)
    mask[top : int(rng.integers(top + 1, size[0] + 1)), left : int(rng.integers(left + 1, size[1] + 1))] = True
    return mask


def answer(rng: np.random.Generator, things: list[Thing], target: int, size: tuple[int, int]) -> Dense | None:
    kind = rng.random()
    if kind < 0.08:
        return None
    if kind < 0.15:
        return np.zeros(size, bool)
    if kind < 0.5:
        return things[target].mask
    if kind < 0.7:
        return things[int(rng.integers(len(things)))].mask | (box(rng, size) if rng.random() < 0.4 else False)
    return box(rng, size)
