"""From a batch of PBench rows to its score rows: a pure function, masks in, small integers out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.faults import Fault, FaultError
from bench_datasets.masks import (
    MaskColumn,
    group_intersections,
    nms,
    nms_order,
    quotient,
    resize,
    union_overlaps,
)
from bench_datasets.masks.resize import MAX_RESIZED
from bench_datasets.metrics.hashes import row_hashes
from bench_datasets.metrics.masklists import CHUNK_BYTES, MaskLists, parts
from bench_datasets.metrics.matching import assign
from bench_datasets.metrics.options import ScoreOptions
from bench_datasets.metrics.pbench.boundary import measure_boundaries
from bench_datasets.metrics.pbench.columns import features
from bench_datasets.metrics.pbench.protocol import Protocol, get_protocol
from bench_datasets.metrics.pbench.rows import Rows, prediction_faults, read_rows

CHUNK_PAIRS = 1 << 21
"""Pairs of masks that are compared at a time."""

MATCHED = ("matched_prediction", "matched_truth", "matched_intersection", "matched_union")
POSITIONS = ("position_truth", "position_intersection", "position_union", "position_drift")

NMS_IOU = 0.5
"""The released clean-up's threshold; the redundancy of predictions is measured with it under every protocol."""

DUPLICATE_IOU = 0.5
"""From this IoU with one and the same truth mask on, a second prediction is a duplicate."""


def score_table(batch: pa.Table | Mapping[str, Any], options: ScoreOptions) -> pa.Table:
    """Score a batch.

    Args:
        batch: rows with `pred_masks` beside the truth, as an Arrow table or as columns by name.
        options: how; the protocol, and what to do about faults.

    Returns:
        One score row a row of the batch, in the batch's order, with the columns of `SCORE_COLUMNS` (and of
        `BOUNDARY_COLUMNS`, if the options ask for them).

    Raises:
        FaultError: a row has a fault and the options say to stop.
        BenchError: a column is absent.
    """
    protocol = get_protocol(options.protocol)
    rows = read_rows(batch, options.level)
    schema = features(options.boundary).arrow_schema
    parts = [_score_chunk(chunk, protocol, options) for chunk in _chunks(rows)]
    columns = {name: [value for part in parts for value in part[name]] for name in schema.names}
    return pa.Table.from_pydict(columns, schema=schema.remove_metadata())


def _chunks(rows: Rows) -> Iterator[Rows]:
    """Parts of bounded work: by bytes of counts and by pairs of masks, at least a row each."""
    size = rows.true.bytes_a_row() + rows.predicted.bytes_a_row()
    true, predicted = np.diff(rows.true.groups), np.diff(rows.predicted.groups)
    for start, stop in parts(size / CHUNK_BYTES + predicted * (true + predicted) / CHUNK_PAIRS):
        yield rows.slice(start, stop)


def _score_chunk(rows: Rows, protocol: Protocol, options: ScoreOptions) -> dict[str, list[Any]]:
    faults, hashable = _faults(rows, protocol, options)
    good = np.array([i for i in range(len(rows)) if i not in faults], np.int64)
    hashed = rows if len(hashable) == len(rows) else rows.take(hashable)
    hashes = dict(zip(hashable.tolist(), row_hashes(hashed.labels, hashed.true.masks, hashed.true.groups), strict=True))
    columns: dict[str, list[Any]] = {
        "key": rows.keys,
        "cluster": rows.clusters,
        "protocol": [f"{protocol.name}@{protocol.version}"] * len(rows),
        "row_sha256": [hashes.get(i, "") for i in range(len(rows))],
        "level": rows.levels,
        "faults": [sorted({*rows.noted[i], *(fault.code for fault in faults.get(i, ()))}) for i in range(len(rows))],
        "skipped": [i in faults for i in range(len(rows))],
    }
    measured = _measure(rows if len(good) == len(rows) else rows.take(good), protocol, boundary=options.boundary)
    place = {int(row): k for k, row in enumerate(good)}
    for name, (values, default) in measured.items():
        columns[name] = [values[place[i]] if i in place else default for i in range(len(rows))]
    return columns


