"""Error kinds of PBench: what became of every truth mask, and which predictions were too many.

Each truth mask of a row is exactly one of: found (IoU of the assigned pair from `CLEAR` on), `poor_boundary`, `merged`,
`split`, `wrong_instance`, `missed`, `empty`. Merged and split masks are seen in the masks alone; without them they stay
what the score columns show: poor or missed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.benchmarks.pbench.batch import Rows, read_rows
from bench_datasets.masks import group_intersections, list_offsets, list_values, quotient, resize
from bench_datasets.results.error_kinds import Errors, Kind

TOUCH = 0.1
"""IoU from which an assigned pair is taken to mean the same thing."""

CLEAR = 0.75
"""IoU from which its outline is taken to be good."""

MOSTLY = 0.5
"""Share of a mask's pixels from which another is said to cover it."""

KINDS = (
    Kind("missed", "ground truth masks that no prediction matches"),
    Kind("extra", "scored predictions that match no ground truth mask"),
    Kind("duplicate", "further predictions of a ground truth mask that has one already (IoU from .5)"),
    Kind("merged", "ground truth masks that one prediction covers together with another one"),
    Kind("split", "ground truth masks that several predictions cover in parts"),
    Kind("wrong_instance", "ground truth masks of a row whose predictions overlap none of them"),
    Kind("poor_boundary", "ground truth masks that were found, with an IoU below .75"),
    Kind("empty", "ground truth masks of a row without any prediction"),
    Kind("count_drift", "how many masks too many or too few the row's answer has"),
)


def find(table: pa.Table, protocol: Any, rows: Iterable[pa.Table] | None) -> Errors:
    """See `find_errors`."""
    del protocol
    n = len(table)
    true, raw, kept, duplicates = (
        table[name].to_numpy().astype(np.int64) for name in ("true_count", "raw_count", "kept_count", "duplicates")
    )
    lists = table["matched_intersection"].combine_chunks()
    row = np.repeat(np.arange(n), np.diff(list_offsets(lists)))
    unions = list_values(table["matched_union"].combine_chunks()).to_numpy()
    iou = quotient(list_values(lists).to_numpy(), unions)
    partner = list_values(table["matched_truth"].combine_chunks()).to_numpy()
    meant = np.bincount(row[iou >= TOUCH], minlength=n)
    poor = np.bincount(row[(iou >= TOUCH) & (iou < CLEAR)], minlength=n)
    # A row whose masks have no pixel answers nothing either.
    silent = (raw == 0) | (table["union_predicted"].to_numpy() == 0)
    empty = np.where(silent, true, 0)
    lost = true - meant - empty
    stray = kept - meant
    elsewhere = ~silent & (meant == 0) & (true > 0)
    merged, split, parts = (np.zeros(n, np.int64) for _ in range(3))
    if rows is not None:
        place = {key: i for i, key in enumerate(table["key"].to_pylist())}
        begin = np.searchsorted(row, np.arange(n + 1))
        for batch in rows:
            read = read_rows(batch, None)
            for k, (covered, shared) in enumerate(_covered(read)):
                i = place.get(read.key(k), -1)
                if i < 0 or not true[i] or table["skipped"][i].as_py():
                    continue
                status = np.full(true[i], -1.0)
                pairs = slice(begin[i], begin[i + 1])
                status[partner[pairs]] = iou[pairs]
                unclear = status < CLEAR
                one, many = unclear & covered, unclear & ~covered & (shared > 1)
                merged[i], split[i] = one.sum(), many.sum()
                # Pieces that were assigned to nothing are no extras: they are parts of what was split.
                parts[i] = int(np.maximum(shared[many] - (status[many] > 0), 0).sum())
                poor[i] -= int((one | many)[status >= TOUCH].sum())
                lost[i] -= int((one | many)[status < TOUCH].sum())
                # A piece with a tiny IoU is still about its truth: the row does not lie elsewhere.
                elsewhere[i] &= not (one | many).any()
    wrong = np.where(elsewhere, lost, 0)
    columns = {
        "missed": np.where(elsewhere, 0, lost),
        "extra": np.maximum(stray - parts - np.minimum(wrong, stray), 0),
        "duplicate": duplicates,
        "merged": merged,
        "split": split,
        "wrong_instance": wrong,
        "poor_boundary": poor,
        "empty": empty,
        "count_drift": np.abs(raw - true),
    }
    names = {name: table[name] for name in ("key", "level")}
    return Errors(KINDS, ("level",), pa.table({**names, **{name: pa.array(v) for name, v in columns.items()}}))


def _covered(rows: Rows) -> Iterable[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
    """Of each row's truth masks: whether a prediction covers it together with another one, and in how many it lies.

    A prediction merges two masks if it covers most of both; it is a piece of a mask if most of it lies there and it
    covers less than most of that.
    """
    true, given = rows.true.masks, rows.predicted.masks
    if true.problems() or given.problems():
        return ((np.zeros(size, np.bool_), np.zeros(size, np.int64)) for size in np.diff(rows.true.groups))
    row = rows.predicted.row_of
    size = np.full((len(rows), 2), -1)
    size[rows.true.row_of] = np.stack([true.heights, true.widths], axis=1)
    own = size[row, 0] > 0
    predicted = resize(given, np.where(own, size[row, 0], given.heights), np.where(own, size[row, 1], given.widths))
    shared = group_intersections(predicted, rows.predicted.groups, true, rows.true.groups)
    found, at = [], 0
    for i in range(len(rows)):
        p, t = (slice(int(side.groups[i]), int(side.groups[i + 1])) for side in (rows.predicted, rows.true))
        both = shared[at : at + (p.stop - p.start) * (t.stop - t.start)].reshape(p.stop - p.start, t.stop - t.start)
        at += both.size
        if not both.size:
            none = t.stop - t.start
            found.append((np.zeros(none, np.bool_), np.zeros(none, np.int64)))
            continue
        covers = quotient(both, true.areas()[None, t]) >= MOSTLY
        inside = quotient(both, predicted.areas()[p, None]) >= MOSTLY
        merges = covers & (covers.sum(axis=1, keepdims=True) > 1)
        pieces = inside & ~covers & (both > 0)
        found.append((merges.any(axis=0), pieces.sum(axis=0)))
    return found
