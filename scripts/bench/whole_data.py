"""Seeded data of real size for whole commands: sources in their released layout, and predictions as JSON Lines."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from pycocotools import mask as coco

from bench import synthetic
from bench_datasets.benchmarks.instancebench.vocabulary import OPERATIONS
from bench_datasets.benchmarks.pvsg.vocabulary import PREDICATES, STUFF, THINGS

PREDICTIONS = "predictions.jsonl"

LEVEL_ROWS = {"level_0": 1930, "level_1": 1108, "level_2": 969, "level_3": 1089, "level_4": 861, "dense": 381}
SETS = 2918
"""Sets of InstanceBench's test split; each has two to four expressions here."""

RUNS = ("0", "1", "2")
CONDITIONS = (
    "original", "category_only", "text_swap", "logic_explicit", "deliberation", "same_class_context",
)  # fmt: skip
VIDEOS, FRAMES, OBJECTS, RELATIONS, TRIPLETS = 62, 380, 15, 15, 100
"""Of PVSG's test split: videos, and frames, objects, relations and predicted triplets per video."""

_IMAGES = ((480, 640), (768, 1024), (1024, 1365), (1200, 1600))
_FRAME = (480, 854)
_PATTERNS = 400
_DISTINCT = {"instancebench": 300, "pvsg": 4}
"""Units that are drawn; further ones repeat their masks under other names."""

Rle = dict[str, Any]


def make(benchmark: str, folder: Path, scale: float, seed: int = 0) -> None:
    """Write a benchmark's source and predictions into a folder.

    Args:
        benchmark: its name.
        folder: is made; `predictions.jsonl` in it holds the predictions.
        scale: number of rows as a multiple of the real number.
        seed: of everything.
    """
    folder.mkdir(parents=True, exist_ok=True)
    {"pbench": _pbench, "instancebench": _instancebench, "pvsg": _pvsg}[benchmark](
        folder, scale, np.random.default_rng(seed)
    )


def _pbench(folder: Path, scale: float, rng: np.random.Generator) -> None:
    """Rows of 2 to 4 masks, and of 60 to 300 in `dense`, drawn from a pool of blobs."""
    pool = []
    for size in _IMAGES:
        reach = min(size)
        shapes = synthetic.blobs(rng, _PATTERNS, size, (0.015 * reach, 0.25 * reach))
        pool.append([
            (_text(synthetic.draw(blob, size, "smooth")), _text(synthetic.draw(_off(rng, blob), size, "smooth")))
            for blob in shapes
        ])  # fmt: skip
    mask = pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())])
    schema = pa.schema(
        [("expression", pa.string()), ("masks", pa.list_(mask)), ("count", pa.int32()), ("id", pa.int64())]
    )
    (folder / "data").mkdir(exist_ok=True)
    with open(folder / PREDICTIONS, "w", encoding="utf-8") as lines:
        for level, count in LEVEL_ROWS.items():
            rows = []
            for i in range(max(2, round(count * scale))):
                own = pool[int(rng.integers(len(pool)))]
                several = int(rng.integers(60, 300)) if level == "dense" else 1 + int(rng.geometric(0.35))
                chosen = rng.integers(0, _PATTERNS, several)
                masks = [own[k][0] for k in chosen]
                rows.append({"expression": f"thing {i}", "masks": masks, "count": several, "id": i})
                found = [k for k in chosen if rng.random() < 0.9] + rng.integers(0, _PATTERNS, rng.integers(3)).tolist()
                lines.write(json.dumps({"split": level, "id": i, "masks": [own[k][1] for k in found]}) + "\n")
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / f"data/{level}-00000-of-00001.parquet")


