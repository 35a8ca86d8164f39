"""Rows of PVSG, written the way datasets hold them, and scored through the package."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image
from pycocotools import mask as coco

from bench_datasets.benchmarks.pvsg import BENCHMARK
from bench_datasets.results.result import Metric, Slice
from bench_datasets.scoring.options import ScoreOptions

from .dense_pvsg import STUFF, Dense, Video


def encode(mask: Dense) -> dict[str, Any]:
    rle = coco.encode(np.asfortranarray(np.asarray(mask).astype(np.uint8)))
    return {"size": [int(side) for side in rle["size"]], "counts": rle["counts"].decode("ascii")}


def tube_of(masks: Mapping[int, Dense]) -> dict[str, Any]:
    return {"frames": sorted(masks), "masks": [encode(masks[f]) for f in sorted(masks)]}


def truth_row(video: Video, key: str = "v", source: str = "vidor") -> dict[str, Any]:
    frames, height, width = video.labels.shape
    tubes = [tube_of({f: video.true(i, f) for f in range(frames) if video.true(i, f).any()}) for i, _ in video.objects]
    return {
        "key": key, "source": source, "height": height, "width": width, "fps": 5.0, "num_frames": frames,
        "frames_present": frames,
        "objects": [{"object_id": i, "category": c, "is_thing": c not in STUFF} for i, c in video.objects],
        "tubes": tubes,
        "relations": [
            {"subject_id": s, "object_id": o, "predicate": p, "spans": spans} for s, o, p, spans in video.relations
        ],
        "relations_left_out": [],
        "faults": [],
    }  # fmt: skip


def prediction(video: Video) -> dict[str, Any]:
    return {
        "tubes": [
            {"tube_id": i, "category": category, **tube_of(masks)} for i, (category, masks) in enumerate(video.tubes)
        ],
        "triplets": [
            {"subject_id": s, "object_id": o, "predicate": p, "score": score, "spans": spans}
            for s, o, p, score, spans in video.triplets
        ],
    }


def batch(truth: Sequence[Mapping[str, Any]], predicted: Sequence[Mapping[str, Any] | None]) -> dict[str, list[Any]]:
    columns = {name: [row[name] for row in truth] for name in truth[0]}
    for name in ("tubes", "triplets"):
        columns[f"pred_{name}"] = [None if p is None else p[name] for p in predicted]
    return columns


def score(videos: Sequence[Video], protocol: str = "official", **options: Any) -> pa.Table:
    rows = [truth_row(video, f"v{i}") for i, video in enumerate(videos)]
    return BENCHMARK.score_table(batch(rows, [prediction(v) for v in videos]), ScoreOptions(protocol, **options))


def summed_up(
    table: pa.Table, protocol: str = "official", k: Sequence[int] = (20, 50, 100), **how: Any
) -> tuple[dict[str, Metric], list[Slice]]:
    chosen = {"thresholds": None, "by": (), "draws": 0, "seed": 0, **how}
    return BENCHMARK.summarize_table(table, protocol, k=k, **chosen)


def numbers(videos: Sequence[Video], protocol: str = "official", k: Sequence[int] = (20, 50, 100), **how: Any) -> Any:
    found = summed_up(score(videos, protocol, **how.pop("options", {})), protocol, k, **how)[0]
    return {key: metric.value for key, metric in found.items()}


class Masks(dict[int, Any]):
    """Masks by frame, held as RLE and decoded when asked for."""

    def __getitem__(self, frame: int) -> Dense:
        return coco.decode([super().__getitem__(frame)])[..., 0].astype(bool)

    def get(self, frame: int, default: Any = None) -> Any:
        return default if super().get(frame) is None else self[frame]

    def items(self) -> Any:
        return ((frame, self[frame]) for frame in self)


def mini(shared: Path) -> Video:
    """The real video with its predictions, read from their files without the package."""
    root = shared / "data" / "pvsg_mini"
    content = json.loads((root / "pvsg.json").read_text())
    entry = next(item for item in content["data"] if item["video_id"] == "9001_0000000001")
    categories = content["objects"]["thing"] + content["objects"]["stuff"]
    maps = sorted((root / "vidor" / "masks" / entry["video_id"]).glob("*.png"))
    folder = root / "predictions" / entry["video_id"]
    tubes: dict[int, Masks] = {}
    classes: dict[int, Counter[int]] = {}
    for text in (folder / "quantitive" / "masks.txt").read_text().splitlines():
        frame, track, kind, height, width, counts = text.split(" ", 5)
        classes.setdefault(int(track), Counter())[int(kind)] += 1
        rle = {"size": [int(height), int(width)], "counts": counts.encode()}
        tubes.setdefault(int(track), Masks())[int(frame) - 1] = rle
    order = {track: i for i, track in enumerate(tubes)}
    return Video(
        labels=np.stack([np.asarray(Image.open(path)) for path in maps]),
        objects=[(item["object_id"], item["category"]) for item in entry["objects"]],
        relations=[tuple(item) for item in entry["relations"] if item[2] in content["relations"]],
        tubes=[(categories[classes[track].most_common(1)[0][0]], masks) for track, masks in tubes.items()],
        triplets=[
            (order[item["subject_id"]], order[item["object_id"]], item["predicate"], item["score"], item["spans"])
            for item in json.loads((folder / "relations.json").read_text())["relations"]
        ],
    )
