"""Every integer of InstanceBench's score rows: areas, intersections, boxes and named candidates."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets._util.arrow import list_column
from bench_datasets.benchmarks.instancebench import BENCHMARK
from bench_datasets.benchmarks.instancebench.batch import Kept, Rows
from bench_datasets.benchmarks.instancebench.schema import BOUNDARY_COLUMNS
from bench_datasets.masks import MaskColumn, boundary_pairs, group_intersections, pair_intersections

UNKNOWN, NOT_ASKED = -1, -2
"""Stand for a candidate that is not among the row's, and for an answer that names none."""

CORE = ("minimal", "variant")
"""The roles that headline numbers are about."""

SCHEMA: pa.Schema = BENCHMARK.score_features(boundary=True).arrow_schema.remove_metadata()
"""Of the score table with every column there is."""

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def measure(rows: Rows, *, boundary: bool) -> dict[str, pa.Array]:
    """The measured columns of the score table, by name; one value per row that is scored.

    Args:
        rows: ground truth rows with their predictions.
        boundary: whether to compare outlines too.
    """
    columns = _measure_all(rows, rows.kept, rows.good)
    if boundary:
        columns |= measure_boundaries(rows, rows.kept, rows.good)
    if rows.good.all():
        return columns
    return {name: column.filter(pa.array(rows.good)) for name, column in columns.items()}


def _measure_all(rows: Rows, kept: Kept, good: Flags) -> dict[str, pa.Array]:
    """The measured columns of the score table, by name.

    Args:
        rows: n truth rows with their predictions.
        kept: their candidates.
        good: `(n,) bool`, rows that can be scored; the lists of all others are empty.
    """
    mine = np.flatnonzero(good[rows.expression_row])
    row = rows.expression_row[mine]
    there = rows.predicted.masks.present[mine]
    index = mine[there]
    masks = rows.predicted.masks if len(index) == len(rows.predicted.masks) else rows.predicted.masks.take(index)
    place = np.full(len(mine), -1)
    place[there] = np.arange(len(index))
    areas = np.zeros(len(mine), np.int64)
    areas[there] = masks.areas()
    donor_area, donor_shared = _donors(rows, mine, masks, place)
    flat: dict[str, Any] = {
        "expression_ids": _chosen(rows.expressions["expression_id"], mine),
        "roles": _chosen(rows.expressions["role"], mine),
        "operations": _chosen(rows.expressions["operation"], mine),
        "families": _chosen(rows.expressions["family"], mine),
        "tracks": _chosen(rows.expressions["track"], mine),
        "spatial": ["spatial_relation" in (tags or ()) for tags in _chosen(rows.expressions["tags"], mine)],
        "words": [len(str(text or "").split()) for text in _chosen(rows.expressions["text"], mine)],
        "answered": rows.answered[mine],
        "masked": there & rows.answered[mine],
        "areas": areas,
        "intersections": _intersections(row, masks, place, kept),
        "donor_area": donor_area,
        "donor_intersection": donor_shared,
        "chosen": _named(rows, kept)[mine],
        "box_iou": _boxes(rows, kept, mine),
    }  # fmt: skip
    result = {name: _lists(name, values, np.diff(rows.groups) * good) for name, values in flat.items()}
    own = np.flatnonzero(good[np.repeat(np.arange(len(rows)), np.diff(kept.groups))])
    sizes = np.diff(kept.groups) * good
    return result | {
        "pixels": pa.array(_pixels(kept, good)),
        "candidate_ids": _lists("candidate_ids", _chosen(kept.ids, own), sizes),
        "candidate_areas": _lists("candidate_areas", kept.masks.areas()[own], sizes),
        "core_intersection": pa.array(_core(rows, mine, masks, place, good)),
    }


def measure_boundaries(rows: Rows, kept: Kept, good: Flags) -> dict[str, pa.Array]:
    """The columns that the option `boundary` adds: each prediction's outline against the target's, 0 for none."""
    mine = np.flatnonzero(good[rows.expression_row])
    there = np.flatnonzero(rows.predicted.masks.present[mine])
    target = (kept.groups[:-1] + kept.target)[rows.expression_row[mine]]
    found = boundary_pairs(rows.predicted.masks.take(mine[there]), kept.masks.take(target[there]))
    empty = np.flatnonzero(~rows.predicted.masks.present[mine])
    own = boundary_pairs(kept.masks.take(target[empty]), kept.masks.take(target[empty]))
    result = {}
    for name, values in zip(BOUNDARY_COLUMNS, found, strict=True):
        whole = np.zeros(len(mine), np.int64)
        whole[there] = values
        if name == "boundary_union":  # without a prediction the target's own region is all there is
            whole[empty] = own.iou_union
        if name == "contour_true":
            whole[empty] = own.total_b
        result[name] = _lists(name, whole, np.diff(rows.groups) * good)
    return result


