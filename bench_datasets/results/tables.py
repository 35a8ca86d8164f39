"""A result for people: the same tables as plain text, on a terminal and in a notebook."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bench_datasets._util.grid import Grid, html_tables, plain, render_html, text_lines
from bench_datasets.benchmark import BENCHMARKS
from bench_datasets.faults import FAULTS, BenchError
from bench_datasets.results.layout import by_title, cells, layout_of, singles, slice_metrics
from bench_datasets.scoring.options import COUNT_AS_WRONG

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench_datasets.benchmark import Benchmark
    from bench_datasets.results.result import Metric, Result


FEW = 30
"""Fewer cases than that make an interval that is to be taken with care."""

UNITS_NEEDED = 10
"""Fewer resampled units than that make an interval that means little."""


def headline(result: Result) -> str:
    """The number that stands for the result, in words."""
    metric = result.metrics.get(result.headline or "")
    if metric is None:
        known, some = BENCHMARKS.get(result.benchmark), ", ".join(list(result.metrics)[:6])
        if known and result.headline in known.layout.overall.values():
            return f"no {result.headline}: it is the mean of all {len(known.parts)} parts, and not all were scored"
        named = f"no headline number: the benchmark names {result.headline!r}, and its metrics are {some}, ..."
        return named if result.headline and some else "no headline number"
    return f"{result.headline} {show(metric, result.headline or '', interval=True)} (n = {metric.n:,})"


def verdict(result: Result) -> list[str]:
    """The published numbers that the result can be compared with, or the reasons against."""
    rows = result.dataset["rows"]
    if rows["expected"] is None:
        lines = [f"{rows['scored']:,} rows scored; the number of rows of the source was not recorded"]
    else:
        partial = " (partial run)" if result.partial else ""
        lines = [f"{rows['scored']:,} of {rows['expected']:,} rows scored{partial}"]
    against = result.comparable_to
    lines.append(
        f"comparable to published numbers: {against}"
        if against
        else f"not comparable to published numbers: {why(result)}"
    )
    if result.partial:
        lines.append(_trust(result))
    return lines + resampled(result) + without_prediction(result)


def without_prediction(result: Result) -> list[str]:
    """One line that says what became of missing predictions; none where nothing is missing or it is not known."""
    missing, settings = result.predictions["missing"], result.settings
    if not missing:
        return []
    known = BENCHMARKS.get(result.benchmark)
    what = (known.prediction_for if known else "") or "row"
    several = f"{missing:,} {what}{'' if missing == 1 else 's'} without a prediction"
    if settings.get("missing") == "empty":
        return [f"{several}: counted as empty predictions"]
    if settings.get("on_fault") == COUNT_AS_WRONG:
        return [f"{several}: counted as wrong"]
    rows = f"{'its row was' if missing == 1 else 'their rows were'} left out" if what != "row" else "left out"
    return [f"{several}: {rows}"]


def resampled(result: Result) -> list[str]:
    """A line about the unit that the intervals resample; empty without intervals."""
    if not result.statistics.get("draws"):
        return []
    unit, count = result.statistics.get("unit"), result.statistics.get("clusters")
    if few(count):
        return [f"intervals resample only {many(unit, count)}: so few that they mean little"]
    return [f"intervals resample {many(unit, count)}"]


def many(unit: Any, count: Any = None) -> str:
    """Resampled units in words.

    Args:
        unit: as `Result.statistics` names it.
        count: how many; nothing where that is not known.

    Example:
        >>> many("image", 2), many("tces", 1), many("row")
        ('2 images', '1 set', 'rows')
    """
    one = next((known.unit_title for known in BENCHMARKS.values() if known.unit == unit), "") or str(unit)
    return f"{one}s" if not isinstance(count, int) else f"{count:,} {one}{'' if count == 1 else 's'}"


def few(count: Any) -> bool:
    """Whether there are too few units for a meaningful interval; unknown counts are not few."""
    return isinstance(count, int) and count < UNITS_NEEDED


def _trust(result: Result) -> str:
    """How much a partial run says of the whole."""
    metric = result.metrics.get(result.headline or "")
    if metric is None or metric.ci95 is None or metric.n == 0:
        return "how far to trust it: these rows alone; there is no interval to say how far off the whole may be"
    width = metric.ci95[1] - metric.ci95[0]
    width = 100 * width if is_fraction(result.headline or "") else width
    narrow = "; fewer than 30, so the interval is too narrow if anything" if metric.n < FEW else ""
    return (
        f"how far to trust it: n = {metric.n:,}, an interval {width:.2f} wide (four times the rows halve it){narrow};"
        " it speaks for rows like these"
    )


def why(result: Result) -> str:
    """Why a result is not comparable to published numbers: the first reason that holds, with its numbers."""
    rows, settings = result.dataset["rows"], result.settings
    if result.dataset["source"] is None:
        return "the source of the rows was not recorded"
    if settings.get("oracle"):
        return f"the {settings['oracle']} are those of the ground truth (oracle)"
    if settings.get("thresholds") is not None:
        return "the thresholds are not those of the protocol"
    known = BENCHMARKS.get(result.benchmark)
    usual = known.headline.get(result.protocol["name"]) if known else None
    if usual != result.headline:
        return f"the headline number is {result.headline} and not {usual}, because of the chosen K"
    if known and not _published(known, result.protocol["name"]):
        return f"no published results exist for the protocol {result.protocol['name']}"
    faulty = {code: entry for code, entry in result.faults.items() if _stops(code)}
    if faulty and settings.get("on_fault") == COUNT_AS_WRONG:
        return f"faulty predictions were counted as wrong ({_counts(faulty)})"
    if faulty and settings.get("on_fault") == "skip-and-report":
        return f"predictions or rows with faults were left out ({_counts(faulty)})"
    if result.partial:
        return f"subset ({rows['scored']:,} of {rows['expected']:,} rows)"
    published = known.source.rows if known else {}
    whole = published.get("test") or sum(published.values())
    if whole and rows["scored"] != whole:
        return f"{rows['scored']:,} rows were scored, the published test set has {whole:,}"
    return "the rows are not those of the published test set"


def _stops(code: str) -> bool:
    """Whether a fault ends the scoring by default; codes of other packages are taken to."""
    return code not in FAULTS or FAULTS[code].default == "stop"


def _counts(faults: Mapping[str, Mapping[str, Any]]) -> str:
    return ", ".join(f"{code}: {entry['count']:,}" for code, entry in faults.items())


def _published(known: Benchmark, protocol: str) -> bool:
    """Whether anybody has published numbers under a protocol."""
    try:
        found = known.protocols.get(protocol)
    except BenchError:  # a plug-in's module that can't be imported: its results are shown nevertheless
        return False
    return getattr(found, "comparable_to", None) is not None


def grids(result: Result) -> list[Grid]:
    """The tables of a result: the numbers, then each kind of slice, then the faults."""
    tables = [_by_part(result)] if by_part(result) else _lists(result)
    for by in dict.fromkeys(part.by for part in result.slices):
        parts = {part.value: part.metrics for part in result.slices if part.by == by}
        names = list(dict.fromkeys(name for metrics in parts.values() for name in metrics))
        shown = slice_metrics(result, names)
        groups = by_n({name: [metrics.get(name) for metrics in parts.values()] for name in shown})
        rows = [
            [
                value,
                *(
                    cell
                    for members, n in groups
                    for cell in (n[row], *(show(metrics[name], name) if name in metrics else "" for name in members))
                ),
            ]
            for row, (value, metrics) in enumerate(parts.items())
        ]
        tables.append(
            Grid(
                slice_title(result.benchmark, by),
                [by, *(cell for members, _ in groups for cell in ("n", *members))],
                rows,
            )
        )
    if result.faults:
        rows = [[code, f"{e['count']:,}", ", ".join(e["examples"])] for code, e in result.faults.items()]
        tables.append(Grid("faults", ["fault", "count", "for example"], rows, left=(0, 1, 2)))
    return tables


def slice_title(benchmark: str, by: str) -> str:
    """The title of the table of a slice column.

    Example:
        >>> slice_title("pbench", "source"), slice_title("pbench", "count")
        ('by source', 'by number of ground truth masks')
    """
    return layout_of(benchmark).slice_titles.get(by, f"by {by}")


def by_part(result: Result) -> bool:
    """Whether every number has the same parts, so that one table holds them all."""
    known = BENCHMARKS.get(result.benchmark)
    return known is not None and bool(known.parts)


def _lists(result: Result) -> list[Grid]:
    """Numbers one below the other, with interval and n; those by row and column in tables of their own."""
    rows = []
    for key, metric in singles(result).items():
        value, _, interval = show(metric, key, interval=True).partition(" ")
        rows.append([key, value, interval, f"{metric.n:,}"])
    layout = layout_of(result.benchmark)
    names = {title: name for name, title in layout.pivots.items() if name in layout.whole}
    tables = {
        title: {cell: show(metric, names.get(title, cell[0])) for cell, metric in table.items()}
        for title, table in cells(result).items()
    }
    first = [Grid("", ["", "value", "95 % interval", "n"], rows)] if rows else []
    made = by_title(tables)
    return [*made, *first] if result.settings.get("k") else [*first, *made]


OVERALL = "overall"
"""Head of the last column of a table by part."""


def _by_part(result: Result) -> Grid:
    """One row per number, one column per part (`<name>/<part>`); numbers without a part stand in the last column.

    A row `n` holds for the rows below it, up to the next row `n`.
    """
    metrics, layout = result.metrics, layout_of(result.benchmark)
    names = list(dict.fromkeys(_split(key)[0] for key in metrics))
    parts = list(dict.fromkeys(part for _, part in map(_split, metrics) if part))
    names.sort(key=lambda name: name not in (*layout.first, *layout.overall.values()))
    # A metric and the mean of its parts share one row.
    names = [name for name in names if name not in layout.overall.values()]
    cells: dict[str, list[Metric | None]] = {}
    for name in names:
        whole = metrics.get(name) or metrics.get(layout.overall.get(name, ""))
        cells[name] = [*(metrics.get(f"{name}/{part}") for part in parts), whole]
    rows = []
    for members, n in by_n(cells):
        rows.append(["n", *n])
        rows += [[name, *(show(m, name) if m else "" for m in cells[name])] for name in members]
    return Grid("", ["", *parts, OVERALL], rows)


def by_n(cells: Mapping[str, Sequence[Metric | None]]) -> list[tuple[list[str], list[str]]]:
    """Numbers in groups that have the same n in every place, so that one line of n is true of the whole group.

    Args:
        cells: by name, a number per place; `None` where there is none.

    Returns:
        For each group its names and its n per place as text, empty where the group has no defined number. Groups come
        in the order of their first names.

    Example:
        >>> from bench_datasets.results.result import Metric
        >>> by_n({"a": [Metric(0.5, 4)], "b": [Metric(0.5, 3)], "c": [Metric(0.1, 4)], "d": [None]})
        [(['a', 'c', 'd'], ['4']), (['b'], ['3'])]
    """
    groups: list[tuple[list[str], list[int | None]]] = []
    for name, metrics in cells.items():
        own = [m.n if m is not None and math.isfinite(m.value) else None for m in metrics]
        for members, known in groups:
            if all(None in pair or pair[0] == pair[1] for pair in zip(known, own, strict=True)):
                members.append(name)
                known[:] = [a if a is not None else b for a, b in zip(known, own, strict=True)]
                break
        else:
            groups.append(([name], own))
    return [(members, ["" if n is None else f"{n:,}" for n in known]) for members, known in groups]


def n_of(metrics: Sequence[Metric | None]) -> str:
    """The n of one number of several runs: once where all agree, else one per run.

    Args:
        metrics: the number of each run; `None` where a run lacks it.

    Example:
        >>> from bench_datasets.results.result import Metric
        >>> n_of([Metric(0.5, 1234), Metric(0.6, 1234)]), n_of([Metric(0.5, 28), None, Metric(0.5, 29)])
        ('1,234', '28 / - / 29')
    """
    found = [f"{m.n:,}" if m is not None and math.isfinite(m.value) else "-" for m in metrics]
    defined = set(found) - {"-"}
    return (defined.pop() if defined else "0") if len(defined) < 2 else " / ".join(found)


def _split(key: str) -> tuple[str, str]:
    """A key's name and part; the name of a number on outlines holds that of the number it stands beside."""
    name, _, part = key.partition("/")
    if name.startswith("boundary_") and "/" in part:
        beside, _, part = part.partition("/")
        name = f"{name}/{beside}"
    return name, part


