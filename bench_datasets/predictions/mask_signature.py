"""Signature of predictions with a list of masks per row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench_datasets.predictions.signature import Signature


def is_coco(fields: set[str]) -> bool:
    """Whether these are the fields of a COCO result."""
    return "segmentation" in fields or {"image_id", "bbox"} <= fields


def _format_of(record: Mapping[str, Any], shown: str) -> str:
    del shown
    if is_coco(set(record)):
        return "coco"
    return "falcon" if "instances" in record and "masks" not in record else "jsonl"


MASK_SIGNATURE = Signature(
    fields="key or id, and masks",
    expected=(
        "JSON Lines (.jsonl), COCO results (.json), Parquet, an Arrow file, a folder of <level>.jsonl, .parquet, .npz,"
        " .npy or PNG files, or a save_to_disk folder"
    ),
    own=frozenset({"masks", "pred_masks", "instances"}),
    hints=frozenset({"masks", "pred_masks", "instances", "segmentation"}),
    truth=("expression", "count", "masks"),
    beside=frozenset({"pred_masks", "scores", "pred_scores"}),
    truth_columns=frozenset({"expression", "masks"}),
    format_of=_format_of,
    array="masks",
    png="<id>/<k>.png or <id>.png",
    advice=(((".txt",), "text files, such as polygons in fractions of the image, are not read: write JSON Lines"),),
)
