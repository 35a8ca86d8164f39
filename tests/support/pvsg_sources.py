"""Small sources in PVSG's layout: folders of PNGs, and zips."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from datasets import load_dataset

HEIGHT, WIDTH = 4, 6


def label_map(*columns: int) -> np.ndarray:
    """A map of stripes: a pixel value for each of the six columns."""
    return np.tile(np.array(columns, np.uint8), (HEIGHT, 1))


STILL = label_map(1, 1, 0, 2, 2, 0)


def png(values: np.ndarray, mode: str = "P") -> bytes:
    """A mask file."""
    image = PIL.Image.fromarray(values)
    if mode == "P":
        image.putpalette([channel for k in range(256) for channel in (k, 255 - k, k * 7 % 256)])
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def video(video_id: str, relations: Any = ((1, 2, "on", [[0, 2]]),), frames: int = 3, **fields: Any) -> dict[str, Any]:
    """An annotation entry of two objects, an adult and a table."""
    return {
        "video_id": video_id,
        "meta": {"height": HEIGHT, "width": WIDTH, "fps": 5, "duration": frames / 5, "num_frames": frames},
        "objects": [
            {"object_id": 1, "category": "adult", "is_thing": True, "status": []},
            {"object_id": 2, "category": "table", "is_thing": True, "status": []},
        ],
        "relations": [list(relation) for relation in relations],
        "captions": [{"time": "0000", "description": "An adult (1) at a table (2)."}],
        "qa_pairs": [{"time": "0000", "question": "Who?", "answer": "An adult (1)."}],
        "summary": "Someone at a table.",
        **fields,
    }


def annotation(videos: Mapping[str, list[dict[str, Any]]], **fields: Any) -> dict[str, Any]:
    """The content of `pvsg.json`: videos by `<source>/<split>`."""
    split: dict[str, Any] = {source: {"train": [], "val": []} for source in ("vidor", "epic_kitchen", "ego4d")}
    for place, entries in videos.items():
        source, part = place.split("/")
        split[source][part] = [entry["video_id"] for entry in entries]
    data = [entry for entries in videos.values() for entry in entries]
    return {"objects": {}, "relations": [], "split": split, "data": data, **fields}


Files = Mapping[str, bytes]


def mask_files(videos: Mapping[str, list[dict[str, Any]]], maps: Mapping[str, list[Any]] | None = None) -> Files:
    """Paths and contents of the masks: of each video its `maps` (None leaves a frame out), or three times `STILL`."""
    files = {}
    for place, entries in videos.items():
        for entry in entries:
            for frame, values in enumerate((maps or {}).get(entry["video_id"], [STILL] * 3)):
                if values is not None:
                    files[f"{place.split('/')[0]}/masks/{entry['video_id']}/{frame:04d}.png"] = png(values)
    return files


def write(root: Path, videos: Mapping[str, list[dict[str, Any]]], maps: Any = None, files: Files | None = None) -> Path:
    """Write a source folder; `files` in place of the masks."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "pvsg.json").write_text(json.dumps(annotation(videos)))
    for name, content in (mask_files(videos, maps) if files is None else files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def write_zip(path: Path, files: Files, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    """Write a zip."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def load(root: object, config: str | None = None, split: Any = "test", **kwargs: Any) -> Any:
    """PVSG from a source, one split."""
    return load_dataset("pvsg", config, split=split, data_dir=str(root), **kwargs)


ENV = "BENCH_DATASETS_PVSG"
"""The variable that names a source."""

VIDEOS = {
    "vidor/val": [video("a"), video("b")],
    "ego4d/val": [video("c")],
    "epic_kitchen/train": [video("d"), video("e")],
}
"""A source with videos of every kind, two of them for training."""
