"""The page put together: every part of it from runs and content, rendered with escaping, the same bytes each time."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from functools import partial
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from bench_datasets import __version__
from bench_datasets._util.grid import plain
from bench_datasets.benchmark import get_benchmark
from bench_datasets.data.provenance import public_name
from bench_datasets.faults import FAULTS
from bench_datasets.report import drawing
from bench_datasets.report.embed import script_json
from bench_datasets.report.page_data import Content, Ladder
from bench_datasets.report.runs import Run
from bench_datasets.results.compare import Comparison
from bench_datasets.results.legend import find, is_main, label
from bench_datasets.results.result import Metric
from bench_datasets.results.tables import many, n_of, show, verdict

FOREST_PAIRS, SENTENCES = 3, 12
"""Pairs of runs whose differences are drawn, and those that are spoken of."""


def render(
    runs: Sequence[Run], content: Content, data: dict[str, Any], drawings: Sequence[str],
    comparison: Comparison | str | None, command: str, *, assets: bool,
) -> str:  # fmt: skip
    """The page as text.

    Args:
        runs: of the report.
        content: of the benchmark.
        data: what the page's script works on.
        drawings: further drawings by number, of our own making.
        comparison: of the runs, why there is none, or `None` for one run.
        command: that makes this page again.
        assets: whether pictures stand in a folder beside it.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bench_datasets.report", "templates"),
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    folder = resources.files("bench_datasets.report") / "templates"
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    names = [run.name for run in runs]
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; img-src data:" + (" 'self' file:" if assets else "")
    )
    entry = get_benchmark(runs[0].result.benchmark)
    return environment.get_template("page.html").render(
        policy=policy, style=Markup(style), script=Markup(script), data=Markup(script_json(data)),
        drawings=[Markup(item) for item in drawings], title=f"{entry.title}: {', '.join(map(plain, names))}",
        summary=_summary(runs, comparison), numbers=_numbers(runs), many_runs=len(runs),
        entry=entry, runs=[_strip(run, i) for i, run in enumerate(runs)], protocol=runs[0].protocol,
        caption=runs[0].result.protocol, content=content, ladders=_ladders(content, names),
        errors=[_counts(content, i) for i in range(len(runs))], comparison=_compared(comparison, names),
        meanings={code: kind.meaning for code, kind in FAULTS.items()} | _unknown(runs),
        refusal=comparison if isinstance(comparison, str) else "",
        command=command, version=__version__, packages=runs[0].result.packages, many=len(runs) > 1,
        comparable=runs[0].result.comparable_to, oracle=_oracle(runs),
    )  # fmt: skip


def _oracle(runs: Sequence[Run]) -> str:
    """The run's oracle in words, run by run; empty for real runs."""
    known = [(run.name, run.result.settings.get("oracle")) for run in runs]
    if len({oracle for _, oracle in known}) == 1:
        return f"{known[0][1]}: those of the ground truth" if known[0][1] else ""
    return "; ".join(f"{oracle} in {name}: those of the ground truth" for name, oracle in known if oracle)


def _unknown(runs: Sequence[Run]) -> dict[str, str]:
    """Fault codes of benchmarks from elsewhere, which say no more than their names."""
    return {code: "" for run in runs for code in run.result.faults if code not in FAULTS}


def _ladders(content: Content, names: Sequence[str]) -> list[tuple[Ladder, Markup, list[list[str]]]]:
    """The ladders that have lanes, each drawn, and whose the grey ticks are: a head, then a line a model."""
    return [
        (item, drawing.both_widths(partial(drawing.ladder, item, names)), _ticks(item, names))
        for item in content.ladders
        if item.lanes
    ]


def _ticks(ladder: Ladder, names: Sequence[str]) -> list[list[str]]:
    """Published results as a table: a head, these runs, then one row per model, the highest first."""
    by_lane = [{point.name: point.percent for point in lane.published} for lane in ladder.lanes]
    shown = [k for k, found in enumerate(by_lane) if found]
    if not shown:
        return []
    models = list(dict.fromkeys(name for found in by_lane for name in found))
    models.sort(key=lambda name: -by_lane[shown[0]].get(name, -math.inf))
    own = [
        [name, *("–" if (m := ladder.lanes[k].metrics[i]) is None or not math.isfinite(m.value)
                 else f"{100 * m.value:.2f}" for k in shown)]
        for i, name in enumerate(names)
    ]  # fmt: skip
    table = [[m, *(f"{by_lane[k][m]:.2f}" if m in by_lane[k] else "–" for k in shown)] for m in models]
    return [["model", *(ladder.lanes[k].name for k in shown)], *own, *table]


def _summary(runs: Sequence[Run], comparison: Comparison | str | None) -> list[str]:
    """Summary sentences of the page: the headline of each run, then a statement about each pair."""
    key = runs[0].result.headline or ""
    name, scores = label(runs[0].result.benchmark, key), []
    for run in runs:
        metric = run.result.metrics.get(key)
        if metric is None or not math.isfinite(metric.value):
            scores.append(f"{run.name} has no value")
        else:
            scores.append(f"{run.name} {show(metric, key)}")
    rows = runs[0].result.dataset["rows"]["scored"]
    lines = [f"{name} on {rows:,} row{'' if rows == 1 else 's'}: {', '.join(scores)}."] if key else []
    if isinstance(comparison, Comparison):
        pairs = list(comparison.statements.values())
        lines += [found[0] for found in pairs[:FOREST_PAIRS]]
    return lines


