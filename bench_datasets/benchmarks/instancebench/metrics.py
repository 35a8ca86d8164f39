"""InstanceBench's numbers of one run and condition, each a function of sums over TCESs; by the paper's tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bench_datasets.benchmarks.instancebench.assignment import UNRESOLVED, identify
from bench_datasets.benchmarks.instancebench.expressions import Expressions, Flags, Ints
from bench_datasets.benchmarks.instancebench.vocabulary import FAMILIES, OPERATIONS
from bench_datasets.masks import quotient
from bench_datasets.results.statistics import Floats, Statistic, quotient_of_sums

SOURCES = ("coco", "openimages")
GRID = tuple((score, margin) for score in (0.05, 0.10, 0.15) for margin in (0.0, 0.05, 0.10))
"""Identity thresholds of table 18."""

Numbers = dict[str, Statistic]


def make(e: Expressions, columns: Sequence[NDArray[np.generic]], of: Callable[[Floats], Floats], n: int) -> Statistic:
    """Make a statistic from columns that are summed over the rows `(n,)` of one run."""
    if any(column.dtype.kind == "f" for column in columns):
        return Statistic(e.rows, np.stack([np.asarray(column, np.float64) for column in columns], axis=1), of, n)
    return Statistic(e.rows, np.stack([np.asarray(column, np.int64) for column in columns], axis=1), of, n)


def by_row(e: Expressions, values: NDArray[np.generic], where: Flags) -> NDArray[np.generic]:
    """Values of expressions summed by TCES."""
    weights = None if values.dtype.kind == "b" and values is where else np.asarray(values, np.float64)[where]
    sums = np.bincount(e.row[where], weights, minlength=len(e.keys))
    return sums if values.dtype.kind == "f" else sums.astype(np.int64)


def difference(sums: Floats) -> Floats:
    """First over second, less third over fourth."""
    return np.asarray(quotient_of_sums(sums[..., :2]) - quotient_of_sums(sums[..., 2:4]))


def mean(e: Expressions, values: NDArray[np.generic], where: Flags) -> Statistic:
    """Mean of values over the expressions `where` `(m,) bool`."""
    return make(e, [by_row(e, values, where), by_row(e, where, where)], quotient_of_sums, int(where.sum()))


def share(e: Expressions, hit: Flags, of: Flags) -> Statistic:
    """Share of the rows `of` `(n,) bool` that are `hit`."""
    return make(e, [hit & of, of], quotient_of_sums, int(of.sum()))


def every(e: Expressions, good: Flags, where: Flags) -> tuple[Flags, Flags]:
    """By row: whether all expressions `where` are good, and whether there is one."""
    count = np.bincount(e.row[where], minlength=len(e.keys))
    hits = np.bincount(e.row[where & good], minlength=len(e.keys))
    return hits == count, count > 0


def masks(e: Expressions, tau: float, thresholds: Sequence[float]) -> Numbers:
    """Table 2 and what goes by operation (9) and source (13): mIoU, oIoU, P@t, All@t, worst path."""
    core = e.core
    least = np.full(len(e.keys), np.inf)
    np.minimum.at(least, e.row[core], e.q[core])
    has = np.isfinite(least)
    result = {
        "miou": mean(e, e.q, core),
        "oiou": make(e, [by_row(e, e.shared, core), by_row(e, e.union, core)], quotient_of_sums, int(core.sum())),
    }
    for t in dict.fromkeys((0.5, tau, *thresholds)):
        result[f"p@{t:g}"] = mean(e, e.q >= t, core)
    for t in dict.fromkeys((tau, 0.9, *thresholds)):
        result[f"all@{t:g}"] = share(e, *every(e, e.q >= t, core))
    result["worst_path_iou"] = make(e, [np.where(has, least, 0.0), has], quotient_of_sums, int(has.sum()))
    return result


def outlines(e: Expressions) -> Numbers:
    """Boundary IoU and boundary F of the core expressions, where the option `boundary` measured them.

    F = 2PR / (P + R) from the shares of contour pixels that are near the other contour; 1 if neither mask, both having
    pixels, has a contour (both fill the image), 0 if the prediction has no pixel.
    """
    if e.outlines is None:
        return {}
    shared, union, hit_a, total_a, hit_b, total_b = e.outlines.T
    precision, recall = quotient(hit_a, total_a), quotient(hit_b, total_b)
    f = np.divide(2 * precision * recall, precision + recall, out=np.zeros(len(union)), where=precision + recall > 0)
    f = np.where((e.areas > 0) & (total_a == 0) & (total_b == 0), 1.0, f)
    return {"boundary_iou/miou": mean(e, quotient(shared, union), e.core), "boundary_f/miou": mean(e, f, e.core)}


def sources(e: Expressions, tau: float) -> Numbers:
    """Tables 9, 13 and 15: by operation, by source, by both, their differences and the rank correlation."""
    core, of_row = e.core, e.sources[e.row]
    result: Numbers = {f"miou/operation/{op}": mean(e, e.q, core & (e.operation == op)) for op in OPERATIONS}
    names = [*SOURCES, *sorted(set(e.sources.tolist()) - set(SOURCES))]
    for name in names:
        result[f"miou/source/{name}"] = mean(e, e.q, core & (of_row == name))
        good, has = every(e, e.q >= tau, core)
        result[f"all@{tau:g}/source/{name}"] = share(e, good, has & (e.sources == name))
    for name in names:
        result |= {
            f"miou/{name}/{op}": mean(e, e.q, core & (of_row == name) & (e.operation == op)) for op in OPERATIONS
        }
    for metric in ("miou", f"all@{tau:g}"):
        coco, other = (result[f"{metric}/source/{name}"] for name in SOURCES)
        n = coco.n + other.n if coco.n and other.n else 0
        columns = np.concatenate([other.columns, coco.columns], axis=1)
        result[f"delta_source/{metric}"] = Statistic(e.rows, columns, difference, n)
    cells = [result[f"miou/{name}/{op}"] for name in SOURCES for op in OPERATIONS]
    common = sum(result[f"miou/{SOURCES[0]}/{op}"].n > 0 < result[f"miou/{SOURCES[1]}/{op}"].n for op in OPERATIONS)
    columns = np.concatenate([cell.columns for cell in cells], axis=1)
    result["spearman/source"] = Statistic(e.rows, columns, spearman, common if common > 1 else 0)
    return result


def spearman(sums: Floats) -> Floats:
    """Rank correlation (average ranks) of the operations' means in the two sources, over operations both have."""
    cells = sums.reshape(*sums.shape[:-1], 2, len(OPERATIONS), 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = cells[..., 0] / cells[..., 1]
        both = np.isfinite(means).all(axis=-2)
        ranks = []
        for side in (0, 1):
            x = np.where(both, means[..., side, :], np.nan)
            below = (x[..., None, :] < x[..., :, None]).sum(axis=-1)
            equal = (x[..., None, :] == x[..., :, None]).sum(axis=-1)
            ranks.append(np.where(both, below + (equal + 1) / 2, 0.0))
        count = both.sum(axis=-1, keepdims=True)
        centred = [np.where(both, r - r.sum(axis=-1, keepdims=True) / count, 0.0) for r in ranks]
        top = (centred[0] * centred[1]).sum(axis=-1)
        return np.asarray(top / np.sqrt((centred[0] ** 2).sum(axis=-1) * (centred[1] ** 2).sum(axis=-1)))


def identities(e: Expressions, taus: Sequence[float]) -> Numbers:
    """Tables 3 and 14: All-target-ID, retention over its three populations, NCI, conditional mask IoU, TM."""
    minimal, variant = e.first(e.role == "minimal"), e.first(e.role == "variant")
    paraphrase = e.first(e.role == "paraphrase")
    pair = e.eligible & (minimal >= 0) & (variant >= 0)
    matched = pair & (paraphrase >= 0)
    a = {name: np.where(index >= 0, e.right[index], False) for name, index in
         (("minimal", minimal), ("variant", variant), ("paraphrase", paraphrase))}  # fmt: skip
    core_all, _ = every(e, e.right, e.core)
    dense_all, _ = every(e, e.right, np.ones(len(e.row), np.bool_))
    result = {
        "all_target_id": share(e, core_all, e.eligible),
        "all_target_id/dense": share(e, dense_all, e.eligible),
        "retention/variant": share(e, a["variant"], pair & a["minimal"]),
    }
    for track in ("variant", "paraphrase"):
        result[f"retention/{track}/matched"] = share(e, a[track], matched & a["minimal"])
    for track in ("paraphrase", "same_target", "exclusion"):
        of_track = (e.track == track) & (minimal[e.row] >= 0)
        given = of_track & a["minimal"][e.row]
        result[f"retention/{track}/dense"] = mean(e, e.right, given)
        for tau in taus:
            sure = given & (e.q[minimal[e.row]] >= tau)
            result[f"tm@{tau:g}/{track}/dense"] = mean(e, e.right & (e.q >= tau), sure)
    columns = [matched, matched & a["minimal"]]
    for track in ("variant", "paraphrase"):
        columns += [matched & a[track], matched & a["minimal"] & a[track]]
    n = int(matched.sum())
    result["nci/variant"] = make(e, columns, lambda s: nci(s, 2), n)
    result["nci/paraphrase"] = make(e, columns, lambda s: nci(s, 4), n)
    result["delta_nci"] = make(e, columns, lambda s: nci(s, 2) - nci(s, 4), n)
    both = pair & a["minimal"] & a["variant"]
    union = np.where(both, e.areas[minimal] + e.areas[variant] - e.core_shared, 0)
    result["conditional_mask_iou"] = make(
        e, [np.where(both, quotient(e.core_shared, union), 0.0), both], quotient_of_sums, int(both.sum())
    )
    return result


def nci(sums: Floats, at: int) -> Floats:
    """Normalised co-identification from sums: matched rows, minimal right, then (track right, both right) from `at`.

    NCI = (p_mx - p_m p_x) / (min(p_m, p_x) - p_m p_x); NaN where the denominator is 0.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        p_m, p_x, p_mx = sums[..., 1] / sums[..., 0], sums[..., at] / sums[..., 0], sums[..., at + 1] / sums[..., 0]
        chance = p_m * p_x
        bottom = np.minimum(p_m, p_x) - chance
        return np.asarray(np.where(bottom > 0, (p_mx - chance) / bottom, np.nan))


def failures(e: Expressions, tau: float, where: Flags, assigned: Ints | None = None) -> Numbers:
    """Tables 16 and 17: the kinds of failure among the expressions `where` `(m,) bool` that failed, as shares."""
    means = e.identity.assigned if assigned is None else assigned
    failing = where & (e.q < tau)
    right, unresolved = means == e.target, means == UNRESOLVED
    kinds = {
        "identity_error": ~right,
        "same_class_switch": ~right & ~unresolved,
        "unresolved": unresolved,
        "correct_id_poor_mask": right,
    }
    return {name: mean(e, kind, failing) for name, kind in kinds.items()}


def sensitivity(e: Expressions, tau: float) -> Numbers:
    """Table 18: the same under other identity thresholds, with All-target-ID."""
    where = e.core & e.eligible[e.row]
    result: Numbers = {}
    for score, margin in GRID:
        assigned = identify(e.scores, e.offsets, score, margin).assigned
        prefix = f"sensitivity/{score:g}/{margin:g}"
        all_right, _ = every(e, assigned == e.target, e.core)
        result[f"{prefix}/all_target_id"] = share(e, all_right, e.eligible)
        result |= {f"{prefix}/{name}": item for name, item in failures(e, tau, where, assigned).items()}
    return result


def tracks(e: Expressions) -> Numbers:
    """Table 12: mIoU by track, and what exclusion costs in the same TCES."""
    names = ("minimal", "paraphrase", "same_target", "exclusion")
    result = {f"track/{track}/miou": mean(e, e.q, e.track == track) for track in names}
    minimal = e.first(e.role == "minimal")
    excluded = (e.track == "exclusion") & (minimal[e.row] >= 0)
    result["exclusion_drop"] = mean(e, e.q[minimal[e.row]] - e.q, excluded)
    return result


def named(e: Expressions) -> Numbers:
    """Table 7, for answers that name a candidate: a missing or unknown one is wrong."""
    right = e.chosen == e.target
    core = e.core & e.eligible[e.row]
    all_right, _ = every(e, right, e.core)
    minimal, variant = e.first(e.role == "minimal"), e.first(e.role == "variant")
    pair = e.eligible & (minimal >= 0) & (variant >= 0)
    first = np.where(minimal >= 0, right[minimal], False)
    second = np.where(variant >= 0, right[variant], False)
    return {
        "oracle/expression_id": mean(e, right, core),
        "oracle/minimal_id": mean(e, right, core & (e.role == "minimal")),
        "oracle/variant_id": mean(e, right, core & (e.role == "variant")),
        "oracle/all_target_id": share(e, all_right, e.eligible),
        "oracle/retention": share(e, second, pair & first),
    }


def boxes(e: Expressions) -> Numbers:
    """Table 6: boxes against the box of the target's mask; a missing one is wrong."""
    return {"box_acc@0.5": mean(e, np.nan_to_num(e.box_iou) >= 0.5, e.core)}


def transitions(e: Expressions) -> dict[str, int]:
    """Number of core pairs that go from one family (minimal) to another (variant)."""
    minimal, variant = e.first(e.role == "minimal"), e.first(e.role == "variant")
    both = (minimal >= 0) & (variant >= 0)
    start, end = e.family[minimal[both]], e.family[variant[both]]
    return {
        f"transition/{one}/{other}": int(((start == one) & (end == other)).sum())
        for one in FAMILIES
        for other in FAMILIES
    }
