"""One square as polygon, pixels and encoded mask, and files that hold it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from datasets import load_dataset

from bench_datasets.masks import encode_dense

SQUARE = [2, 2, 14, 2, 14, 14, 2, 14]
SHORT = [20, 5, 21, 6]
SIZE = {"height": 40, "width": 60}
PIXELS = np.zeros((40, 60), bool)
PIXELS[2:14, 2:14] = True
MASK = encode_dense(PIXELS)
"""The pixels of SQUARE: rows and columns 2 to 13."""


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def instancebench_truth(folder: Path) -> Any:
    line = {
        "tces_id": "a", "image": None, "image_id": "1", "source": "coco", "category": "dog", **SIZE, "target": "1",
        "candidates": [{"instance_id": "1", "segmentation": MASK}],
        "expressions": [
            {"expression_id": f"a-{k}", "role": role, "text": role, "operation": "ordinal"}
            for k, role in enumerate(("minimal", "variant"))
        ],
    }  # fmt: skip
    return load_dataset("instancebench", data_dir=str(write(folder / "test.jsonl", [line]).parent), split="test")
