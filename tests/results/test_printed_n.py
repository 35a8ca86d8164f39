"""Every n that is printed is the n of the number that it stands with."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench_datasets._util.grid import Grid
from bench_datasets.report import drawing
from bench_datasets.report.page_data import Ladder, Lane
from bench_datasets.results.compare import Difference
from bench_datasets.results.comparison_tables import _row
from bench_datasets.results.result import Metric, Result, Slice
from bench_datasets.results.tables import as_html, as_text, by_n, grids, n_of, show

PARTS = ("level_0", "level_1", "dense")
NAMES = ("macro_f1", "giou", "il_mcc", "count_error", "pmf1")


def metric(rng: np.random.Generator) -> Metric:
    """A number whose value tells which n belongs to it: n = 1,000 times the value; sometimes it is undefined."""
    n = int(rng.integers(1, 1000))
    return Metric(n / 1000, n) if rng.random() > 0.15 else Metric(math.nan, 0)


def result_of(rng: np.random.Generator, benchmark: str) -> Result:
    if benchmark == "pbench":
        metrics = {f"{name}/{part}": metric(rng) for name in NAMES for part in PARTS}
        metrics["average"] = metric(rng)
    else:
        metrics = {name: metric(rng) for name in ("R@20/0.5", "R@50/0.5", "pair_recall@20/0.5", "vpq", "stq")}
    slices = [
        Slice("source", value, {name: metric(rng) for name in metrics if name != "average"}) for value in ("vidor", "x")
    ]
    return Result(
        benchmark=benchmark, protocol={"name": "official", "version": "1", "comparable_to": None},
        dataset={"source": None, "split": None, "revision": None, "rows": {"scored": 3, "expected": None}},
        predictions={"sha256": None, "rows": None, "missing": None},
        settings={"k": [20, 50] if benchmark == "pvsg" else None},
        statistics={}, metrics=metrics, slices=slices, faults={}, packages={}, created="",
        headline="R@20/0.5" if benchmark == "pvsg" else "average",
    )  # fmt: skip


def value_of(cell: str, name: str) -> float:
    """The fraction behind a cell; the means of these names are printed as they are, all others in percent."""
    return float(cell) if name.startswith(("count_error", "drift")) else float(cell) / 100


def numbers_in(grid: Grid) -> int:
    """Check every number of a table against the n that precedes it in its row or column; how many were checked."""
    checked = 0
    if "value" in grid.head:  # one number per row, its n behind it
        for name, value, _, n in grid.rows:
            if value != "-":
                assert round(1000 * value_of(value, name)) == int(n), name
                checked += 1
        return checked
    if "n" in grid.head:
        for row in grid.rows:
            n = ""
            for head, cell in zip(grid.head, row, strict=True):
                if head == "n":
                    n = cell
                elif re.fullmatch(r"[\d.]+", cell):
                    names = [name for name in NAMES if name == head]
                    assert round(1000 * value_of(cell, names[0] if names else head)) == int(n), (grid.title, head, row)
                    checked += 1
        return checked
    known: list[str] = []
    for row in grid.rows:
        if row[0] == "n":
            known = row[1:]
            continue
        for n, cell in zip(known, row[1:], strict=True):
            if re.fullmatch(r"[\d.]+", cell):
                assert round(1000 * value_of(cell, row[0])) == int(n), row
                checked += 1
    return checked


@pytest.mark.parametrize("benchmark", ["pbench", "pvsg"])
@pytest.mark.parametrize("seed", range(8))
def test_result_tables_print_the_n_of_each_number(benchmark: str, seed: int) -> None:
    result = result_of(np.random.default_rng(seed), benchmark)
    tables = [grid for grid in grids(result) if grid.title != "by rank and overlap"]
    assert sum(map(numbers_in, tables)) >= (10 if benchmark == "pbench" else 2)
    headline = result.metrics[result.headline or ""]
    assert f"(n = {headline.n})" in as_text(result)
    assert f"(n = {headline.n})" in as_html(result)


def test_by_n_joins_numbers_of_one_n_and_keeps_others_apart() -> None:
    cells = {"a": [Metric(0.1, 8), Metric(0.1, 9)], "b": [Metric(0.2, 9), Metric(0.2, 9)], "c": [None, Metric(0.3, 9)]}
    assert by_n(cells) == [(["a", "c"], ["8", "9"]), (["b"], ["9", "9"])]
    assert by_n({"a": [Metric(math.nan, 0)]}) == [(["a"], [""])]


def test_n_of_several_runs_names_each_where_they_differ() -> None:
    assert n_of([Metric(0.1, 28), Metric(0.2, 28)]) == "28"
    assert n_of([Metric(0.1, 28), Metric(0.2, 1029), None]) == "28 / 1,029 / -"
    assert n_of([None, Metric(math.nan, 0)]) == "0"


def test_comparison_row_prints_the_n_of_both_runs() -> None:
    same = Difference(("", ""), "giou", 0.5, 0.6, 0.1, None, 1.0, 1.0, None, None, None, 28, 0.2, True)
    assert _row(same)[-2] == "28"
    assert _row(replace(same, n_b=29))[-2] == "28 / 29"


def test_report_ladder_prints_the_n_of_each_run() -> None:
    lanes = [Lane("vidor", [Metric(0.5, 8), Metric(0.5, 9)]), Lane("ego4d", [Metric(0.5, 10), Metric(0.4, 10)])]
    for width in (360, 900):
        found = re.findall(r">n = ([^<]+)<", drawing.ladder(Ladder("R@20/0.5", lanes), ["a", "b"], width))
        assert found == ["8 / 9", "10"]


FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "results").glob("v1-*.json"))


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.stem)
def test_tables_of_recorded_results_print_the_n_of_the_file(file: Path) -> None:
    """Slices of real runs: the n before a number is the one that `result.json` holds for that slice and metric."""
    result = Result.load(file)
    checked = 0
    for grid in grids(result):
        slices = {part.value: part.metrics for part in result.slices if part.by == grid.head[0]}
        if not slices or "n" not in grid.head:
            continue
        for row in grid.rows:
            n = ""
            for head, cell in zip(grid.head[1:], row[1:], strict=True):
                if head == "n":
                    n = cell.replace(",", "")
                    continue
                found = [m for name, m in slices[row[0]].items() if name == head and show(m, name) == cell]
                if cell not in ("", "-"):
                    assert n in {str(m.n) for m in found}, (grid.title, row[0], head)
                    checked += 1
    assert checked or not result.slices
