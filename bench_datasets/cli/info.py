"""`info`: describes a benchmark and a copy of it."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench_datasets.benchmark import Benchmark, get_benchmark
from bench_datasets.cli import options
from bench_datasets.cli.console import echo, out, working
from bench_datasets.faults import FAULTS

if TYPE_CHECKING:
    from datasets import Dataset
    from rich.console import Console

EXAMPLES = 3
"""Keys that are named with each fault."""


def info(
    benchmark: options.BenchmarkName,
    data: options.Data = None,
    cost: Annotated[
        bool, typer.Option("--cost", help="Estimate what scoring takes, in time and memory, instead.")
    ] = False,
    num_proc: Annotated[
        int, typer.Option("--num-proc", metavar="N", min=1, help="With --cost: processes to score with.")
    ] = 1,
    as_json: options.Json = False,
) -> None:
    """Show a benchmark: its source, licence, protocols, metrics, rows, faults and content hash. No image is read.

    Example: bench-datasets info pbench --data sample
    """
    if cost:
        from bench_datasets.cli.cost import show_cost

        show_cost(benchmark, data, num_proc, as_json)
        return
    with working("reading the truth"):
        found = facts(benchmark, data)
    if as_json:
        echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _show(out(), found)


def facts(benchmark: str, data: str | None = None) -> dict[str, Any]:
    """The facts of `info` as plain values.

    The rows are scored against no predictions: that validates every mask of the truth, and makes the same counts and
    hashes as any scoring does.

    Raises:
        BenchError: the truth cannot be read.
    """
    from datasets import Dataset

    from bench_datasets.data import open_truth, provenance
    from bench_datasets.results.legend import meanings
    from bench_datasets.results.summarize import faults_by_code, summarize
    from bench_datasets.scoring.hashes import content_hash
    from bench_datasets.scoring.score import score

    entry = get_benchmark(benchmark)
    metric = entry
    truth = open_truth(benchmark, data)
    source = provenance(truth) or {}
    features = entry.prediction_form().features
    nothing = Dataset(features.arrow_schema.empty_table())
    scores = score(benchmark, truth, nothing, missing="empty", on_fault="skip-and-report")
    table = scores.with_format("arrow")[:]
    # Without a single row that can be scored there is no result to cut into slices.
    slices = () if all(scores["skipped"]) else summarize(benchmark, scores, draws=0).slices
    hashes = dict(zip(table["key"].to_pylist(), table["row_sha256"].to_pylist(), strict=True))
    by, parts = _parts(entry, scores, source.get("rows") or {})
    return {
        "benchmark": benchmark,
        "title": entry.title,
        "source": source.get("source"),
        "revision": source.get("revision"),
        "licence": entry.source.licence,
        "citation": entry.citation,
        "protocols": [
            {
                "name": name,
                "version": protocol.version,
                "default": name == entry.default_protocol,
                "meaning": protocol.meaning,
                "comparable_to": protocol.comparable_to,
            }
            for name, protocol in metric.protocols.items()
        ],
        "metrics": [
            {"key": pattern, "meaning": meaning.text, "main": meaning.main}
            for pattern, meaning in meanings(benchmark).items()
        ],
        "rows": {
            "read": sum(part["rows"] for part in parts.values()),
            "published": sum(entry.source.rows.values()),
            f"by_{by}": parts,
        },
        "truth_masks": {part.value: _rows_of(part.metrics) for part in slices if part.by == "count"},
        "faults": {
            code: {**fault, "examples": fault["examples"][:EXAMPLES], "meaning": FAULTS[code].meaning}
            for code, fault in faults_by_code(table, {}).items()
        },
        "content_sha256": content_hash(hashes.values()),
    }


def _parts(entry: Benchmark, scores: Dataset, held: dict[str, int]) -> tuple[str, dict[str, dict[str, int | None]]]:
    """Names of the parts and the number of rows of each; levels are counted, splits come from the source."""
    published = entry.source.rows
    if "level" not in scores.column_names:
        return "split", {
            part: {"rows": held.get(part, 0), "published": published.get(part)} for part in {**published, **held}
        }
    levels, counts = list(scores["level"]), list(scores["true_count"])
    read = Counter(levels)
    return "level", {
        level: {
            "rows": read[level],
            "published": published.get(level),
            "masks": sum(n for n, at in zip(counts, levels, strict=True) if at == level),
            "without_truth": sum(n == 0 for n, at in zip(counts, levels, strict=True) if at == level),
        }
        for level in (*published, *sorted(set(read) - set(published)))
    }


def _rows_of(metrics: dict[str, Any]) -> int:
    return max((int(metric.n) for metric in metrics.values()), default=0)


def _show(console: Console, found: dict[str, Any]) -> None:
    from rich.text import Text

    from bench_datasets._util.grid import Grid
    from bench_datasets.cli.console import clean, say
    from bench_datasets.cli.tables import new_table, show_faults, show_grid, show_legend, show_table

    say(console, found["title"], "bold")
    revision = f" at {found['revision']}" if found["revision"] else ""
    for name, text in (
        ("source", f"{found['source']}{revision}"),
        ("licence", found["licence"]),
        ("content", f"sha256 {found['content_sha256']}"),
        ("cite", found["citation"]),
    ):
        console.print(Text.assemble((f"{name:8} ", "dim"), clean(text)), soft_wrap=not console.is_terminal)
    table = new_table("protocols", ["protocol", "version", "meaning", "comparable to"], left=(0, 1, 2, 3))
    for protocol in found["protocols"]:
        called = Text(protocol["name"], style="bold" if protocol["default"] else "")
        called.append(" (default)" if protocol["default"] else "", style="dim")
        table.add_row(
            called, protocol["version"], protocol["meaning"], protocol["comparable_to"] or "nothing published"
        )
    show_table(console, table)
    if found["metrics"]:
        console.print()
        say(console, "metrics (* in the main table of score)", "bold")
        show_legend(
            console,
            {f"{item['key']}{' *' if item['main'] else ''}": item["meaning"] for item in found["metrics"]},
        )
    by = "level" if "by_level" in found["rows"] else "split"
    parts = found["rows"][f"by_{by}"]
    heads = [by, *(name.replace("_", " ") for name in next(iter(parts.values())))]
    rows = [
        [part, *(f"{value:,}" if value is not None else "-" for value in numbers.values())]
        for part, numbers in parts.items()
    ]
    total = ["all", f"{found['rows']['read']:,}", f"{found['rows']['published']:,}"]
    total += [f"{sum(part[name] for part in parts.values()):,}" for name in list(next(iter(parts.values())))[2:]]
    show_grid(console, Grid("rows", heads, [*rows, total]))
    spread = found["truth_masks"]
    if spread:
        grid = Grid("rows by number of truth masks", list(spread), [[f"{n:,}" for n in spread.values()]])
        show_grid(console, grid, left=(), names=0)
    faults = [
        [code, f"{fault['count']:,}", f"{', '.join(fault['examples'])}: {fault['meaning']}"]
        for code, fault in found["faults"].items()
    ]
    if faults:
        show_faults(console, Grid("faults", ["fault", "rows", "for example"], faults))
    else:
        console.print()
        console.print(Text("no faults", style="green"))
