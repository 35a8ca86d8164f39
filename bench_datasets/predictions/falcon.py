"""Falcon Perception's own output: instances in the order of generation, each a centre, a size and a mask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench_datasets.predictions.fields import ABSENT, MAX_MASKS, pick, read_pairs, read_scores, show_fields, too_many
from bench_datasets.predictions.rows import Row

_FIELDS = ("instances", "predictions", "masks")


def is_falcon(record: Mapping[str, Any]) -> bool:
    """Whether a line holds instances: `{"xy": {"x", "y"}, "hw": {"h", "w"}, "mask_rle": {"size", "counts"}}`."""
    if "pred_masks" in record:
        return False
    return "instances" in record or any(
        isinstance(items, list) and items and isinstance(items[0], dict) and ({"mask_rle", "xy"} & set(items[0]))
        for items in (record.get(field) for field in _FIELDS)
    )


def fill(row: Row, record: Mapping[str, Any]) -> None:
    """Put a line's instances into a row, in the order of the line."""
    instances = pick(record, *_FIELDS)
    if not isinstance(instances, list):
        kind = "null" if instances is None else type(instances).__name__
        row.faults.append(("malformed_mask", f"instances: expected a list of instances, found {kind}"))
        return
    if len(instances) > MAX_MASKS:
        row.faults.append(too_many(len(instances)))
        return
    items = [item if isinstance(item, dict) else {} for item in instances]
    n = len(items)
    row.masks = [item.get("mask_rle") for item in items]
    row.broken_code = "malformed_mask"
    for i, item in enumerate(instances):
        if not isinstance(item, dict):
            row.broken[i] = f"expected an instance {{xy, hw, mask_rle}}, found {type(item).__name__}"
        elif "mask_rle" not in item:
            row.broken[i] = f"expected an instance with mask_rle, found {show_fields(item)}"
    row.centers, faults = read_pairs([item.get("xy") for item in items], n, "xy", ("x", "y"))
    row.faults += faults
    row.sizes, faults = read_pairs([item.get("hw") for item in items], n, "hw", ("h", "w"))
    row.faults += faults
    scored = any("score" in item for item in items)
    row.scores, faults = read_scores([item.get("score") for item in items] if scored else ABSENT, n)
    row.faults += faults
