"""`info --cost`: what scoring a copy of a benchmark takes."""

from __future__ import annotations

import json
from dataclasses import asdict

from bench_datasets.cli.console import echo, out, working

MIB = 1 << 20


def show_cost(benchmark: str, data: str | None, num_proc: int, as_json: bool) -> None:
    """Count, estimate, print.

    Args:
        benchmark: its name.
        data: the truth's root.
        num_proc: processes to score with.
        as_json: whether to print JSON.
    """
    from rich.text import Text

    from bench_datasets.data import open_truth
    from bench_datasets.execution.progress import spoken
    from bench_datasets.scoring.cost_model import MACHINE, count, estimate

    with working("counting"):
        counts = count(benchmark, open_truth(benchmark, data))
    cost = estimate(benchmark, counts, num_proc=num_proc)
    if as_json:
        echo(json.dumps({"benchmark": benchmark, "counts": asdict(counts), "cost": asdict(cost)}, indent=2))
        return
    console = out()
    frames = f", {counts.frames:,} frames" if counts.frames else ""
    processes = "one process" if num_proc == 1 else f"{num_proc} processes"
    for line in (
        f"{counts.rows:,} score rows, {counts.masks:,} masks{frames}, {counts.bytes / MIB:,.0f} MiB of RLE"
        " (if a model gives as many masks as the truth holds)",
        f"about {spoken(cost.seconds)} with {processes}, {spoken(cost.cpu_seconds)} of processor time",
        f"about {cost.memory / MIB:,.0f} MiB of memory, and {cost.mapped / MIB:,.0f} MiB of mapped files where there is"
        " room",
        f"measured on {MACHINE}; predictions as JSON Lines, no bootstrap",
    ):
        console.print(Text(line), soft_wrap=True)
