"""From a batch of InstanceBench rows to its score rows: masks in, small integers out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.faults import Fault, FaultError
from bench_datasets.masks import MaskColumn, group_intersections, pair_intersections
from bench_datasets.metrics.hashes import row_hashes
from bench_datasets.metrics.instancebench.columns import features
from bench_datasets.metrics.instancebench.protocol import get_protocol
from bench_datasets.metrics.instancebench.rows import Rows, read_rows, truth_faults
from bench_datasets.metrics.masklists import MaskLists
from bench_datasets.metrics.options import ScoreOptions

UNKNOWN, NOT_ASKED = -1, -2
"""Stand for a candidate that is not among the row's, and for an answer that names none."""

CORE = ("minimal", "variant")


class Kept(NamedTuple):
    """The candidates that identity is decided among.

    Attributes:
        masks: their masks, sound, row by row.
        groups: `(n + 1,) int64`.
        ids: their instance ids.
        target: `(n,) int64`, position of the target among its row's; -1 where there is none.
    """

    masks: MaskColumn
    groups: NDArray[np.int64]
    ids: list[str]
    target: NDArray[np.int64]


def score_table(batch: pa.Table | Mapping[str, Any], options: ScoreOptions) -> pa.Table:
    """Score a batch; see `metrics.pbench.score.score_table`.

    Raises:
        FaultError: a row has a fault and the options say to stop.
        BenchError: a column is absent, or predictions are not aligned with the expressions.
    """
    protocol = get_protocol(options.protocol)
    rows = read_rows(batch)
    kept = _kept(rows)
    faults = _faults(rows, kept, options)
    n = len(rows)
    truth = _without_nulls(rows.candidates)
    broken = truth.problems()
    sound = np.array([i for i in range(n) if i not in broken], np.int64)
    hashed = truth if len(sound) == n else truth.take(sound)
    digests = row_hashes([rows.labels[i] for i in sound], hashed.masks, hashed.groups)
    hashes = dict(zip(sound.tolist(), digests, strict=True))
    columns: dict[str, list[Any]] = {
        "key": rows.keys,
        "run": rows.runs,
        "condition": rows.conditions,
        "cluster": rows.keys,
        "protocol": [f"{protocol.name}@{protocol.version}"] * n,
        "row_sha256": [hashes.get(i, "") for i in range(n)],
        "source": rows.sources,
        "category": rows.categories,
        "faults": [sorted({*rows.noted[i], *(f.code for f in faults.get(i, ()))}) for i in range(n)],
        "skipped": [i in faults for i in range(n)],
    }
    columns |= _measure(rows, kept, faults)
    schema = features().arrow_schema
    return pa.Table.from_pydict({name: columns[name] for name in schema.names}, schema=schema.remove_metadata())


def _without_nulls(lists: MaskLists) -> MaskLists:
    """The masks that are there; a candidate without one is no part of a row's content but by its id."""
    there = np.flatnonzero(lists.masks.present)
    if len(there) == len(lists.masks):
        return lists
    groups = np.searchsorted(there, lists.groups)
    return MaskLists(lists.masks.take(there), groups, lists.present, {})


def _kept(rows: Rows) -> Kept:
    """Candidates with a valid mask that are no crowd; the target stays, whatever it is called."""
    count = len(rows.candidates.masks)
    row = rows.candidates.row_of
    own = np.zeros(count, np.bool_)
    target = rows.candidates.groups[:-1] + rows.targets
    inside = (rows.targets >= 0) & (target < rows.candidates.groups[1:])
    own[target[inside]] = True
    sound = rows.candidates.masks.decoded.status == 0
    index = np.flatnonzero(sound & (~rows.crowd | own))
    groups = np.concatenate([[0], np.cumsum(np.bincount(row[index], minlength=len(rows)))])
    place = np.full(count, -1)
    place[index] = np.arange(len(index)) - groups[:-1][row[index]]
    position = np.where(inside, place[np.where(inside, target, 0)] if count else -1, -1)
    return Kept(rows.candidates.masks.take(index), groups, [rows.candidate_ids[i] for i in index], position)


