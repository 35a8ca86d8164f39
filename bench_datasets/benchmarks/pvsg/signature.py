"""Signature of PVSG's predictions: mask tubes and triplets per video."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench_datasets.predictions.foreign_fields import refuse_other_benchmark
from bench_datasets.predictions.signature import Signature

ARRAYS = "NumPy arrays, which are not read for videos: write JSON Lines, each mask as encode_dense(array)"
"""Words about files of NumPy."""


def _format_of(record: Mapping[str, Any], shown: str) -> str:
    refuse_other_benchmark(record, shown, SIGNATURE)
    return "jsonl"


SIGNATURE = Signature(
    fields="video_id, tubes and triplets",
    expected=(
        "JSON Lines (.jsonl), Parquet, an Arrow file, a folder of <video_id>/quantitive/masks.txt, of"
        " <video_id>/<frame>.png with tubes.json or panoptic.json, VIPSeg's pred.json with pan_pred/, or a save_to_disk"
        " folder"
    ),
    own=frozenset({"tubes", "pred_tubes", "triplets", "pred_triplets"}),
    row_names=frozenset({"video_id"}),
    certain=tuple(frozenset({name}) for name in ("tubes", "pred_tubes", "triplets", "pred_triplets")),
    truth=("objects", "relations"),
    beside=frozenset({"pred_tubes", "pred_triplets", "triplets"}),
    truth_files=("pvsg.json",),
    format_of=_format_of,
    png="<video_id>/<frame>.png and tubes.json or panoptic.json",
    folders={
        "research": (frozenset({"masks.txt"}),),
        "panoptic": (frozenset({"panoptic.json"}), frozenset({"pred.json", "pan_pred"})),
        "davis": (frozenset({"tubes.json"}),),
    },
    instead="turn relations into relations.json with scripts/convert_pvsg_relations.py, or write JSON Lines instead",
    advice=(
        (
            (".png",),
            'write tubes.json [{"tube_id": 1, "category": "dog"}] beside the PNGs of each video; one PNG per frame'
            " holds all its tubes, so folders of single objects are merged into one label map per frame",
        ),
        ((".npz", ".npy"), f"such a file holds {ARRAYS}"),
        ((".txt",), "put masks as MOTS writes them at <video_id>/quantitive/masks.txt, frames counted from 1"),
    ),
    parts_of_folder=("masks.txt", "relations.json", "tubes.json", "panoptic.json"),
    line=(
        rb"\d+ \d+ \d+ \d+ \d+ \S",
        " (masks as MOTS writes them go to <video_id>/quantitive/masks.txt, frames counted from 1)",
    ),
)
