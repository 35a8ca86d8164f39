"""`check`: everything that is wrong with predictions, in one pass, before any scoring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from bench_datasets.cli import options
from bench_datasets.cli.console import clean, echo, out, remark, worded, working

if TYPE_CHECKING:
    from rich.console import Console

    from bench_datasets.predictions import CheckReport


def check(
    benchmark: options.BenchmarkName,
    predictions: options.Predictions,
    data: options.Data = None,
    split: options.Split = "test",
    protocol: options.Protocol = None,
    missing: options.Missing = "error",
    on_fault: options.OnFault = "stop",
    format: options.Format = None,
    as_json: options.Json = False,
) -> None:
    """List everything that is wrong with predictions and their ground truth. Exit code 1 where `score` would stop.

    Example: bench-datasets check pbench --data sample --predictions demo/pbench/careful.jsonl
    """
    wanted, level = options.split_of(benchmark, split)
    kind = options.format_of(benchmark, format)
    choice = {"protocol": options.protocol_of(benchmark, protocol), "missing": missing, "on_fault": on_fault}
    report = _report(benchmark, predictions, data, wanted, level, kind, choice)
    if as_json:
        echo(report.to_json())
    else:
        _show(out(), report)
    if not report.ok:
        raise typer.Exit(1)


def _report(
    benchmark: str, predictions: str, data: str | None, split: str, level: str | None, kind: str | None,
    choice: dict[str, str],
) -> CheckReport:  # fmt: skip
    import bench_datasets.scoring.check as ours
    from bench_datasets.cli.predictions_option import read_answers
    from bench_datasets.cli.score import part_of
    from bench_datasets.data.source import SourceUnreachableError
    from bench_datasets.faults import FaultError

    answers: Any
    try:
        answers = read_answers(benchmark, predictions, kind, data)
    except FaultError:
        return ours.check(benchmark, predictions)  # the report says what the fault is
    truth: Any = None
    try:
        with working("reading the truth"):
            truth, answers = part_of(benchmark, answers, data, split, level)
    except SourceUnreachableError:
        if data is not None:
            raise
        remark("the ground truth can't be reached, so it is not checked, nor are unknown and missing rows: give --data")
    with working("checking"):
        return ours.check(benchmark, answers, truth, **choice, whole=level is None)


def _show(console: Console, report: CheckReport) -> None:
    from rich.padding import Padding
    from rich.text import Text

    state = (report.state, "bold red" if not report.ok else "bold yellow" if report.errors else "bold green")
    head = f"{report.benchmark}: {report.counts}: "
    console.print(Text.assemble(head, state), soft_wrap=True)
    for title, style, groups in (("error", "red", report.errors), ("warning", "yellow", report.warnings)):
        for group in groups:
            name = (f"{title} {group.code}", f"bold {style}")
            console.print(Text.assemble(name, f" ({group.count:,}): {worded(group.advice)}"))
            for key, text in group.lines():
                told = clean(worded(text))
                line = Text.assemble((clean(key), "bold"), f": {told}") if key else Text(told, style="dim")
                console.print(Padding(line, (0, 0, 0, 4), expand=False))
    for hint in report.hints:
        console.print(Text.assemble(("hint", "bold yellow"), f": {clean(hint)}"))