def _faults(rows: Rows, kept: Kept, options: ScoreOptions) -> dict[int, list[Fault]]:
    """Rows that can't be scored.

    Raises:
        FaultError: there is such a row and the options say to stop.
    """
    unsound = rows.candidates.problems()
    predicted = rows.predicted.problems()
    areas = kept.masks.areas()
    found: dict[int, list[Fault]] = {}
    for i in range(len(rows)):
        key = rows.keys[i]
        faults = truth_faults(rows, i)
        broken = [text for text in unsound.get(i, ()) if not text.endswith("the mask is null")]
        faults += [Fault("malformed_mask", key, f"candidates, {text}; mend the manifest") for text in broken]
        if not faults and kept.target[i] < 0:
            faults = [Fault("target_missing", key, "target: it has no valid mask; mend the manifest")]
        if not faults and not areas[kept.groups[i] + kept.target[i]]:
            faults = [Fault("target_empty", key, "target: its mask has no pixel; mend the manifest")]
        if not faults:
            faults = [Fault(code, key, f"predictions: {text}") for code, text in rows.reading[i]]
            bad = [text for text in predicted.get(i, ()) if not text.endswith("the mask is null")]
            faults += [Fault("malformed_mask", key, f"pred_masks, {text}; re-encode it") for text in bad]
            faults = faults or _sizes(rows, kept, i)
            if not faults and not rows.predicted.present[i] and options.missing == "error":
                text = 'no predictions for this row; predict it, or ask for missing="empty" to count it as wrong'
                faults = [Fault("missing_prediction", key, text)]
        if faults and options.stops:
            raise FaultError(*faults[0])
        if faults:
            found[i] = faults
    return found


def _sizes(rows: Rows, kept: Kept, i: int) -> list[Fault]:
    """Masks of another size than the image's: this benchmark resizes nothing."""
    target = int(kept.groups[i] + kept.target[i])
    height, width = int(kept.masks.heights[target]), int(kept.masks.widths[target])
    for what, column, first, last in (
        ("pred_masks", rows.predicted.masks, rows.groups[i], rows.groups[i + 1]),
        ("candidates", kept.masks, kept.groups[i], kept.groups[i + 1]),
        ("donor_mask", rows.donors, rows.groups[i], rows.groups[i + 1]),
    ):
        for k in range(int(first), int(last)):
            size = int(column.heights[k]), int(column.widths[k])
            if column.present[k] and size != (height, width):
                text = f"{what}, mask {k - int(first)}: expected the size {height} x {width} of the target's mask"
                return [
                    Fault("size_mismatch", rows.keys[i], f"{text}, found {size[0]} x {size[1]}; resize it yourself")
                ]
    return []


def _measure(rows: Rows, kept: Kept, faults: Mapping[int, Any]) -> dict[str, list[Any]]:
    """Every integer, row by row; a skipped row's lists are empty."""
    good = np.array([i not in faults for i in range(len(rows))], np.bool_)
    expression_row = np.repeat(np.arange(len(rows)), np.diff(rows.groups))
    there = rows.predicted.masks.present & good[expression_row]
    index = np.flatnonzero(there)
    masks = rows.predicted.masks.take(index)
    place = np.full(len(there), -1)
    place[index] = np.arange(len(index))
    areas = np.zeros(len(there), np.int64)
    areas[index] = masks.areas()
    left = np.concatenate([[0], np.cumsum(np.bincount(expression_row[index], minlength=len(rows)))])
    shared = group_intersections(masks, left, kept.masks, kept.groups)
    width = np.diff(kept.groups)
    start = np.concatenate([[0], np.cumsum(width[expression_row[index]])])
    donor_area, donor_shared = _donors(rows, masks, place)
    core = _core(rows, masks, place, good)
    box_iou = _boxes(rows, kept, good)
    named = _named(rows, kept)
    spatial = ["spatial_relation" in (tags or ()) for tags in rows.expressions["tags"]]
    words = [len(str(text or "").split()) for text in rows.expressions["text"]]
    masked = _masked(rows)
    kept_areas = kept.masks.areas()
    result: dict[str, list[Any]] = {
        "pixels": _pixels(kept, good).tolist(),
        "target": kept.target.tolist(),
        "candidate_ids": [kept.ids[kept.groups[i] : kept.groups[i + 1]] for i in range(len(rows))],
        "candidate_areas": [kept_areas[kept.groups[i] : kept.groups[i + 1]].tolist() for i in range(len(rows))],
        "core_intersection": core.tolist(),
    }  # fmt: skip
    lists: dict[str, Any] = {
        "expression_ids": rows.expressions["expression_id"],
        "roles": rows.expressions["role"],
        "operations": rows.expressions["operation"],
        "families": rows.expressions["family"],
        "tracks": rows.expressions["track"],
        "spatial": spatial,
        "words": words,
        "answered": rows.answered.tolist(),
        "masked": masked.tolist(),
        "areas": areas.tolist(),
        "intersections": [
            shared[start[p] : start[p + 1]].tolist() if p >= 0 else [0] * int(width[expression_row[k]])
            for k, p in enumerate(place)
        ],
        "donor_area": donor_area.tolist(),
        "donor_intersection": donor_shared.tolist(),
        "chosen": named.tolist(),
        "box_iou": box_iou.tolist(),
    }  # fmt: skip
    for name, flat in lists.items():
        result[name] = [flat[rows.groups[i] : rows.groups[i + 1]] if good[i] else [] for i in range(len(rows))]
    return result


