"""Every integer of PBench's score rows: clean-up, assigned pairs, unions, duplicates and places in the sequence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets._util.arrow import list_column
from bench_datasets.benchmarks.pbench import BENCHMARK
from bench_datasets.benchmarks.pbench.batch import Rows
from bench_datasets.benchmarks.pbench.boundary import measure_boundaries
from bench_datasets.benchmarks.pbench.protocol import PBenchProtocol
from bench_datasets.masks import MaskColumn, group_hits, nms, nms_order, quotient, resize, union_overlaps
from bench_datasets.scoring.matching import assign, settled

MATCHED = ("matched_prediction", "matched_truth", "matched_intersection", "matched_union")
POSITIONS = ("position_truth", "position_intersection", "position_union", "position_drift")

NMS_IOU = 0.5
"""The released clean-up's threshold; the redundancy of predictions is measured with it under every protocol."""

DUPLICATE_IOU = 0.5
"""From this IoU with one and the same truth mask on, a second prediction is a duplicate."""

SCHEMA: pa.Schema = BENCHMARK.score_features(boundary=True).arrow_schema
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


def measure(rows: Rows, protocol: PBenchProtocol, *, boundary: bool) -> dict[str, pa.Array]:
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

    hits = _hits(predicted, groups, true, true_groups, row)
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
    # An empty prediction is the right one for a row without ground truth; one that counts as wrong is a false positive.
    for name in ("raw_count", "nms_count", "kept_count"):
        found[name] = found[name] + (rows.wrong & (found["true_count"] == 0))
    per_row = np.bincount(own, minlength=n)
    return {
        **{name: pa.array(values, SCHEMA.field(name).type) for name, values in found.items()},
        **{name: list_column(SCHEMA.field(name).type, values, per_row) for name, values in matched.items()},
        **_positions(rows, hits),
    }


def _sizes(rows: Rows, compared: Flags) -> tuple[Ints, Ints]:
    """Heights and widths that the predictions are to have: their row's truth's, or where there is none their own."""
    given, size = rows.predicted.masks, rows.true.masks
    first = rows.true.groups[:-1][rows.predicted.row_of]
    heights, widths = given.heights.copy(), given.widths.copy()
    heights[compared], widths[compared] = size.heights[first[compared]], size.widths[first[compared]]
    return heights, widths


def _suppress(predicted: MaskColumn, row: Ints, compared: Flags, n: int) -> Flags:
    """Apply non-maximum suppression; rows without ground truth have no size and keep every mask."""
    keep = np.ones(len(predicted), np.bool_)
    some = np.flatnonzero(compared)
    column = predicted if len(some) == len(predicted) else predicted.take(some)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(row[some], minlength=n))])
    keep[some] = nms(column, bounds, NMS_IOU)
    return keep


def _hits(predicted: MaskColumn, groups: Ints, true: MaskColumn, true_groups: Ints, row: Ints) -> Hits:
    """The pairs that share a pixel, of all pairs of all rows; `row` is each prediction's."""
    left, right, both = group_hits(predicted, groups, true, true_groups)
    union = predicted.areas()[left] + true.areas()[right] - both
    return Hits(row[left], left, right, both, union, quotient(both, union))


def _pairs(hits: Hits, clean: Flags, order: Ints, groups: Ints, true_groups: Ints) -> Ints:
    """Assigned pairs, as positions among the hits; in each row by `order`, in which the solver sees predictions.

    The solver sees the rows that leave it a choice: how it settles ties depends on the whole matrix.
    """
    some = np.flatnonzero(clean[hits.predicted])
    certain, left_open = settled(hits.predicted[some], hits.true[some], hits.iou[some])
    contested = np.zeros(len(groups) - 1, np.bool_)
    contested[hits.row[some[left_open]]] = True
    certain &= ~contested[hits.row[some]]
    chosen = [some[certain]]
    bounds = np.searchsorted(hits.row, np.arange(len(groups)))
    for i in np.flatnonzero(contested).tolist():
        own = slice(int(bounds[i]), int(bounds[i + 1]))
        p, t = hits.predicted[own] - groups[i], hits.true[own] - true_groups[i]
        n, m = int(groups[i + 1] - groups[i]), int(true_groups[i + 1] - true_groups[i])
        iou = np.zeros((n, m))
        iou[p, t] = hits.iou[own]
        seen = order[groups[i] : groups[i + 1]]
        seen = seen[clean[seen]] - groups[i]
        solved = assign(iou[seen])
        pair = seen[solved.predicted] * m + solved.true
        chosen.append(own.start + np.flatnonzero(np.isin(p * m + t, pair)))
    pairs = np.concatenate(chosen)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return pairs[np.argsort(rank[hits.predicted[pairs]], kind="stable")]


def _duplicates(hits: Hits, true_row: Ints, n: int) -> Ints:
    """`(n,) int64`, summed over a row's truth masks: predictions beyond the first that come near."""
    near = np.bincount(hits.true[hits.iou >= DUPLICATE_IOU], minlength=len(true_row))
    return np.bincount(true_row, weights=np.maximum(near - 1, 0), minlength=n).astype(np.int64)


def _positions(rows: Rows, hits: Hits) -> dict[str, pa.Array]:
    """The columns by place in the sequence; null in rows whose order of generation is not known."""
    ordered = rows.has_centers
    if not ordered.any():
        return {name: pa.nulls(len(rows), SCHEMA.field(name).type) for name in POSITIONS}
    masks, groups = rows.predicted.masks, rows.predicted.groups
    there = ordered[rows.predicted.row_of]
    best, shared, union = _best(hits, len(masks))
    middles, size = _middles(masks), np.stack([masks.widths, masks.heights], axis=1).astype(np.float64)
    centers = rows.centers.flatten().flatten().to_numpy(zero_copy_only=False).reshape(-1, 2)
    away = centers * size[there] - middles[there]
    drift = np.sqrt((away**2).sum(axis=1)) / np.sqrt((size[there] ** 2).sum(axis=1))
    first = np.where(best >= 0, best - rows.true.groups[:-1][rows.predicted.row_of], -1)
    values = (first[there], shared[there], union[there], drift)
    sizes = np.where(ordered, np.diff(groups), 0)
    return {
        name: list_column(SCHEMA.field(name).type, value, sizes, ordered)
        for name, value in zip(POSITIONS, values, strict=True)
    }


def _best(hits: Hits, count: int) -> tuple[Ints, Ints, Ints]:
    """Of each of `count` predictions: the truth it meets best (of equals the first), shared pixels, union; -1, 0, 0."""
    begin = np.flatnonzero(np.diff(hits.predicted, prepend=-1))  # hits stand by prediction, then by truth
    first = begin
    if len(begin):
        most = np.repeat(np.maximum.reduceat(hits.iou, begin), np.diff(begin, append=len(hits.iou)))
        equal = np.flatnonzero(hits.iou == most)
        first = equal[np.searchsorted(equal, begin)]
    best, shared, union = np.full(count, -1), np.zeros(count, np.int64), np.zeros(count, np.int64)
    at = hits.predicted[first]
    best[at], shared[at], union[at] = hits.true[first], hits.shared[first], hits.union[first]
    return best, shared, union


def _middles(masks: MaskColumn) -> NDArray[np.float64]:
    """`(m, 2) float64`, the middle x, y of each mask's box in pixels; NaN for an empty mask."""
    box = masks.boxes().astype(np.float64)
    middle = box[:, :2] + box[:, 2:] / 2
    middle[box[:, 2] == 0] = np.nan
    return middle
