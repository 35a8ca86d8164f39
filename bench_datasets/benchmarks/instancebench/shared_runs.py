"""The answers that several models have in common: what `compare` pairs where runs or conditions differ."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench_datasets.benchmarks.instancebench.schema import BOUNDARY_COLUMNS, ORIGINAL
from bench_datasets.faults import BenchError
from bench_datasets.masks import list_offsets, list_values

MOST = 60
"""Copies of runs that are made at most; numbers of runs without a smaller common multiple need `run`."""

ALIGNED = (
    "expression_ids", "roles", "operations", "families", "tracks", "spatial", "words", "answered", "masked", "areas",
    "intersections", "donor_area", "donor_intersection", "chosen", "box_iou", *BOUNDARY_COLUMNS,
)  # fmt: skip
"""Columns with one value per expression."""


def shared_rows(
    tables: Mapping[str, pa.Table], *, run: str | None = None, condition: str | None = None
) -> tuple[dict[str, pa.Table], list[str]]:
    """The score rows that models are compared over, the same keys, runs and conditions for each.

    Each number of a model is its mean over the model's runs. To pair three runs with one, each table holds every run
    equally often, as often as the least common multiple of the numbers of runs asks for; the mean over these copies is
    the mean over the runs. A permutation exchanges all runs of a set at once.

    Args:
        tables: sorted score tables by model.
        run: the name of the one run to compare; `None` for the mean over runs.
        condition: the condition to compare; `None` for the answers to the original expressions, together with the
            numbers of every other condition that all runs have.

    Returns:
        The tables by model, and sentences about what was compared and what was left out.

    Raises:
        BenchError: a model lacks the run or the condition, or the numbers of runs need too many copies.
    """
    remarks: list[str] = []
    if run is not None:
        for name, table in tables.items():
            _expect(name, "run", run, table["run"].to_pylist())
        tables = {name: table.filter(pc.equal(table["run"], run)) for name, table in tables.items()}
    if condition is not None:
        for name, table in tables.items():
            _expect(name, "condition", condition, table["condition"].to_pylist())
        tables = {name: table.filter(pc.equal(table["condition"], condition)) for name, table in tables.items()}
        kept = [condition]
    else:
        kept, left_out = _common_conditions(tables)
        tables = {name: table.filter(pc.is_in(table["condition"], pa.array(kept))) for name, table in tables.items()}
        remarks += left_out
    if any(name != ORIGINAL for name in kept):
        tables, left_out = _common_answers(tables)
        remarks += left_out
    if condition is not None and condition != ORIGINAL:
        tables = {name: _named(table, "condition", ORIGINAL) for name, table in tables.items()}
        remarks.insert(0, f"the answers under the condition {condition}")
    counts = {name: len(set(table["run"].to_pylist())) for name, table in tables.items()}
    copies = math.lcm(*counts.values())
    if copies > MOST:
        said = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise BenchError(
            f"compare: the numbers of runs ({said}) have no common multiple up to {MOST}; compare one run of each:"
            " run='0'"
        )
    if copies > 1:
        said = ", ".join(f"{name} {count} run{'' if count == 1 else 's'}" for name, count in counts.items())
        remarks.append(f"each number is the mean over a model's runs: {said}")
    return {name: _repeated(table, copies) for name, table in tables.items()}, remarks


def _expect(name: str, column: str, wanted: str, found: list[str]) -> None:
    if wanted not in found:
        raise BenchError(
            f"compare: {column}: expected one of {name}'s {column}s, {', '.join(sorted(set(found)))}; got {wanted!r}"
        )


def _common_conditions(tables: Mapping[str, pa.Table]) -> tuple[list[str], list[str]]:
    """Conditions that every run of every model has, and a sentence about the others."""
    of_run = {
        (name, run): set(table["condition"].filter(pc.equal(table["run"], run)).to_pylist())
        for name, table in tables.items()
        for run in set(table["run"].to_pylist())
    }
    common = set.intersection(*of_run.values())
    others: dict[str, list[str]] = {}
    for (name, _), found in sorted(of_run.items()):
        for condition in sorted(found - common):
            others.setdefault(condition, [])
            if name not in others[condition]:
                others[condition].append(name)
    said = [f"{condition} (only {', '.join(names)})" for condition, names in others.items() if condition != ORIGINAL]
    remark = [f"conditions left out, as not all runs have them: {', '.join(said)}"] if said else []
    return sorted(common | {ORIGINAL}), remark


def _common_answers(tables: Mapping[str, pa.Table]) -> tuple[dict[str, pa.Table], list[str]]:
    """Under other conditions than the original, only expressions that every run of every model answered."""
    answered = [
        (set(_answers(table.filter(pc.equal(table["run"], run)))))
        for table in tables.values()
        for run in set(table["run"].to_pylist())
    ]
    common, every = set.intersection(*answered), set.union(*answered)
    left = len(every - common)
    remarks = [f"left out: {left:,} answers under other conditions that not all runs have"] if left else []
    return {name: _restricted(table, common) for name, table in tables.items()}, remarks


def _answers(table: pa.Table) -> list[tuple[str, str]]:
    """Condition and expression of every answer under another condition than the original."""
    table = table.filter(pc.not_equal(table["condition"], ORIGINAL)).combine_chunks()
    if not len(table):
        return []
    lists = table["expression_ids"].combine_chunks()
    of = np.repeat(np.array(table["condition"].to_pylist(), dtype=object), np.diff(list_offsets(lists)))
    given = list_values(table["answered"].combine_chunks()).to_pylist()
    ids = list_values(lists).to_pylist()
    return [(c, i) for c, i, there in zip(of.tolist(), ids, given, strict=True) if there]


def _restricted(table: pa.Table, common: set[tuple[str, str]]) -> pa.Table:
    """A table whose rows under other conditions hold only some expressions; rows without any are dropped."""
    table = table.combine_chunks()
    lists = table["expression_ids"].combine_chunks()
    offsets = list_offsets(lists)
    conditions = np.repeat(np.array(table["condition"].to_pylist(), dtype=object), np.diff(offsets)).tolist()
    ids = list_values(lists).to_pylist()
    keep = np.array([c == ORIGINAL or (c, i) in common for c, i in zip(conditions, ids, strict=True)], np.bool_)
    new = np.concatenate([[0], np.cumsum(keep)])[offsets]
    for name in ALIGNED:
        if name in table.column_names:
            values = list_values(table[name].combine_chunks()).filter(pa.array(keep))
            place = table.column_names.index(name)
            column = pa.ListArray.from_arrays(pa.array(new.astype(np.int32)), values)
            table = table.set_column(place, name, column.cast(table.schema.field(name).type))
    there = (np.diff(new) > 0) | np.array([c == ORIGINAL for c in table["condition"].to_pylist()], np.bool_)
    return table.filter(pa.array(there))


def _named(table: pa.Table, column: str, name: str) -> pa.Table:
    return table.set_column(table.column_names.index(column), column, pa.array([name] * len(table), pa.string()))


def _repeated(table: pa.Table, copies: int) -> pa.Table:
    """Each run as often as makes `copies` runs in all, called by their place, sorted as score tables are."""
    runs = sorted(set(table["run"].to_pylist()))
    if copies == 1:
        return _named(table, "run", "0")
    width = len(str(copies))
    parts = [
        _named(table.filter(pc.equal(table["run"], runs[i % len(runs)])), "run", f"{i:0{width}}") for i in range(copies)
    ]
    joined = pa.concat_tables(parts)
    return joined.sort_by([(name, "ascending") for name in ("key", "run", "condition")]).combine_chunks()
