"""Every integer of PBench's score rows: clean-up, assigned pairs, unions, duplicates and places in the sequence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.masks import MaskColumn, group_intersections, nms, nms_order, quotient, resize, union_overlaps
from bench_datasets.metrics.columns import list_column
from bench_datasets.metrics.matching import assign
from bench_datasets.metrics.pbench.boundary import measure_boundaries
from bench_datasets.metrics.pbench.columns import features
from bench_datasets.metrics.pbench.protocol import Protocol
from bench_datasets.metrics.pbench.rows import Rows

MATCHED = ("matched_prediction", "matched_truth", "matched_intersection", "matched_union")
POSITIONS = ("position_truth", "position_intersection", "position_union", "position_drift")

NMS_IOU = 0.5
"""The released clean-up's threshold; the redundancy of predictions is measured with it under every protocol."""

DUPLICATE_IOU = 0.5
"""From this IoU with one and the same truth mask on, a second prediction is a duplicate."""

SCHEMA: pa.Schema = features(boundary=True).arrow_schema
"""Of the score table with every column there is."""

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Hits(NamedTuple):
    """Pairs of a predicted and a true mask of one row that share a pixel, row by row; each array `(h,)`.

    Attributes:
        row: the row.
        predicted: the prediction, among those of all rows.
        true: the truth mask, among those of all rows.
        shared: pixels of both.
        union: pixels of either.
        iou: float64.
    """

    row: Ints
    predicted: Ints
    true: Ints
    shared: Ints
    union: Ints
    iou: NDArray[np.float64]


def measure(rows: Rows, protocol: Protocol, *, boundary: bool) -> dict[str, pa.Array]:
    """The measured columns of the score table, by name.

    Args:
        rows: n rows, sound ones.
        protocol: they are scored under.
        boundary: whether to compare outlines too.
    """
    n = len(rows)
    true, true_row = rows.true.masks, rows.true.row_of
    given, row = rows.predicted.masks, rows.predicted.row_of
    groups, true_groups = rows.predicted.groups, rows.true.groups
    compared = (np.diff(true_groups) > 0)[row]
    predicted = resize(given, *_sizes(rows, compared))
    keep = _suppress(predicted, row, compared, n)
    clean = keep if protocol.nms is not None else np.ones(len(predicted), np.bool_)
    in_union = clean
    if protocol.without_truth == "left_out" or protocol.row_score == "f1":
        in_union = clean & compared
    united = np.where(in_union, row, -1)
    pixels = union_overlaps(n, (predicted, united), (true, true_row))

    shared = group_intersections(predicted, groups, true, true_groups)
    hits = _hits(shared, predicted, groups, true, true_groups)
    order = nms_order(predicted.areas(), row) if protocol.nms is not None else np.arange(len(predicted))
    pairs = _pairs(hits, clean, order, groups, true_groups)
    own = hits.row[pairs]
    flat = (hits.predicted[pairs] - groups[own], hits.true[pairs] - true_groups[own], hits.shared[pairs])
    matched = dict(zip(MATCHED, (*flat, hits.union[pairs]), strict=True))
    found = {
        "true_count": np.diff(true_groups),
        "raw_count": np.diff(groups),
        "nms_count": np.bincount(row[keep], minlength=n),
        "kept_count": np.bincount(row[clean], minlength=n),
        "union_intersection": pixels[0],
        "union_predicted": pixels[1],
        "union_true": pixels[2],
        "duplicates": _duplicates(hits, true_row, n),
        **(measure_boundaries(n, predicted, united, true, true_row) if boundary else {}),
    }
    per_row = np.bincount(own, minlength=n)
    return {
        **{name: pa.array(values, SCHEMA.field(name).type) for name, values in found.items()},
        **{name: list_column(SCHEMA.field(name).type, values, per_row) for name, values in matched.items()},
        **_positions(rows, shared, predicted, true),
    }


def _sizes(rows: Rows, compared: Flags) -> tuple[Ints, Ints]:
    """Heights and widths that the predictions are to have: their row's truth's, or where there is none their own."""
    given, size = rows.predicted.masks, rows.true.masks
    first = rows.true.groups[:-1][rows.predicted.row_of]
    heights, widths = given.heights.copy(), given.widths.copy()
    heights[compared], widths[compared] = size.heights[first[compared]], size.widths[first[compared]]
    return heights, widths


def _suppress(predicted: MaskColumn, row: Ints, compared: Flags, n: int) -> Flags:
    """What non-maximum suppression keeps; rows without truth, which have no size, keep everything."""
    keep = np.ones(len(predicted), np.bool_)
    some = np.flatnonzero(compared)
    column = predicted if len(some) == len(predicted) else predicted.take(some)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(row[some], minlength=n))])
    keep[some] = nms(column, bounds, NMS_IOU)
    return keep


def _hits(shared: Ints, predicted: MaskColumn, groups: Ints, true: MaskColumn, true_groups: Ints) -> Hits:
    """The pairs that share a pixel, of all pairs of all rows."""
    wide = np.diff(true_groups)
    begin = np.concatenate([[0], np.cumsum(np.diff(groups) * wide)])
    some = np.flatnonzero(shared > 0)
    row = np.searchsorted(begin, some, side="right") - 1
    left, right = np.divmod(some - begin[row], np.maximum(wide[row], 1))
    left, right, both = left + groups[row], right + true_groups[row], shared[some]
    union = predicted.areas()[left] + true.areas()[right] - both
    return Hits(row, left, right, both, union, quotient(both, union))


