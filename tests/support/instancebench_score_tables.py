"""Score tables written by hand: the integers that a model would leave, without a mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bench_datasets.benchmarks.instancebench import BENCHMARK
from bench_datasets.benchmarks.instancebench.vocabulary import FAMILY_OF, track_of

AREA = 1_000_000
"""Pixels of every candidate."""


@dataclass(frozen=True)
class Said:
    """An expression and what its answer shares with the candidates, the target first."""

    role: str
    operation: str
    area: int
    shared: tuple[int, ...]


def inside(role: str, operation: str, iou: float, candidates: int = 2) -> Said:
    """An answer that is a part of the target, of some IoU with it."""
    pixels = round(iou * AREA)
    return Said(role, operation, pixels, (pixels, *[0] * (candidates - 1)))


def right(role: str, operation: str = "ordinal") -> Said:
    return Said(role, operation, AREA, (AREA, 0))


def wrong(role: str, operation: str = "ordinal") -> Said:
    return Said(role, operation, AREA, (0, AREA))


def row(key: str, said: Sequence[Said], source: str = "coco", run: str = "0") -> dict[str, Any]:
    """A score row; the core answers share nothing."""
    n, candidates = len(said), len(said[0].shared)
    return {
        "key": key, "run": run, "condition": "original", "cluster": key, "protocol": "default@1", "row_sha256": "",
        "source": source, "category": "thing", "faults": [], "skipped": False, "pixels": 4 * AREA, "target": 0,
        "candidate_ids": [str(k) for k in range(candidates)], "candidate_areas": [AREA] * candidates,
        "expression_ids": [f"{key}-{k}" for k in range(n)],
        "roles": [x.role for x in said], "operations": [x.operation for x in said],
        "families": [FAMILY_OF[x.operation] for x in said],
        "tracks": [track_of(x.role, x.operation) for x in said],
        "spatial": [False] * n, "words": [4] * n, "answered": [True] * n, "masked": [True] * n,
        "areas": [x.area for x in said], "intersections": [list(x.shared) for x in said],
        "donor_area": [-1] * n, "donor_intersection": [0] * n, "chosen": [-2] * n, "box_iou": [float("nan")] * n,
        "core_intersection": 0,
    }  # fmt: skip


def table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    schema = BENCHMARK.score_features().arrow_schema.remove_metadata()
    return pa.Table.from_pylist(list(rows), schema=schema)
