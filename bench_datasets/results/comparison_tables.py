"""A comparison for people: plain text, HTML for notebooks, JSON for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from bench_datasets._util.grid import Grid, html_tables, render_html, text_lines
from bench_datasets.benchmark import get_benchmark
from bench_datasets.results.compare import Comparison, Difference, Rank
from bench_datasets.results.estimates import ALL
from bench_datasets.results.layout import RANKED
from bench_datasets.results.result import Metric
from bench_datasets.results.tables import many, n_of, show

HEAD = [
    "metric", "A", "B", "difference", "95 % CI", "p", "p (Holm)", "win / tie / loss", "n", "min. detectable"
]  # fmt: skip
NOTES = (
    "Difference = B - A, in percentage points (counts and means in their own unit).",
    "(A)/(B): significantly better run (Holm-corrected p < .05 of a paired permutation test).",
    "95 % CI: paired bootstrap confidence interval of the difference.",
    "win / tie / loss: units (rows, sets, images or videos) in which B is better, equal, worse.",
    "min. detectable: minimum detectable difference (80 % power, alpha .05).",
)


def as_text(comparison: Comparison) -> str:
    """Sentences first, then one table per pair, then places; the sentences again, as tables may be long."""
    parts = ["\n".join([*opening(comparison), *said(comparison), *NOTES])]
    for grid in grids(comparison):
        parts.append("\n".join([grid.title, *text_lines(grid)]))
    parts.append("\n".join(said(comparison)))
    return "\n\n".join(parts)


def said(comparison: Comparison) -> list[str]:
    """The result of each pair in sentences."""
    found = []
    for (a, b), statements in comparison.statements.items():
        first, *rest = statements
        found += [first if len(comparison.statements) == 1 else f"{a} vs. {b}: {first}", *rest]
    return found


def opening(comparison: Comparison) -> list[str]:
    """Lines that name the compared runs, and remarks about them."""
    return [
        f"{comparison.benchmark}, protocol {comparison.protocol}: {comparison.rows:,} paired rows; bootstrap and"
        f" permutation test over {many(comparison.unit, comparison.clusters)}.",
        *(f"{remark[:1].upper()}{remark[1:]}." for remark in comparison.remarks),
        *(f"{name} was scored with an oracle: its {oracle} are those of the ground truth, so this is not a model's"
          " result." for name, oracle in comparison.oracles.items()),
    ]  # fmt: skip


def grids(comparison: Comparison) -> list[Grid]:
    """One table per pair and part, and one of places; metrics without a difference are counted and left out."""
    tables = []
    for (a, b), found in comparison.pairs.items():
        head = ["metric", a, b, *HEAD[3:]]
        for by in dict.fromkeys(item.part[0] for item in found):
            items = [item for item in found if item.part[0] == by]
            rows = [_row(item) for item in items if _differs(item)]
            title = f"{a} (A) vs. {b} (B)" + (f", by {by}" if by else "")
            if rows:
                tables.append(Grid(title + _left_out(items), head, rows))
    if comparison.ranks:
        tables.append(_places(comparison.ranks))
    return tables


def main_part(comparison: Comparison, by: Sequence[str] = ()) -> Comparison:
    """The same with the main numbers alone: the headline and its parts, and the headline by the columns asked for.

    A headline without parts stands with the numbers at the same rank, and with those that have no rank.

    Args:
        comparison: of any runs.
        by: columns whose slices were asked for.
    """
    headline, name = comparison.headline, comparison.protocol.partition("@")[0]
    family = get_benchmark(comparison.benchmark).headline_parts.get(name, "")
    ranked = RANKED.fullmatch(headline)

    def is_main(item: Difference) -> bool:
        if item.part != ALL:
            return item.part[0] in by and item.metric in (headline, family.rstrip("/"))
        if item.metric == headline or family:
            return item.metric == headline or item.metric.startswith(family)
        other = RANKED.fullmatch(item.metric)
        if other is None:
            return "/" not in item.metric
        return ranked is not None and other["column"] == ranked["column"]

    return replace(comparison, pairs={pair: list(filter(is_main, found)) for pair, found in comparison.pairs.items()})


def further(comparison: Comparison, shown: Comparison) -> str:
    """Sentence with the number of metrics that are not shown; empty if all are."""
    left = [item for pair, found in comparison.pairs.items() for item in found if item not in shown.pairs[pair]]
    if not left:
        return ""
    differing = [item for item in left if _differs(item)]
    if not differing:
        return f"Not shown: {len(left):,} further metrics; none of them differs."
    significant = sum(item.verdict is not None for item in differing)
    few = f"{significant:,}" if significant else "none"
    return f"Not shown: {len(left):,} further metrics; {len(differing):,} differ, {few} of them significantly."


def _differs(item: Difference) -> bool:
    """Whether two runs differ in a number that both have."""
    return math.isfinite(item.difference) and (item.difference != 0 or any(item.ci95 or ()))


def _left_out(items: Sequence[Difference]) -> str:
    undefined = sum(not math.isfinite(item.difference) for item in items)
    alike = sum(not _differs(item) for item in items) - undefined
    words = [f"{alike} equal in both"] * (alike > 0) + [f"{undefined} undefined in a run"] * (undefined > 0)
    return f" (not shown: {', '.join(words)})" if words else ""


def _row(item: Difference) -> list[str]:
    name = item.metric if item.part == ALL else f"{item.part[1]}: {item.metric}"

    def text(value: float, interval: tuple[float, float] | None = None) -> str:
        return show(Metric(value, item.n, interval), item.metric)

    low, high = item.ci95 or (math.nan, math.nan)
    counted = [Metric(item.a, item.n), Metric(item.b, item.n if item.n_b is None else item.n_b)]
    duel = "" if item.wins is None else f"{item.wins} / {item.ties} / {item.losses}"
    better = {"A": " (A)", "B": " (B)", None: ""}[item.verdict]
    return [
        name, text(item.a), text(item.b), text(item.difference) + better, f"[{text(low)}, {text(high)}]",
        _p(item.p), _p(item.p_holm), duel, n_of(counted),
        text(item.detectable),
    ]  # fmt: skip


def _p(value: float) -> str:
    return "-" if not math.isfinite(value) else f"{value:.4f}"


def _places(ranks: Sequence[Rank]) -> Grid:
    rows = []
    for rank in sorted(ranks, key=lambda rank: (rank.metric, rank.rank)):
        interval = f"[{rank.ci95[0]:g}, {rank.ci95[1]:g}]"
        rows.append([rank.metric, rank.name, show(Metric(rank.value, 1), rank.metric), f"{rank.rank:g}", interval])
    return Grid("places", ["metric", "run", "value", "place", "95 % CI"], rows)


_HEAD = "<p>{% for line in lines %}{{ line }}{% if not loop.last %}<br>{% endif %}{% endfor %}</p>"


def as_html(comparison: Comparison) -> str:
    """The comparison as an HTML fragment; every text is escaped."""
    said_lines = [*opening(comparison), *said(comparison), *NOTES]
    return render_html(_HEAD, lines=said_lines) + html_tables(grids(comparison))


def as_json(comparison: Comparison) -> str:
    """All numbers as JSON, unsorted, with `null` for undefined ones."""
    content: dict[str, Any] = {
        name: getattr(comparison, name)
        for name in ("benchmark", "protocol", "names", "rows", "unit", "clusters", "draws", "permutations", "seed")
    }
    if comparison.oracles:
        content["oracles"] = comparison.oracles
    content["pairs"] = [
        {
            "a": a,
            "b": b,
            "sentence": comparison.sentences[a, b],
            "differences": [{**_plain(asdict(item)), "better": item.verdict} for item in found],
        }
        for (a, b), found in comparison.pairs.items()
    ]
    content["ranks"] = [_plain(asdict(rank)) for rank in comparison.ranks]
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in fields.items() if name != "differing"}

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        return [plain(item) for item in value] if isinstance(value, tuple) else value

    return {name: plain(value) for name, value in fields.items()}
