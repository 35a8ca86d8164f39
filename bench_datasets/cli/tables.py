"""Results on a terminal: the grids of `results_view` as tables that fit its width."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench_datasets._util.grid import Grid
from bench_datasets.cli.console import clean, echo, out, say
from bench_datasets.results.layout import RANKED, RANKS, layout_of
from bench_datasets.results.legend import is_main, legend
from bench_datasets.results.result import Metric, Result
from bench_datasets.results.tables import (
    N_MEANS,
    NOTE,
    OVERALL,
    by_part,
    caption,
    grids,
    headline,
    is_fraction,
    show,
    slice_title,
    verdict,
)

LEAST = 20
"""Fewest columns for the meaning of a metric, however narrow the terminal."""

MAIN_TITLES = frozenset({"", RANKS})
"""Titles of the tables that hold a result's main metrics."""


def show_result(console: Console, result: Result, *, every: bool = False, by: Sequence[str] = ()) -> None:
    """Print a result: the headline, comparability, faults, the main table and the meanings of its metrics.

    Args:
        console: where to.
        result: what to print.
        every: print every metric and every table.
        by: columns whose tables were asked for.
    """
    say(console, caption(result), "dim")
    say(console, headline(result), "bold")
    for line in verdict(result):
        say(console, line, "green" if line.startswith("comparable to published") else "yellow" if _weak(line) else "")
    tables = grids(result)
    tables.sort(key=lambda grid: grid.title != "faults")
    wanted = MAIN_TITLES | {slice_title(result.benchmark, column) for column in by}
    hidden, shown_keys, left_out = [], set(), 0
    for grid in tables:
        if grid.title == "faults":
            show_faults(console, grid)
        elif not every and grid.title not in wanted:
            hidden.append(grid.title)
        elif by_part(result) and grid.title == "":
            _show_numbers(console, grid, result)
            shown_keys |= set(result.metrics)
        else:
            kept = grid
            if grid.title == "" and not every:
                rows = [row for row in grid.rows if is_main(result.benchmark, row[0])]
                kept, left_out = Grid("", grid.head, rows), left_out + len(grid.rows) - len(rows)
            show_grid(console, kept, style=lambda row: "bold" if row[0] == result.headline else "")
            if grid.title == RANKS:
                shown_keys |= {key for key in result.metrics if RANKED.fullmatch(key)}
            elif grid.title == "":
                shown_keys |= {row[0] for row in kept.rows}
    console.print()
    say(console, NOTE, "dim")
    meant = legend(result.benchmark, [key for key in result.metrics if key in shown_keys])
    show_legend(console, {"n": N_MEANS[by_part(result)]} | meant if shown_keys else meant)
    if hidden or left_out:
        more = [f"{left_out} further metrics"] * (left_out > 0)
        more += [f"{len(hidden)} table{'' if len(hidden) == 1 else 's'} ({', '.join(hidden)})"] * bool(hidden)
        say(console, f"Not shown: {' and '.join(more)}. --every shows them, --json holds every number.")


def show_legend(console: Console, meant: Mapping[str, str]) -> None:
    """Print what metric keys mean, one entry per key; on a narrow terminal its text wraps within its own column."""
    width = max(map(len, meant), default=0) + 2
    for pattern, meaning in meant.items():
        lines = textwrap.wrap(meaning, max(console.width - width, LEAST)) or [""]
        for name, text in zip((pattern, *[""] * len(lines)), lines, strict=False):
            console.print(Text.assemble((f"{name:{width}}", ""), (text, "dim")), soft_wrap=True)


def show_run(
    result: Result, files: Sequence[Path], *, as_json: bool, every: bool = False, by: Sequence[str] = ()
) -> None:
    """Print the result of a run and where its files are, or one JSON object; see `show_result`."""
    if as_json:
        echo(result.to_json())
        return
    console = out()
    show_result(console, result, every=every, by=by)
    for file in files:
        console.print(Text(f"wrote {file}"), soft_wrap=True)


def _weak(line: str) -> bool:
    return line.startswith("not comparable") or "partial" in line or "without a prediction" in line


def show_table(console: Console, table: Table) -> None:
    """Print a table below an empty line; its title never wraps at the table's own width."""
    console.print()
    if table.title:
        console.print(table.title, soft_wrap=True)
    table.title = None
    console.print(table)


def new_table(title: str, head: Sequence[str], *, gap: int = 2, left: Sequence[int] = (0,)) -> Table:
    """An empty table without frame.

    Args:
        title: what stands above it, or nothing.
        head: the columns' heads.
        gap: spaces between columns, at least 1.
        left: positions of columns that are set to the left; the others are numbers.
    """
    table = Table(
        title=Text(title, style="bold") if title else None,
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, gap - 1, 0, 0),
        header_style="dim",
        border_style="dim",
    )
    for i, name in enumerate(head):
        table.add_column(Text(clean(name)), justify="left" if i in left else "right", overflow="fold")
    return table


Style = Callable[[list[str]], str]
"""The style of a row, by its cells."""


def show_grid(
    console: Console, grid: Grid, *, left: Sequence[int] = (0,), names: int = 1, style: Style | None = None
) -> None:
    """Print a grid. Columns for which the console has no room stand in further tables below, behind the same names.

    Args:
        console: where to.
        grid: what to print.
        left: positions of columns that are set to the left.
        names: how many of the first columns name the rows; each table repeats them.
        style: the style of each row.
    """
    whole = range(len(grid.head))
    for gap in (2, 1):
        table = _some_columns(grid, whole, left, gap, style)
        if fits(console, table):
            show_table(console, table)
            return
    first = True
    for columns in _blocks(console, grid, names):
        table = _some_columns(grid, columns, left, 2, style)
        table.title = table.title if first else None
        show_table(console, table)
        first = False


