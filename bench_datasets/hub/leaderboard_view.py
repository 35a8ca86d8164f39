"""A leaderboard for people and machines: tables, CSV, JSON, and one HTML file that needs nothing else."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from bench_datasets._util.grid import Grid, plain, render_html
from bench_datasets.hub.leaderboard import Board, Entry, Group
from bench_datasets.results.layout import layout_of
from bench_datasets.results.result import Metric
from bench_datasets.results.tables import NOTE, show

WIDE = 12
"""Columns from which an HTML table does not fit a page of 1280 pixels."""

PARTIAL = "Partial runs scored fewer rows than their source holds; their scores do not hold for the whole data set."


def grid(group: Group) -> Grid:
    """A group as a table: place, model, run, headline, interval, n, then the headline's parts.

    Where intervals resample different units, a column after n says which.
    """
    mixed = len(set(filter(None, group.units))) > 1
    head = ["", "model", "run", group.headline, "95 % interval", "n", *(["resampled"] if mixed else [])]
    head += [_part(key) for key in group.parts]
    rows = []
    for entry, unit in zip(group.entries, group.units, strict=True):
        value, _, interval = show(entry.metric, group.headline, interval=True).partition(" ")
        metrics = entry.run.result.metrics
        parts = [show(metrics[key], key) if key in metrics else "" for key in group.parts]
        place = "-" if entry.place is None else str(entry.place)
        rows.append([place, entry.run.model, entry.run.name, value, interval, f"{entry.metric.n:,}"])
        rows[-1] += [*([unit] if mixed else []), *parts]
    left: tuple[int, ...] = (0, 1, 2)
    if not any(entry.run.name for entry in group.entries):
        left = left[:2]
        head, rows = head[:2] + head[3:], [row[:2] + row[3:] for row in rows]
    return Grid(group.title, head, rows, left)


def brief(group: Group) -> tuple[Grid, str]:
    """The table with short names of the headline's parts, and a line that explains them."""
    table = grid(group)
    names = [key.rsplit("/", 1)[-1] for key in group.parts]
    known = layout_of(group.benchmark).short_names
    short_names = {name: known[name] for name in names if name in known}
    fixed = table.head[: len(table.head) - len(names)]
    heads = [short_names.get(name, head) for name, head in zip(names, table.head[len(fixed) :], strict=True)]
    said = ", ".join(f"{head} {name}" for name, head in short_names.items())
    of = ", ".join(dict.fromkeys(key.rpartition("/")[0] for key in group.parts))
    return Grid(table.title, [*fixed, *heads], table.rows, table.left), f"{of}: {said}" if said else ""


def _part(key: str) -> str:
    return key.split("/", 1)[-1]


def as_csv(board: Board) -> str:
    """CSV (RFC 4180) with a line per run: its name, its headline with interval and n, then every number by key.

    Text that a spreadsheet would take for a formula stands behind an apostrophe.
    """
    keys = list(dict.fromkeys(k for group in board.groups for e in group.entries for k in e.run.result.metrics))
    rows = [_record(group, entry) for group in board.groups for entry in group.entries]
    file = io.StringIO()
    writer = csv.writer(file)
    names = list(rows[0]) if rows else []
    writer.writerow([*names, *map(_cell, keys)])
    entries = [entry for group in board.groups for entry in group.entries]
    for record, entry in zip(rows, entries, strict=True):
        metrics = entry.run.result.metrics
        writer.writerow([*map(_cell, record.values()), *(_number(metrics.get(key)) for key in keys)])
    return file.getvalue()


def _record(group: Group, entry: Entry) -> dict[str, Any]:
    result = entry.run.result
    low, high = entry.metric.ci95 or (None, None)
    return {
        "benchmark": group.benchmark,
        "protocol": group.protocol,
        "version": group.version,
        "partial": group.partial,
        "place": entry.place,
        "model": entry.run.model,
        "run": entry.run.name,
        "headline": group.headline,
        "value": _number(entry.metric),
        "ci95_low": low,
        "ci95_high": high,
        "n": entry.metric.n,
        "resampled": result.statistics.get("unit"),
        "clusters": result.statistics.get("clusters"),
        "rows_scored": result.dataset["rows"]["scored"],
        "rows_expected": result.dataset["rows"]["expected"],
        "comparable_to": result.comparable_to,
        "source": result.dataset["source"],
        "split": result.dataset["split"],
        "revision": result.dataset["revision"],
        "content_sha256": group.content_sha256,
        "settings": json.dumps(group.settings, sort_keys=True) if group.settings else None,
        "created": result.created,
        "place_read": entry.run.place,
    }


def _number(metric: Metric | None) -> float | None:
    return None if metric is None or math.isnan(metric.value) else metric.value


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return f"'{plain(value)}" if re.match(r"[=+@\t\r-]", value) else plain(value)


def as_json(board: Board) -> str:
    """Every table with every number as JSON; `null` for undefined."""
    groups = [
        {
            "title": group.title,
            "benchmark": group.benchmark,
            "protocol": {"name": group.protocol, "version": group.version},
            "content_sha256": group.content_sha256,
            "settings": group.settings,
            "partial": group.partial,
            "headline": group.headline,
            "runs": [
                {**_record(group, entry), "metrics": entry.run.result.to_dict()["metrics"]} for entry in group.entries
            ],
        }
        for group in board.groups
    ]
    content = {"groups": groups, "left_out": board.left_out}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace").decode()  # halves of characters become JSON's own escapes


