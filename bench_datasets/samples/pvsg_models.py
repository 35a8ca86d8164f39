"""Answers of three imaginary models to the PVSG sample: its truth, spoilt in the ways that real models go wrong."""

from __future__ import annotations

import functools
import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.data.sample_cache import built
from bench_datasets.faults import BenchError
from bench_datasets.masks import encode_label_map
from bench_datasets.samples.models import spoil
from bench_datasets.samples.pvsg import FILMS, Film

Layout = Literal["jsonl", "research"]


@dataclass(frozen=True)
class Manner:
    """How a model goes wrong.

    Attributes:
        edge: how far edges stray, as a share of an object's extent (the root of its area).
        gap: share of an object's frames that are lost.
        split: share of objects whose tube breaks in two, with another number from then on.
        smallest: pixels that an object must have to be seen at all.
        mistaken: share of objects that are taken for another category.
        found: share of relations that are found.
        confused: share of those that get another predicate.
        whole: share of those whose span is the whole film.
        jitter: frames that a span's ends stray by.
        extra: relations that are made up, for each that is there.
    """

    edge: float
    gap: float
    split: float
    smallest: int
    mistaken: float
    found: float
    confused: float
    whole: float
    jitter: int
    extra: float


MANNERS = {
    "careful": Manner(0.02, 0.03, 0.0, 40, 0.0, 0.9, 0.1, 0.1, 2, 1.0),
    "hasty": Manner(0.06, 0.08, 0.4, 80, 0.1, 0.7, 0.25, 0.8, 6, 4.0),
    "crowd_shy": Manner(0.05, 0.15, 0.1, 350, 0.15, 0.6, 0.2, 0.0, 9, 0.5),
}
"""The models of `SAMPLE_MODELS`."""


@functools.lru_cache(maxsize=len(FILMS) * len(MANNERS))
def answers(model: str, video_id: str) -> dict[str, Any]:
    """A model's answer to a film: `{"video_id", "tubes", "triplets"}`; in a frame no two masks overlap."""
    film, manner, rng = FILMS[video_id], MANNERS[model], random.Random(f"{model}/{video_id}")
    tubes: dict[int, dict[str, Any]] = {}
    parts: dict[int, list[int]] = {}
    for object_id, category in enumerate(film.objects, 1):
        if rng.random() < manner.mistaken:
            category = CATEGORIES[int(rng.random() * len(CATEGORIES))]
        parts[object_id] = [10 + object_id] + ([60 + object_id] if rng.random() < manner.split else [])
        for tube_id in parts[object_id]:
            tubes[tube_id] = {"tube_id": tube_id, "category": category, "frames": [], "masks": []}
    turn = {object_id: int(film.frames * (0.3 + 0.4 * rng.random())) for object_id in parts}
    for frame, labels in enumerate(film.maps()):
        seen = _seen(labels, manner, rng)
        numbers = np.zeros(256, np.uint8)
        for object_id, own in parts.items():
            numbers[object_id] = own[-1] if frame >= turn[object_id] else own[0]
        for tube_id, mask in encode_label_map(numbers[seen]).items():
            tubes[tube_id]["frames"].append(frame)
            tubes[tube_id]["masks"].append(mask)
    found = {tube_id: tube for tube_id, tube in tubes.items() if tube["frames"]}
    alive = {object_id: [part for part in own if part in found] for object_id, own in parts.items()}
    triplets = [triplet for triplet in _triplets(film, manner, alive, rng) if triplet]
    return {"video_id": video_id, "tubes": list(found.values()), "triplets": triplets}


def _seen(labels: NDArray[np.uint8], manner: Manner, rng: random.Random) -> NDArray[np.uint8]:
    """A frame as the model predicts it: large objects first, small ones in front of them."""
    sizes = {int(label): int(size) for label, size in zip(*np.unique(labels, return_counts=True), strict=True)}
    seen = np.zeros_like(labels)
    for label in sorted(sizes.keys() - {0}, key=lambda label: (-sizes[label], label)):
        lost, stray = rng.random() < manner.gap, (2 * rng.random() - 0.8) * manner.edge
        shift = [round((2 * rng.random() - 1) * manner.edge * min(math.sqrt(sizes[label]), 60)) for _ in range(2)]
        if lost or sizes[label] < manner.smallest:
            continue
        edge = round(stray * min(math.sqrt(sizes[label]), 60))
        seen[spoil(labels == label, edge, *shift)] = label
    return seen