def is_fraction(key: str) -> bool:
    """Whether a metric is printed in percent, as those are that no benchmark declares as other numbers.

    Example:
        >>> is_fraction("giou/level_0"), is_fraction("duplicates/level_0")
        (True, False)
    """
    return not any(key.split("/")[0] in known.layout.numbers for known in BENCHMARKS.values())


def show(metric: Metric, key: str, *, interval: bool = False) -> str:
    """A number as people write it: fractions in percent, counts whole, means with two decimals; `-` where undefined."""
    if not math.isfinite(metric.value):
        return "-"
    whole = any(key.split("/")[0] in known.layout.whole for known in BENCHMARKS.values())
    fraction = is_fraction(key)

    def text(value: float) -> str:
        if whole:
            return f"{value:.0f}"
        return f"{100 * value:.2f}" if fraction else f"{value:.3f}"

    if interval and metric.ci95:
        return f"{text(metric.value)} [{text(metric.ci95[0])}, {text(metric.ci95[1])}]"
    return text(metric.value)


def caption(result: Result) -> str:
    """Benchmark and protocol, in a line."""
    text = f"{result.benchmark}, protocol {result.protocol['name']} (version {result.protocol['version']})"
    oracle = result.settings.get("oracle")
    more = f", oracle {oracle}: they are those of the ground truth, so this is no model's result"
    return text + more if oracle else text


NOTE = "fractions in percent; - is undefined; [low, high] is the 95 % bootstrap interval"

N_MEANS = {
    False: "number of rows, sets or other cases of the metric",
    True: "number of rows of the metrics below, up to the next n",
}
"""Meaning of `n` in a list of metrics (false) and in a table by part (true)."""


def as_text(result: Result) -> str:
    """The whole result as plain text."""
    text = [plain(line) for line in (caption(result), headline(result), *verdict(result), NOTE)]
    for grid in grids(result):
        text += ["", *([plain(grid.title)] if grid.title else []), *text_lines(grid)]
    return "\n".join(text)


_HEAD = (
    "<p><b>{{ caption }}</b><br>{% for line in lines %}{{ line }}{% if not loop.last %}<br>{% endif %}{% endfor %}</p>"
)


def as_html(result: Result) -> str:
    """The whole result as an HTML fragment; every text is escaped."""
    said = [headline(result), *verdict(result), NOTE]
    return render_html(_HEAD, caption=caption(result), lines=said) + html_tables(grids(result))
