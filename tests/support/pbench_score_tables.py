"""Synthetic score tables of PBench: rows whose F1 at every threshold is a number of one's choice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.benchmarks.pbench import BENCHMARK
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS


def table_of(
    f1: NDArray[np.float64],
    levels: list[str] | None = None,
    clusters: list[str] | None = None,
    protocol: str = "released",
) -> pa.Table:
    """Score rows of one truth mask and one prediction each, whose IoU gives the wanted row score (in tenths).

    Args:
        f1: `(n,)` wanted scores on levels 0 to 4, multiples of .1 from 0 to 1.
        levels: of the rows; by default all level_0.
        clusters: of the rows; by default their keys.
        protocol: its name.
    """
    n = len(f1)
    levels = levels or ["level_0"] * n
    tenths = np.rint(np.asarray(f1) * 10).astype(int)
    iou = np.where(tenths == 0, 10, 45 + 5 * tenths)  # in hundredths: .5 counts at one threshold, .55 at two, ...
    keys = [f"{level}/{i:05d}" for i, level in enumerate(levels)]
    ones = [1] * n
    columns = {
        "key": keys, "cluster": clusters or keys, "protocol": [f"{protocol}@1"] * n,
        "row_sha256": [f"{i:064x}" for i in range(n)], "level": levels, "faults": [[]] * n, "skipped": [False] * n,
        "true_count": ones, "raw_count": ones, "nms_count": ones, "kept_count": ones,
        "matched_prediction": [[0]] * n, "matched_truth": [[0]] * n,
        "matched_intersection": [[int(k)] for k in iou], "matched_union": [[100]] * n,
        "union_intersection": iou.tolist(), "union_predicted": iou.tolist(), "union_true": [100] * n,
        "duplicates": [0] * n,
    }  # fmt: skip
    schema = BENCHMARK.score_features().arrow_schema.remove_metadata()
    return pa.Table.from_pydict(
        {name: columns.get(name, [None] * n) for name in schema.names}, schema=schema
    )  # fmt: skip


def all_levels(n: int) -> list[str]:
    """Levels of n rows, in turn."""
    return [PBENCH_LEVELS[i % len(PBENCH_LEVELS)] for i in range(n)]
