"""Every integer of PVSG's score rows: overlaps of relations and tubes, VPQ and STQ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from bench_datasets.benchmarks.pvsg import BENCHMARK, panoptic
from bench_datasets.benchmarks.pvsg.batch import Prediction, Truth, Videos
from bench_datasets.benchmarks.pvsg.oracle import with_oracle
from bench_datasets.benchmarks.pvsg.overlaps import Twins
from bench_datasets.benchmarks.pvsg.overlaps import measure as measure_relations
from bench_datasets.benchmarks.pvsg.protocol import PVSGProtocol
from bench_datasets.benchmarks.pvsg.schema import VOID
from bench_datasets.benchmarks.pvsg.tubes import frame_overlaps
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.scoring.batch import score_schema

_NAMES = np.array([*CATEGORIES, ""], dtype=object)


def measure(videos: Videos, protocol: PVSGProtocol, oracle: str | None) -> dict[str, pa.Array]:
    """The measured columns of the score table, by name.

    Args:
        videos: n valid videos.
        protocol: they are scored under.
        oracle: `tubes` or `relations` to take these from the ground truth, else `None`.
    """
    rows = [
        _measure_video(row.truth, prediction, protocol, oracle)
        for row, prediction in zip(videos.rows, videos.predictions(), strict=True)
    ]
    schema = score_schema(BENCHMARK, False)
    names = [name for name in schema.names if name not in _LABELS]
    table = pa.Table.from_pylist(rows, schema=pa.schema([schema.field(name) for name in names]))
    return {name: table[name].combine_chunks() for name in names}


_LABELS = ("key", "cluster", "protocol", "row_sha256", "faults", "skipped", "source", "oracle")
"""Columns of the score table that the batch fills."""


def _measure_video(truth: Truth, given: Prediction, protocol: PVSGProtocol, oracle: str | None) -> dict[str, Any]:
    """Every integer of a valid video."""
    overlaps = frame_overlaps(truth.tubes, given.tubes, truth.frames)
    prediction, overlaps = with_oracle(oracle, truth, given, overlaps)
    twins = Twins(truth, prediction, overlaps)
    relations, pairs = measure_relations(truth, prediction, twins)
    frames = panoptic.read_frames(truth, prediction, overlaps)
    windows = panoptic.windows(truth, prediction, frames)
    quality = panoptic.quality(truth, prediction, frames, protocol.stq)
    areas = truth.tubes.areas_by_frame(truth.frames)
    return {
        "height": truth.height,
        "width": truth.width,
        "frames": truth.frames,
        "triplets": len(prediction.subjects),
        "object_category": _NAMES[truth.categories],
        "object_is_thing": truth.things,
        "object_frames": (areas > 0).sum(axis=1),
        "object_area": areas.sum(axis=1),
        "object_id": truth.ids,
        "tube_category": _NAMES[prediction.categories],
        "tube_area": prediction.tubes.total_areas(),
        "twin_object": twins.pairs[:, 0],
        "twin_tube": twins.pairs[:, 1],
        "twin_shared": twins.shared[:-1, -1],
        "relation_subject": truth.subjects,
        "relation_object": truth.objects,
        "relation_predicate": [PREDICATES[k] for k in truth.predicates],
        "relation_span": truth.span_frames,
        "relation_visible": relations.visible,
        "relation_subject_area": relations.subject_area,
        "relation_object_area": relations.object_area,
        "relation_best": relations.best,
        **{f"pair_{name}": values for name, values in pairs._asdict().items()},
        "vpq_window": windows.window,
        "vpq_category": _NAMES[windows.category],
        **{f"vpq_{name}": getattr(windows, name) for name in ("iou", "tp", "fp", "fn")},
        **{name: values for name, values in quality._asdict().items() if name.startswith("track_")},
        "class_category": np.where(quality.category < 0, VOID, _NAMES[quality.category]),
        **{f"class_{name}": getattr(quality, name) for name in ("shared", "predicted", "true")},
    }