def _blocks(console: Console, grid: Grid, names: int) -> list[list[int]]:
    """Columns in groups, each with the naming ones, that fit the console side by side."""
    widths = [max(cell_len(clean(row[k])) for row in (grid.head, *grid.rows)) + 2 for k in range(len(grid.head))]
    keys = list(range(names))
    blocks: list[list[int]] = []
    for k in range(names, len(grid.head)):
        if blocks and sum(widths[i] for i in [*keys, *blocks[-1], k]) - 2 <= console.width:
            blocks[-1].append(k)
        else:
            blocks.append([k])
    return [[*keys, *block] for block in blocks] or [keys]


def _some_columns(
    grid: Grid, columns: Sequence[int], left: Sequence[int], gap: int, style: Style | None = None
) -> Table:
    table = new_table(
        grid.title, [grid.head[k] for k in columns], gap=gap, left=[i for i, k in enumerate(columns) if k in left]
    )
    for row in grid.rows:
        table.add_row(*(Text(clean(row[k])) for k in columns), style=style(row) if style else "")
    return table


def plain_table(console: Console, grid: Grid, *, left: Sequence[int] = (0,)) -> Table:
    """A grid as a table, closer together on a narrow terminal."""
    return fitting(console, [_some_columns(grid, range(len(grid.head)), left, gap) for gap in (2, 1)])


def show_faults(console: Console, grid: Grid) -> None:
    """Print the grid of faults: code, how many, some keys. Only the last column wraps on a narrow terminal."""
    table = new_table(grid.title, grid.head, left=(0, 2))
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for code, count, examples in grid.rows:
        table.add_row(Text(clean(code), style="yellow"), count, Text(clean(examples)))
    show_table(console, table)


def fitting(console: Console, tables: Sequence[Table]) -> Table:
    """The first of several tables that fits the console; the last if none does."""
    return next((table for table in tables[:-1] if fits(console, table)), tables[-1])


def fits(console: Console, table: Table) -> bool:
    """Whether the console has room for a table without wrapping."""
    return console.measure(table).minimum <= console.width and _width(console, table) <= console.width


def _width(console: Console, table: Table) -> int:
    """Columns that a table takes if nothing is wrapped."""
    endless = console.options.update(max_width=10_000)
    return console.measure(table, options=endless).maximum


def _show_numbers(console: Console, grid: Grid, result: Result) -> None:
    """The numbers by part: with all intervals where they fit, else with those of the headline."""
    if not any(row[-1] for row in grid.rows):
        grid = Grid(grid.title, grid.head[:-1], [row[:-1] for row in grid.rows])
    first = next((row[0] for row in grid.rows if row[0] not in ("n", "")), "")
    every = [row[0] for row in grid.rows]
    for names in (every, [first]):
        table = _in_cells(grid, result, names)
        if fits(console, table):
            show_table(console, table)
            return
    show_grid(console, _below(grid, result, first), style=lambda row: _style(row[0], result))


def _in_cells(grid: Grid, result: Result, names: Sequence[str]) -> Table:
    table = new_table(grid.title, grid.head)
    for row in grid.rows:
        cells = [Text(row[0])]
        for part, cell in zip(grid.head[1:], row[1:], strict=True):
            metric = _metric(result, row[0], part)
            text = interval(metric, row[0]) if metric is not None and row[0] in names else ""
            cells.append(Text.assemble(cell, (f" {text}" if text else "", "dim")))
        table.add_row(*cells, style=_style(row[0], result))
    return table


def _below(grid: Grid, result: Result, name: str) -> Grid:
    """The grid with two further rows below one number: the bounds of its interval."""
    rows = []
    for row in grid.rows:
        rows.append(row)
        if row[0] != name:
            continue
        found = [_metric(result, name, part) for part in grid.head[1:]]
        for side, end in enumerate(("low", "high")):
            bounds = [show(Metric(m.ci95[side], m.n), name) if m is not None and m.ci95 else "" for m in found]
            if any(bounds):
                rows.append([f"{BOUND}{end}", *bounds])
    return Grid(grid.title, grid.head, rows)


BOUND = "95 % "
"""Beginning of the names of rows that hold interval bounds."""


def _style(name: str, result: Result) -> str:
    overall = layout_of(result.benchmark).overall
    own = next((name for name, key in overall.items() if key == result.headline), result.headline)
    return "bold" if name == own else "dim" if name == "n" or name.startswith(BOUND) else ""


def _metric(result: Result, name: str, part: str) -> Metric | None:
    """The number behind a cell of the grid; the last column holds those without a part."""
    if part == OVERALL:
        return result.metrics.get(name) or result.metrics.get(layout_of(result.benchmark).overall.get(name, ""))
    return result.metrics.get(f"{name}/{part}")


def interval(metric: Metric, name: str) -> str:
    """A number's interval in short, or nothing.

    Example:
        >>> interval(Metric(0.5, 3, (0.25, 0.75)), "giou")
        '[25.0, 75.0]'
    """
    if metric.ci95 is None:
        return ""
    fraction = is_fraction(name)
    low, high = (f"{100 * bound:.1f}" if fraction else f"{bound:.2f}" for bound in metric.ci95)
    return f"[{low}, {high}]"
