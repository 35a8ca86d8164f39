"""InstanceBench's numbers that hold one thing against another: matched effects and interventions."""

from __future__ import annotations

import numpy as np

from bench_datasets.benchmarks.instancebench.expressions import Expressions, Flags, Ints
from bench_datasets.benchmarks.instancebench.metrics import Numbers, by_row, difference, make, mean
from bench_datasets.results.statistics import Floats

EFFECTS = {
    "effect/ordinal-extremal": ("ordinal", "extremal", False),
    "effect/multi_anchor-spatial": ("multi_anchor_relation", "single_anchor_relation", True),
    "effect/nested-spatial": ("nested_grounding", "single_anchor_relation", True),
}
"""Table 10's contrasts: treated operation, control operation, whether controls must be tagged as spatial relations."""

FLAT = 1e-9
"""A deviation below this is the noise of equal values; the trait then tells nothing apart."""

CHANGES = ("category_only", "text_swap")
"""Conditions that ask for something else, in table 11, with numbers of their own."""

AIDS = ("logic_explicit", "deliberation", "same_class_context")
"""Conditions that help the model, in table 11."""


def effects(e: Expressions) -> Numbers:
    """Table 10: mean IoU of treated core expressions less that of their matched controls.

    A treated expression's control has the same category and source and is the nearest in (log target-area fraction,
    log same-class count, expression length in words), each divided by its standard deviation pooled within treated and
    controls, sqrt(((n1 - 1) s1^2 + (n2 - 1) s2^2) / (n1 + n2 - 2)); of equally near ones the first. A trait without
    spread is left out. Controls may be used again; treated ones without any are left out.
    """
    result: Numbers = {}
    for name, (treated, control, spatial) in EFFECTS.items():
        is_treated = e.core & (e.operation == treated)
        is_control = e.core & (e.operation == control) & (e.spatial if spatial else np.ones(len(e.row), np.bool_))
        chosen, partner = match(e, np.flatnonzero(is_treated), np.flatnonzero(is_control))
        matched = np.zeros(len(e.row), np.bool_)
        matched[chosen] = True
        gain = np.zeros(len(e.row))
        gain[chosen] = e.q[chosen] - e.q[partner]
        result[name] = mean(e, gain, matched)
    return result


def match(e: Expressions, treated: Ints, controls: Ints) -> tuple[Ints, Ints]:
    """Treated expressions that have a control, and the control of each."""
    values = np.stack(
        [np.log(np.maximum(e.area_fraction, 1e-300))[e.row], np.log(e.same_class)[e.row], e.words.astype(np.float64)],
        axis=1,
    )
    scale = pooled_deviation(values[treated], values[controls])
    scale = np.where(scale > FLAT, scale, np.inf)
    strata: dict[tuple[str, str], list[int]] = {}
    for k in controls.tolist():
        strata.setdefault((str(e.categories[e.row[k]]), str(e.sources[e.row[k]])), []).append(k)
    chosen, partner = [], []
    for k in treated.tolist():
        pool = strata.get((str(e.categories[e.row[k]]), str(e.sources[e.row[k]])))
        if pool:
            away = (((values[pool] - values[k]) / scale) ** 2).sum(axis=1)
            chosen.append(k)
            partner.append(pool[int(away.argmin())])
    return np.array(chosen, np.int64), np.array(partner, np.int64)


def pooled_deviation(one: Floats, other: Floats) -> Floats:
    """`(c,) float64`: the root of the two groups' variances, pooled by degrees of freedom."""
    freedom = len(one) + len(other) - 2
    if freedom < 1:
        return np.zeros(one.shape[1])
    squares = [((group - group.mean(axis=0)) ** 2).sum(axis=0) if len(group) else 0.0 for group in (one, other)]
    return np.asarray(np.sqrt((squares[0] + squares[1]) / freedom), np.float64)


def interventions(original: Expressions, conditions: dict[str, Expressions]) -> Numbers:
    """Table 11: the model's predictions on changed inputs, compared with those on the original input.

    A condition that the paper does not know is held against the original like its aids, under its own name.
    """
    result: Numbers = {}
    minimal = original.first(original.role == "minimal")
    of_key = {str(key): int(k) for key, k in zip(original.keys, minimal, strict=True) if k >= 0}
    if "category_only" in conditions:
        e = conditions["category_only"]
        asked = e.answered
        base = np.array([of_key.get(str(key), -1) for key in e.keys])
        has = (base >= 0) & (np.bincount(e.row[asked], minlength=len(e.keys)) > 0)
        result["intervention/category_only/miou"] = mean(e, e.q, asked)
        columns = [by_row(e, e.q, asked), by_row(e, asked, asked), np.where(has, original.q[base], 0.0), has]
        result["intervention/category_only/drop"] = make(e, columns, difference, int(has.sum()))
    if "text_swap" in conditions:
        e = conditions["text_swap"]
        swapped: Flags = e.answered & np.isfinite(e.donor_iou)
        donor = np.nan_to_num(e.donor_iou)
        result["intervention/text_swap/donor_iou"] = mean(e, donor, swapped)
        result["intervention/text_swap/donor_preference"] = mean(e, donor > e.q, swapped)
    for name in [*AIDS, *sorted(set(conditions) - {*AIDS, *CHANGES})]:
        if name in conditions:
            e = conditions[name]
            index = _places(original, e)
            paired = e.answered & (index >= 0)
            result[f"intervention/{name}/delta_miou"] = mean(e, e.q - original.q[index], paired)
    return result


def _places(original: Expressions, changed: Expressions) -> Ints:
    """`(m,)`, the place of each expression of `changed` among those of `original`, -1 for none."""
    keys, others = original.keys[original.row], changed.keys[changed.row]
    same = np.array_equal(original.ids, changed.ids) and np.array_equal(keys, others)
    if same and len(np.unique(original.ids)) == len(original.ids):
        return np.arange(len(original.ids))
    place = {pair: k for k, pair in enumerate(zip(keys.tolist(), original.ids.tolist(), strict=True))}
    pairs = zip(others.tolist(), changed.ids.tolist(), strict=True)
    return np.array([place.get(pair, -1) for pair in pairs], np.int64)
