"""`report`: runs as one HTML page, and as a plot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bench_datasets.cli import options
from bench_datasets.cli.console import echo, out, remark, working


def report(
    runs: Annotated[list[str], typer.Argument(metavar="DIR...", help="The folder of a run, or of several to compare.")],
    file: Annotated[str, typer.Option("--out", metavar="FILE", help="The page to write.")] = "report.html",
    data: options.Data = None,
    predictions: Annotated[
        list[str] | None,
        typer.Option("--predictions", metavar="P", help="A run's predictions, in the runs' order. Repeatable."),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="NAME", help="Name of a run, in the order of the runs. Default: its folder's name."
        ),
    ] = None,
    split: options.Split = "test",
    assets: Annotated[
        bool, typer.Option("--assets", help="Put the pictures that do not fit into a folder beside the page.")
    ] = False,
    images: Annotated[bool, typer.Option("--images/--no-images", help="Whether to look for images.")] = True,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Draw the capability profile too: .svg, .png or .pdf.")
    ] = None,
    draws: Annotated[
        int, typer.Option("--draws", metavar="N", min=1, help="Number of bootstrap draws and permutations.")
    ] = 10_000,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Write one HTML page about a run, or about several: metrics, comparison, errors, and a gallery of rows.

    It opens without a network. Pictures need the truth and the predictions.

    Example: bench-datasets report demo/pbench/careful --data sample --predictions demo/pbench/careful.jsonl
    """
    from bench_datasets.report import profile, write_report
    from bench_datasets.report.runs import open_runs

    if predictions and len(predictions) != len(runs):
        raise typer.BadParameter(
            f"expected {len(runs)}, one per run, got {len(predictions)}", param_hint="'--predictions'"
        )
    if names and len(names) != len(runs):
        raise typer.BadParameter(f"expected {len(runs)}, one per run, got {len(names)}", param_hint="'--name'")
    if images and not predictions:
        wanted = "--predictions P" if data is not None else "--data D --predictions P"
        remark(f"no pictures: add {wanted}{', --predictions once for each run' if len(runs) > 1 else ''}")
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    with working("writing the page"):
        page = write_report(
            runs, file, names=names, data=data, predictions=predictions or (), split=split, images=images,
            assets=assets, draws=draws, seed=seed,
        )  # fmt: skip
    written = [page]
    if plot is not None:
        with working("drawing the plot"):
            written.append(profile({run.name: run.result for run in open_runs(runs, names)}, plot))
    if as_json:
        echo(json.dumps({"written": [str(path) for path in written], "bytes": page.stat().st_size}, indent=1))
        return
    for path in written:
        out().print(f"wrote {path}", markup=False, soft_wrap=True)
