"""From PBench's score rows to its numbers: every one a function of summed columns, so that each has an interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.benchmarks.pbench.protocol import IOU_GRID, PBenchProtocol, get_protocol
from bench_datasets.benchmarks.pbench.schema import BOUNDARY_COLUMNS, LEVELS
from bench_datasets.faults import BenchError
from bench_datasets.masks import list_offsets, list_values, quotient
from bench_datasets.results.estimates import ALL, Gathered, by_column
from bench_datasets.results.statistics import Floats, Statistic, mean, quotient_of_sums, ratio

COUNT_BUCKETS: tuple[tuple[str, int, float], ...] = (
    ("0", 0, 0), ("1", 1, 1), ("2-5", 2, 5), ("6-10", 6, 10), ("11-20", 11, 20), ("21-50", 21, 50),
    ("51-100", 51, 100), ("101-150", 101, 150), (">150", 151, np.inf),
)  # fmt: skip
"""Rows by number of truth masks, and predictions by place in the sequence (from 1): name, first, last."""

UNION_HIT = 0.5
"""The union IoU from which `card` calls a row right."""


@dataclass(frozen=True)
class Scores:
    """The columns of scored rows that numbers are made of, all `(n, ...)`.

    Attributes:
        levels: level by name.
        true, raw, nms, kept: counts of masks.
        tp: `(n, t) int64`, true positives at each threshold of `IOU_GRID`.
        tp_half: `(n,) int64`, true positives at .5.
        row_score: `(n,) float64`, the protocol's score of each row.
        counted: `(n,) bool`, the rows that the protocol's aggregate takes in.
        shared, left, right: pixels of the unions: shared, predicted, true.
        duplicates: as in the table.
        outlines: the columns of `BOUNDARY_COLUMNS` `(n, 6)`, or `None` for rows scored without that option.
    """

    levels: NDArray[np.str_]
    true: NDArray[np.int64]
    raw: NDArray[np.int64]
    nms: NDArray[np.int64]
    kept: NDArray[np.int64]
    tp: NDArray[np.int64]
    tp_half: NDArray[np.int64]
    row_score: Floats
    counted: NDArray[np.bool_]
    shared: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    duplicates: NDArray[np.int64]
    outlines: NDArray[np.int64] | None = None


def read_scores(table: pa.Table, protocol: PBenchProtocol, thresholds: Sequence[float] | None = None) -> Scores:
    """The columns of a score table, with each row's score under the protocol (or at other thresholds).

    Raises:
        BenchError: thresholds are not numbers in (0, 1], or the protocol has none.
    """
    if thresholds is not None and protocol.row_score == "union_hit":
        raise BenchError(f"thresholds: rows under {protocol.name} are right or wrong at {UNION_HIT:g}; leave them out")
    levels = np.array(table["level"].to_pylist(), dtype=np.str_)
    true, raw, nms, kept = (_integers(table, f"{name}_count") for name in ("true", "raw", "nms", "kept"))
    pairs = table["matched_intersection"].combine_chunks()
    offsets = list_offsets(pairs)
    row = np.repeat(np.arange(len(table)), np.diff(offsets))
    unions = list_values(table["matched_union"].combine_chunks())
    iou = quotient(list_values(pairs).to_numpy(), unions.to_numpy())

    def reached(grid: Sequence[float]) -> NDArray[np.int64]:
        hits = [np.bincount(row[iou >= t], minlength=len(table)) for t in grid]
        return np.stack(hits, axis=1).astype(np.int64)

    shared, left, right = (_integers(table, f"union_{name}") for name in ("intersection", "predicted", "true"))
    has_truth = true > 0
    if protocol.row_score == "union_hit":
        score = _union_iou(shared, left + right - shared, true, raw) >= UNION_HIT
        counted = np.ones(len(table), np.bool_)
    else:
        own = _grid(thresholds) if thresholds is not None else None
        score = np.where(
            levels == "dense",
            _mean_f1(reached(own or protocol.dense_thresholds), kept + true),
            _mean_f1(reached(own or protocol.thresholds), kept + true),
        )
        score = np.where(has_truth, score, raw == 0)
        counted = has_truth if protocol.without_truth == "left_out" else np.ones(len(table), np.bool_)
    return Scores(
        levels, true, raw, nms, kept, reached(IOU_GRID), reached((0.5,))[:, 0], score.astype(np.float64), counted,
        shared, left, right, _integers(table, "duplicates"), _outlines(table),
    )  # fmt: skip


def statistics(scores: Scores, protocol: PBenchProtocol, where: NDArray[np.bool_]) -> dict[str, Statistic]:
    """Every number of the rows in `where` `(n,) bool`, under its name without a level.

    Source of the formulas: Falcon Perception (arXiv 2603.27365), appendix on metrics (Macro-F1, pmF1, IL_MCC, cgF1).
    """
    rows = np.flatnonzero(where)
    with_truth = np.flatnonzero(where & (scores.true > 0))
    union_rows = rows if protocol.row_score == "union_hit" else with_truth
    counted = np.flatnonzero(where & scores.counted)
    union = scores.left + scores.right - scores.shared
    union_iou = _union_iou(scores.shared, union, scores.true, scores.raw)
    masks = scores.kept + scores.true
    image = _image_level(scores)
    headline = "accuracy" if protocol.row_score == "union_hit" else "macro_f1"
    pooled = np.concatenate([scores.tp, masks[:, None]], axis=1)
    # cgF1 takes pmF1's sums from rows with truth and IL_MCC's from all rows.
    both = np.concatenate([np.where(scores.true[:, None] > 0, pooled, 0), image], axis=1)
    error = np.abs(scores.raw - scores.true)
    return {
        headline: mean(scores.row_score, counted),
        "pmf1": _make(pooled, with_truth, _pooled_f1),
        "il_mcc": _make(image, rows, _mcc),
        "cgf1": _make(both, rows, lambda s: _pooled_f1(s[..., :-4]) * _mcc(s[..., -4:])),
        "giou": mean(union_iou, union_rows),
        "ciou": ratio(scores.shared, union, union_rows),
        **_boundary(scores, union_rows),
        "micro_f1@0.5": ratio(2 * scores.tp_half, masks, with_truth),
        "mask_redundancy_rate": ratio(scores.raw - scores.nms, scores.raw, with_truth),
        "duplicates": mean(scores.duplicates, with_truth),
        "count_error": mean(error, rows),
        "collapse": mean(scores.raw == 0, with_truth),
        **{
            name: _make(image[:, [k]], rows, lambda s: s[..., 0])
            for k, name in enumerate(("il_tp", "il_tn", "il_fp", "il_fn"))
        },
    }


def level_statistics(scores: Scores, protocol: PBenchProtocol) -> dict[str, Statistic]:
    """Every number by level, `<name>/<level>`, and the protocol's number over the levels."""
    present = [level for level in LEVELS if (scores.levels == level).any()]
    result: dict[str, Statistic] = {}
    if protocol.row_score == "union_hit":
        rows = np.flatnonzero(scores.levels != "dense")
        result["accuracy"] = mean(scores.row_score, rows)
    elif all((scores.counted & (scores.levels == level)).any() for level in LEVELS):
        rows = np.flatnonzero(scores.counted)
        member = np.stack([scores.levels == level for level in LEVELS], axis=1)
        columns = np.concatenate([member * scores.row_score[:, None], member], axis=1)
        result["average"] = _make(columns, rows, _mean_of_levels)
    by_level = {level: statistics(scores, protocol, scores.levels == level) for level in present}
    for name in by_level[present[0]] if present else ():
        result |= {f"{name}/{level}": by_level[level][name] for level in present}
    return result


