"""PVSG's recall as one would write it: every frame's PNG is read for every triplet and relation."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pycocotools import mask as coco


class Video(NamedTuple):
    """One video and its predictions, as the files have them.

    Attributes:
        masks: folder of its PNGs.
        categories: by object id.
        relations: `[subject_id, object_id, predicate, spans]`, those with a predicate of the vocabulary.
        tubes: by track: its category, and an RLE by frame.
        triplets: the best score first.
    """

    masks: Path
    categories: dict[int, str]
    relations: list[list[Any]]
    tubes: dict[Any, tuple[str, dict[int, dict[str, Any]]]]
    triplets: list[dict[str, Any]]


def read(root: Path, name: str) -> Video:
    """A video of a folder in the released layout, with the research code's predictions beside it."""
    content = json.loads((root / "pvsg.json").read_text())
    entry = next(item for item in content["data"] if item["video_id"] == name)
    source = next(source for source, parts in content["split"].items() if any(name in part for part in parts.values()))
    classes = content["objects"]["thing"] + content["objects"]["stuff"]
    kinds: dict[int, Counter[int]] = {}
    masks: dict[int, dict[int, dict[str, Any]]] = {}
    for line in (root / "predictions" / name / "quantitive" / "masks.txt").read_text().splitlines():
        frame, track, kind, height, width, counts = line.split(" ", 5)
        kinds.setdefault(int(track), Counter())[int(kind)] += 1
        rle = {"size": [int(height), int(width)], "counts": counts.encode()}
        masks.setdefault(int(track), {})[int(frame) - 1] = rle
    triplets = json.loads((root / "predictions" / name / "relations.json").read_text())["relations"]
    return Video(
        root / source / "masks" / name,
        {item["object_id"]: item["category"] for item in entry["objects"]},
        [relation for relation in entry["relations"] if relation[2] in content["relations"]],
        {track: (classes[kinds[track].most_common(1)[0][0]], frames) for track, frames in masks.items()},
        sorted(triplets, key=lambda triplet: -triplet["score"]),
    )


def from_line(masks: Path, entry: dict[str, Any], answer: dict[str, Any]) -> Video:
    """A video of an entry of `pvsg.json`, with a prediction as a line of JSON.

    Args:
        masks: folder of its PNGs.
        entry: the video's, with relations of the vocabulary alone.
        answer: `{tubes, triplets}`.
    """
    tubes = {}
    for tube in answer["tubes"]:
        found = [{"size": mask["size"], "counts": mask["counts"].encode()} for mask in tube["masks"]]
        tubes[tube["tube_id"]] = tube["category"], dict(zip(tube["frames"], found, strict=True))
    categories = {item["object_id"]: item["category"] for item in entry["objects"]}
    triplets = sorted(answer["triplets"], key=lambda triplet: -triplet["score"])
    return Video(masks, categories, entry["relations"], tubes, triplets)


def pairs(video: Video) -> list[tuple[int, int]]:
    """Relations and triplets whose classes and predicates agree, as positions."""
    found = []
    for r, (subject, obj, predicate, _) in enumerate(video.relations):
        for t, triplet in enumerate(video.triplets):
            ends = zip((subject, obj), (triplet["subject_id"], triplet["object_id"]), strict=True)
            if triplet["predicate"] == predicate and all(video.categories[i] == video.tubes[j][0] for i, j in ends):
                found.append((r, t))
    return found


def overlap(video: Video, relation: int, triplet: int) -> float:
    """Hit frames over visible frames: the official overlap of a triplet with a relation."""
    subject, obj, _, spans = video.relations[relation]
    found = video.triplets[triplet]
    hit = seen = 0
    for frame in sorted({f for first, last in spans for f in range(first, last + 1)}):
        path = video.masks / f"{frame:04d}.png"
        if not path.exists():
            continue
        labels = np.asarray(Image.open(path))
        true = labels == subject, labels == obj
        if not (true[0].any() and true[1].any()):
            continue
        seen += 1
        if any(first <= frame <= last for first, last in found["spans"]):
            tubes = (video.tubes[found[name]][1].get(frame) for name in ("subject_id", "object_id"))
            hit += all(_iou(a, rle) >= 0.5 for a, rle in zip(true, tubes, strict=True))
    return hit / seen if seen else 0.0


def _iou(true: NDArray[np.bool_], rle: dict[str, Any] | None) -> float:
    if rle is None:
        return 0.0
    found = coco.decode([rle])[..., 0].astype(bool)
    return float((true & found).sum() / (true | found).sum())
