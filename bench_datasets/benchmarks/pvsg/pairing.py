"""PVSG's predictions beside its truth: one a video."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from datasets import Dataset

from bench_datasets.benchmarks.pvsg.prediction_pairing import pair_videos
from bench_datasets.benchmarks.pvsg.tubes import TubeLists, read_tube_lists
from bench_datasets.faults import BenchError
from bench_datasets.scoring.options import ScoreOptions
from bench_datasets.scoring.units import Units


def pair_units(labels: Dataset, predictions: Dataset, options: ScoreOptions, whole: bool) -> Units:
    """Which prediction belongs to which video: the one of its key; of two the first, and both are reported.

    Raises:
        BenchError: two truth rows bear one key, or there is no column `key`.
    """
    del options
    if "key" not in labels.column_names:
        raise BenchError(f"truth: expected a column key (the video's id), found {', '.join(labels.column_names)}")
    keys = list(labels["key"])
    again = [key for key, times in Counter(keys).items() if times > 1]
    if again:
        raise BenchError(f"{again[0]}: two truth rows bear this key; expected one row a video")
    found = pair_videos(keys, predictions, whole=whole)
    return Units.row_by_row(found.index, keys, found.faults)


def split_predictions(table: pa.Table) -> tuple[TubeLists, list[dict[str, Any]]]:
    """The masks of prediction rows, and their other fields.

    Raises:
        BenchError: there is no column `pred_tubes`, or none `pred_triplets`.
    """
    for name in ("pred_tubes", "pred_triplets"):
        if name not in table.column_names:
            raise BenchError(f"predictions: expected a column {name}, found {', '.join(table.column_names)}")
    lists = read_tube_lists(table["pred_tubes"], ("tube_id", "category"))
    fields = []
    for i, triplets in enumerate(table["pred_triplets"].to_pylist()):
        part = lists.slice(i, i + 1)
        tubes = [
            {"tube_id": name, "category": category, "frames": part.frames[a:b].tolist()}
            for name, category, a, b in zip(
                part.fields["tube_id"], part.fields["category"], part.tubes[:-1], part.tubes[1:], strict=True
            )
        ]
        fields.append({"tubes": tubes, "triplets": triplets})
    return lists, fields
