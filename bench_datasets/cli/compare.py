"""`compare`: runs held against each other, paired by row, with what the data can and cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bench_datasets.cli import choices
from bench_datasets.cli.screen import clean, echo, out, working
from bench_datasets.results_layout import SHORT, Grid

if TYPE_CHECKING:
    from rich.console import Console

    from bench_datasets.metrics.comparing import Comparison


def compare(
    runs: Annotated[
        list[str], typer.Argument(metavar="A B...", help="Two runs or more: their folders, or scores.parquet files.")
    ],
    names: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="NAME", help="What to call a run, in the order given; else its folder's name."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="COLUMN", help="Differences for each value of it, too. Repeatable."),
    ] = None,
    every: Annotated[
        bool | None,
        typer.Option(
            "--every/--headline",
            help="Show every number, or compute the headline and its parts alone; by default two runs show the main"
            " numbers, more runs the headline's.",
        ),
    ] = None,
    draws: Annotated[int, typer.Option("--draws", metavar="N", min=1, help="Bootstrap draws.")] = 10_000,
    permutations: Annotated[
        int, typer.Option("--permutations", metavar="N", min=1, help="Of the permutation test.")
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of both.")] = 0,
    as_json: choices.Json = False,
) -> None:
    """Hold runs against each other: paired differences with intervals, tests, and one honest sentence a pair.

    Example: bench-datasets compare demo/pbench/careful demo/pbench/hasty
    """  # fmt: skip
    from bench_datasets.metrics.comparing import compare as hold

    if len(runs) < 2:
        raise typer.BadParameter(f"expected two runs or more, got {len(runs)}", param_hint="'A B...'")
    if names is not None and len(names) != len(runs):
        raise typer.BadParameter(f"expected {len(runs)}, one a run, got {len(names)}", param_hint="'--name'")
    with working("comparing"):
        found = hold(
            runs, names=names, by=list(dict.fromkeys(by or ())), every=every, draws=draws, permutations=permutations,
            seed=seed,
        )  # fmt: skip
    if as_json:
        echo(found.to_json())
        return
    _show(out(), found, by or (), whole=every is True)


def _show(console: Console, comparison: Comparison, by: Sequence[str], *, whole: bool) -> None:
    """Sentences first, then a table a pair, then places; below, the sentences again, or where the rest is."""
    from rich.text import Text

    from bench_datasets.cli.tables import fitting, plain_table, show_table
    from bench_datasets.metrics.comparison_view import HEAD, NOTES, further, grids, main_part, opening, said

    shown = comparison if whole else main_part(comparison, by)
    notes: list[str] = []  # on the tables that there are
    first, *remarks = opening(comparison)
    console.print(Text(clean(first), style="dim"), soft_wrap=True)
    for line in remarks:
        console.print(Text(clean(line), style="yellow"), soft_wrap=True)
    for line in said(comparison):
        console.print(Text(clean(line), style="bold"), soft_wrap=True)
    for grid in grids(shown):
        if grid.title == "places":
            show_table(console, plain_table(console, grid, left=(0, 1)))
            continue
        tables = [plain_table(console, _columns(grid, *wanted)) for wanted in _WIDTHS]
        table = fitting(console, tables)
        show_table(console, table)
        notes = list(NOTES if str(table.columns[-1].header) == HEAD[-1] or len(notes) == len(NOTES) else NOTES[:-1])
    console.print()
    for line in notes:
        console.print(Text(line, style="dim"), soft_wrap=True)
    if whole:
        for line in said(comparison):
            console.print(Text(clean(line), style="bold"), soft_wrap=True)
    elif rest := further(comparison, shown):
        console.print(Text(f"{rest}: --every shows them, --json holds every number"), soft_wrap=True)


_WIDTHS: tuple[tuple[Sequence[int], bool], ...] = (
    (range(10), False), ((0, 1, 2, 3, 4, 6, 7, 8, 9), False), ((0, 1, 2, 3, 4, 6, 8), False),
    ((0, 1, 2, 3, 4, 6, 8), True), ((0, 1, 2, 3, 4, 6), True), ((0, 1, 2, 3, 6), True), ((0, 3, 4, 6), True),
)  # fmt: skip
"""Columns that are shown, and whether names are shortened, from a wide terminal to a narrow one; `--json` has all."""


def _columns(grid: Grid, wanted: Sequence[int], shorten: bool) -> Grid:
    """Some columns of a table."""
    rows = [[row[k] for k in wanted] for row in grid.rows]
    if shorten:
        rows = [[_short(name), *rest] for name, *rest in rows]
    return Grid(grid.title, [grid.head[k] for k in wanted], rows)


def _short(name: str) -> str:
    """A metric's name with its longer words shortened."""
    for long, short in SHORT.items():
        name = name.replace(long, short)
    return name
