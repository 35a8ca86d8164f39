"""PVSG's metrics: protocols, score rows and what is summed up from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bench_datasets.benchmark import get_benchmark
from bench_datasets.benchmarks.pvsg.batch import ANSWER_COLUMNS, LABEL_COLUMNS
from bench_datasets.benchmarks.pvsg.explain import explain
from bench_datasets.benchmarks.pvsg.hints import likely_causes
from bench_datasets.benchmarks.pvsg.legend import METRICS
from bench_datasets.benchmarks.pvsg.pairing import attach, pair_units, read_answers
from bench_datasets.benchmarks.pvsg.protocol import PROTOCOLS, Protocol, get_protocol
from bench_datasets.benchmarks.pvsg.score import row_faults, score_table
from bench_datasets.benchmarks.pvsg.score_columns import SCORE_COLUMNS, features
from bench_datasets.benchmarks.pvsg.statistics import (
    LOWER_IS_BETTER,
    panoptic_statistics,
    read_scores,
    relation_slices,
    relation_statistics,
    tube_statistics,
)
from bench_datasets.faults import BenchError
from bench_datasets.results.estimates import ALL, Gathered, assemble
from bench_datasets.results.result import Metric, Slice
from bench_datasets.results.statistics import Statistic

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
    "score_table",
    "summarize_table",
]

UNIT = "video"
"""What is resampled."""

OWN_METRICS = frozenset({"vpq", "stq"})
"""First words of the keys that are made of other columns in every run, so that runs can't be paired by them."""

SORT_COLUMNS = ("key",)
"""What a score table is sorted by, and what tells its rows apart."""

FAMILY: dict[str, str] = {}
"""What the keys of the headline number's parts begin with, by protocol: here it has none."""

OWN_PARTS: frozenset[str] = frozenset()
"""Parts that every run cuts for itself, so that runs can't be paired over them."""

DEFAULT_K = (20, 50, 100)
_ROW_SLICES = ("source",)
_RELATION_SLICES = ("predicate", "span", "size")


def summarize_table(
    table: pa.Table,
    protocol: str,
    *,
    k: Sequence[int] = DEFAULT_K,
    thresholds: Sequence[float] | None,
    by: Sequence[str],
    draws: int,
    seed: int,
) -> tuple[dict[str, Metric], list[Slice]]:
    """Numbers and slices of scored rows.

    Args:
        table: score rows without skipped ones, sorted by key.
        protocol: the protocol they were scored under.
        k: ranks.
        thresholds: overlaps from which a triplet hits, in place of .5 and .1.
        by: further columns of the table to slice by.
        draws: bootstrap draws.
        seed: of the draws.

    Returns:
        Metrics by key, and slices by predicate, span length, object size, source and what was asked for.

    Raises:
        BenchError: a column to slice by is absent, or a list; thresholds or ranks are out of range.
    """
    found = gather(table, protocol, k=k, thresholds=thresholds, by=by)
    return assemble(found, table["cluster"].to_pylist(), draws, seed, lower=LOWER_IS_BETTER)


def gather(
    table: pa.Table,
    protocol: str,
    *,
    k: Sequence[int] = DEFAULT_K,
    thresholds: Sequence[float] | None = None,
    by: Sequence[str] = (),
) -> Gathered:
    """Every number of scored rows before it is estimated; see `summarize_table`."""
    scores = read_scores(table, get_protocol(protocol), thresholds, tuple(k))

    def of_rows(rows: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, Statistic]:
        return {
            **relation_statistics(scores, rows[scores.row]),
            **tube_statistics(scores, rows),
            **panoptic_statistics(scores, rows),
        }

    found: Gathered = {ALL: of_rows(np.ones(len(table), np.bool_))}
    for part, where in relation_slices(scores).items():
        found[part] = relation_statistics(scores, where, mean=part[0] != "predicate")
    for column in dict.fromkeys([*_ROW_SLICES, *by]):
        if column in _RELATION_SLICES:
            continue
        if column not in table.column_names or pa.types.is_nested(table.schema.field(column).type):
            flat = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
            raise BenchError(f"by: expected {', '.join(_RELATION_SLICES)} or one of {', '.join(flat)}; got {column!r}")
        values = np.array([str(value) for value in table[column].to_pylist()])
        found |= {(column, value): of_rows(values == value) for value in sorted(set(values.tolist()))}
    return found


def paired_rows(table: pa.Table) -> pa.Table:
    """The score rows over which runs are compared: all."""
    return table


def comparable_to(
    protocol: str, scored: pa.Table, dataset: Mapping[str, Any], settings: Mapping[str, Any]
) -> str | None:
    """Whose published numbers a run compares with, if it scored the whole test split, its own tubes and relations.

    Args:
        protocol: its name.
        scored: the score rows.
        dataset: of the result; `split` must be the test split (`val`, as the release calls it).
        settings: of the result; the published headline is at K = 20, and `official` at .5.
    """
    chosen = get_protocol(protocol)
    thresholds, ranks = settings.get("thresholds"), settings.get("k") or DEFAULT_K
    whole = dataset.get("split") in ("test", "val") and len(scored) == get_benchmark("pvsg").source.rows["test"]
    own = not any(scored["oracle"].to_pylist())
    named = DEFAULT_K[0] in ranks and (chosen.weak or thresholds is None or 0.5 in thresholds)
    return chosen.comparable_to if whole and own and named else None
