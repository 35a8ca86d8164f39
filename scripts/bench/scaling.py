"""Scoring at scale: throughput and memory of `bench-datasets score` over many rows, processes side by side.

    python scripts/bench/scaling.py --rows 100000 --keep DIR

Makes a source folder of synthetic PBench rows and predictions for them (kept in DIR and found again, where given), then
scores them in processes of their own: `--runs` turns with one process and with two, alternating. Reports the medians of
rows a second, their ratio, and the most memory that a run and its workers had resident together (shared pages once).
The same scores have to come out of every run, to the byte. Where other work keeps the cores busy, clocks say little:
the ratio "on free cores" goes by processor time, the parent's and that of a worker, which end one after the other.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datasets.utils import disable_progress_bars

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import synthetic
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS

MIB = 1 << 20
DISTINCT = 500
"""Rows that are drawn; further ones are theirs again under other ids."""

TRUTH = pa.schema(
    [
        ("id", pa.int64()), ("expression", pa.string()),
        ("masks", pa.list_(pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())]))),
        ("count", pa.int32()),
    ]
)  # fmt: skip


def make(folder: Path, rows: int, instances: int, megapixels: float, seed: int = 0) -> None:
    """Write `truth/<level>.parquet` and `predictions.jsonl`."""
    rng = np.random.default_rng(seed)
    size = synthetic.image_size(megapixels)
    drawn = []
    for i in range(min(DISTINCT, rows)):
        shapes = synthetic.sparse(rng, 1 + i % (2 * instances - 1), size)  # `instances` on average
        truth = [_text(mask) for mask in synthetic.draw_all(shapes, size, "smooth")]
        found = [_text(mask) for mask in synthetic.draw_all(synthetic.predicted(rng, shapes), size, "smooth")]
        drawn.append((truth, found, json.dumps(found)))
    (folder / "truth").mkdir(parents=True, exist_ok=True)
    levels = PBENCH_LEVELS[:5]
    with open(folder / "predictions.jsonl", "w", encoding="utf-8") as file:
        for k, level in enumerate(levels):
            with pq.ParquetWriter(folder / "truth" / f"{level}.parquet", TRUTH) as writer:
                ids = range(k, rows, len(levels))
                for first in range(0, len(ids), 1000):
                    some = ids[first : first + 1000]
                    masks = [drawn[i % len(drawn)][0] for i in some]
                    texts = [f"things of row {i}" for i in some]
                    counts = [len(row) for row in masks]
                    writer.write_table(pa.table([list(some), texts, masks, counts], schema=TRUTH))
                    for i in some:
                        file.write(f'{{"id": {i}, "masks": {drawn[i % len(drawn)][2]}}}\n')


def _text(mask: dict[str, Any]) -> dict[str, Any]:
    return {"size": list(mask["size"]), "counts": mask["counts"].decode()}


def resident(root: int) -> int:
    """Bytes that a process and its children have resident together, pages that several share counted once."""
    total, todo = 0, [root]
    while todo:
        pid = todo.pop()
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            todo += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def run(folder: Path, out: Path, num_proc: int) -> dict[str, Any]:
    """Score in a process of its own, as the command line does.

    Returns:
        Seconds of each phase and `all`, `busy` (processor seconds of the scoring: the parent's, and a worker's on
        average), `peak_mib`, and the `sha256` of scores.parquet.

    Raises:
        RuntimeError: it did not end well.
    """
    command = [sys.executable, __file__, "--child", str(num_proc), str(folder), str(out)]
    environment = {**os.environ, "HF_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1"}
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    peak = 0
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.1)
    took = time.perf_counter() - began
    printed, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the run ended with {process.returncode}: {errors[-800:]}")
    content = hashlib.sha256((out / "scores.parquet").read_bytes()).hexdigest()
    return {**json.loads(printed.splitlines()[-1]), "all": took, "peak_mib": peak / MIB, "sha256": content}


def child(num_proc: int, folder: Path, out: Path) -> None:
    """Score, and print how long each phase took."""
    import bench_datasets as bd
    from bench_datasets.data import open_truth
    from bench_datasets.execution import score_in_parts
    from bench_datasets.results.run_files import write_run
    from bench_datasets.scoring.prepare import make_plan

    disable_progress_bars()
    phases: dict[str, float] = {}
    began = time.perf_counter()

    def done(name: str) -> None:
        nonlocal began
        now = time.perf_counter()
        phases[name], began = now - began, now

    answers = bd.read_predictions("pbench", folder / "predictions.jsonl")
    done("predictions")
    truth = open_truth("pbench", str(folder / "truth"))
    done("truth")
    plan = make_plan("pbench", truth, answers, num_proc=num_proc)
    done("planning")
    before = os.times()
    scores = score_in_parts(plan, out, num_proc)
    done("scoring")
    after = os.times()
    own = after.user + after.system - before.user - before.system
    theirs = after.children_user + after.children_system - before.children_user - before.children_system
    write_run(scores, bd.summarize("pbench", scores, draws=0), out)
    done("summing up")
    print(json.dumps({**phases, "busy": own + theirs / num_proc}))


def main() -> int:
    """Make the rows, score them by turns, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--instances", type=int, default=4, help="masks a row, on average")
    parser.add_argument("--megapixels", type=float, default=0.3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--num-proc", type=int, default=2)
    parser.add_argument("--keep", metavar="DIR", help="where the rows are kept")
    parser.add_argument("--child", nargs=3, metavar=("N", "DIR", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(int(options.child[0]), Path(options.child[1]), Path(options.child[2]))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        name = f"{options.rows}-{options.instances}-{options.megapixels:g}"
        folder = Path(options.keep or temporary) / name
        if not (folder / "predictions.jsonl").is_file():
            make(folder, options.rows, options.instances, options.megapixels)
        found: dict[int, list[dict[str, Any]]] = {1: [], options.num_proc: []}
        for _turn in range(options.runs):
            for processes, runs in found.items():
                out = Path(temporary) / "out"
                shutil.rmtree(out, ignore_errors=True)
                runs.append(run(folder, out, processes))
                print(processes, json.dumps(runs[-1]), flush=True)
    rates = {}
    for processes, runs in found.items():
        peak = max(one["peak_mib"] for one in runs)
        rates[processes] = [
            options.rows / statistics.median(one[what] for one in runs) for what in ("scoring", "all", "busy")
        ]
        scoring, everything, _ = rates[processes]
        print(
            f"{processes} processes: {scoring:,.0f} rows/s scoring, {everything:,.0f} rows/s from start to end,"
            f" at most {peak:,.0f} MiB resident"
        )
    ratio = [more / one for one, more in zip(*rates.values(), strict=True)]
    print(f"x {ratio[0]:.2f} scoring, x {ratio[1]:.2f} from start to end; on free cores x {ratio[2]:.2f} scoring")
    hashes = {one["sha256"] for runs in found.values() for one in runs}
    print("the same bytes" if len(hashes) == 1 else "DIFFERENT BYTES")
    return len(hashes) - 1


if __name__ == "__main__":
    sys.exit(main())
