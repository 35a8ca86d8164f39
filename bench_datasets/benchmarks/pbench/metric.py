"""PBench's metrics: protocols, score rows and what is summed up from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bench_datasets.benchmark import get_benchmark
from bench_datasets.benchmarks.pbench.batch import ANSWER_COLUMNS, LABEL_COLUMNS, row_names
from bench_datasets.benchmarks.pbench.explain import explain
from bench_datasets.benchmarks.pbench.hints import likely_causes
from bench_datasets.benchmarks.pbench.legend import METRICS
from bench_datasets.benchmarks.pbench.pairing import attach, pair_units, read_answers
from bench_datasets.benchmarks.pbench.protocol import PROTOCOLS, Protocol, get_protocol
from bench_datasets.benchmarks.pbench.score import row_faults, score_table
from bench_datasets.benchmarks.pbench.score_columns import SCORE_COLUMNS, features
from bench_datasets.benchmarks.pbench.statistics import (
    LOWER_IS_BETTER,
    count_slices,
    level_statistics,
    position_slices,
    read_scores,
    statistics,
)
from bench_datasets.faults import BenchError
from bench_datasets.results.estimates import ALL, Gathered, assemble
from bench_datasets.results.result import Metric, Slice

__all__ = [
    "ANSWER_COLUMNS",
    "FAMILY",
    "LABEL_COLUMNS",
    "LOWER_IS_BETTER",
    "METRICS",
    "OWN_METRICS",
    "OWN_PARTS",
    "PROTOCOLS",
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
    "row_names",
    "score_table",
    "summarize_table",
]

UNIT = "row"
"""What is resampled: a row, or the rows of an image where they bear its hash."""

FAMILY = {"released": "macro_f1/", "paper": "macro_f1/", "card": "accuracy/"}
"""What the keys of the headline number's parts begin with, by protocol."""

OWN_PARTS = frozenset({"position"})
"""Parts that every run cuts for itself, so that runs can't be paired over them."""

OWN_METRICS: frozenset[str] = frozenset()
"""First words of the keys that are made of other columns in every run, so that runs can't be paired by them."""

SORT_COLUMNS = ("key",)
"""What a score table is sorted by, and what tells its rows apart."""


def summarize_table(
    table: pa.Table, protocol: str, *, thresholds: Sequence[float] | None, by: Sequence[str], draws: int, seed: int
) -> tuple[dict[str, Metric], list[Slice]]:
    """Numbers and slices of scored rows.

    Args:
        table: score rows without skipped ones, sorted by key.
        protocol: the protocol they were scored under.
        thresholds: IoU thresholds of the row score in place of the protocol's.
        by: further columns of the table to slice by.
        draws: bootstrap draws.
        seed: of the draws.

    Raises:
        BenchError: a column to slice by is absent, or a list.
    """
    found = gather(table, protocol, thresholds=thresholds, by=by)
    counts = ("il_tp", "il_tn", "il_fp", "il_fn")
    return assemble(found, table["cluster"].to_pylist(), draws, seed, lower=LOWER_IS_BETTER, counts=counts)


def gather(
    table: pa.Table, protocol: str, *, thresholds: Sequence[float] | None = None, by: Sequence[str] = ()
) -> Gathered:
    """Every number of scored rows before it is estimated; see `summarize_table`."""
    chosen = get_protocol(protocol)
    scores = read_scores(table, chosen, thresholds)
    found: Gathered = {ALL: level_statistics(scores, chosen)}
    found |= {("count", name): part for name, part in count_slices(scores, chosen).items()}
    found |= {("position", name): part for name, part in position_slices(table).items()}
    for column in dict.fromkeys(by):
        if column in ("count", "position"):
            continue
        if column not in table.column_names or pa.types.is_nested(table.schema.field(column).type):
            flat = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
            raise BenchError(f"by: expected count, position or one of {', '.join(flat)}; got {column!r}")
        values = np.array([str(value) for value in table[column].to_pylist()])
        found |= {(column, v): statistics(scores, chosen, values == v) for v in sorted(set(values.tolist()))}
    return found


def paired_rows(table: pa.Table) -> pa.Table:
    """The score rows over which runs are compared: all."""
    return table


def comparable_to(
    protocol: str, scored: pa.Table, dataset: Mapping[str, Any], settings: Mapping[str, Any]
) -> str | None:
    """Whose published numbers a run compares with, if every level was scored whole and at the protocol's thresholds.

    Args:
        protocol: its name.
        scored: the score rows.
        dataset: of the result.
        settings: of the result.
    """
    del dataset
    levels = Counter(scored["level"].to_pylist())
    whole = all(levels[level] == rows for level, rows in get_benchmark("pbench").source.rows.items())
    return get_protocol(protocol).comparable_to if whole and settings.get("thresholds") is None else None