_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1c2430;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin:2.2rem 0 .2rem}p{margin:.2rem 0 .6rem;color:#5a6676;font-size:.87rem}
.hint{display:none}@media(max-width:60rem){.hint{display:block}}.wide{overflow-x:auto;
background:linear-gradient(90deg,#fff 30%,#fff0),linear-gradient(270deg,#fff 30%,#fff0) 100% 0,
linear-gradient(90deg,#0003,#0000),linear-gradient(270deg,#0003,#0000) 100% 0;background-repeat:no-repeat;
background-size:3rem 100%,3rem 100%,1rem 100%,1rem 100%;background-attachment:local,local,scroll,scroll}
.long .hint{display:block}table{border-collapse:collapse;width:100%}
th,td{padding:.3rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid #e3e8ee}
th{color:#5a6676;font-weight:500;font-size:.85rem}.t{text-align:left}td.v{font-weight:600}
tr:hover td{background:#f6f8fa}.bar{width:9rem;min-width:7rem}
.bar i{display:block;position:relative;height:.7rem;background:#eef2f6;border-radius:2px}
.bar i b,.bar i u{position:absolute;top:0;bottom:0}.bar i b{background:#a9c5ea}.bar i u{width:2px;background:#12427f}
@media(prefers-color-scheme:dark){body{background:#14181e;color:#dde3ea}p,th{color:#96a2b0}
th,td{border-color:#2a323c}tr:hover td{background:#1b2129}.bar i{background:#232b34}
.wide{background:linear-gradient(90deg,#14181e 30%,#14181e00),
linear-gradient(270deg,#14181e 30%,#14181e00) 100% 0,linear-gradient(90deg,#fff4,#fff0),
linear-gradient(270deg,#fff4,#fff0) 100% 0;background-repeat:no-repeat;
background-size:3rem 100%,3rem 100%,1rem 100%,1rem 100%;background-attachment:local,local,scroll,scroll}
.bar i b{background:#35598a}.bar i u{background:#a9cdff}}
"""


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content security policy of the page: its own styles only, and nothing is loaded."""


_PAGE = """\
<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{ policy }}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{{ title|plain }}</title><style>{{ style }}</style></head><body><h1>{{ title|plain }}</h1>
<p>{{ prose(note) }}. A table holds one benchmark, one protocol version and the same rows.</p>
{% for table in tables -%}
<h2>{{ table.group.title|plain }}</h2>
<p>{{ prose(table.group.caption) }}</p>
<div{% if table.long %} class="long"{% endif %}><p class="hint">Wide table: scroll sideways for all columns.</p>
{#- #}<div class="wide" tabindex="0"><table><thead><tr>
{%- for name in table.grid.head -%}
<th{% if loop.index0 in table.grid.left %} class="t"{% endif %}>{{ name|plain }}</th>
{%- if loop.index == table.bar %}<th></th>{% endif %}
{%- endfor %}</tr></thead>
<tbody>
{%- for row in table.grid.rows -%}
{% set bar = table.bars[loop.index0] %}<tr>
{%- for cell in row -%}
<td{% if loop.index0 in table.grid.left %} class="t"{% elif loop.index == table.bar - 1 %} class="v"{% endif %}>
{#- #}{{ cell|plain }}</td>
{%- if loop.index == table.bar %}<td class="bar">
{%- if bar %}<i><b style="left:{{ bar.left }}%;width:{{ bar.width }}%"></b>
{#- #}<u style="left:{{ bar.at }}%"></u></i>{% endif %}
{#- #}</td>{% endif %}
{%- endfor %}</tr>
{% endfor %}</tbody></table></div></div>
{% if table.group.partial %}<p>{{ partial }}</p>
{% endif %}
{%- endfor %}
{%- if left_out %}<h2>Left out</h2><ul>{% for line in left_out %}<li>{{ line|plain }}</li>{% endfor %}</ul>
{% endif %}</body></html>
"""


def as_html(board: Board, title: str = "Leaderboard") -> str:
    """The whole board as one HTML file without scripts or anything from elsewhere; every text is escaped."""
    return render_html(
        _PAGE,
        title=title,
        policy=Markup(_POLICY),
        style=Markup(_STYLE),
        prose=_prose,
        note=NOTE,
        partial=PARTIAL,
        tables=[_table(group) for group in board.groups],
        left_out=board.left_out,
    )


def _prose(text: str) -> Markup:
    """A sentence that starts with a capital letter, with commands in code type."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(plain(text[:1].upper() + text[1:])))))


def _table(group: Group) -> dict[str, Any]:
    """A group's grid with a bar per row; `bar` is the position of the bars' column, behind the interval."""
    table = grid(group)
    bars = [_bar(entry.metric, group.entries) for entry in group.entries]
    place = table.head.index("95 % interval") + 1
    return {"group": group, "grid": table, "bar": place, "bars": bars, "long": len(table.head) > WIDE}


def _bar(metric: Metric, entries: Sequence[Entry]) -> dict[str, float] | None:
    """A number and its interval on the table's common scale: 0 to 1, or as far as its numbers reach."""
    if math.isnan(metric.value):
        return None
    reach = [b for e in entries if not math.isnan(e.metric.value) for b in (e.metric.value, *(e.metric.ci95 or ()))]
    low, high = min(0.0, *reach), max(1.0, *reach)

    def at(value: float) -> float:
        return float(round(100 * (value - low) / (high - low), 2))

    start, end = metric.ci95 or (metric.value, metric.value)
    return {"left": at(start), "width": round(at(end) - at(start), 2), "at": at(metric.value)}