def _instancebench(folder: Path, scale: float, rng: np.random.Generator) -> None:
    """Sets of 2 to 16 candidates with all roles, and answers to each expression in all runs and conditions."""
    sets = max(4, round(SETS * scale))
    drawn = [_draw_set(rng, _IMAGES[int(rng.integers(2))]) for _ in range(min(sets, _DISTINCT["instancebench"]))]
    with (
        open(folder / "test.jsonl", "w", encoding="utf-8") as rows,
        open(folder / PREDICTIONS, "w", encoding="utf-8") as lines,
    ):
        for i in range(sets):
            candidates, answers = drawn[i % len(drawn)]
            height, width = candidates[0]["size"]
            roles = ["minimal", "variant", "paraphrase", "extra"][
                : 2 + int(rng.random() < 0.5) + int(rng.random() < 0.2)
            ]
            asks = [
                {
                    "expression_id": f"s{i:05d}-{k}",
                    "role": role,
                    "text": f"the thing of the kind that is meant by expression {k}",
                    "operation": OPERATIONS[int(rng.integers(len(OPERATIONS)))],
                }
                for k, role in enumerate(roles)
            ]
            rows.write(json.dumps({
                "tces_id": f"s{i:05d}", "image": f"images/{i:06d}.jpg", "image_id": str(i),
                "source": ("coco", "openimages")[i % 2], "category": f"kind {i % 60}", "height": height,
                "width": width, "target": "0", "expressions": asks,
                "candidates": [
                    {"instance_id": str(k), "segmentation": mask, "iscrowd": 0, "bbox": coco.toBbox(mask).tolist()}
                    for k, mask in enumerate(candidates)
                ],
            }) + "\n")  # fmt: skip
            for run in RUNS:
                for condition in CONDITIONS:
                    for ask in asks:
                        mask = answers[int(rng.integers(len(answers)))] if rng.random() < 0.98 else None
                        name = ask["expression_id"]
                        lines.write(
                            json.dumps({"expression_id": name, "mask": mask, "run": run, "condition": condition}) + "\n"
                        )


def _draw_set(rng: np.random.Generator, size: tuple[int, int]) -> tuple[list[Rle], list[Rle]]:
    """Masks of the candidates, the target first, and a model's masks that mostly mean the target."""
    shapes = synthetic.sparse(rng, 2 + min(14, int(rng.geometric(0.25))), size)
    means = [shapes[0 if rng.random() < 0.7 else int(rng.integers(len(shapes)))] for _ in range(12)]
    return (
        [_text(synthetic.draw(blob, size, "smooth")) for blob in shapes],
        [_text(synthetic.draw(_off(rng, blob), size, "smooth")) for blob in means],
    )


def _pvsg(folder: Path, scale: float, rng: np.random.Generator) -> None:
    """Videos of 380 frames as palette PNGs; each object is visible in about half of them."""
    videos = max(2, round(VIDEOS * scale))
    drawn = [_draw_video(rng, folder / "vidor" / "masks" / _video(i)) for i in range(min(videos, _DISTINCT["pvsg"]))]
    entries = []
    with open(folder / PREDICTIONS, "w", encoding="utf-8") as lines:
        for i in range(videos):
            entry, answer = drawn[i % len(drawn)]
            name = _video(i)
            entries.append({"video_id": name, **entry})
            lines.write(json.dumps({"video_id": name, **answer}) + "\n")
            if i >= len(drawn):
                first = folder / "vidor" / "masks" / _video(i % len(drawn))
                (folder / "vidor" / "masks" / name).mkdir()
                for file in first.iterdir():
                    os.link(file, folder / "vidor" / "masks" / name / file.name)
    split = {"vidor": {"train": [], "val": [entry["video_id"] for entry in entries]}}
    split |= {name: {"train": [], "val": []} for name in ("epic_kitchen", "ego4d")}
    content = {
        "objects": {"thing": list(THINGS), "stuff": list(STUFF)}, "relations": list(PREDICATES), "split": split,
        "data": entries,
    }  # fmt: skip
    (folder / "pvsg.json").write_text(json.dumps(content), encoding="utf-8")


def _video(i: int) -> str:
    return f"{9000 + i // 1000:04d}_{i % 1000:010d}"


