"""Rows of masks, written the way files and datasets hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, Features, List, Value
from pycocotools import mask as coco

import bench_datasets as bd
from bench_datasets.masks import MASK_FEATURE

from .dense_pbench import Dense, Row

TRUTH = Features(
    id=Value("int64"), level=Value("string"), expression=Value("string"), masks=List(MASK_FEATURE), count=Value("int32")
)
JOINED = Features({**TRUTH, "pred_masks": List(MASK_FEATURE)})


def encode(mask: Dense) -> dict[str, Any]:
    rle = coco.encode(np.asfortranarray(np.asarray(mask).astype(np.uint8)))
    return {"size": [int(side) for side in rle["size"]], "counts": rle["counts"].decode("ascii")}


def line(*spans: tuple[int, int], width: int = 100) -> Dense:
    """A mask one pixel high: its foreground by first and last (exclusive) pixel."""
    mask = np.zeros((1, width), bool)
    for first, last in spans:
        mask[0, first:last] = True
    return mask


def truth_of(rows: Sequence[Row]) -> Dataset:
    return Dataset.from_list(
        [
            {"id": row.id, "level": row.level, "expression": f"thing {row.id}", "masks": list(map(encode, row.truth)),
             "count": len(row.truth)}
            for row in rows
        ],
        features=TRUTH,
    )  # fmt: skip


def joined(rows: Sequence[Row]) -> Dataset:
    """Truth with the predictions beside it."""
    predicted = [list(map(encode, row.predicted)) for row in rows]
    return truth_of(rows).add_column("pred_masks", predicted, feature=JOINED["pred_masks"])


def predictions_of(rows: Sequence[Row], folder: Path, **more: Mapping[int, Any]) -> Dataset:
    """Through a file of JSON Lines; `more` are further fields by name and row id."""
    path = folder / "predictions.jsonl"
    lines = [
        {"key": f"{row.level}/{row.id}", "masks": list(map(encode, row.predicted)),
         **{name: values[row.id] for name, values in more.items() if row.id in values}}
        for row in rows
    ]  # fmt: skip
    path.write_text("".join(json.dumps(item) + "\n" for item in lines))
    return bd.read_predictions("pbench", path)


def values(result: bd.Result) -> dict[str, float]:
    return {key: metric.value for key, metric in result.metrics.items()}


def same(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
    """Equal to the last bit, NaN equal to NaN."""
    return {key: repr(float(value)) for key, value in a.items()} == {k: repr(float(v)) for k, v in b.items()}
