"""Suite `whole`: the command `score` of every benchmark against the obvious implementation, files in, headline out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from rich.console import Console
from rich.table import Table

import bench_datasets as bd
from bench import whole_data
from bench.clock import seconds
from bench_datasets.masks import available_engines

HEADLINES = {"pbench": "average", "instancebench": "miou", "pvsg": "R@20/0.5"}

EVERY = {"pbench": 4, "instancebench": 8, "pvsg": 31}
"""At the real size every n-th row goes through the obvious implementation, and its scoring time is scaled."""

VARIANTS = (
    ("numba", 1, 10_000), ("numba", 2, 10_000), ("pycocotools", 1, 10_000), ("pycocotools", 2, 10_000),
    ("numba", 1, 0), ("pycocotools", 1, 0),
)  # fmt: skip
"""Engine, threads and bootstrap draws of our command."""

_LAUNCH = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.run(sys.argv[2:]).returncode
wall, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
most = used.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
with open(sys.argv[1], "w") as file:
    json.dump({"processor": used.ru_utime + used.ru_stime, "wall": wall, "memory_mb": most, "code": code}, file)
"""
"""Runs a command and writes its times and peak memory; small itself, as a child's peak includes its parent's size."""


def run(
    console: Console, *, quick: bool, seed: int = 0, sizes: tuple[float, ...] | None = None, times: int = 3,
    folder: Path | None = None, benchmarks: tuple[str, ...] = tuple(HEADLINES),
) -> dict[str, Any]:  # fmt: skip
    """Time every variant of the command, and the obvious implementation, in processes of their own.

    Args:
        console: for the tables.
        quick: small inputs, each command once.
        seed: of the data.
        sizes: number of rows as multiples of the real number; 1 and 10 by default.
        times: runs of every variant; the least processor time counts.
        folder: keeps the data for the next time.
        benchmarks: which.

    Returns:
        By benchmark, a list of one dictionary per size and command.

    Raises:
        ValueError: the two find other headline numbers.
    """
    sizes, times = sizes or ((0.03,) if quick else (1.0, 10.0)), 1 if quick else times
    result: dict[str, Any] = {}
    for benchmark in benchmarks:
        result[benchmark] = []
        for size in sizes:
            with tempfile.TemporaryDirectory() as temporary:
                data = (folder or Path(temporary)) / f"{benchmark}-{size:g}-{seed}"
                if not data.is_dir():
                    whole_data.make(benchmark, data, size, seed)
                result[benchmark].append(_compare(benchmark, data, Path(temporary), size, times))
            _print(console, benchmark, result[benchmark][-1])
    return result


def _compare(benchmark: str, data: Path, temporary: Path, size: float, times: int) -> dict[str, Any]:
    every = max(1, round(EVERY[benchmark] * size)) if size >= 1 else 1
    measured, said = _measured(
        [sys.executable, str(Path(__file__).with_name("obvious_whole.py")), benchmark, str(data), str(every)], {}
    )
    theirs = json.loads(said.splitlines()[-1])
    engines = available_engines()
    variants = [variant for variant in VARIANTS if variant[0] in engines]
    lines: list[dict[str, Any]] = []
    for turn in range(times + 1):  # the first prepares the truth and compiles the kernels
        for k, (engine, threads, draws) in enumerate(variants if turn else variants[:1]):
            out = temporary / f"{turn}-{k}"
            command = [
                sys.executable, "-m", "bench_datasets", "score", benchmark, "--data", str(data), "--predictions",
                str(data / whole_data.PREDICTIONS), "--out", str(out), "--threads", str(threads), "--draws", str(draws),
            ]  # fmt: skip
            found, _ = _measured(command, {"BENCH_DATASETS_ENGINE": engine})
            if turn == 0:
                _agree(benchmark, out, theirs)
            elif turn == 1:
                lines.append({"engine": engine, "threads": threads, "draws": draws, **found})
            elif found["processor"] < lines[k]["processor"]:
                lines[k] |= found
    for line in lines:
        line["ratio"] = theirs["seconds"] / line["processor"]
    obvious = {"seconds": theirs["seconds"], "every": every, "memory_mb": measured["memory_mb"]}
    return {
        "size": size,
        "rows": len(theirs["keys"]),
        "headline": theirs["headline"],
        "obvious": obvious,
        "ours": lines,
    }


def _measured(command: list[str], variables: dict[str, str]) -> tuple[dict[str, float], str]:
    """Times and memory of a command, and its output."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        root = Path(__file__).resolve().parents[2]
        paths = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": paths, **variables}
        done = subprocess.run(
            [sys.executable, "-c", _LAUNCH, file.name, *command], capture_output=True, text=True, check=False,
            env=environment,
        )  # fmt: skip
        found = json.loads(Path(file.name).read_text() or "{}")
    if done.returncode or found.pop("code", 1):
        raise RuntimeError(f"{' '.join(command[:6])}: ended badly: {done.stderr.strip()[-800:]}")
    return found, done.stdout


def _agree(benchmark: str, out: Path, theirs: dict[str, Any]) -> None:
    """Compare the headline over the rows that both have scored.

    Raises:
        ValueError: the two differ.
    """
    scores = Dataset.from_parquet(str(out / "scores.parquet"))
    table = scores.with_format("arrow")[:]
    rows = pc.indices_nonzero(pc.is_in(table["key"], value_set=pa.array(theirs["keys"]))).to_pylist()
    metrics = bd.summarize(benchmark, scores.select(rows), draws=0).metrics
    key = HEADLINES[benchmark]
    ours = metrics[key].value
    if abs(ours - theirs["headline"]) > 1e-9:
        raise ValueError(f"{benchmark}: {key}: the obvious implementation finds {theirs['headline']}, score {ours}")


def _print(console: Console, benchmark: str, found: dict[str, Any]) -> None:
    obvious = found["obvious"]
    scaled = f" (every {obvious['every']}th row, scaled)" if obvious["every"] > 1 else ""
    table = Table(title=f"{benchmark}, {found['size']:g} x the real size: whole command, same {HEADLINES[benchmark]}")
    for name in ("", "threads", "draws", "processor", "wall", "peak memory", "x the obvious"):
        table.add_column(name, justify="right" if name else "left")
    table.add_row(f"obvious{scaled}", "1", "0", seconds(obvious["seconds"]), "", f"{obvious['memory_mb']:,.0f} MB", "1")
    for line in found["ours"]:
        table.add_row(
            f"score, {line['engine']}", str(line["threads"]), f"{line['draws']:,}", seconds(line["processor"]),
            seconds(line["wall"]), f"{line['memory_mb']:,.0f} MB", f"{line['ratio']:.1f}",
        )  # fmt: skip
    console.print(table)
