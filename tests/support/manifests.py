"""Small manifests of InstanceBench, written line by line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import load_dataset


def runs(first: int, length: int, total: int = 20) -> dict[str, Any]:
    """A mask one pixel high, as uncompressed runs."""
    return {"size": [1, total], "counts": [first, length, total - first - length]}


def candidate(name: str, first: int = 0, length: int = 5, **other: Any) -> dict[str, Any]:
    """A candidate that covers some pixels of a row of 20."""
    return {"instance_id": name, "segmentation": runs(first, length), "iscrowd": 0, **other}


def expression(name: str, role: str, operation: str = "ordinal", **other: Any) -> dict[str, Any]:
    """An expression whose text is its role."""
    return {"expression_id": name, "role": role, "text": role, "operation": operation, **other}


def tces(name: str, **other: Any) -> dict[str, Any]:
    """A sound set of two candidates and the two core expressions; fields given replace its own."""
    sound: dict[str, Any] = {
        "tces_id": name,
        "image": None,
        "image_id": "i",
        "source": "coco",
        "category": "thing",
        "height": 1,
        "width": 20,
        "target": "a",
        "candidates": [candidate("a"), candidate("b", 10)],
        "expressions": [expression(f"{name}-0", "minimal"), expression(f"{name}-1", "variant")],
    }
    return {**sound, **other}


def write(folder: Path, files: Mapping[str, Sequence[Mapping[str, Any] | str]]) -> Path:
    """Write `{file name: lines}`; a line that is text is written as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (folder / name).write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return folder


def load(root: object, config: str | None = None, **kwargs: Any) -> Any:
    """InstanceBench from a folder; the test split and labels alone, if nothing else is said."""
    kwargs = {"split": "test", "images": False, **kwargs}
    return load_dataset("instancebench", config, data_dir=str(root), **kwargs)
