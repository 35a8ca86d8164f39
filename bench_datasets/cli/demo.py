"""`demo`: the built-in samples scored with three imaginary models, from files to numbers, without any data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench_datasets.benchmark import BENCHMARKS, get_benchmark
from bench_datasets.cli import options
from bench_datasets.cli.console import echo, out, program, say, working

if TYPE_CHECKING:
    from rich.console import Console

    from bench_datasets._util.grid import Grid
    from bench_datasets.results.result import Result


@dataclass(frozen=True)
class Played:
    """One benchmark's sample, scored.

    Attributes:
        benchmark: its name.
        place: where its truth was drawn.
        files: the models' predictions, beside the runs where those are kept.
        results: results by model and protocol, the default protocol first.
        written: files of the runs, and the page about them.
    """

    benchmark: str
    place: str
    files: dict[str, str]
    results: dict[str, dict[str, Result]]
    written: list[Path]


def demo(
    folder: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="DIR", help="Keep each model's predictions and run there, and a page about all of them."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Draw small samples of all benchmarks, score three imaginary models and set them side by side. Needs no data.

    Example: bench-datasets demo --out demo
    """
    played = [_play(name, folder) for name in BENCHMARKS.own]
    if as_json:
        echo(json.dumps({one.benchmark: _plain(one) for one in played}, indent=1, ensure_ascii=False))
        return
    console = out()
    for one in played:
        _show(console, one)
    _next(console, played, folder)


def _play(benchmark: str, folder: str | None) -> Played:
    """Draw, score and, where there is a folder, write."""
    from bench_datasets import samples
    from bench_datasets.data import open_truth
    from bench_datasets.predictions import read_predictions
    from bench_datasets.results.run_files import write_run
    from bench_datasets.results.summarize import summarize
    from bench_datasets.scoring.score import score

    with working(f"{benchmark}: drawing the sample"):
        entry = get_benchmark(benchmark)
        place = entry.sample_dir()
        files = {model: str(entry.sample_predictions(model)) for model in samples.SAMPLE_MODELS}
        truth = open_truth(benchmark, "sample")
    if folder is not None:
        files = _keep(benchmark, files, Path(folder) / benchmark)
    results: dict[str, dict[str, Result]] = {}
    written: list[Path] = []
    protocols = (entry.default_protocol, *entry.demo_protocols)
    for model, file in files.items():
        with working(f"{benchmark}: scoring {model}"):
            predictions = read_predictions(benchmark, file)
            results[model] = {}
            for protocol in protocols:
                scores = score(benchmark, truth, predictions, protocol, missing="empty")
                result = summarize(benchmark, scores)
                if folder is not None and not results[model]:
                    written += write_run(scores, result, Path(folder) / benchmark / model)
                results[model][protocol] = result
    if folder is not None:
        from bench_datasets.report import write_report

        with working(f"{benchmark}: writing the page"):
            runs, page = [Path(folder) / benchmark / model for model in files], Path(folder) / benchmark / "report.html"
            written.append(write_report(runs, page, data="sample", predictions=list(files.values())))
    return Played(benchmark, place, files, results, written)


def _keep(benchmark: str, files: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Copy the models' predictions to where they are easily found; the first model's in further formats, too."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {model: str(shutil.copyfile(file, folder / f"{model}.jsonl")) for model, file in files.items()}
    get_benchmark(benchmark).write_other_formats(next(iter(files)), folder)
    return kept


def _plain(one: Played) -> dict[str, Any]:
    tables = {model: {name: result.to_dict() for name, result in mine.items()} for model, mine in one.results.items()}
    written = [str(file) for file in one.written]
    return {"sample": one.place, "predictions": one.files, "written": written, "results": tables}


def _show(console: Console, one: Played) -> None:
    from bench_datasets.cli.tables import show_grid, show_table

    entry = get_benchmark(one.benchmark)
    default, *others = next(iter(one.results.values()))
    protocols = entry.protocols
    first = next(iter(one.results.values()))[default]
    console.print()
    say(console, f"{entry.title}: {first.dataset['rows']['scored']} rows of the built-in sample", "bold")
    show_table(console, _side_by_side(console, one, default))
    say(console, f"{default}: {protocols[default].meaning}", "dim")
    if others:
        show_grid(console, _other_protocols(one.results, others), left=(0, 1), names=2)
        for name in others:
            say(console, f"{name}: {protocols[name].meaning}", "dim")


def _next(console: Console, played: Sequence[Played], folder: str | None) -> None:
    from rich.text import Text

    from bench_datasets.samples import SAMPLE_MODELS

    def line(*parts: Any) -> None:
        console.print(Text.assemble(*parts), soft_wrap=True)

    console.print()
    say(console, "In percent. [low, high]: 95 % confidence interval (bootstrap).", "dim")
    line(("the models", "bold"))
    for model, words in SAMPLE_MODELS.items():
        say(console, f"  {model}: {words}")
    if folder is not None:
        line(("written", "bold"))
        for one in played:
            line(f"  {one.written[-1]}: open it in a browser; runs and predictions are in the same folder")
    line(("next", "bold"))
    call, some = program(), next(iter(played[0].files.values()))
    first = played[0].benchmark
    line(f"  {call} score {first} --data sample --predictions {some}")
    line(f"  {call} check {first} --data sample --predictions {some}")
    line(f"  {call} info {first} --data sample")
    if folder is None:
        line(f"  {call} demo --out demo")
    else:
        first_two = " ".join(str(Path(folder) / first / name) for name in list(SAMPLE_MODELS)[:2])
        line(f"  {call} compare {first_two}")


def _side_by_side(console: Console, one: Played, protocol: str) -> Any:
    """Models beside one another, number by number, with intervals where the terminal has room for them."""
    from rich.text import Text

    from bench_datasets.cli.tables import fitting, interval, new_table
    from bench_datasets.results.tables import n_of, show

    runs = {model: mine[protocol] for model, mine in one.results.items()}
    headline = next(iter(runs.values())).headline

    def table(intervals: bool, gap: int = 2) -> Any:
        made = new_table("", ["", "n", *runs], gap=gap)
        for key in get_benchmark(one.benchmark).demo_metrics:
            metrics = [run.metrics[key] for run in runs.values()]
            cells = [Text(key), Text(n_of(metrics))]
            for metric in metrics:
                bounds = f" {interval(metric, key):>14}" if intervals else ""
                cells.append(Text.assemble(show(metric, key), (bounds, "dim")))
            made.add_row(*cells, style="bold" if key == headline else "")
        return made

    return fitting(console, [table(True), table(True, 1), table(False), table(False, 1)])


def _other_protocols(results: dict[str, dict[str, Result]], names: list[str]) -> Grid:
    """The headline metric of each model under some protocols, as a grid."""
    from bench_datasets._util.grid import Grid
    from bench_datasets.cli.tables import interval
    from bench_datasets.results.tables import n_of, show

    rows = []
    for name in names:
        runs = [mine[name] for mine in results.values()]
        key = runs[0].headline or ""
        metrics = [run.metrics[key] for run in runs]
        cells = [f"{show(metric, key)} {interval(metric, key)}" for metric in metrics]
        rows.append([name, key, n_of(metrics), *cells])
    return Grid("under the other protocols", ["protocol", "metric", "n", *results], rows)
