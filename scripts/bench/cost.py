"""Measure the constants of `bench_datasets.scoring.cost_model`: processor seconds by rows, masks, bytes and pairs.

    python scripts/bench/cost.py              some minutes; prints the constants to put into cost.py
    python scripts/bench/cost.py --json FILE  the measured cases, too

Every case is synthetic and scored by one process; what is counted is processor time, which other work on the machine
changes little. The constants are fitted by least squares over relative errors, none below zero.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset
from datasets.utils import disable_progress_bars
from scipy.optimize import nnls

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import bench_datasets as bd
from bench import suite_pbench, suite_pvsg
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.execution import score_in_parts
from bench_datasets.execution.fingerprint import look_over
from bench_datasets.scoring.cost_model import TERMS, count
from bench_datasets.scoring.prepare import make_plan

PBENCH = [  # rows, masks a row, megapixels, edge
    (1500, 1, 0.3, "smooth"), (800, 5, 0.3, "smooth"), (200, 5, 0.3, "speckled"), (300, 20, 1, "smooth"),
    (60, 100, 4, "smooth"), (20, 300, 4, "smooth"), (40, 100, 4, "ragged"),
]  # fmt: skip
PVSG = [(4, 50, 10), (2, 200, 10), (1, 400, 20), (1, 200, 40), (6, 25, 20)]  # videos, frames, tubes


def pbench(case: tuple[int, int, float, str]) -> tuple[Dataset, list[dict[str, Any]]]:
    """Truth, and predictions as lines of JSON."""
    rows, instances, megapixels, kind = case
    made = suite_pbench.make_rows(rows, instances, megapixels, PBENCH_LEVELS[:5], kind=kind)
    answers = made.answers.select_columns(["key", "pred_masks"])
    lines = [{"key": row["key"], "masks": row["pred_masks"]} for row in answers]
    return made.truth, lines


def pvsg(case: tuple[int, int, int]) -> tuple[Dataset, list[dict[str, Any]]]:
    """Likewise."""
    videos, frames, tubes = case
    made = [suite_pvsg.make_video(frames, tubes, 100, seed) for seed in range(videos)]
    lines = [
        {
            "video_id": answer["key"],
            "tubes": answer["pred_tubes"],
            "triplets": [{**item, "score": item.get("score", 1.0)} for item in answer["pred_triplets"]],
        }
        for _, answer in made
    ]
    rows = pa.Table.from_pylist([truth for truth, _ in made], schema=suite_pvsg.truth_features().arrow_schema)
    return Dataset(rows), lines


def measure(benchmark: str, truth: Dataset, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of a case, and seconds of what one process does alone (reading, pairing, summing up) and of scoring."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "predictions.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        answers, reading = timed(lambda: bd.read_predictions(benchmark, file))
        plan, planning = timed(lambda: make_plan(benchmark, truth, answers))
        _, looking = timed(lambda: look_over(plan))
        scores, scoring = timed(lambda: score_in_parts(plan, Path(folder) / "run"))
        _, summing = timed(lambda: bd.summarize(benchmark, scores, draws=0))
        return {
            "counts": count(benchmark, truth).__dict__, "size": file.stat().st_size,
            "alone": reading + planning + looking + summing, "scoring": max(scoring - looking, 0.0),
            "phases": {"reading": reading, "planning": planning, "looking": looking, "summing": summing},
        }  # fmt: skip


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and the processor seconds it takes."""
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def fit(cases: list[dict[str, Any]], what: str) -> tuple[dict[str, float], float]:
    """Seconds by term, and the largest relative error of a case."""
    terms = [term for term in TERMS if what == "scoring" or term != "pairs"]
    wanted = np.array([case[what] for case in cases])
    matrix = np.array([[case["counts"][term] for term in terms] for case in cases], float) / wanted[:, None]
    scale = matrix.max(axis=0)
    found = nnls(matrix / scale, np.ones(len(cases)))[0] / scale
    worst = float(np.abs(matrix @ found - 1).max())
    return {term: float(f"{value:.2g}") for term, value in zip(terms, found, strict=True)}, worst


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    disable_progress_bars()
    report: dict[str, Any] = {}
    for benchmark, make, cases in (("pbench", pbench, PBENCH), ("pvsg", pvsg, PVSG)):
        made = [make(case) for case in cases]  # type: ignore[operator]
        measure(benchmark, *made[0])  # imports and compiles
        found = [measure(benchmark, *case) for case in made]
        report[benchmark] = found
        for what in ("alone", "scoring"):
            constants, worst = fit(found, what)
            print(f"{benchmark} {what}: {constants}, off by {100 * worst:.0f} % at most")
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
