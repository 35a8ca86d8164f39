"""Error kinds of PVSG: where each relation was lost, stage by stage.

Each relation is hit within the first K, or exactly one of the kinds. `first_stage` is what `loss/first_stage` counts;
the others together are what `loss/second_stage` counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from bench_datasets.benchmarks.pvsg.relation_matching import Hits, row_of, texts
from bench_datasets.results.error_kinds import Errors, Kind

KINDS = (
    Kind("first_stage", "no pair of predicted tubes of the right classes overlaps subject and object enough"),
    Kind("second_stage", "the tubes are there, but no triplet of theirs has the predicate"),
    Kind("span", "a triplet has the right tubes and predicate, but holds at other times"),
    Kind("rank", "a triplet hits, but comes after the first K"),
)


def find(
    table: pa.Table, protocol: Any, rows: Iterable[pa.Table] | None, *, threshold: float = 0.5, k: int = 20
) -> Errors:
    """See `find_errors`.

    Args:
        table: score rows.
        protocol: they were scored under.
        rows: not needed.
        threshold: overlap from which a triplet hits.
        k: ranks that count.
    """
    del rows
    table = table.filter(pa.compute.invert(table["skipped"]))
    hits = Hits.read(table, protocol)
    row = row_of(table, "relation_visible")
    first = hits.first(threshold)
    timeless = hits.first_timeless(threshold)
    never = np.iinfo(np.int64).max
    hit = first < k
    tubes = hits.best >= threshold
    columns = {
        "first_stage": ~hit & ~tubes,
        "second_stage": ~hit & tubes & (first == never) & (timeless == never),
        "span": ~hit & tubes & (first == never) & (timeless < never),
        "rank": ~hit & tubes & (first < never),
    }
    begin = np.searchsorted(row, np.arange(len(table) + 1))
    names = {
        "key": table["key"].take(pa.array(row)),
        "source": table["source"].take(pa.array(row)),
        "relation": pa.array(np.arange(len(row)) - begin[row]),
        "predicate": pa.array(texts(table, "relation_predicate").tolist(), pa.string()),
    }
    groups = ("predicate", "source")
    return Errors(KINDS, groups, pa.table({**names, **{n: pa.array(v.astype(np.int64)) for n, v in columns.items()}}))
