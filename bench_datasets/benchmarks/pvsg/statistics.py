"""From PVSG's score rows to its numbers: every one a function of summed columns, so that each has an interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.benchmarks.pvsg.panoptic import WINDOWS
from bench_datasets.benchmarks.pvsg.protocol import DEFAULT_K, DEFAULT_THRESHOLDS, PVSGProtocol, get_protocol
from bench_datasets.benchmarks.pvsg.relation_matching import Hits, flat, offsets, row_of, texts
from bench_datasets.faults import BenchError
from bench_datasets.masks import quotient
from bench_datasets.results.estimates import ALL, Gathered, by_column
from bench_datasets.results.statistics import Floats, Statistic

SPAN_BUCKETS: tuple[tuple[str, float, float], ...] = (
    ("0", 0, 0), ("1-10", 1, 10), ("11-25", 11, 25), ("26-50", 26, 50), ("51-100", 51, 100), (">100", 101, np.inf),
)  # fmt: skip
"""Relations by frames in their spans: name, first, last."""

SIZE_BUCKETS: tuple[tuple[str, float, float], ...] = (
    ("never visible", 0, 0), ("<1 %", 0, 0.01), ("1-5 %", 0.01, 0.05), ("5-20 %", 0.05, 0.20), (">=20 %", 0.20, np.inf),
)  # fmt: skip
"""Relations by the smaller of subject and object, its mean share of the frames it is visible in: name, from, below."""

_ROW_SLICES = ("source",)
_RELATION_SLICES = ("predicate", "span", "size")

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Scores:
    """The columns of n scored rows that numbers are made of.

    Attributes:
        table: the score rows.
        hits: of triplets on relations.
        row: `(R,) int64`, the row of each relation.
        predicates: `(R,)` texts.
        spans: `(R,) int64`, frames in the spans.
        sizes: `(R,) float64`, mean share of the frame of the smaller object; 0 where one is never visible.
        thresholds: overlaps from which a triplet hits.
        ranks: values of K.
    """

    table: pa.Table
    hits: Hits
    row: NDArray[np.int64]
    predicates: NDArray[np.object_]
    spans: NDArray[np.int64]
    sizes: Floats
    thresholds: tuple[float, ...]
    ranks: tuple[int, ...]

    @property
    def rows(self) -> NDArray[np.int64]:
        """All rows: every number is resampled over all videos."""
        return np.arange(len(self.table))


def read_scores(
    table: pa.Table, protocol: PVSGProtocol, thresholds: Sequence[float] | None, ranks: Sequence[int]
) -> Scores:
    """The columns of a score table.

    Raises:
        BenchError: thresholds are not numbers in (0, 1], ranks no whole numbers from 1, or the rows are of several
            oracles.
    """
    grid = tuple(float(t) for t in (DEFAULT_THRESHOLDS if thresholds is None else thresholds))
    if not grid or not all(0 < t <= 1 for t in grid):
        raise BenchError(f"thresholds: expected overlaps in (0, 1], got {list(grid)}")
    if not ranks or min(ranks) < 1:
        raise BenchError(f"k: expected whole numbers from 1, got {list(ranks)}")
    oracles = sorted(set(table["oracle"].to_pylist()))
    if len(oracles) > 1:
        raise BenchError(f"scores: expected rows of one oracle, found {', '.join(repr(o) for o in oracles)}")
    row = row_of(table, "relation_visible")
    share = quotient(flat(table, "object_area"), flat(table, "object_frames"))
    begin = offsets(table, "object_area")[:-1][row]
    pixels = (table["height"].to_numpy().astype(np.int64) * table["width"].to_numpy())[row]
    ends = [flat(table, f"relation_{name}") for name in ("subject", "object")]
    sides = [np.where(end < 0, 0.0, np.append(share, 0.0)[np.where(end < 0, 0, end + begin)]) for end in ends]
    return Scores(
        table, Hits.read(table, protocol), row, texts(table, "relation_predicate"),
        flat(table, "relation_span"), np.minimum(*sides) / np.maximum(pixels, 1), grid,
        tuple(dict.fromkeys(int(k) for k in ranks)),
    )  # fmt: skip


def relation_statistics(scores: Scores, where: Mask, *, mean: bool = True) -> dict[str, Statistic]:
    """The numbers of the relations in `where` `(R,) bool`, by key.

    Args:
        scores: the rows.
        where: the relations.
        mean: whether to give the means over predicates too.
    """
    hits = scores.hits
    result: dict[str, Statistic] = {}

    def add(name: str, value: NDArray[np.int64] | Mask) -> None:
        result[name] = _pooled(scores, value, where)

    def add_mean(name: str, value: NDArray[np.int64] | Mask) -> None:
        if mean:
            result[name] = _over_predicates(scores, value, where)

    if hits.protocol.weak:
        counted = hits.weak()
        for k in scores.ranks:
            value = np.bincount(hits.relation[counted & (hits.rank < k)], minlength=hits.relations)
            add(f"weak_official/R@{k}", value)
            add_mean(f"weak_official/mR@{k}", value)
    for t in scores.thresholds:
        full, pair, timeless = hits.first(t), hits.first(t, predicates=False), hits.first_timeless(t)
        for k in scores.ranks:
            key = f"@{k}/{t:g}"
            if not hits.protocol.weak:
                add(f"R{key}", full < k)
                add_mean(f"mR{key}", full < k)
                add(f"pair_recall{key}", pair < k)
            add(f"timeless_recall{key}", timeless < k)
            if not hits.protocol.weak:
                add(f"loss/first_stage{key}", (full >= k) & (hits.best < t))
                add(f"loss/second_stage{key}", (full >= k) & (hits.best >= t))
    return result


def tube_statistics(scores: Scores, rows: Mask) -> dict[str, Statistic]:
    """`tube_recall@t` of the rows in `rows` `(n,) bool`: visible objects with a predicted tube of their class."""
    table = scores.table
    row = row_of(table, "object_area")
    visible = (flat(table, "object_frames") > 0) & rows[row]
    twin = row_of(table, "twin_object")
    which = flat(table, "twin_object") + offsets(table, "object_area")[:-1][twin]
    tube = flat(table, "twin_tube") + offsets(table, "tube_area")[:-1][twin]
    shared = flat(table, "twin_shared")
    iou = quotient(shared, flat(table, "object_area")[which] + flat(table, "tube_area")[tube] - shared)
    best = np.zeros(len(visible))
    np.maximum.at(best, which, iou)
    return {
        f"tube_recall@{t:g}": _sums(scores, row, [(best >= t) & visible, visible], _quotient, int(visible.sum()))
        for t in scores.thresholds
    }


def panoptic_statistics(scores: Scores, rows: Mask) -> dict[str, Statistic]:
    """VPQ by window and over all, and STQ with its two parts, of the rows in `rows` `(n,) bool`."""
    return _vpq(scores, rows) | _stq(scores, rows)


def _vpq(scores: Scores, rows: Mask) -> dict[str, Statistic]:
    """VPQ: per class the matched IoUs over TP + FP / 2 + FN / 2, averaged over classes, then over windows."""
    table = scores.table
    row, window = row_of(table, "vpq_window"), flat(table, "vpq_window")
    category, iou = texts(table, "vpq_category"), flat(table, "vpq_iou")
    size = 2 * flat(table, "vpq_tp") + flat(table, "vpq_fp") + flat(table, "vpq_fn")
    parts = []
    for length in WINDOWS:
        here = (window == length) & rows[row]
        classes = sorted(set(category[here].tolist()))
        parts.append(
            np.stack(
                [
                    _by_row(scores, row, values * (here & (category == name)))
                    for name in classes
                    for values in (2 * iou, size)
                ]
                or [np.zeros(len(table))] * 2,
                axis=1,
            )
        )
    edges = np.cumsum([0, *(part.shape[1] for part in parts)]).tolist()
    counts = [int(part[:, 1::2].any(axis=0).sum()) for part in parts]

    def overall(sums: Floats) -> Floats:
        means = [_class_mean(sums[..., a:b]) for a, b in pairwise(edges)]
        return np.asarray(np.mean(np.stack(means, axis=-1), axis=-1))

    return {
        "vpq": Statistic(scores.rows, np.concatenate(parts, axis=1), overall, min(counts)),
        **{
            f"vpq/{length}": Statistic(scores.rows, part, _class_mean, n)
            for length, part, n in zip(WINDOWS, parts, counts, strict=True)
        },
    }


def _stq(scores: Scores, rows: Mask) -> dict[str, Statistic]:
    """STQ = sqrt(AQ x SQ): association over countable tubes, and mean IoU over classes."""
    table = scores.table
    row = row_of(table, "object_area")
    area = flat(table, "object_area")
    tracks = flat(table, "object_is_thing").astype(np.bool_) & (area > 0) & rows[row]
    of = row_of(table, "track_object")
    which = flat(table, "track_object") + offsets(table, "object_area")[:-1][of]
    shared = flat(table, "track_shared")
    # Each pair adds TPA x IoU / |g|; a video's pairs are summed here, the videos' sums by `estimate`.
    gain = shared * quotient(shared, flat(table, "track_area") + area[which] - shared) / np.maximum(area[which], 1)
    association = [_by_row(scores, of, gain * rows[of]), _by_row(scores, row, tracks)]
    of_class, names = row_of(table, "class_category"), texts(table, "class_category")
    true, predicted, both = (flat(table, f"class_{name}") for name in ("true", "predicted", "shared"))
    here = rows[of_class]
    classes = sorted(set(names[here].tolist()))
    semantic = [
        _by_row(scores, of_class, values * (here & (names == name)))
        for name in classes
        for values in (both, true + predicted - both)
    ]
    empty = [np.zeros(len(table))] * 2
    columns = np.stack([*association, *(semantic or empty)], axis=1)

    def both_parts(sums: Floats) -> Floats:
        return np.asarray(np.sqrt(_quotient(sums[..., :2]) * _class_mean(sums[..., 2:])))

    n, c = int(tracks.sum()), len(classes)
    return {
        "stq": Statistic(scores.rows, columns, both_parts, min(n, c)),
        "stq/aq": Statistic(scores.rows, columns[:, :2], _quotient, n),
        "stq/sq": Statistic(scores.rows, columns[:, 2:], _class_mean, c),
    }


def relation_slices(scores: Scores) -> dict[tuple[str, str], Mask]:
    """The relations of each slice, by predicate, span length and object size; slices without any are left out."""
    names = sorted(set(scores.predicates.tolist()))
    found = {("predicate", name): scores.predicates == name for name in names}
    found |= {("span", name): (scores.spans >= a) & (scores.spans <= b) for name, a, b in SPAN_BUCKETS}
    for name, low, below in SIZE_BUCKETS:
        inside = (
            scores.sizes == 0 if below == 0 else (scores.sizes > 0) & (scores.sizes >= low) & (scores.sizes < below)
        )
        found["size", name] = inside
    return {part: where for part, where in found.items() if where.any()}


def _pooled(scores: Scores, value: NDArray[np.int64] | Mask, where: Mask) -> Statistic:
    return _sums(scores, scores.row, [value * where, where], _quotient, int(where.sum()))


def _over_predicates(scores: Scores, value: NDArray[np.int64] | Mask, where: Mask) -> Statistic:
    """The mean over the predicates that occur; a draw without one of them leaves it out."""
    names = sorted(set(scores.predicates[where].tolist()))
    columns = [
        part * (where & (scores.predicates == name))
        for name in names
        for part in (value, np.ones(len(where), np.int64))
    ]
    return _sums(scores, scores.row, columns or [where, where], _class_mean, len(names))


def _sums(
    scores: Scores,
    row: NDArray[np.int64],
    values: Sequence[NDArray[np.int64] | Mask],
    of: Callable[[Floats], Floats],
    n: int,
) -> Statistic:
    columns = np.stack([_by_row(scores, row, value) for value in values], axis=1).astype(np.int64)
    return Statistic(scores.rows, columns, of, n)


def _by_row(scores: Scores, row: NDArray[np.int64], values: NDArray[np.int64] | Floats | Mask) -> Floats:
    return np.bincount(row, np.asarray(values, np.float64), minlength=len(scores.table)).astype(np.float64)


def _quotient(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[..., 0] / sums[..., 1])


def _class_mean(sums: Floats) -> Floats:
    """Mean of a / b over the classes (pairs of columns a, b) where b is not 0; NaN where all are."""
    top, bottom = sums[..., 0::2], sums[..., 1::2]
    there = bottom > 0
    values = np.divide(top, bottom, out=np.zeros(np.shape(top)), where=there)
    with np.errstate(invalid="ignore"):
        return np.asarray(values.sum(axis=-1) / np.where(there.any(axis=-1), there.sum(axis=-1), np.nan))


def slice_statistics(
    table: pa.Table,
    protocol: str,
    *,
    k: Sequence[int] = DEFAULT_K,
    thresholds: Sequence[float] | None = None,
    by: Sequence[str] = (),
) -> Gathered:
    """Every number of scored rows, by slice.

    Args:
        table: score rows without skipped ones, sorted by key.
        protocol: the protocol they were scored under.
        k: ranks.
        thresholds: overlaps from which a triplet hits, in place of .5 and .1.
        by: further columns of the table to slice by.

    Returns:
        The numbers of all rows, and those by predicate, span length, object size, source and further columns.

    Raises:
        BenchError: a column to slice by is absent, or a list; thresholds or ranks are out of range.
    """
    scores = read_scores(table, get_protocol(protocol), thresholds, tuple(k))

    def of_rows(rows: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, Statistic]:
        return {
            **relation_statistics(scores, rows[scores.row]),
            **tube_statistics(scores, rows),
            **panoptic_statistics(scores, rows),
        }

    def numbers(rows: NDArray[np.int64]) -> dict[str, Statistic]:
        where = np.zeros(len(table), np.bool_)
        where[rows] = True
        return of_rows(where)

    columns = [column for column in (*_ROW_SLICES, *by) if column not in _RELATION_SLICES]
    found = by_column(table, columns, numbers, _RELATION_SLICES)
    relations = {
        part: relation_statistics(scores, where, mean=part[0] != "predicate")
        for part, where in relation_slices(scores).items()
    }
    return {ALL: found.pop(ALL), **relations, **found}
