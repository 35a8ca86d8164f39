"""A published copy of InstanceBench: its rows as the sets that a manifest would have, checked as those are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from bench_datasets.benchmarks.instancebench.index import Index
from bench_datasets.benchmarks.instancebench.manifest import Tces, tces_of
from bench_datasets.benchmarks.instancebench.truth import truth_features, truth_table
from bench_datasets.benchmarks.instancebench.vocabulary import OPERATIONS, ROLES
from bench_datasets.data.images import Picture, no_picture, picture_of
from bench_datasets.data.published_copy import (
    HASH,
    IMAGE,
    Beside,
    CopyShard,
    check_faults,
    read_batches,
    with_hashes,
)
from bench_datasets.data.source import Access
from bench_datasets.faults import BenchError, Fault
from bench_datasets.masks import parse_masks

LABELS = truth_features(False)
"""The columns that a copy's files must have."""

_BATCH = 64  # sets in a table; with images a quarter of that


def copy_tables(
    shards: Sequence[CopyShard], reads: Beside, access: Access, *, by_expression: bool
) -> Iterator[tuple[int, pa.Table, list[Fault]]]:
    """Truth rows of a split's files.

    Args:
        shards: of the copy's config `default`, which holds all that the config `expressions` does.
        reads: what is read beside the labels.
        access: token and storage options.
        by_expression: a row an expression instead of a row a set.

    Yields:
        The file's number, rows of `truth_features`, and the faults found or recorded.

    Raises:
        BenchError: a row is not what it should be; the message names the file, the row and its key.
    """
    homes: dict[str, str] = {}
    for number, shard in enumerate(shards):
        for first, batch in read_batches(shard, LABELS, reads, access, rows=_BATCH // 4 if reads.image else _BATCH):
            rows = batch.to_pylist()
            places = [
                f"{shard.name}: row {first + i} ({ascii(str(row['key']))[1:-1][:60]})" for i, row in enumerate(rows)
            ]
            donors: dict[str, dict[str, Any] | None] = {}
            recorded: dict[str, list[str]] = {}
            sets: list[Tces] = []
            for row, place in zip(rows, places, strict=True):
                tces = tces_of(_as_line(row, place), place)
                recorded[tces.tces_id] = check_faults(row["faults"], place)
                _note_ids(tces, "repeated_expression" in recorded[tces.tces_id], homes)
                donors |= _donors(row["expressions"], tces)
                sets.append(tces)
            by_key = {tces.tces_id: row for tces, row in zip(sets, rows, strict=True)}
            table, faults = truth_table(
                sets,
                Index(len(sets), frozenset(), donors),
                picture=partial(_picture, by_key) if reads.image else None,
                by_expression=by_expression,
                recorded=recorded,
            )
            if reads.hashes:
                table = with_hashes(table, [by_key[key][HASH] for key in table["key"].to_pylist()])
            yield number, table, faults


def _as_line(row: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Convert a row to a line of a manifest; the manifest's parser refuses values of another type."""
    candidates, target = row["candidates"], row["target"]
    n = len(candidates or ())
    if not isinstance(target, int) or not -1 <= target < n:
        raise BenchError(f"{place}: field 'target': expected a position in {n} candidates, or -1, found {target}")
    return {
        **{name: row[name] for name in ("image_id", "source", "category", "height", "width")},
        "tces_id": row["key"],
        "target": None if target < 0 else (candidates[target] or {}).get("instance_id"),
        "candidates": _each(candidates, lambda item: {**item, "segmentation": item["mask"]}),
        "expressions": _each(row["expressions"], _as_expression),
    }


def _each(values: Any, change: Any) -> Any:
    return None if values is None else [None if item is None else change(item) for item in values]


def _as_expression(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: item[name] for name in ("expression_id", "text", "tags")},
        "role": _label(ROLES, item["role"]),
        "operation": "" if item["operation"] is None else _label(OPERATIONS, item["operation"]),
        # The donor's mask stands in the row itself; here it goes by the name of the expression that asks for it.
        "donor_expression_id": None if item["donor_mask"] is None else item["expression_id"],
    }


def _label(names: Sequence[str], value: Any) -> Any:
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value


def _note_ids(tces: Tces, repeats: bool, homes: dict[str, str]) -> None:
    """Keep the ids that have been met, and refuse those that stand twice where the rows do not say so."""
    name = f"set {tces.tces_id}"
    if name in homes:
        raise BenchError(
            f"{tces.place}: field 'key': expected a key of its own, found {tces.tces_id!r}, which stands at "
            f"{homes[name]} already; publish the copy again"
        )
    homes[name] = tces.place
    for expression in tces.expressions:
        first = homes.setdefault(f"expression {expression.expression_id}", tces.place)
        if first != tces.place and not repeats:
            raise BenchError(
                f"{tces.place}: field 'expressions': expected ids of their own, found {expression.expression_id!r}, "
                f"which stands at {first} already, and no fault that says so; publish the copy again"
            )


def _donors(expressions: Sequence[Mapping[str, Any]], tces: Tces) -> dict[str, dict[str, Any] | None]:
    """The masks of the donors that a set's expressions have."""
    having = [item for item in expressions if item["donor_mask"] is not None]
    masks, wrong = parse_masks([item["donor_mask"] for item in having])
    for i, text in wrong.items():
        raise BenchError(f"{tces.place}: expression {having[i]['expression_id']!r}: field 'donor_mask': {text}")
    return {str(item["expression_id"]): mask for item, mask in zip(having, masks.to_pylist(), strict=True)}


def _picture(rows: Mapping[str, Mapping[str, Any]], tces: Tces) -> Picture:
    value = rows[tces.tces_id][IMAGE]
    data = value.get("bytes") if isinstance(value, dict) else None
    return picture_of(data, value.get("path")) if data else no_picture("")
