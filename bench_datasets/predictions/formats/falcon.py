"""Rows whose masks lie in instances: Falcon Perception's (centre, size and mask), SAM's and those of detectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench_datasets.predictions.coerce import (
    ABSENT,
    MAX_MASKS,
    image_size,
    no_prediction,
    pick,
    read_pairs,
    read_scores,
    show_fields,
    too_many,
)
from bench_datasets.predictions.mask_rows import Row

_MASKS = {"mask_rle", "xy", "segmentation"}
_FIELDS = ("instances", "predictions", "annotations", "masks")


def is_falcon(record: Mapping[str, Any]) -> bool:
    """Whether a line holds instances: `{"xy": {"x", "y"}, "hw": {"h", "w"}, "mask_rle": {"size", "counts"}}`.

    SAM's and detectors' instances have `segmentation` and optionally `score`.
    """
    if "pred_masks" in record:
        return False
    return (
        "instances" in record
        or isinstance(record.get("annotations"), list)
        or (isinstance(record.get("predictions"), list) and "masks" not in record)
        or any(
            isinstance(items, list) and items and isinstance(items[0], dict) and (_MASKS & set(items[0]))
            for items in (record.get(field) for field in _FIELDS)
        )
    )


def fill(row: Row, record: Mapping[str, Any]) -> None:
    """Put a line's instances into a row, in the order of the line."""
    instances = pick(record, *_FIELDS)
    if not isinstance(instances, list):
        text = f"instances: expected a list of instances, found {type(instances).__name__}"
        row.faults.append(no_prediction("instances") if instances is None else ("malformed_mask", text))
        return
    if len(instances) > MAX_MASKS:
        row.faults.append(too_many(len(instances)))
        return
    items = [item if isinstance(item, dict) else {} for item in instances]
    n = len(items)
    detected = any("segmentation" in item for item in items)
    mask = "segmentation" if detected else "mask_rle"
    row.masks = [item.get(mask) for item in items]
    if any(isinstance(value, list) for value in row.masks):
        image = record.get("image")
        row.height, row.width = image_size(image if isinstance(image, dict) else record)
    row.broken_code = "malformed_mask"
    for i, item in enumerate(instances):
        if not isinstance(item, dict):
            row.broken[i] = f"expected an instance with {mask}, found {type(item).__name__}"
        elif mask not in item:
            row.broken[i] = f"expected an instance with {mask}, found {show_fields(item)}"
    if not detected:
        row.centers, faults = read_pairs([item.get("xy") for item in items], n, "xy", ("x", "y"))
        row.faults += faults
        row.sizes, faults = read_pairs([item.get("hw") for item in items], n, "hw", ("h", "w"))
        row.faults += faults
    scores = [item.get("score") for item in items]
    scores = [score[0] if isinstance(score, list) and len(score) == 1 else score for score in scores]
    row.scores, faults = read_scores(scores if any("score" in item for item in items) else ABSENT, n)
    row.faults += faults