def count_slices(scores: Scores, protocol: PBenchProtocol) -> dict[str, dict[str, Statistic]]:
    """Every number by the row's number of truth masks (`COUNT_BUCKETS`)."""
    return {
        name: statistics(scores, protocol, (scores.true >= first) & (scores.true <= last))
        for name, first, last in COUNT_BUCKETS
        if ((scores.true >= first) & (scores.true <= last)).any()
    }


def position_slices(table: pa.Table) -> dict[str, dict[str, Statistic]]:
    """Where a long output goes wrong: by place in the generated sequence (`COUNT_BUCKETS`, from 1).

    `precision@0.5` is the share of predictions that are the first to reach IoU .5 with their best truth mask,
    `duplicate_rate` the share that reach it on a mask already claimed, `drift` the mean distance from the predicted
    centre to the middle of the predicted mask's box in diagonals of the image.
    """
    column = table["position_truth"].combine_chunks()
    if column.null_count == len(column):
        return {}
    offsets = list_offsets(column)
    row = np.repeat(np.arange(len(table)), np.diff(offsets))
    place = np.arange(len(row)) - offsets[:-1][row] + 1
    truth = list_values(column).to_numpy()
    both, union, drift = (
        list_values(table[f"position_{name}"].combine_chunks()).to_numpy()
        for name in ("intersection", "union", "drift")
    )
    good = quotient(both, union) >= 0.5
    claim = row * (int(truth.max(initial=0)) + 2) + truth
    first = np.zeros(len(row), np.bool_)
    first[np.flatnonzero(good)[np.unique(claim[good], return_index=True)[1]]] = True
    measured = np.isfinite(drift)
    result: dict[str, dict[str, Statistic]] = {}
    for name, low, high in COUNT_BUCKETS[1:]:
        here = (place >= low) & (place <= high)
        if not here.any():
            continue
        rows = np.unique(row[here])

        def sums(values: NDArray[np.int64] | Floats | NDArray[np.bool_], of: NDArray[np.bool_] = here) -> Floats:
            return np.bincount(row[of], np.asarray(values, np.float64)[of], minlength=len(table)).astype(np.float64)

        n, drifting = int(here.sum()), here & measured
        result[name] = {
            "precision@0.5": _make(np.stack([sums(first), sums(here)], axis=1), rows, quotient_of_sums, n),
            "duplicate_rate": _make(np.stack([sums(good & ~first), sums(here)], axis=1), rows, quotient_of_sums, n),
            "drift": _make(
                np.stack([sums(drift, drifting), sums(drifting, drifting)], axis=1),
                rows,
                quotient_of_sums,
                int(drifting.sum()),
            ),
        }
    return result


