"""Scoring at scale: throughput and memory of `bench-datasets score` over many rows, processes side by side.

    python scripts/bench/scaling.py --rows 100000 --keep DIR

Makes a source folder of synthetic PBench rows and predictions for them (kept in DIR and found again, where given), then
scores them in processes of their own: `--runs` turns with one process and with two, alternating. Reports the medians of
rows a second, their ratio, and the most memory that a run and its workers had resident together (shared pages once).
The same scores have to come out of every run, to the byte.
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
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import synthetic
from bench_datasets.benchmarks import PBENCH_LEVELS

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


def run(folder: Path, out: Path, *more: str) -> dict[str, Any]:
    """Score in a process of its own.

    Returns:
        `seconds` in all, `scoring` seconds of the scoring alone, `peak_mib`, and the `sha256` of scores.parquet.

    Raises:
        RuntimeError: it did not end well.
    """
    command = [
        sys.executable, "-m", "bench_datasets", "score", "pbench", "--data", str(folder / "truth"),
        "--predictions", str(folder / "predictions.jsonl"), "--out", str(out), "--draws", "0", "--json", *more,
    ]  # fmt: skip
    root = Path(__file__).resolve().parents[2]
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    home = str(folder / "home")
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HOME": home, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    peak, lines = 0, []
    reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True)
    reader.start()
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.1)
    took = time.perf_counter() - began
    reader.join()
    if process.returncode:
        raise RuntimeError(f"score ended with {process.returncode}: {''.join(lines)[-800:]}")
    content = hashlib.sha256((out / "scores.parquet").read_bytes()).hexdigest()
    return {"seconds": took, "peak_mib": peak / MIB, "sha256": content, "lines": lines}


def main() -> int:
    """Make the rows, score them by turns, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--instances", type=int, default=4, help="masks a row, on average")
    parser.add_argument("--megapixels", type=float, default=0.3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--num-proc", type=int, default=2)
    parser.add_argument("--keep", metavar="DIR", help="where the rows are kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        name = f"{options.rows}-{options.instances}-{options.megapixels:g}"
        folder = Path(options.keep or temporary) / name
        if not (folder / "predictions.jsonl").is_file():
            make(folder, options.rows, options.instances, options.megapixels)
        found: dict[str, list[dict[str, Any]]] = {}
        for _turn in range(options.runs):
            for processes in (1, options.num_proc):
                out = Path(temporary) / "out"
                shutil.rmtree(out, ignore_errors=True)
                more = ["--num-proc", str(processes)] if processes > 1 else []
                one = run(folder, out, *more)
                found.setdefault(f"{processes} processes", []).append(one)
                print(processes, json.dumps({key: one[key] for key in ("seconds", "peak_mib")}), flush=True)
    hashes = {one["sha256"] for runs in found.values() for one in runs}
    for title, runs in found.items():
        took = statistics.median(one["seconds"] for one in runs)
        peak = max(one["peak_mib"] for one in runs)
        print(f"{title}: {options.rows / took:,.0f} rows/s end to end, at most {peak:,.0f} MiB resident")
    print("the same bytes" if len(hashes) == 1 else "DIFFERENT BYTES")
    return len(hashes) - 1


if __name__ == "__main__":
    sys.exit(main())
