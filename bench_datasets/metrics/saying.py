"""What can be said of two runs, and why no more can: sentences from differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench_datasets.metrics.gathering import ALL
from bench_datasets.results import Metric
from bench_datasets.results_view import many, show

if TYPE_CHECKING:
    from bench_datasets.metrics.comparing import Difference

LEAST = 6
"""Clusters that must differ before any swap test can fall below .05: m of them have 2^m arrangements, two of which
(none swapped, all swapped) give the difference that was seen, so p is never below 2 / 2^m."""


def sentence(a: str, b: str, found: Sequence[Difference], headline: str, family: str, unit: str = "row") -> str:
    """What can be said of two runs, and no more; where an interval and its test do not agree, why.

    Args:
        a: name of the first.
        b: name of the second.
        found: their differences.
        headline: the metric that stands for the result.
        family: what its parts' keys begin with.
        unit: what was resampled and swapped.
    """
    whole = next((d for d in found if d.part == ALL and d.metric == headline), None)
    parts = [d for d in found if d.part == ALL and family and d.metric.startswith(family) and d.metric != headline]
    if all(d.difference == 0 or not math.isfinite(d.difference) for d in found):
        return f"{a} and {b} give the same numbers everywhere."
    names = {"A": a, "B": b}
    better: dict[str, list[str]] = {}
    for d in parts:
        if d.verdict:
            better.setdefault(d.verdict, []).append(d.metric[len(family) :])
    said = []
    if whole is not None and whole.verdict:
        said.append(f"{names[whole.verdict]} is better by {headline}")
    said += [f"{names[side]} is better at {', '.join(where)}" for side, where in better.items()]
    why = [f"By {headline} {text}." for d in (whole,) if d is not None and (text := reason(d, unit, always=not said))]
    grouped: dict[str, list[str]] = {}
    for d in parts:
        if text := reason(d, unit, always=False, alone=False):
            grouped.setdefault(text, []).append(d.metric[len(family) :])
    why += [f"At {', '.join(where)} {text}." for text, where in grouped.items()]
    if not said:
        return " ".join([f"The data can't tell {a} and {b} apart.", *why])
    settled = sum(map(len, better.values()))
    rest = "; elsewhere the data can't tell" if parts and settled < len(parts) else ""
    return " ".join([f"{'; '.join(said)}{rest}.", *why])


def reason(item: Difference, unit: str, *, always: bool, alone: bool = True) -> str:
    """Why nothing, or something, is said of a difference although its interval seems to say otherwise.

    Args:
        item: the difference.
        unit: what was resampled and swapped.
        always: say it even where interval and test agree.
        alone: whether the sentence is about this difference alone, with its own interval and numbers.

    Returns:
        The end of a sentence; empty where there is nothing to explain.
    """
    if item.ci95 is None or not math.isfinite(item.p_holm) or item.difference == 0:
        return ""
    apart = item.ci95[0] > 0 or item.ci95[1] < 0
    low, high = (show(Metric(bound, 1), item.metric) for bound in item.ci95)
    interval = f"the interval [{low}, {high}]" if alone else "the interval"
    p = f"p = {item.p_holm:.4f} by swapping" + ("" if item.p == item.p_holm else ", corrected over the parts")
    if item.verdict:
        return "" if apart else f"{interval} holds 0, but {p}"
    if not apart and not always:
        return ""
    begin = f"{interval} leaves 0 out, but " if apart else ""
    if item.differing < LEAST:
        if not alone:
            return f"{begin}fewer than {LEAST} {many(unit)} differ: no swap test can reach p < .05 with so few"
        differ = f"{many(unit, item.differing)} differ{'s' if item.differing == 1 else ''}"
        return f"{begin}only {differ}: no swap test can reach p < .05 with fewer than {LEAST}"
    return f"{begin}{p}"
