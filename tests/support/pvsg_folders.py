"""Folders of predicted videos in every layout that PVSG reads, written from one array of labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from bench_datasets.predictions import read_predictions

from .dense_masks import encode

TRIPLET = {"subject_id": 3, "object_id": 9, "predicate": "on", "score": 0.5, "spans": [[0, 1]]}
FRAMES = np.random.default_rng(5).choice([0, 3, 9, 200], (4, 6, 7)).astype(np.uint8)


def put(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def png(path: Path, pixels: Any, mode: str | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels, mode) if mode else Image.fromarray(pixels)
    if mode == "P":
        image.putpalette([9, 9, 9] * 256)
    image.save(path)


def one(path: Path, **how: Any) -> dict[str, Any]:
    (row,) = read_predictions("pvsg", path, **how)
    return row


def lines(kinds: dict[int, Any]) -> str:
    """FRAMES as masks.txt, of classes by label; last frame first."""
    text = ""
    for frame in (3, 0, 1, 2):
        for label, kind in kinds.items():
            mask = FRAMES[frame] == label
            of_frame = kind[frame] if isinstance(kind, list) else kind
            text += f"{frame + 1} {label} {of_frame} 6 7 {encode(mask)['counts']}\n"
    return text


def research(root: Path, kinds: dict[int, Any]) -> Path:
    put(root / "quantitive/masks.txt", lines(kinds))
    put(root / "relations.json", {"video_id": root.name, "relations": [TRIPLET]})
    return root


def colours(labels: Any) -> Any:
    wide = labels.astype(np.int64) * 70_001
    return np.stack([wide % 256, wide // 256 % 256, wide // 65536], axis=2).astype(np.uint8)


def annotations(folder: str = "") -> list[dict[str, Any]]:
    kinds = {3: [0, 0, 1, 2], 9: [125] * 4, 200: [1, 0, 0, 1]}
    return [
        {
            "file_name": f"{folder}{frame:04d}.jpg",
            "segments_info": [{"id": label * 70_001, "category_id": kinds[label][frame], "area": 1} for label in kinds],
        }
        for frame in range(4)
    ]
