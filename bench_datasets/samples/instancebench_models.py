"""Answers of three imaginary models to the InstanceBench sample: its truth, spoilt as real models would spoil it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_datasets.data.sample_cache import built
from bench_datasets.faults import BenchError
from bench_datasets.masks import encode_dense
from bench_datasets.samples.instancebench import Sample, sample_sets
from bench_datasets.samples.models import spoil

Mask = NDArray[np.bool_]

RUNS: Mapping[str, tuple[str, ...]] = {"careful": ("0", "1", "2"), "hasty": ("0",), "crowd_shy": ("0",)}
"""The runs of each model."""

CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "careful": ("original",),
    "hasty": ("original", "category_only", "text_swap"),
    "crowd_shy": ("original",),
}
"""The conditions that each model was asked under."""

_RELATIONS = ("spatial_relation", "single_anchor_relation", "multi_anchor_relation", "nested_grounding")


def _near(sample: Sample) -> int:
    """The candidate whose middle is nearest to the target's; the target where there is no other."""
    labels = sample.scene.labels

    def middle(thing: int) -> NDArray[np.float64]:
        place: NDArray[np.float64] = np.argwhere(labels == thing).mean(axis=0)
        return place

    at = middle(sample.target)
    others = [thing for thing in sample.things if thing != sample.target]
    return min(others, key=lambda thing: float(np.sum((middle(thing) - at) ** 2)), default=sample.target)


def _reach(mask: Mask, share: float) -> int:
    """That share of a mask's extent (the root of its area), at least 1 pixel."""
    return max(1, round(share * float(np.sqrt(np.count_nonzero(mask)))))


def careful(sample: Sample, thing: int, operation: str, rng: random.Random) -> Mask | None:
    """Edges within a pixel or two; now and then another instance, where the words need two steps."""
    slips = 0.35 if operation in ("nested_grounding", "multi_anchor_relation") else 0.04
    seen = _near(sample) if rng.random() < slips else thing
    mask = sample.scene.labels == seen
    edge = (-1, 0, 1)[int(rng.random() * 3)]
    return spoil(mask, edge, int(rng.random() * 3) - 1, 0)


def hasty(sample: Sample, thing: int, operation: str, rng: random.Random) -> Mask | None:
    """Loose edges that take in a neighbour's; relations and exclusions are read as if only the class had been said."""
    slips = 0.5 if operation in _RELATIONS else 0.7 if operation == "negation_or_exclusion" else 0.1
    seen = _near(sample) if rng.random() < slips else thing
    labels = sample.scene.labels
    mask = labels == seen
    if rng.random() < 0.2:
        mask = mask | (labels == _near(sample))  # two instances at once: neither is told from the other
    grown = _reach(mask, 0.03 + 0.06 * rng.random())
    return spoil(mask, grown, *(int((rng.random() - 0.5) * 4 * grown) for _ in range(2)))


def crowd_shy(sample: Sample, thing: int, operation: str, rng: random.Random) -> Mask | None:
    """Finds the right thing mostly, sees it coarsely, and answers nothing where there are many alike."""
    if sample.crowd or (len(sample.things) > 5 and rng.random() < 0.5):
        return None
    labels = sample.scene.labels
    seen = _near(sample) if operation in ("ordinal", "subgroup_based") and rng.random() < 0.6 else thing
    block = _reach(labels == seen, 0.16)
    height, width = labels.shape
    coarse = (labels == seen)[::block, ::block]
    mask = np.repeat(np.repeat(coarse, block, axis=0), block, axis=1)[:height, :width]
    return mask if mask.any() else None


_MODELS: Mapping[str, Callable[[Sample, int, str, random.Random], Mask | None]] = {
    "careful": careful,
    "hasty": hasty,
    "crowd_shy": crowd_shy,
}


def _asked(sample: Sample, condition: str) -> Iterator[tuple[int, int, str]]:
    """Of each question under a condition: the expression's number, the thing that its words mean, their operation."""
    asks = sample.asked.asks
    if condition == "original":
        yield from ((k, sample.target, ask.operation) for k, ask in enumerate(asks))
    elif condition == "category_only":  # one of its kind is as good as another
        pick = int(random.Random(f"category/{sample.tces_id}").random() * len(sample.things))
        yield 0, sample.things[pick], "category_only"
    elif sample.donor is not None:
        (donor,) = (other for other in sample_sets() if other.ids()[0] == sample.donor)
        yield 0, donor.target, donor.asked.asks[0].operation


def answers(model: str) -> Iterator[dict[str, Any]]:
    """A model's answers, run by run and condition by condition."""
    for run in RUNS[model]:
        for condition in CONDITIONS[model]:
            for sample in sample_sets():
                for k, thing, operation in _asked(sample, condition):
                    name = sample.ids()[k]
                    mask = _MODELS[model](sample, thing, operation, random.Random(f"{model}/{run}/{condition}/{name}"))
                    line: dict[str, Any] = {"expression_id": name}
                    line["mask"] = None if mask is None else encode_dense(mask)
                    if len(RUNS[model]) > 1:
                        line["run"] = run
                    if len(CONDITIONS[model]) > 1:
                        line["condition"] = condition
                    yield line


def write_predictions(model: str, file: Path) -> None:
    """Write a model's answers to all expressions of the sample, one line of JSON each."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="\n") as stream:
        for line in answers(model):
            stream.write(json.dumps(line) + "\n")


def instancebench_sample_predictions(model: str) -> str:
    """File of one model's answers to the built-in InstanceBench sample: JSON Lines, made on first use.

    Args:
        model: one of `SAMPLE_MODELS`. "careful" has three runs, "hasty" the conditions `category_only` and `text_swap`
            beside the original one, "crowd_shy" answers some expressions with null.

    Raises:
        BenchError: there is no model of that name.

    Example:
        >>> instancebench_sample_predictions("hasty").endswith("hasty.jsonl")
        True
    """
    if model not in _MODELS:
        raise BenchError(f"model: expected one of {', '.join(_MODELS)}, got {model!r}")
    name = f"{model}.jsonl"
    place = built("instancebench-predictions", [name], lambda folder: write_predictions(model, folder / name))
    return str(place / name)
