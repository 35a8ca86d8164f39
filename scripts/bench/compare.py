"""Comparing many models: seconds for all pairs of 22 score tables of PBench's size, and against a plain loop.

python scripts/bench/compare.py [--models 22] [--rows 6338] [--draws 10000]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import bench_datasets as bd
from bench_datasets.benchmark import get_benchmark
from bench_datasets.benchmarks.pbench import BENCHMARK
from bench_datasets.benchmarks.pbench.protocol import get_protocol
from bench_datasets.benchmarks.pbench.statistics import read_scores
from bench_datasets.results.statistics import estimate
from scripts.bench.clock import alternate

TARGET, RATIO = 30.0, 20.0
"""Seconds for all pairs on two cores; how many times a plain loop takes longer."""


def synthetic(models: int, rows: int, seed: int = 0) -> dict[str, pa.Table]:
    """Score tables of models of differing strength on the same rows, levels in PBench's shares."""
    rng = np.random.default_rng(seed)
    shares = get_benchmark("pbench").source.rows
    levels = rng.choice(list(shares), rows, p=np.array(list(shares.values())) / sum(shares.values())).tolist()
    hard = rng.beta(2, 2, rows)
    images = [f"{i:064x}" for i in rng.integers(0, max(rows * 3 // 4, 1), rows)]
    return {f"model {k}": _table(rng, levels, images, hard * (0.5 + 0.5 * (k + 1) / models)) for k in range(models)}


def _table(rng: np.random.Generator, levels: list[str], images: list[str], strength: Any) -> pa.Table:
    n = len(levels)
    true = rng.integers(1, 6, n)
    found = rng.binomial(true, strength)
    iou = [np.minimum(100, rng.integers(50, 105, k)).tolist() for k in found.tolist()]
    union = [int(100 * strength[i]) for i in range(n)]
    columns = {
        "key": [f"{level}/{i}" for i, level in enumerate(levels)], "cluster": images, "protocol": ["released@1"] * n,
        "row_sha256": [f"{i:064x}" for i in range(n)], "level": levels, "faults": [[]] * n, "skipped": [False] * n,
        "true_count": true.tolist(), "raw_count": true.tolist(), "nms_count": true.tolist(),
        "kept_count": true.tolist(), "matched_prediction": [list(range(len(k))) for k in iou],
        "matched_truth": [list(range(len(k))) for k in iou], "matched_intersection": iou,
        "matched_union": [[100] * len(k) for k in iou], "union_intersection": union, "union_predicted": union,
        "union_true": [100] * n, "duplicates": [0] * n,
    }  # fmt: skip
    schema = BENCHMARK.score_features().arrow_schema.remove_metadata()
    return pa.Table.from_pydict({name: columns.get(name, [None] * n) for name in schema.names}, schema=schema)


def plain_loop(table: pa.Table, draws: int) -> np.ndarray:
    """The bootstrap of one number as one would write it: draw rows, take the levels' means, draw again."""
    scores = read_scores(table, get_protocol("released"))
    _, image = np.unique(np.array(table["cluster"].to_pylist()), return_inverse=True)
    members = np.split(np.argsort(image, kind="stable"), np.cumsum(np.bincount(image))[:-1])
    levels = sorted(set(scores.levels.tolist()))
    rng = np.random.default_rng(0)
    found = np.empty(draws)
    for d in range(draws):
        rows = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        found[d] = np.mean([scores.row_score[rows][scores.levels[rows] == level].mean() for level in levels])
    return np.quantile(found, [0.025, 0.975])


def bootstrap(table: pa.Table, draws: int) -> tuple[float, float]:
    """The same interval as the package makes it, beside all other numbers of its kind."""
    module = get_benchmark("pbench")
    average = module.gather(table, "released")[("", "")]["average"]
    found = estimate({"average": average}, table["cluster"].to_pylist(), draws)["average"].ci95
    assert found is not None
    return found


def run(models: int = 22, rows: int = 6338, draws: int = 10_000, loop_draws: int = 300) -> dict[str, Any]:
    """Times in seconds, and what they come to.

    Args:
        models: number of score tables.
        rows: of each.
        draws: of the bootstrap, and permutations.
        loop_draws: of the plain loop, whose time is scaled up.
    """
    tables: Mapping[str, pa.Table] = synthetic(models, rows)
    first = next(iter(tables.values()))
    ours, theirs = bootstrap(first, draws), plain_loop(first, loop_draws)
    took = alternate({"ours": lambda: bootstrap(first, draws), "loop": lambda: plain_loop(first, loop_draws)}, 5)
    quick, slow = took["ours"], took["loop"] * draws / loop_draws
    began = time.perf_counter()
    found = bd.compare(tables, draws=draws, permutations=draws)
    every = time.perf_counter() - began
    return {
        "models": models, "rows": rows, "pairs": len(found.pairs), "draws": draws, "seconds": every, "target": TARGET,
        "bootstrap": quick, "plain_loop": slow, "ratio": slow / quick, "ratio_target": RATIO,
        "ours": list(ours), "loop": theirs.tolist(),
    }  # fmt: skip


def main() -> int:
    """Print the times; exit code 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", type=int, default=22)
    parser.add_argument("--rows", type=int, default=6338)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = run(given.models, given.rows, given.draws)
    if given.json:
        print(json.dumps(found, indent=1))
    else:
        print(f"{found['pairs']} pairs of {found['models']} models, {found['rows']} rows, {found['draws']} draws and"
              f" permutations: {found['seconds']:.1f} s (target {TARGET:g})")  # fmt: skip
        print(f"bootstrap of the average: {found['bootstrap']:.2f} s; a plain loop: {found['plain_loop']:.1f} s"
              f" ({found['ratio']:.0f} times, target {RATIO:g})")  # fmt: skip
        print(f"intervals: {found['ours']} and {found['loop']}")
    return 0 if found["seconds"] <= TARGET and found["ratio"] >= RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