def _draw_video(rng: np.random.Generator, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """An entry of the annotation and a prediction, both without the video's name; writes the PNGs."""
    folder.mkdir(parents=True)
    shapes = synthetic.sparse(rng, OBJECTS, _FRAME, 0.6)
    kinds = [list(THINGS)[int(k)] for k in rng.integers(0, 12, OBJECTS)]
    spans = [list(_span(rng, 0.3, 0.8)) for _ in shapes]
    tubes: list[dict[str, Any]] = [
        {"tube_id": str(k), "category": kind, "frames": [], "masks": []} for k, kind in enumerate(kinds)
    ]
    palette = rng.integers(0, 256, 768).astype(np.uint8).tolist()
    for frame in range(FRAMES):
        labels = np.zeros(_FRAME, np.uint8)
        for k, (blob, (first, last)) in enumerate(zip(shapes, spans, strict=True)):
            if not first <= frame <= last:
                continue
            moved = blob.moved(12 * math.sin(frame / 30 + k), 8 * math.cos(frame / 40 + k))
            labels[coco.decode(synthetic.draw(moved, _FRAME, "smooth")).astype(bool)] = k + 1
            if rng.random() < 0.95:
                tubes[k]["frames"].append(frame)
                tubes[k]["masks"].append(_text(synthetic.draw(_off(rng, moved, 0.2), _FRAME, "smooth")))
        image = Image.fromarray(labels, mode="P")
        image.putpalette(palette)
        image.save(folder / f"{frame:04d}.png")
    relations, triplets = [], []
    for _ in range(RELATIONS):
        one, other = rng.choice(OBJECTS, 2, replace=False).tolist()
        predicate = PREDICATES[int(rng.integers(len(PREDICATES)))]
        relations.append([one + 1, other + 1, predicate, [list(_span(rng, 0.2, 0.6))]])
    for k in range(TRIPLETS):
        if k % 2:
            one, other, predicate, ((first, last),) = relations[int(rng.integers(RELATIONS))]
            begin, end = max(0, first + int(rng.integers(-20, 40))), min(FRAMES - 1, last + int(rng.integers(-20, 20)))
            near = [[min(begin, FRAMES - 1), min(max(begin, end), FRAMES - 1)]]
            triplet = {"subject_id": str(one - 1), "object_id": str(other - 1), "predicate": predicate, "spans": near}
        else:
            one, other = rng.choice(OBJECTS, 2, replace=False).tolist()
            predicate, spans_of = PREDICATES[int(rng.integers(len(PREDICATES)))], [list(_span(rng, 0.1, 0.9))]
            triplet = {"subject_id": str(one), "object_id": str(other), "predicate": predicate, "spans": spans_of}
        triplets.append({**triplet, "score": float(rng.random())})
    height, width = _FRAME
    meta = {"height": height, "width": width, "fps": 5, "duration": FRAMES / 5, "num_frames": FRAMES}
    objects = [{"object_id": k + 1, "category": kind, "is_thing": True, "status": []} for k, kind in enumerate(kinds)]
    entry = {"meta": meta, "objects": objects, "relations": relations, "captions": [], "qa_pairs": [], "summary": ""}
    return entry, {"tubes": tubes, "triplets": triplets}


def _span(rng: np.random.Generator, least: float, most: float) -> Iterator[int]:
    """First and last frame of a span, whose length is a share of the video between two bounds."""
    length = int(FRAMES * rng.uniform(least, most))
    first = int(rng.integers(0, FRAMES - length))
    yield first
    yield first + length


def _off(rng: np.random.Generator, blob: synthetic.Blob, share: float = 0.15) -> synthetic.Blob:
    """The blob as a fair model sees it: up to a share of its radius aside."""
    off = blob.radius * share
    return blob.moved(rng.uniform(-off, off), rng.uniform(-off, off), float(rng.uniform(0.9, 1.1)))


def _text(rle: Rle) -> Rle:
    return {"size": [int(side) for side in rle["size"]], "counts": rle["counts"].decode()}