def _pixels(kept: Kept, good: NDArray[np.bool_]) -> NDArray[np.int64]:
    """`(n,) int64`, height x width of the target's mask; 0 for a skipped row."""
    result = np.zeros(len(good), np.int64)
    result[good] = kept.masks.pixels[(kept.groups[:-1] + kept.target)[good]]
    return result


def _donors(rows: Rows, masks: MaskColumn, place: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pixels of each expression's donor target and what the prediction shares with it; -1 and 0 without a donor."""
    area, shared = np.full(len(place), -1), np.zeros(len(place), np.int64)
    sound = rows.donors.decoded.status == 0
    have = np.flatnonzero(sound)
    area[have] = rows.donors.take(have).areas()
    both = np.flatnonzero(sound & (place >= 0))
    shared[both] = pair_intersections(masks.take(place[both]), rows.donors.take(both))
    return area, shared


def _core(rows: Rows, masks: MaskColumn, place: NDArray[np.int64], good: NDArray[np.bool_]) -> NDArray[np.int64]:
    """`(n,) int64`: pixels that the two core predictions share; 0 where one is empty, -1 where a row lacks a role."""
    result = np.full(len(rows), -1)
    pairs = []
    for i in np.flatnonzero(good):
        roles = rows.expressions["role"][rows.groups[i] : rows.groups[i + 1]]
        if all(role in roles for role in CORE):
            one, other = (place[rows.groups[i] + roles.index(role)] for role in CORE)
            result[i] = 0
            if one >= 0 and other >= 0:
                pairs.append((i, one, other))
    if pairs:
        at, one, other = np.array(pairs, np.int64).T
        result[at] = pair_intersections(masks.take(one), masks.take(other))
    return result


def _boxes(rows: Rows, kept: Kept, good: NDArray[np.bool_]) -> NDArray[np.float64]:
    """IoU of each predicted box `[x, y, width, height]` with the box of the target's mask; NaN without one."""
    result = np.full(int(rows.groups[-1]), np.nan)
    if rows.boxes is None:
        return result
    boxes = kept.masks.boxes().astype(np.float64)
    for i in np.flatnonzero(good):
        x, y, w, h = boxes[kept.groups[i] + kept.target[i]]
        for k in range(int(rows.groups[i]), int(rows.groups[i + 1])):
            if rows.boxes[k] is None:
                continue
            bx, by, bw, bh = map(float, rows.boxes[k])
            across = max(0.0, min(x + w, bx + bw) - max(x, bx)) * max(0.0, min(y + h, by + bh) - max(y, by))
            result[k] = across / (w * h + bw * bh - across)
    return result


def _named(rows: Rows, kept: Kept) -> NDArray[np.int64]:
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


def _masked(rows: Rows) -> NDArray[np.bool_]:
    """Answers that are a mask, or nothing at all."""
    result = np.ones(int(rows.groups[-1]), np.bool_)
    for others in (rows.boxes, rows.named):
        if others is not None:
            result &= np.array([value is None for value in others], np.bool_) | rows.predicted.masks.present
    return result & rows.answered