def _triplets(
    film: Film, manner: Manner, parts: dict[int, list[int]], rng: random.Random
) -> Iterator[dict[str, Any] | None]:
    """Relations found and made up, in the order that the model thought of them."""
    last = film.frames - 1
    for subject_id, object_id, predicate, spans in film.relations:
        found, confused, whole = (
            rng.random() < manner.found,
            rng.random() < manner.confused,
            rng.random() < manner.whole,
        )
        score = 0.45 + 0.5 * rng.random()
        ends = [[end + round((2 * rng.random() - 1) * manner.jitter) for end in span] for span in spans]
        other = PREDICATES[int(rng.random() * len(PREDICATES))]
        if not found or predicate not in PREDICATES:
            continue
        cut = [[max(0, first), min(last, end)] for first, end in ends if max(0, first) <= min(last, end)]
        where = [[0, last]] if whole else cut
        yield _triplet(parts, subject_id, object_id, other if confused else predicate, score, where, rng)
    for _ in range(round(manner.extra * len(film.relations))):
        subject_id, object_id = (1 + int(rng.random() * len(film.objects)) for _ in range(2))
        predicate = PREDICATES[int(rng.random() * len(PREDICATES))]
        start, score = int(rng.random() * film.frames * 0.7), 0.15 + 0.6 * rng.random()
        where = [[0, last] if rng.random() < manner.whole else [start, min(last, start + 8)]]
        if subject_id != object_id:
            yield _triplet(parts, subject_id, object_id, predicate, score, where, rng)


def _triplet(
    parts: dict[int, list[int]],
    subject_id: int,
    object_id: int,
    predicate: str,
    score: float,
    spans: list[list[int]],
    rng: random.Random,
) -> dict[str, Any] | None:
    """A triplet between tubes, one of each object's; None where an object was never seen or no frame is left."""
    draw = rng.random()
    if not parts[subject_id] or not parts[object_id] or not spans:
        return None
    subject, other = (parts[part][int(draw * len(parts[part]))] for part in (subject_id, object_id))
    ends = {"subject_id": subject, "object_id": other}
    return {**ends, "predicate": predicate, "score": round(score, 3), "spans": spans}


def write_jsonl(model: str, file: Path) -> None:
    """Write a model's answers to the films of the test split, one line of JSON each."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="\n") as stream:
        for video_id in _asked():
            stream.write(json.dumps(answers(model, video_id)) + "\n")


def write_research(model: str, folder: Path) -> None:
    """Write the same as the research code's trackers do: `<video_id>/quantitive/masks.txt` and `relations.json`."""
    for video_id in _asked():
        answer, own = answers(model, video_id), folder / video_id
        lines = []
        for tube in answer["tubes"]:
            for frame, mask in zip(tube["frames"], tube["masks"], strict=True):
                fields = (frame + 1, tube["tube_id"], CATEGORIES.index(tube["category"]), *mask["size"], mask["counts"])
                lines.append((frame, tube["tube_id"], " ".join(map(str, fields))))
        (own / "quantitive").mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line}\n" for _, _, line in sorted(lines))
        (own / "quantitive" / "masks.txt").write_text(text, encoding="utf-8", newline="\n")
        relations = {"video_id": video_id, "relations": answer["triplets"]}
        (own / "relations.json").write_text(json.dumps(relations, indent=1) + "\n", encoding="utf-8", newline="\n")


def _asked() -> list[str]:
    return [film.video_id for film in FILMS.values() if film.split == "val"]


def pvsg_sample_predictions(model: str, layout: Layout = "jsonl") -> str:
    """One model's answers to the test split of the built-in PVSG sample, made on first use.

    Args:
        model: one of `SAMPLE_MODELS`.
        layout: "jsonl" gives a file of lines `{"video_id", "tubes", "triplets"}`; "research" a folder with, for each
            video, `quantitive/masks.txt` (lines "frame track class height width counts", frames from 1, class an index
            into things and stuff) and `relations.json`.

    Raises:
        BenchError: there is no model or layout of that name.

    Example:
        >>> pvsg_sample_predictions("careful").endswith("careful.jsonl")
        True
    """
    if model not in MANNERS:
        raise BenchError(f"model: expected one of {', '.join(MANNERS)}, got {model!r}")
    if layout == "jsonl":
        name = f"{model}.jsonl"
        return str(built("pvsg-predictions", [name], lambda folder: write_jsonl(model, folder / name)) / name)
    if layout != "research":
        raise BenchError(f"layout: expected jsonl or research, got {layout!r}")
    files = [f"{model}/{video}/{file}" for video in _asked() for file in ("quantitive/masks.txt", "relations.json")]
    return str(built("pvsg-predictions", files, lambda folder: write_research(model, folder / model)) / model)
