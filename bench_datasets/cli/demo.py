"""`demo`: the built-in sample scored with three imaginary models, from files to numbers, without any data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench_datasets.benchmarks import get_benchmark
from bench_datasets.cli import choices
from bench_datasets.cli.screen import echo, out, working

if TYPE_CHECKING:
    from rich.console import Console

    from bench_datasets.results import Result

BENCHMARK = "pbench"


def demo(
    folder: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Keep each model's run there, and a page about all of them."),
    ] = None,
    as_json: choices.Json = False,
) -> None:
    """Draw a small sample, score three imaginary models on it and set them side by side. Needs no data.

    Example: bench-datasets demo --out demo
    """
    from bench_datasets.builders import open_truth
    from bench_datasets.metrics.files import write_run
    from bench_datasets.metrics.scoring import score
    from bench_datasets.metrics.summarizing import summarize
    from bench_datasets.predictions import read_predictions
    from bench_datasets.samples import SAMPLE_MODELS, pbench_sample_dir, pbench_sample_predictions

    with working("drawing the sample"):
        place = pbench_sample_dir()
        files = {model: pbench_sample_predictions(model) for model in SAMPLE_MODELS}
        truth = open_truth(BENCHMARK, "sample")
    results: dict[str, dict[str, Result]] = {}
    written: list[Path] = []
    for model, file in files.items():
        with working(f"scoring {model}"):
            predictions = read_predictions(BENCHMARK, file)
            results[model] = {}
            for protocol in get_benchmark(BENCHMARK).protocols:
                scores = score(BENCHMARK, truth, predictions, protocol)
                result = summarize(BENCHMARK, scores)
                if folder is not None and not results[model]:
                    written += write_run(scores, result, Path(folder) / model)
                results[model][protocol] = result
    if folder is not None:
        from bench_datasets.report import write_report

        with working("writing the page"):
            runs, page = [Path(folder) / model for model in files], Path(folder) / "report.html"
            written.append(write_report(runs, page, data="sample", predictions=list(files.values())))
    if as_json:
        found = {"sample": place, "predictions": files, "written": [str(file) for file in written]}
        tables = {model: {name: one.to_dict() for name, one in mine.items()} for model, mine in results.items()}
        echo(json.dumps({**found, "results": tables}, indent=1, ensure_ascii=False))
        return
    _show(out(), place, files, results, folder)


def _show(
    console: Console, place: str, files: dict[str, str], results: dict[str, dict[str, Result]], folder: str | None
) -> None:
    from rich.text import Text

    from bench_datasets.cli.tables import show_table
    from bench_datasets.samples import SAMPLE_MODELS

    entry = get_benchmark(BENCHMARK)
    default, *others = entry.protocols
    protocols = entry.metric_module().PROTOCOLS
    first = next(iter(results.values()))[default]

    def line(*parts: Any) -> None:
        console.print(Text.assemble(*parts), soft_wrap=True)

    line((f"{entry.title} in small: {first.dataset['rows']['scored']} questions about our own drawings", "bold"))
    line(("truth        ", "dim"), place)
    line(("predictions  ", "dim"), str(Path(next(iter(files.values()))).parent))
    for model, words in SAMPLE_MODELS.items():
        line(f"  {model:10} ", (words, "dim"))
    show_table(console, _side_by_side(console, results, default))
    line((f"{default}: {protocols[default].meaning}", "dim"))
    line(("in percent; [low, high] is the 95 % bootstrap interval", "dim"))
    show_table(console, _other_protocols(console, results, others))
    for name in others:
        line((f"{name}: {protocols[name].meaning}", "dim"))
    console.print()
    if folder is not None:
        names = ", ".join(results)
        line(f"wrote scores.parquet and result.json of {names}, each into its folder in {Path(folder)}")
        line(f"wrote {Path(folder) / 'report.html'}: open it in a browser")
    line(("next", "bold"))
    some = next(iter(files.values()))
    line(f"  bench-datasets score {BENCHMARK} --data sample --predictions {some}")
    line(f"  bench-datasets check {BENCHMARK} --data sample --predictions {some}")
    line(f"  bench-datasets info {BENCHMARK} --data sample")
    if folder is None:
        line("  bench-datasets demo --out demo")
    else:
        first_two = " ".join(str(Path(folder) / name) for name in list(results)[:2])
        line(f"  bench-datasets compare {first_two}")


def _side_by_side(console: Console, results: dict[str, dict[str, Result]], protocol: str) -> Any:
    """Models beside one another, level by level, with intervals where the terminal has room for them."""
    from rich.text import Text

    from bench_datasets.cli.tables import fitting, interval, new_table
    from bench_datasets.results_view import show

    entry = get_benchmark(BENCHMARK)
    runs = {model: mine[protocol] for model, mine in results.items()}

    def table(intervals: bool) -> Any:
        made = new_table("Macro-F1", ["level", "n", *runs])
        for level in (*entry.source.rows, "average"):
            key = level if level == "average" else f"macro_f1/{level}"
            metrics = [run.metrics[key] for run in runs.values()]
            cells = [Text(level), Text(str(metrics[0].n))]
            for metric in metrics:
                bounds = f" {interval(metric, key):>14}" if intervals else ""
                cells.append(Text.assemble(show(metric, key), (bounds, "dim")))
            made.add_row(*cells, style="bold" if level == "average" else "")
        return made

    return fitting(console, [table(True), table(False)])


def _other_protocols(console: Console, results: dict[str, dict[str, Result]], names: list[str]) -> Any:
    from bench_datasets.cli.tables import interval, plain_table
    from bench_datasets.results_layout import Grid
    from bench_datasets.results_view import show

    rows = []
    for name in names:
        runs = [mine[name] for mine in results.values()]
        key = runs[0].headline or ""
        metrics = [run.metrics[key] for run in runs]
        cells = [f"{show(metric, key)} {interval(metric, key)}" for metric in metrics]
        rows.append([name, key, str(metrics[0].n), *cells])
    grid = Grid("under the other protocols", ["protocol", "number", "n", *results], rows)
    return plain_table(console, grid, left=(0, 1))