NUMBERS_SHOWN = 40
"""Main metrics that stand unfolded in the table of all metrics; longer tables are folded."""


def _numbers(runs: Sequence[Run]) -> list[tuple[str, list[dict[str, Any]], bool]]:
    """The table of all metrics in two parts, the main ones first: title, rows, whether it stands unfolded."""
    benchmark = runs[0].result.benchmark
    keys = dict.fromkeys(key for run in runs for key, metric in run.result.metrics.items() if metric.n)
    parts: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for key in keys:
        metrics = [run.result.metrics.get(key) for run in runs]
        found = find(benchmark, key)
        cells = []
        for metric in metrics:
            value, _, bounds = ("–", "", "") if metric is None else show(metric, key, interval=True).partition(" ")
            cells.append((value, bounds))
        row = {"key": key, "cells": cells, "n": n_of(metrics), "meaning": found[1].text if found else ""}
        parts[is_main(benchmark, key)].append(row)
    titles = {True: "Main metrics", False: "Further metrics"}
    return [(titles[main], rows, main and len(rows) <= NUMBERS_SHOWN) for main, rows in parts.items() if rows]


def _strip(run: Run, number: int) -> dict[str, Any]:
    """A run's verdict."""
    result = run.result
    key = result.headline or ""
    metric = result.metrics.get(key, Metric(math.nan, 0))
    lines = verdict(result)
    first, against, *rest = lines
    rows = result.dataset["rows"]
    return {
        "name": run.name, "sign": drawing.sign(number), "key": key, "number": number,
        "score": show(metric, key), "n": metric.n, "defined": math.isfinite(metric.value),
        "interval": "" if not metric.ci95 else f"[{show(Metric(metric.ci95[0], 1), key)}, "
                                               f"{show(Metric(metric.ci95[1], 1), key)}]",
        "gauge": drawing.gauge(metric, number) if math.isfinite(metric.value) else "",
        "rows": first, "scored": rows["scored"], "against": against, "comparable": result.comparable_to is not None,
        "rest": rest, "content": result.dataset.get("content_sha256"), "predictions": result.predictions.get("sha256"),
        "source": public_name(result.dataset.get("source") or ""), "split": result.dataset.get("split"),
        "revision": result.dataset.get("revision"), "statistics": result.statistics,
        "resampled": many(result.statistics.get("unit"), result.statistics.get("clusters")), "created": result.created,
        "faults": {code: item["count"] for code, item in result.faults.items()}, "settings": result.settings,
        "packages": result.packages,
    }  # fmt: skip


def _counts(content: Content, run: int) -> dict[str, Any]:
    """A run's errors: rows by group, columns by kind."""
    errors = content.errors[run]
    counts, rows = errors.counts(), errors.rows()
    groups = [name for name in content.groups if name in counts]
    kinds = [kind.name for kind in errors.kinds]
    most = max((counts[name][kind] for name in groups for kind in kinds), default=0)
    table = []
    for name in groups:
        cells = [
            {"kind": k, "count": counts[name][kind], "rows": rows[name][kind],
             "heat": round(math.sqrt(counts[name][kind] / most), 3) if most else 0}
            for k, kind in enumerate(kinds)
        ]  # fmt: skip
        table.append({"name": name, "group": content.groups.index(name), "cells": cells})
    total = [sum(counts[name][kind] for name in groups) for kind in kinds]
    return {"table": table, "total": total}


def _compared(comparison: Comparison | str | None, names: Sequence[str]) -> dict[str, Any] | None:
    if not isinstance(comparison, Comparison):
        return None
    place = {name: i for i, name in enumerate(names)}
    pairs: list[dict[str, Any]] = []
    for (a, b), found in list(comparison.pairs.items())[:SENTENCES]:
        at = (place[a], place[b])
        draw = partial(drawing.forest, found, (a, b), at)
        width = drawing.WHOLE if len(comparison.pairs) == 1 else drawing.MIDDLE
        picture = drawing.both_widths(draw, width) if len(pairs) < FOREST_PAIRS else ""
        pairs.append({"a": a, "b": b, "signs": [drawing.sign(i) for i in at], "picture": picture,
                      "statements": comparison.statements[a, b]})  # fmt: skip
    return {
        "pairs": pairs, "more": len(comparison.pairs) - len(pairs),
        "remarks": [f"{remark[:1].upper()}{remark[1:]}" for remark in comparison.remarks],
        "unit": many(comparison.unit, comparison.clusters), "rows": comparison.rows,
        "draws": comparison.draws, "permutations": comparison.permutations, "seed": comparison.seed,
        "ranks": [r for r in comparison.ranks if r.metric == comparison.ranks[0].metric] if comparison.ranks else [],
    }  # fmt: skip
