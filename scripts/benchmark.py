#!/usr/bin/env python3
"""Benchmarks: this package beside its peers, in one process, as medians of alternating runs and their ratios.

    python scripts/benchmark.py                      every suite, more than an hour
    python scripts/benchmark.py --quick              every suite, small: some minutes
    python scripts/benchmark.py masks --plot masks.png --json masks.json

Suites: `pbench` (bd.score end to end against the loop that one would write, and its memory), `instancebench` (the same
for sets of expressions, and the intervals of every table against a loop that gathers the rows of each draw), `masks`
(intersections, tubes and suppression by pycocotools, faster-coco-eval, hotcoco, rlemasklib, where installed, and by our
engines), `whole` (the command `score` of every benchmark, files in, headline out, against the same as one would write
it; processor and wall time, peak memory, per engine, threads and size; about an hour). Peers must agree to the last
integer before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console

SUITES = ("pbench", "instancebench", "pvsg", "masks", "whole")
PACKAGES = (
    "datasets", "numpy", "scipy", "pyarrow", "pycocotools", "numba", "faster-coco-eval", "hotcoco",
    "rlemasklib",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"any of {', '.join(SUITES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="small inputs and few runs: some minutes in all")
    parser.add_argument("--json", metavar="FILE", help="write every number there")
    parser.add_argument("--plot", metavar="FILE", help="draw the sweeps of the suite masks there (needs matplotlib)")
    parser.add_argument("--seed", type=int, default=0, help="of the synthetic masks")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.suites if name not in SUITES]
    if unknown:
        parser.error(f"expected suites among {', '.join(SUITES)}, got {', '.join(unknown)}")
    suites = options.suites or list(SUITES)
    if options.plot and "masks" not in suites:
        parser.error("--plot draws the suite masks; add it, or leave --plot out")

    from bench import suite_instancebench, suite_masks, suite_pbench, suite_pvsg, suite_whole
    from datasets.utils import disable_progress_bars

    disable_progress_bars()
    console = Console(width=None if sys.stdout.isatty() else 200)
    place = environment()
    console.print(f"{place['cpu']}, {place['cores']} cores, {place['system']}, Python {place['python']}")
    console.print(", ".join(f"{name} {version}" for name, version in place["packages"].items()))
    if place["load"] is not None and place["load"] > 0.3 * (place["cores"] or 1):
        console.print(f"the machine is busy (load {place['load']:.1f}): expect noise")
    if options.quick:
        console.print("quick: few runs of small inputs; the ratios are rough")
    report: dict[str, Any] = {"environment": place, "quick": options.quick, "seed": options.seed}
    runs = {
        "pbench": suite_pbench.run,
        "instancebench": suite_instancebench.run,
        "pvsg": suite_pvsg.run,
        "masks": suite_masks.run,
        "whole": suite_whole.run,
    }
    for name in suites:
        console.rule(name)
        report[name] = runs[name](console, quick=options.quick, seed=options.seed)
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        console.print(f"wrote {options.json}")
    if options.plot:
        _plot(console, report, options.plot)
    return 0


def _plot(console: Console, report: dict[str, Any], path: str) -> None:
    from bench.plot import plot

    place = report["environment"]
    shown = ("bench-datasets", "pycocotools", "numba", "faster-coco-eval", "hotcoco", "rlemasklib")
    caption = f"{place['cpu']}, {place['cores']} cores, Python {place['python']}; " + ", ".join(
        f"{name} {version}" for name, version in place["packages"].items() if name in shown
    )
    try:
        plot(report["masks"]["sweeps"], path, caption)
    except ImportError:
        console.print(f"{path} is not drawn: matplotlib is not installed")
    else:
        console.print(f"wrote {path}")


def environment() -> dict[str, Any]:
    """CPU, cores, load, system and versions."""
    import bench_datasets

    versions = {"bench-datasets": bench_datasets.__version__}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": versions,
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