def _pairs(hits: Hits, clean: Flags, order: Ints, groups: Ints, true_groups: Ints) -> Ints:
    """Assigned pairs, as positions among the hits; in each row by `order`, in which the solver sees predictions.

    Where no mask of a row overlaps two others, its overlapping pairs are the assignment of the largest total.
    """
    some = np.flatnonzero(clean[hits.predicted])
    rivals = np.bincount(hits.predicted[some], minlength=len(clean))[hits.predicted[some]] > 1
    rivals |= np.bincount(hits.true[some], minlength=int(true_groups[-1]))[hits.true[some]] > 1
    contested = np.zeros(len(groups) - 1, np.bool_)
    contested[hits.row[some[rivals]]] = True
    chosen = [some[~contested[hits.row[some]]]]
    bounds = np.searchsorted(hits.row, np.arange(len(groups)))
    for i in np.flatnonzero(contested).tolist():
        own = slice(int(bounds[i]), int(bounds[i + 1]))
        at = hits.predicted[own] - groups[i], hits.true[own] - true_groups[i]
        shape = int(groups[i + 1] - groups[i]), int(true_groups[i + 1] - true_groups[i])
        iou, number = np.zeros(shape), np.full(shape, -1)
        iou[at], number[at] = hits.iou[own], np.arange(own.start, own.stop)
        seen = order[groups[i] : groups[i + 1]]
        seen = seen[clean[seen]] - groups[i]
        solved = assign(iou[seen])
        found = number[seen[solved.predicted], solved.true]
        chosen.append(found[found >= 0])
    pairs = np.concatenate(chosen)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return pairs[np.argsort(rank[hits.predicted[pairs]], kind="stable")]


def _duplicates(hits: Hits, true_row: Ints, n: int) -> Ints:
    """`(n,) int64`, summed over a row's truth masks: predictions beyond the first that come near."""
    near = np.bincount(hits.true[hits.iou >= DUPLICATE_IOU], minlength=len(true_row))
    return np.bincount(true_row, weights=np.maximum(near - 1, 0), minlength=n).astype(np.int64)


def _positions(rows: Rows, shared: Ints, predicted: MaskColumn, true: MaskColumn) -> dict[str, pa.Array]:
    """The columns by place in the sequence; null in rows whose order of generation is not known."""
    found: dict[str, list[Any]] = {name: [None] * len(rows) for name in POSITIONS}
    ordered = [i for i, centers in enumerate(rows.centers) if centers is not None]
    if ordered:
        given, middles = rows.predicted.masks, _middles(rows.predicted.masks)
        groups, true_groups = rows.predicted.groups, rows.true.groups
        begin = np.concatenate([[0], np.cumsum(np.diff(groups) * np.diff(true_groups))])
        areas, true_areas = predicted.areas(), true.areas()
        for i in ordered:
            p, t = slice(int(groups[i]), int(groups[i + 1])), slice(int(true_groups[i]), int(true_groups[i + 1]))
            both = shared[begin[i] : begin[i + 1]].reshape(p.stop - p.start, t.stop - t.start)
            union = areas[p, None] + true_areas[None, t] - both
            drift = _drift(rows.centers[i], middles[p], given.widths[p], given.heights[p])
            for name, values in zip(POSITIONS, _best(both, union, drift), strict=True):
                found[name][i] = values
    return {name: pa.array(values, SCHEMA.field(name).type) for name, values in found.items()}


def _middles(masks: MaskColumn) -> NDArray[np.float64]:
    """`(m, 2) float64`, the middle x, y of each mask's box in pixels; NaN for an empty mask."""
    box = masks.boxes().astype(np.float64)
    middle = box[:, :2] + box[:, 2:] / 2
    middle[box[:, 2] == 0] = np.nan
    return middle


def _drift(centers: Any, middles: NDArray[np.float64], widths: Ints, heights: Ints) -> NDArray[np.float64]:
    """`(n,) float64`, from the predicted centres (fractions) to the masks' middles, in diagonals of the image."""
    size = np.stack([widths, heights], axis=1).astype(np.float64)
    away = centers * size - middles
    return np.asarray(np.sqrt((away**2).sum(axis=1)) / np.sqrt((size**2).sum(axis=1)), np.float64)


def _best(both: Ints, union: Ints, drift: NDArray[np.float64]) -> list[list[Any]]:
    """By place in the sequence: best truth, shared pixels, union, drift."""
    if not both.shape[1]:
        return [[-1] * len(drift), [0] * len(drift), [0] * len(drift), drift.tolist()]
    iou = quotient(both, union)
    best = iou.argmax(axis=1)
    k = np.arange(len(best))
    found = iou[k, best] > 0
    return [
        np.where(found, best, -1).tolist(),
        np.where(found, both[k, best], 0).tolist(),
        np.where(found, union[k, best], 0).tolist(),
        drift.tolist(),
    ]
