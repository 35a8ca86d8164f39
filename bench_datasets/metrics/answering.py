"""The columns in which a model over truth rows gives its answers."""

from __future__ import annotations

from typing import Any

from datasets import Features

from bench_datasets.benchmarks import get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.predictions.read import module_of

_DEFAULT = {"pvsg": ("pred_tubes", "pred_triplets")}
"""The columns that a benchmark's models give at the least, where these are not masks alone."""


def answer_features(benchmark: str, features: Features, *columns: str) -> Features:
    """The truth's features with those of a model's answers beside them: what to give to `Dataset.map`.

    Args:
        benchmark: its name.
        features: of the truth.
        columns: what the model adds; by default `pred_masks`, for PVSG `pred_tubes` and `pred_triplets`. PBench also
            knows `pred_scores`, `pred_centers` (x, y) and `pred_sizes` (height, width; fractions), InstanceBench
            `pred_boxes` (x, y, width, height in pixels) and `pred_candidate_ids`, each aligned with the masks (or, in
            InstanceBench, with the row's expressions).

    Returns:
        Features with all columns of the truth and those; the function that is mapped must give each of them.

    Raises:
        BenchError: the benchmark is unknown, or knows no such column; the message names those it knows.

    Example:
        >>> from datasets import Features, Value
        >>> list(answer_features("pbench", Features({"id": Value("int64")}), "pred_masks", "pred_scores"))
        ['id', 'pred_masks', 'pred_scores']
    """
    known = _known(benchmark)
    chosen = columns or _DEFAULT.get(benchmark, ("pred_masks",))
    for name in chosen:
        if name not in known:
            raise BenchError(f"answer_features: {benchmark} knows {', '.join(known)}, got {name!r}")
    return Features({**features, **{name: known[name] for name in chosen}})


def _known(benchmark: str) -> dict[str, Any]:
    """All answer columns that truth rows of a benchmark may bear, with their features."""
    metric = get_benchmark(benchmark).metric_module()
    if hasattr(metric, "ANSWER_FEATURES"):
        return dict(metric.ANSWER_FEATURES)
    there = module_of(benchmark).FEATURES
    return {name: there[name] for name in metric.ANSWER_COLUMNS if name in there and name != "pred_faults"}
