"""InstanceBench's metrics: the protocol, score rows and everything that is summed up from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench_datasets.benchmark import get_benchmark
from bench_datasets.benchmarks.instancebench.batch import ANSWER_COLUMNS, ANSWER_FEATURES, LABEL_COLUMNS
from bench_datasets.benchmarks.instancebench.explain import explain
from bench_datasets.benchmarks.instancebench.hints import likely_causes
from bench_datasets.benchmarks.instancebench.legend import METRICS
from bench_datasets.benchmarks.instancebench.pairing import attach, pair_units, read_answers
from bench_datasets.benchmarks.instancebench.predictions import ORIGINAL
from bench_datasets.benchmarks.instancebench.protocol import PROTOCOLS, Protocol, get_protocol
from bench_datasets.benchmarks.instancebench.score import row_faults, score_table
from bench_datasets.benchmarks.instancebench.score_columns import SCORE_COLUMNS, features
from bench_datasets.benchmarks.instancebench.shared_runs import shared_rows
from bench_datasets.benchmarks.instancebench.statistics import LOWER_IS_BETTER, gather, summarize_table

__all__ = [
    "ANSWER_COLUMNS",
    "ANSWER_FEATURES",
    "FAMILY",
    "LABEL_COLUMNS",
    "LOWER_IS_BETTER",
    "METRICS",
    "OWN_METRICS",
    "OWN_PARTS",
    "PROTOCOLS",
    "REQUIRED_COLUMNS",
    "SCORE_COLUMNS",
    "SORT_COLUMNS",
    "UNIT",
    "Protocol",
    "attach",
    "comparable_to",
    "explain",
    "features",
    "gather",
    "get_protocol",
    "likely_causes",
    "pair_units",
    "paired_rows",
    "read_answers",
    "row_faults",
    "score_table",
    "shared_rows",
    "summarize_table",
]

REQUIRED_COLUMNS = ("expressions",)
"""Columns without which ground truth rows can't be scored; rows of the config `expressions` lack them."""

UNIT = "tces"
"""What is resampled."""

FAMILY = {"default": "miou/operation/"}
"""What the keys of the headline number's parts begin with, by protocol."""

OWN_PARTS: frozenset[str] = frozenset()
"""Parts that every run cuts for itself, so that runs can't be paired over them."""

OWN_METRICS: frozenset[str] = frozenset()
"""First words of the keys that are made of other columns in every run, so that runs can't be paired by them."""

SORT_COLUMNS = ("key", "run", "condition")
"""What a score table is sorted by, and what tells its rows apart."""


def paired_rows(table: pa.Table) -> pa.Table:
    """The score rows over which runs are compared: answers to the original, whatever else a model was asked."""
    return table.filter(pc.equal(table["condition"], ORIGINAL))


def comparable_to(
    protocol: str, scored: pa.Table, dataset: Mapping[str, Any], settings: Mapping[str, Any]
) -> str | None:
    """Whose published numbers a run compares with, if it scored the whole of the paper's test set.

    Args:
        protocol: its name.
        scored: the score rows.
        dataset: of the result.
        settings: of the result.
    """
    del settings
    rows = {
        key for key, c in zip(scored["key"].to_pylist(), scored["condition"].to_pylist(), strict=True) if c == ORIGINAL
    }
    whole = dataset.get("split") == "test" and len(rows) == get_benchmark("instancebench").source.rows["test"]
    return get_protocol(protocol).comparable_to if whole else None
