"""`leaderboard`: runs from folders and results repos side by side, as tables, CSV, JSON or one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench_datasets._util.atomic import replacing
from bench_datasets.cli import options
from bench_datasets.cli.console import clean, echo, err, out, remark, say, working

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from bench_datasets.hub.leaderboard import Board, Group


def leaderboard(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR|REPO...", help="Folders with runs in them or below, and results repos on the Hub, as ORG/NAME."
        ),
    ],
    csv: Annotated[
        str | None, typer.Option("--csv", metavar="F", help="Write every number of every run there.")
    ] = None,
    html: Annotated[
        str | None, typer.Option("--html", metavar="F", help="Write one page that needs nothing else.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show runs in tables, ranked by the headline metric. Runs that are not comparable stand in different tables.

    Example: bench-datasets leaderboard demo --html board.html
    """  # fmt: skip
    from bench_datasets.hub import leaderboard_view
    from bench_datasets.hub.leaderboard import leaderboard as read

    with working("reading the runs"):
        board = read(targets)
    written = [
        _write(Path(file), text)
        for file, text in (
            (csv, leaderboard_view.as_csv(board) if csv else ""),
            (html, leaderboard_view.as_html(board) if html else ""),
        )
        if file
    ]
    if as_json:
        echo(leaderboard_view.as_json(board))
        return
    _show(out(), board)
    for line in board.left_out:
        remark(f"left out: {line}")
    for path in written:
        err().print(f"wrote {clean(str(path))}", markup=False, soft_wrap=True)


def _show(console: Console, board: Board) -> None:
    from bench_datasets.hub.leaderboard_view import PARTIAL
    from bench_datasets.results.tables import NOTE

    for group in board.groups:
        say(console, group.title, "bold")
        say(console, group.caption, "dim")
        if group.partial:
            say(console, PARTIAL, "yellow")
        _show_group(console, group)
        console.print()
    say(console, NOTE, "dim")


def _show_group(console: Console, group: Group) -> None:
    """One table where it fits, at need with short heads; else the headline's parts in a second one below."""
    from bench_datasets._util.grid import Grid
    from bench_datasets.cli.tables import fits, plain_table, show_table
    from bench_datasets.hub.leaderboard_view import brief, grid

    whole, (short, legend) = grid(group), brief(group)
    names, first = tuple(whole.left), len(whole.head) - len(group.parts)

    def made(of: Grid, columns: Sequence[int]) -> Table:
        """Some columns as a table; where room is scarce names are folded, and no number."""
        part = Grid("", [of.head[k] for k in columns], [[row[k] for k in columns] for row in of.rows])
        table = plain_table(console, part, left=names)
        for column in table.columns[len(names) :]:
            column.no_wrap = True
        return table

    every, headline = range(len(whole.head)), range(first)
    parts = [*names, *range(first, len(whole.head))]
    for of, lots in ((whole, [every]), (short, [every]), (whole, [headline, parts]), (short, [headline, parts])):
        tables = [made(of, columns) for columns in lots if len(columns) > len(names)]
        if all(fits(console, table) for table in tables):
            break
    for table in tables:
        show_table(console, table)
    if of is short and legend:
        say(console, legend, "dim")


def _write(path: Path, text: str) -> Path:
    """Write a file that appears whole or not at all; the line ends are the text's own."""
    with replacing(path) as (partial,):
        partial.write_bytes(text.encode("utf-8"))
    return path
