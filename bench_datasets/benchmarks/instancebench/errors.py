"""Error kinds of InstanceBench: what each failing expression failed at, by the identity that the protocol gives it.

Each expression is right (it means the target and its IoU reaches the protocol's) or exactly one of the kinds. The score
columns tell: they hold what the answer shares with every candidate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from bench_datasets.benchmarks.instancebench.expressions import read_expressions
from bench_datasets.masks import list_offsets, list_values, quotient
from bench_datasets.results.error_kinds import Errors, Kind

MOSTLY = 0.5
"""Share of a candidate's pixels from which an answer is said to cover it."""

KINDS = (
    Kind("missed", "overlaps no instance well enough"),
    Kind("merged", "covers most of the target and of another instance, and matches neither"),
    Kind("wrong_instance", "matches another instance better than the target"),
    Kind("poor_boundary", "matches the target, but its IoU is below the threshold of the protocol"),
    Kind("empty", "no mask, or one without a pixel"),
)


def find(table: pa.Table, protocol: Any, rows: Iterable[pa.Table] | None) -> Errors:
    """See `find_errors`."""
    del rows
    table = table.filter(pa.compute.invert(table["skipped"]))
    e = read_expressions(table, np.arange(len(table)), protocol)
    m = len(e.row)
    shared = list_values(list_values(table["intersections"].combine_chunks())).to_numpy().astype(np.int64)
    lists = table["candidate_areas"].combine_chunks()
    begin = list_offsets(lists)
    of = np.repeat(np.arange(m), np.diff(e.offsets))
    k = np.arange(len(of)) - e.offsets[:-1][of]
    area = list_values(lists).to_numpy().astype(np.int64)[begin[:-1][e.row[of]] + k]
    iou = quotient(shared, area + e.areas[of] - shared)
    other = k != e.target[of]
    best = np.zeros(m)
    np.maximum.at(best, of[other], iou[other])
    covers = quotient(shared, area) >= MOSTLY
    both = np.zeros(m, np.bool_)
    both[of[covers & other]] = True
    mine = np.zeros(m, np.bool_)
    mine[of[covers & ~other]] = True
    empty = e.areas == 0
    wrong = ~e.right & ~empty
    merged = wrong & both & mine & (e.identity.assigned < 0)
    switched = wrong & ~merged & ((e.identity.assigned >= 0) | (best > e.q))
    columns = {
        "missed": wrong & ~merged & ~switched,
        "merged": merged,
        "wrong_instance": switched,
        "poor_boundary": e.right & ~empty & (e.q < protocol.tau),
        "empty": empty,
    }
    names = {name: table[name].take(pa.array(e.row)) for name in ("key", "run", "condition", "source", "category")}
    names |= {
        "expression_id": pa.array(e.ids.tolist()),
        "operation": pa.array(e.operation.tolist()),
        "track": pa.array(e.track.tolist()),
        "role": pa.array(e.role.tolist()),
    }
    groups = ("operation", "track", "source")
    return Errors(KINDS, groups, pa.table({**names, **{n: pa.array(v.astype(np.int64)) for n, v in columns.items()}}))
