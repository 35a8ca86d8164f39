"""`compare`: differences between runs, paired by row, with confidence intervals and significance tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bench_datasets.cli import options
from bench_datasets.cli.console import echo, out, say, working

if TYPE_CHECKING:
    from rich.console import Console

    from bench_datasets.results.compare import Comparison


def compare(
    runs: Annotated[
        list[str], typer.Argument(metavar="A B...", help="Two or more runs: their folders, or scores.parquet files.")
    ],
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="NAME", help="Name of a run, in the order of the runs. Default: its folder's name."
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="COLUMN", help="Also show differences for each value of a column. Repeatable."),
    ] = None,
    every: Annotated[
        bool | None,
        typer.Option(
            "--every/--headline",
            "--all",
            help="--every (or --all): all metrics. --headline: only the headline metric and its parts."
            " By default two runs show the main metrics, more runs the headline metric.",
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="NAME", help="InstanceBench: compare this run of each model. Default: the mean over runs."
        ),
    ] = None,
    condition: Annotated[
        str | None,
        typer.Option(
            "--condition",
            metavar="NAME",
            help="InstanceBench: compare the answers under this condition. Default: original.",
        ),
    ] = None,
    draws: Annotated[int, typer.Option("--draws", metavar="N", min=1, help="Number of bootstrap draws.")] = 10_000,
    permutations: Annotated[
        int, typer.Option("--permutations", metavar="N", min=1, help="Number of permutations of the significance test.")
    ] = 10_000,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Compare runs: paired differences with confidence intervals and significance tests.

    Models with several runs are compared by the mean over their runs, so the numbers of runs may differ.

    Example: bench-datasets compare demo/pbench/careful demo/pbench/hasty
    """  # fmt: skip
    from bench_datasets.results.compare import compare as compared

    if len(runs) < 2:
        raise typer.BadParameter(f"expected two runs or more, got {len(runs)}", param_hint="'A B...'")
    if names is not None and len(names) != len(runs):
        raise typer.BadParameter(f"expected {len(runs)}, one per run, got {len(names)}", param_hint="'--name'")
    with working("comparing"):
        found = compared(
            runs, names=names, by=list(dict.fromkeys(by or ())), every=every, run=run, condition=condition, draws=draws,
            permutations=permutations, seed=seed,
        )  # fmt: skip
    if as_json:
        echo(found.to_json())
        return
    _show(out(), found, by or (), whole=every is True)


def _show(console: Console, comparison: Comparison, by: Sequence[str], *, whole: bool) -> None:
    """Sentences first, then one table per pair, then places; below, the sentences again, or where the rest is."""
    from bench_datasets.cli.tables import show_grid
    from bench_datasets.results.comparison_tables import NOTES, further, grids, main_part, opening, said

    shown = comparison if whole else main_part(comparison, by)
    first, *remarks = opening(comparison)
    say(console, first, "dim")
    for line in remarks:
        say(console, line, "yellow")
    for line in said(comparison):
        say(console, line, "bold")
    tables = grids(shown)
    for grid in tables:
        places = grid.title == "places"
        show_grid(console, grid, left=(0, 1) if places else (0,), names=2 if places else 1)
    console.print()
    if any(grid.title != "places" for grid in tables):
        for line in NOTES:
            say(console, line, "dim")
    if whole:
        for line in said(comparison):
            say(console, line, "bold")
    elif rest := further(comparison, shown):
        say(console, f"{rest} --every shows them, --json holds every number.")