def _faults(rows: Rows, protocol: Protocol, options: ScoreOptions) -> tuple[dict[int, list[Fault]], NDArray[np.int64]]:
    """Rows that can't be scored, and the rows whose truth is sound enough to be hashed.

    Raises:
        FaultError: there is such a row and the options say to stop.
    """
    unsound_truth = rows.true.problems()
    unsound_predictions = rows.predicted.problems()
    found: dict[int, list[Fault]] = {}
    for i in range(len(rows)):
        faults = [
            Fault("malformed_mask", rows.keys[i], f"masks (truth), {text}; mend the source's row")
            for text in unsound_truth.get(i, ())
        ]
        faults += _sizes(rows, i) if not faults else []
        faults += prediction_faults(rows, i, unsound_predictions, options.missing)
        if not faults and protocol.row_score == "union_hit":
            faults += _own_size(rows, i)
        if faults and options.stops:
            raise FaultError(*faults[0])
        if faults:
            found[i] = faults
    return found, np.array([i for i in range(len(rows)) if i not in unsound_truth], np.int64)


def _sizes(rows: Rows, i: int) -> list[Fault]:
    """Truth masks that differ in size can't be scored, nor predictions be resized to a size beyond all bounds."""
    sizes = _sizes_of(rows.true, i)
    if len(sizes) > 1:
        shown = ", ".join(f"{h} x {w}" for h, w in sorted(sizes))
        text = f"masks (truth): expected one size, found {shown}; mend the source's row"
        return [Fault("image_size_mismatch", rows.keys[i], text)]
    for height, width in sizes:
        if height * width > MAX_RESIZED and _sizes_of(rows.predicted, i) - sizes:
            text = f"pred_masks: too large to resize to the truth's {height} x {width}; give them at that size"
            return [Fault("size_mismatch", rows.keys[i], text)]
    return []


def _sizes_of(lists: MaskLists, i: int) -> set[tuple[int, int]]:
    """Heights and widths of one row's masks."""
    some = slice(int(lists.groups[i]), int(lists.groups[i + 1]))
    return set(zip(lists.masks.heights[some].tolist(), lists.masks.widths[some].tolist(), strict=True))


def _own_size(rows: Rows, i: int) -> list[Fault]:
    """A row without truth has no size but its predictions' own, which must then be one."""
    sizes = _sizes_of(rows.predicted, i)
    if rows.true.groups[i + 1] > rows.true.groups[i] or len(sizes) < 2:
        return []
    shown = ", ".join(f"{h} x {w}" for h, w in sorted(sizes))
    text = f"pred_masks: the row has no truth, so its predictions must be of one size; found {shown}"
    return [Fault("size_mismatch", rows.keys[i], text)]


