"""Whole commands as one would write them: files in, headline out. `python obvious_whole.py BENCHMARK FOLDER [EVERY]`.

Nothing is validated. With EVERY, only every EVERY-th row is scored, and the time is scaled to all of them. Prints one
line of JSON: `headline`, `keys` of the rows, and `seconds` of processor time.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pycocotools import mask as coco
from scipy.optimize import linear_sum_assignment

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import obvious_pvsg
from bench.obvious import THRESHOLDS
from bench.whole_data import LEVEL_ROWS, PREDICTIONS

Found = tuple[float, list[str], float, float]
"""Headline, keys, and processor seconds up to the end of reading, and of scoring all rows."""


def pbench(folder: Path, every: int) -> Found:
    """Mean of the levels' Macro-F1, by matrices of IoUs."""
    answers = {(row["split"], row["id"]): row["masks"] for row in _lines(folder / PREDICTIONS)}
    levels = {level: pq.read_table(folder / f"data/{level}-00000-of-00001.parquet").to_pylist() for level in LEVEL_ROWS}
    read = time.process_time()
    means, keys, total = [], list[str](), 0
    start = time.process_time()
    for level, rows in levels.items():
        total += len(rows)
        chosen = rows[::every]
        keys += [f"{level}/{row['id']}" for row in chosen]
        thresholds = (0.5,) if level == "dense" else THRESHOLDS
        found = [_f1(_bytes(answers[level, row["id"]]), _bytes(row["masks"]), thresholds) for row in chosen]
        means.append(sum(found) / len(found))
    return sum(means) / len(means), keys, read, (time.process_time() - start) * total / len(keys)


def _f1(predicted: list[dict[str, Any]], true: list[dict[str, Any]], thresholds: Iterable[float]) -> float:
    """A row's mean F1 over the thresholds after greedy suppression, largest first."""
    if predicted:
        areas = np.array([int(coco.area(mask)) for mask in predicted])
        predicted = [predicted[i] for i in np.argsort(areas, kind="stable")[::-1]]
        iou = coco.iou(predicted, predicted, [0] * len(predicted))
        dead, kept = np.zeros(len(predicted), np.bool_), []
        for i in range(len(predicted)):
            if not dead[i]:
                kept.append(i)
                dead |= iou[i] > 0.5
        predicted = [predicted[i] for i in kept]
    if not predicted:
        return 0.0
    iou = coco.iou(predicted, true, [0] * len(true))
    values = iou[linear_sum_assignment(iou, maximize=True)]
    return float(np.mean([2 * (values >= t).sum() / (len(predicted) + len(true)) for t in thresholds]))


def instancebench(folder: Path, every: int) -> Found:
    """MIoU of the core expressions, mean over runs; every answer is compared with every candidate, pair by pair."""
    start = time.process_time()
    answers = {
        (row["run"], row["condition"], row["expression_id"]): row["mask"] for row in _lines(folder / PREDICTIONS)
    }
    sets = list(_lines(folder / "test.jsonl"))
    groups = sorted({(run, condition) for run, condition, _ in answers})
    read = time.process_time()
    start = time.process_time()
    chosen = sets[::every]
    core: dict[str, list[float]] = {}
    meant: dict[tuple[str, str], list[bool]] = {}
    for row in chosen:
        candidates = _bytes(item["segmentation"] for item in row["candidates"])
        target = next(k for k, item in enumerate(row["candidates"]) if item["instance_id"] == row["target"])
        areas = [int(coco.area(mask)) for mask in candidates]
        for run, condition in groups:
            for ask in row["expressions"]:
                answer = answers.get((run, condition, ask["expression_id"]))
                if answer is None:
                    ious, area = [0.0] * len(candidates), 0
                else:
                    mask = _bytes([answer])[0]
                    area = int(coco.area(mask))
                    ious = [float(coco.iou([mask], [other], [0])[0][0]) for other in candidates]
                scores = [_cosine(iou, area, other) for iou, other in zip(ious, areas, strict=True)]
                best, second = (*sorted(scores, reverse=True), 0.0)[:2]
                sure = best >= 0.1 - 1e-12 and best - second >= 0.05 - 1e-12
                meant.setdefault((run, condition), []).append(sure and scores[target] == best)
                if condition == "original" and ask["role"] in ("minimal", "variant"):
                    core.setdefault(run, []).append(ious[target])
    headline = sum(sum(found) / len(found) for found in core.values()) / len(core)
    scored = (time.process_time() - start) * len(sets) / len(chosen)
    return headline, [row["tces_id"] for row in chosen], read, scored


def _cosine(iou: float, area: int, other: int) -> float:
    return iou * (area + other) / (1 + iou) / math.sqrt(area * other) if area and other else 0.0


def pvsg(folder: Path, every: int) -> Found:
    """R@20/0.5 of the protocol `official`; the PNG of every frame is read for every triplet and relation."""
    content = json.loads((folder / "pvsg.json").read_text())
    answers = {row["video_id"]: row for row in _lines(folder / PREDICTIONS)}
    read = time.process_time()
    start = time.process_time()
    hits = relations = 0
    chosen = content["data"][::every]
    for entry in chosen:
        video = obvious_pvsg.from_line(
            folder / "vidor" / "masks" / entry["video_id"], entry, answers[entry["video_id"]]
        )
        overlaps = {pair: obvious_pvsg.overlap(video, *pair) for pair in obvious_pvsg.pairs(video)}
        hits += len({r for (r, t), value in overlaps.items() if t < 20 and value >= 0.5})
        relations += len(video.relations)
    scored = (time.process_time() - start) * len(content["data"]) / len(chosen)
    return hits / relations, [entry["video_id"] for entry in chosen], read, scored


def _lines(path: Path) -> Iterable[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _bytes(masks: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"size": mask["size"], "counts": mask["counts"].encode()} for mask in masks]


if __name__ == "__main__":
    name, where = sys.argv[1:3]
    implementations: dict[str, Callable[[Path, int], Found]] = {
        "pbench": pbench, "instancebench": instancebench, "pvsg": pvsg,
    }  # fmt: skip
    headline, keys, *seconds = implementations[name](Path(where), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    print(json.dumps({"headline": headline, "keys": keys, "seconds": sum(seconds)}))
