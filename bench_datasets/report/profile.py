"""Plots of what models can do: parts and totals with intervals, several models, the published ones behind them."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_datasets._util.atomic import replacing
from bench_datasets.benchmark import get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.report.page_data import Ladder
from bench_datasets.results.result import Result
from bench_datasets.results.tables import n_of

COLOURS = ("#7a4fa3", "#009e73", "#d55e00", "#2a8fd0", "#a07d00", "#c2447f", "#4d4d4d", "#7b5a3a")
"""Colours that people who see few colours tell apart; markers differ too."""

MARKERS = "os^DvPH<"

TICK, LINE = 16, 110
"""Height of the tick of a published result, in points; characters of a line of the caption."""

SUFFIXES = (".svg", ".png", ".pdf")


def profile(results: Mapping[str, Result], out: str | os.PathLike[str], *, others: bool = True) -> Path:
    """Draw the capability profile of some results: PBench's levels, InstanceBench's operations and tracks, PVSG's
    predicates and stages.

    Args:
        results: by the models' names, all of one benchmark and protocol.
        out: the file, `.svg`, `.png` or `.pdf`; the same results give the same bytes.
        others: whether to show what others published, marked as comparable or not.

    Returns:
        The file.

    Raises:
        BenchError: no results, results that do not belong together, another suffix, or no matplotlib.

    Example:
        >>> profile({"careful": Result.load("demo/careful")}, "profile.svg")                 # doctest: +SKIP
    """  # noqa: D205
    target = Path(out)
    if target.suffix not in SUFFIXES:
        raise BenchError(f"profile: expected a file that ends in {', '.join(SUFFIXES)}, got {target.name}")
    kinds = {(result.benchmark, result.protocol["name"]) for result in results.values()}
    if len(kinds) != 1:
        raise BenchError(f"profile: expected results of one benchmark and protocol, got {len(kinds)} kinds")
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BenchError("profile: matplotlib is not installed; install it, or use the HTML report") from error

    values = list(results.values())
    section = get_benchmark(values[0].benchmark).report_section()
    ladders: list[Ladder] = [item for item in section.ladders(values) if item.lanes]
    heights = [0.9 + sum(0.34 + 0.16 * len(values) for _ in item.lanes) for item in ladders]
    settings: dict[Any, Any] = {
        "svg.hashsalt": "bench_datasets",
        "svg.fonttype": "path",
        "font.family": "DejaVu Sans",
        "font.size": 9,
    }
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(8.4, sum(heights) + 0.5), layout="constrained")
        axes = figure.subplots(len(ladders), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
        for axis, ladder in zip(axes, ladders, strict=True):
            _draw(axis, ladder, list(results), others)
        found = {text: handle for axis in axes for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)}
        figure.legend([*found.values()], [*found], loc="outside upper center", ncols=4, frameon=False)
        figure.supxlabel(
            "\n".join(_caption(ladders, values[0], others)), fontsize=8, color="#555555", x=0.02, ha="left"
        )
        metadata = {"Software": None} if target.suffix == ".png" else {"Date": None, "Creator": None}
        if target.suffix == ".pdf":
            metadata = {"CreationDate": None, "Creator": None, "Producer": None}
        with replacing(target) as (partial,):
            figure.savefig(partial, dpi=160, metadata=metadata)
    return target


def _draw(axis: Any, ladder: Ladder, names: list[str], others: bool) -> None:
    """One ladder: lanes from top to bottom, a line a model."""
    step = 1.0 / (len(names) + 1.2)
    labels = []
    for row, lane in enumerate(ladder.lanes):
        labels.append(f"{_plain(lane.name)}\nn = {n_of(lane.metrics)}")
        if lane.apart:
            axis.axhline(row - 0.5, color="#888888", linewidth=0.8)
        for k, point in enumerate(lane.published if others else []):
            axis.plot(
                [point.percent], [row], marker="|", linestyle="none", color="#999999", markersize=TICK, alpha=0.7,
                markeredgewidth=1.2, label=None if row or k else "published result",
            )  # fmt: skip
        for k, (name, metric) in enumerate(zip(names, lane.metrics, strict=True)):
            if metric is None or not math.isfinite(metric.value):
                continue
            y, colour = row - 0.5 + step * (k + 1.1), COLOURS[k % len(COLOURS)]
            if metric.ci95:
                axis.plot([100 * v for v in metric.ci95], [y, y], color=colour, linewidth=2.4, alpha=0.45)
            label = _plain(name) if f"_{k}" not in axis.__dict__.setdefault("_named", {}) else None
            axis.__dict__["_named"][f"_{k}"] = True
            axis.plot([100 * metric.value], [y], MARKERS[k % len(MARKERS)], color=colour, markersize=5.5, label=label)
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.5, -0.5)
    axis.set_xlim(min(0, axis.get_xlim()[0]), max(100, axis.get_xlim()[1]))
    axis.grid(axis="x", color="#dddddd", linewidth=0.7)
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)
    axis.set_title(f"{ladder.title}, in percent", loc="left", fontsize=10, fontweight="bold")


def _caption(ladders: Sequence[Ladder], result: Result, others: bool) -> list[str]:
    """Caption below all panels, in lines that fit the figure."""
    notes = list(dict.fromkeys(ladder.note for ladder in ladders if ladder.note)) if others else []
    comparable = "comparable to" if result.comparable_to is not None else "not comparable to"
    lines = ["Lines: 95 % confidence intervals. n: number of cases."]
    for note in notes:
        lines += textwrap.wrap(f"Grey ticks: published results ({note}), {comparable} these runs.", LINE)
    return lines


def _plain(text: str) -> str:
    """Text without matplotlib's own markup, and not without end."""
    short = text if len(text) <= 40 else text[:39] + "…"
    return short.replace("$", r"\$")