def _measure(rows: Rows, protocol: Protocol, *, boundary: bool) -> dict[str, tuple[list[Any], Any]]:
    """Every integer of sound rows: by column, the values and what stands for a skipped row."""
    n = len(rows)
    true, true_row = rows.true.masks, rows.true.row_of
    given, row = rows.predicted.masks, rows.predicted.row_of
    groups = rows.predicted.groups
    has_truth = np.diff(rows.true.groups) > 0
    height, width = np.full(n, -1), np.full(n, -1)
    height[true_row], width[true_row] = true.heights, true.widths
    compared = has_truth[row]
    predicted = resize(
        given, np.where(compared, height[row], given.heights), np.where(compared, width[row], given.widths)
    )
    keep = _suppress(predicted, row, compared, n)
    clean = keep if protocol.nms is not None else np.ones(len(predicted), np.bool_)
    in_union = (
        compared if protocol.without_truth == "left_out" or protocol.row_score == "f1" else np.ones(len(row), np.bool_)
    )
    in_union = in_union & clean
    united = np.where(in_union, row, -1)
    pixels = union_overlaps(n, (predicted, united), (true, true_row))
    outlines = measure_boundaries(n, predicted, united, true, true_row) if boundary else {}

    shared = group_intersections(predicted, groups, true, rows.true.groups)
    predicted_area, true_area = predicted.areas(), true.areas()
    middles = _middles(given) if any(c is not None for c in rows.centers) else None
    found: dict[str, list[Any]] = {name: [] for name in (*MATCHED, "duplicates", *POSITIONS)}
    at = 0
    for i in range(n):
        p = slice(int(groups[i]), int(groups[i + 1]))
        t = slice(int(rows.true.groups[i]), int(rows.true.groups[i + 1]))
        both = shared[at : at + (p.stop - p.start) * (t.stop - t.start)].reshape(p.stop - p.start, t.stop - t.start)
        at += both.size
        union = predicted_area[p, None] + true_area[None, t] - both
        iou = quotient(both, union)
        order = nms_order(predicted_area[p]) if protocol.nms is not None else np.arange(len(both))
        pairs = _pairs(iou, order[clean[p][order]])
        values = (pairs[0], pairs[1], both[pairs], union[pairs])
        for name, value in zip(MATCHED, values, strict=True):
            found[name].append(value.tolist())
        found["duplicates"].append(int(np.maximum((iou >= DUPLICATE_IOU).sum(axis=0) - 1, 0).sum()))
        centers = rows.centers[i]
        by_place: list[Any] = [None] * len(POSITIONS)
        if centers is not None and middles is not None:
            by_place = _positions(both, union, iou, _drift(centers, middles[p], given.widths[p], given.heights[p]))
        for name, place in zip(POSITIONS, by_place, strict=True):
            found[name].append(place)

    return {
        "true_count": (np.diff(rows.true.groups).tolist(), 0),
        "raw_count": (np.diff(groups).tolist(), 0),
        "nms_count": (np.bincount(row[keep], minlength=n).tolist(), 0),
        "kept_count": (np.bincount(row[clean], minlength=n).tolist(), 0),
        **{name: (found[name], []) for name in MATCHED},
        "union_intersection": (pixels[0].tolist(), 0),
        "union_predicted": (pixels[1].tolist(), 0),
        "union_true": (pixels[2].tolist(), 0),
        "duplicates": (found["duplicates"], 0),
        **{name: (found[name], None) for name in POSITIONS},
        **{name: (values, 0) for name, values in outlines.items()},
    }


def _pairs(iou: NDArray[np.float64], order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Assigned pairs that overlap, as positions of predictions and truths; the solver sees predictions in `order`."""
    pairs = assign(iou[order])
    chosen, partner = order[pairs.predicted], pairs.true
    overlap = iou[chosen, partner] > 0
    return chosen[overlap], partner[overlap]


def _suppress(predicted: MaskColumn, row: NDArray[np.int64], compared: NDArray[np.bool_], n: int) -> NDArray[np.bool_]:
    """What non-maximum suppression keeps; rows without truth, which have no size, keep everything."""
    keep = np.ones(len(predicted), np.bool_)
    some = np.flatnonzero(compared)
    column = predicted if len(some) == len(predicted) else predicted.take(some)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(row[some], minlength=n))])
    keep[some] = nms(column, bounds, NMS_IOU)
    return keep


def _middles(masks: MaskColumn) -> NDArray[np.float64]:
    """`(m, 2) float64`, the middle x, y of each mask's box in pixels; NaN for an empty mask."""
    box = masks.boxes().astype(np.float64)
    middle = box[:, :2] + box[:, 2:] / 2
    middle[box[:, 2] == 0] = np.nan
    return middle


def _drift(
    centers: NDArray[np.float64], middles: NDArray[np.float64], widths: NDArray[np.int64], heights: NDArray[np.int64]
) -> NDArray[np.float64]:
    """`(n,) float64`, from the predicted centres (fractions) to the masks' middles, in diagonals of the image."""
    size = np.stack([widths, heights], axis=1).astype(np.float64)
    away = centers * size - middles
    return np.asarray(np.sqrt((away**2).sum(axis=1)) / np.sqrt((size**2).sum(axis=1)), np.float64)


def _positions(
    both: NDArray[np.int64], union: NDArray[np.int64], iou: NDArray[np.float64], drift: NDArray[np.float64]
) -> list[list[Any]]:
    """By place in the sequence: best truth, shared pixels, union, drift."""
    if not iou.shape[1]:
        return [[-1] * len(drift), [0] * len(drift), [0] * len(drift), drift.tolist()]
    best = iou.argmax(axis=1)
    k = np.arange(len(best))
    found = iou[k, best] > 0
    return [
        np.where(found, best, -1).tolist(),
        np.where(found, both[k, best], 0).tolist(),
        np.where(found, union[k, best], 0).tolist(),
        drift.tolist(),
    ]