def _chosen(values: Sequence[Any], index: Ints) -> Sequence[Any]:
    """The items at `index`, which rises."""
    if len(index) == len(values):
        return values
    wanted = np.zeros(len(values), np.bool_)
    wanted[index] = True
    return list(compress(values, wanted.tolist()))


def _lists(name: str, values: Any, sizes: Ints) -> pa.Array:
    """A list column of the score table from its items, one row behind the other."""
    return list_column(SCHEMA.field(name).type, values, sizes)


def _intersections(row: Ints, masks: MaskColumn, place: Ints, kept: Kept) -> pa.Array:
    """Pixels that each prediction shares with each candidate of its row; 0 for none."""
    sizes = np.diff(kept.groups)[row]
    left = np.concatenate([[0], np.cumsum(np.bincount(row[place >= 0], minlength=len(kept.target)))])
    shared = np.zeros(int(sizes.sum()), np.int64)
    shared[np.repeat(place >= 0, sizes)] = group_intersections(masks, left, kept.masks, kept.groups)
    return list_column(SCHEMA.field("intersections").type.value_type, shared, sizes)


def _pixels(kept: Kept, good: Flags) -> Ints:
    """`(n,) int64`, height x width of the target's mask; 0 for a skipped row."""
    result = np.zeros(len(good), np.int64)
    result[good] = kept.masks.pixels[(kept.groups[:-1] + kept.target)[good]]
    return result


def _donors(rows: Rows, mine: Ints, masks: MaskColumn, place: Ints) -> tuple[Ints, Ints]:
    """Pixels of each donor target, and of its intersection with the prediction; -1 and 0 without a donor."""
    area, shared = np.full(len(mine), -1), np.zeros(len(mine), np.int64)
    donors = rows.donors.masks
    has = donors.present[mine]
    area[has] = donors.take(mine[has]).areas()
    both = np.flatnonzero(has & (place >= 0))
    shared[both] = pair_intersections(masks.take(place[both]), donors.take(mine[both]))
    return area, shared


def _core(rows: Rows, mine: Ints, masks: MaskColumn, place: Ints, good: Flags) -> Ints:
    """`(n,) int64`: pixels that the two core predictions share; 0 where one is empty, -1 where a row lacks a role."""
    role = np.array(rows.expressions["role"], dtype=np.str_)[mine]
    first = []
    for name in CORE:
        found = np.full(len(rows), -1)
        index = np.flatnonzero(role == name)[::-1]
        found[rows.expression_row[mine[index]]] = index
        first.append(found)
    result = np.full(len(rows), -1)
    has = np.flatnonzero(good & (first[0] >= 0) & (first[1] >= 0))
    result[has] = 0
    one, other = place[first[0][has]], place[first[1][has]]
    both = (one >= 0) & (other >= 0)
    result[has[both]] = pair_intersections(masks.take(one[both]), masks.take(other[both]))
    return result


def _boxes(rows: Rows, kept: Kept, mine: Ints) -> NDArray[np.float64]:
    """IoU of each predicted box `[x, y, width, height]` with the box of the target's mask; NaN without one."""
    result = np.full(len(mine), np.nan)
    given = np.flatnonzero(np.isfinite(rows.boxes[mine]).all(axis=1))
    if not len(given):
        return result
    row = rows.expression_row[mine[given]]
    x, y, w, h = kept.masks.take(kept.groups[:-1][row] + kept.target[row]).boxes().astype(np.float64).T
    left, top, width, height = rows.boxes[mine[given]].T
    with np.errstate(over="ignore"):
        across = np.maximum(0.0, np.minimum(x + w, left + width) - np.maximum(x, left))
        down = np.maximum(0.0, np.minimum(y + h, top + height) - np.maximum(y, top))
        result[given] = across * down / (w * h + width * height - across * down)
    return result


def _named(rows: Rows, kept: Kept) -> Ints:
    """Position of the candidate that each answer names."""
    result = np.full(int(rows.groups[-1]), NOT_ASKED)
    if rows.named is None:
        return result
    for i in range(len(rows)):
        ids = kept.ids[kept.groups[i] : kept.groups[i + 1]]
        for k in range(int(rows.groups[i]), int(rows.groups[i + 1])):
            if rows.named[k] is not None:
                result[k] = ids.index(str(rows.named[k])) if str(rows.named[k]) in ids else UNKNOWN
    return result
