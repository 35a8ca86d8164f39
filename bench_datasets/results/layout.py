"""How a result's numbers are laid out as tables: by part where every number has the same parts, else as lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench_datasets._util.grid import Grid
from bench_datasets.benchmark import BENCHMARKS, TableLayout

if TYPE_CHECKING:
    from bench_datasets.results.result import Metric, Result


Cell = tuple[str, str]
"""Row and column of a number in a table."""

RANKED = re.compile(r"(?P<name>.+)@(?P<column>\d+(?:/[\d.]+)?)")
"""Keys that end in a rank, with or without a threshold: `R@20/0.5`, `weak_official/R@20`."""

RANKS = "by rank and overlap"
"""The title of the table of keys that end in a rank."""


def layout_of(benchmark: str) -> TableLayout:
    """The layout that a benchmark declares; the default for one that is not installed.

    Example:
        >>> layout_of("unknown").pivots
        {}
    """
    known = BENCHMARKS.get(benchmark)
    return known.layout if known else TableLayout()


def cells(result: Result) -> dict[str, dict[Cell, Metric]]:
    """Numbers that belong in tables by row and column, by the table's title; the others are left to `singles`."""
    tables: dict[str, dict[Cell, Metric]] = {}
    pivots = layout_of(result.benchmark).pivots
    for key, metric in result.metrics.items():
        first, *_ = key.split("/")
        ranked = RANKED.fullmatch(key)
        if result.settings.get("k") and ranked:
            tables.setdefault(RANKS, {})[ranked["name"], f"@{ranked['column']}"] = metric
        elif first in pivots:
            row, _, column = key.removeprefix(f"{first}/").rpartition("/")
            tables.setdefault(pivots[first], {})[row, column] = metric
    return tables


def singles(result: Result) -> dict[str, Metric]:
    """Numbers for a list: those that `cells` leaves over and that are about something; slices show the crossed ones."""
    taken = {id(metric) for table in cells(result).values() for metric in table.values()}
    crossed = re.compile(layout_of(result.benchmark).crossed)
    return {
        key: metric
        for key, metric in result.metrics.items()
        if id(metric) not in taken and metric.n and not crossed.fullmatch(key)
    }


def slice_metrics(result: Result, names: Sequence[str]) -> list[str]:
    """The metrics of a slice that its table has room for."""
    layout = layout_of(result.benchmark)
    if result.settings.get("k"):
        headline = RANKED.fullmatch(result.headline or "")
        end = f"@{headline['column']}" if headline else ""
        wanted = [name for name in names if end and name.endswith(end)]
        return [name for name in wanted if name.split("@")[0] not in layout.unsliced] or list(names)[:6]
    return [name for name in names if name in layout.slices] or list(names)


def by_title(tables: Mapping[str, Mapping[Cell, str]]) -> list[Grid]:
    """Tables of texts as grids."""
    grids = []
    for title, table in tables.items():
        rows, columns = (list(dict.fromkeys(cell[k] for cell in table)) for k in (0, 1))
        body = [[row, *(table.get((row, column), "") for column in columns)] for row in rows]
        grids.append(Grid(title, ["", *columns], body))
    return grids