def _outlines(table: pa.Table) -> NDArray[np.int64] | None:
    if not set(BOUNDARY_COLUMNS) <= set(table.column_names):
        return None
    return np.stack([_integers(table, name) for name in BOUNDARY_COLUMNS], axis=1)


def _boundary(scores: Scores, rows: NDArray[np.int64]) -> dict[str, Statistic]:
    """Boundary IoU (mean and pooled) and boundary F of the unions; nothing where they were not measured."""
    if scores.outlines is None:
        return {}
    shared, union, near, predicted, near_true, true = scores.outlines.T
    iou = _union_iou(shared, union, scores.true, scores.raw)
    # 2PR / (P + R) in one division. A mask that fills its image has no contour: two such agree, one is never hit.
    top = 2.0 * near * near_true
    bottom = near * true.astype(np.float64) + near_true * predicted.astype(np.float64)
    value = np.divide(top, bottom, out=np.zeros(len(top)), where=bottom > 0)
    value = np.where((predicted == 0) & (true == 0) & (scores.left > 0) & (scores.right > 0), 1.0, value)
    value = np.where((scores.true == 0) & (scores.raw == 0), 1.0, value)
    return {
        "boundary_iou/giou": mean(iou, rows),
        "boundary_iou/ciou": ratio(shared, union, rows),
        "boundary_f/giou": mean(value, rows),
    }


def _integers(table: pa.Table, name: str) -> NDArray[np.int64]:
    return table[name].to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _grid(thresholds: Sequence[float]) -> tuple[float, ...]:
    grid = tuple(float(t) for t in thresholds)
    if not grid or not all(0 < t <= 1 for t in grid):
        raise BenchError(f"thresholds: expected IoU thresholds in (0, 1], got {list(thresholds)}")
    return grid


def _mean_f1(tp: NDArray[np.int64], masks: NDArray[np.int64]) -> Floats:
    """Mean over thresholds of 2TP / (2TP + FP + FN), in one division: all thresholds share the denominator."""
    mean = np.zeros(len(tp))
    np.divide(2 * tp.sum(axis=1), tp.shape[1] * masks, out=mean, where=masks > 0)
    return mean


def _union_iou(
    shared: NDArray[np.int64], union: NDArray[np.int64], true: NDArray[np.int64], raw: NDArray[np.int64]
) -> Floats:
    """IoU of the unions; 1 where there is neither truth nor prediction."""
    return np.where((true == 0) & (raw == 0), 1.0, quotient(shared, union))


def _image_level(scores: Scores) -> NDArray[np.int64]:
    """`(n, 4) int64`: TP, TN, FP, FN of "is there any" against "was there any"."""
    true, raw = scores.true > 0, scores.raw > 0
    return np.stack([true & raw, ~true & ~raw, ~true & raw, true & ~raw], axis=1).astype(np.int64)


def _make(
    columns: NDArray[np.int64] | Floats, rows: NDArray[np.int64], of: Callable[[Floats], Floats], n: int | None = None
) -> Statistic:
    return Statistic(rows, columns[rows], of, len(rows) if n is None else n)


def _pooled_f1(sums: Floats) -> Floats:
    """pmF1 from summed TP at each threshold and the summed number of predicted and true masks (= 2TP + FP + FN)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((2 * sums[..., :-1] / sums[..., -1:]).mean(axis=-1))


def _mcc(sums: Floats) -> Floats:
    """Matthews' correlation from TP, TN, FP, FN; NaN where a margin is empty."""
    tp, tn, fp, fn = (sums[..., k] for k in range(4))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


def _mean_of_levels(sums: Floats) -> Floats:
    half = sums.shape[-1] // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((sums[..., :half] / sums[..., half:]).mean(axis=-1))


def slice_statistics(
    table: pa.Table, protocol: str, *, thresholds: Sequence[float] | None = None, by: Sequence[str] = ()
) -> Gathered:
    """Every number of scored rows, by slice.

    Args:
        table: score rows without skipped ones, sorted by key.
        protocol: the protocol they were scored under.
        thresholds: IoU thresholds of the row score in place of the protocol's.
        by: further columns of the table to slice by.

    Raises:
        BenchError: a column to slice by is absent, or a list.
    """
    chosen = get_protocol(protocol)
    scores = read_scores(table, chosen, thresholds)
    columns = [column for column in by if column not in ("count", "position")]

    def numbers(rows: NDArray[np.int64]) -> dict[str, Statistic]:
        where = np.zeros(len(table), np.bool_)
        where[rows] = True
        return statistics(scores, chosen, where)

    of_columns = by_column(table, columns, numbers, ("count", "position"))
    del of_columns[ALL]
    counts = {("count", name): part for name, part in count_slices(scores, chosen).items()}
    positions = {("position", name): part for name, part in position_slices(table).items()}
    return {ALL: level_statistics(scores, chosen), **counts, **positions, **of_columns}
