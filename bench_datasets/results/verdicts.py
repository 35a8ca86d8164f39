"""Sentences about two runs, from their differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bench_datasets.results.estimates import ALL
from bench_datasets.results.result import Metric
from bench_datasets.results.tables import is_fraction, many, show

if TYPE_CHECKING:
    from bench_datasets.results.compare import Difference

LEAST = 6
"""Clusters that must differ before any permutation test can fall below .05: m of them have 2^m arrangements, two of
which (none swapped, all swapped) give the observed difference, so p is never below 2 / 2^m."""


def statements(
    a: str, b: str, found: Sequence[Difference], headline: str, family: str, unit: str = "row",
    label: Callable[[str], str] = str,
) -> list[str]:  # fmt: skip
    """Sentences about two runs: first the headline metric, then its parts.

    Args:
        a: name of the first.
        b: name of the second.
        found: their differences.
        headline: the key of the headline metric.
        family: what the keys of its parts begin with.
        unit: what was resampled and swapped.
        label: a metric's name for a sentence, by its key.
    """
    if all(d.difference == 0 or not math.isfinite(d.difference) for d in found):
        return [f"{a} and {b} have the same value in every metric."]
    whole = next((d for d in found if d.part == ALL and d.metric == headline), None)
    parts = [d for d in found if d.part == ALL and family and d.metric.startswith(family) and d.metric != headline]
    said = [] if whole is None else [_whole(whole, a, b, unit, label(headline))]
    return [*said, *_parts(parts, {"A": a, "B": b}, family, unit)] or ["The headline metric is undefined."]


def _whole(item: Difference, a: str, b: str, unit: str, name: str) -> str:
    """The sentence about the headline metric."""
    if not math.isfinite(item.difference):
        return f"{name}: undefined in at least one of {a} and {b}."
    if item.difference == 0:
        return f"{name}: {a} and {b} have the same value ({_text(item.a, item)})."
    points = " points" if is_fraction(item.metric) else ""
    side = "higher" if item.difference > 0 else "lower"
    facts = [] if item.ci95 is None else [f"95 % CI {_text(item.ci95[0], item)} to {_text(item.ci95[1], item)}"]
    if math.isfinite(item.p_holm):
        facts.append(f"paired permutation test {chance(item.p_holm)}{_corrected(item)}")
    brackets = f" ({'; '.join(facts)})" if facts else ""
    text = f"{name}: {b} is {_text(abs(item.difference), item)}{points} {side} than {a}{brackets}."
    if item.verdict:
        better = "" if item.higher_is_better else f" ({a if item.verdict == 'A' else b} is better: lower is better)"
        return f"{text} Significant at 0.05{better}."
    if item.differing < LEAST:
        differ = f"only {many(unit, item.differing)} differ{'s' if item.differing == 1 else ''}"
        return f"{text} Too few differing {many(unit)} for a significance test ({differ}, at least {LEAST} are needed)."
    return f"{text} Not significant at 0.05."


def _parts(parts: Sequence[Difference], names: dict[str, str], family: str, unit: str) -> list[str]:
    """Sentences about the headline's parts: where a run is better, where the test says nothing, where it cannot."""
    defined = [d for d in parts if math.isfinite(d.difference)]
    better: dict[str, list[str]] = {}
    few: list[str] = []
    for item in defined:
        name = item.metric[len(family) :] if family.endswith("/") else item.metric
        if item.verdict:
            better.setdefault(item.verdict, []).append(name)
        elif item.difference and item.differing < LEAST:
            few.append(name)
    said = [
        f"{names[side]} is significantly better at {', '.join(where)} (Holm-corrected p < 0.05)."
        for side, where in better.items()
    ]
    if few:
        said.append(f"{', '.join(few)}: too few differing {many(unit)} (< {LEAST}) for a significance test.")
    rest = len(defined) - len(few) - sum(map(len, better.values()))
    if rest:
        others = "the other" if better or few else "any of the"
        where = "the other part" if rest == 1 and (better or few) else f"{others} {rest} part{'' if rest == 1 else 's'}"
        said.append(f"No significant difference in {where}.")
    return said


def _text(value: float, item: Difference) -> str:
    return show(Metric(value, 1), item.metric)


def _corrected(item: Difference) -> str:
    return "" if item.p == item.p_holm else ", Holm-corrected"


def chance(p: float) -> str:
    """A p-value for a sentence.

    Example:
        >>> chance(0.0589), chance(0.0001), chance(1.0)
        ('p = 0.059', 'p < 0.001', 'p = 1.000')
    """
    return "p < 0.001" if p < 0.0005 else f"p = {p:.3f}"
