"""Ground truth, predictions and plans of the built-in samples, and the files of a run."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from datasets import Dataset

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.data import open_truth
from bench_datasets.results.run_files import write_run
from bench_datasets.scoring.prepare import Plan, make_plan

BENCHMARKS = ("pbench", "instancebench", "pvsg")


@cache
def truth_of(benchmark: str) -> Dataset:
    return open_truth(benchmark, "sample")


@cache
def file_of(benchmark: str) -> str:
    return str(getattr(samples, f"{benchmark}_sample_predictions")("hasty"))


@cache
def answers_of(benchmark: str) -> Dataset:
    return bd.read_predictions(benchmark, file_of(benchmark))


def plan_of(benchmark: str = "pbench", **options: Any) -> Plan:
    return make_plan(benchmark, truth_of(benchmark), answers_of(benchmark), **options)


def files(scores: Dataset, folder: Path, benchmark: str = "pbench", **options: Any) -> tuple[bytes, dict[str, Any]]:
    """The two files of a run: the bytes of the scores, the result but for the time it was created."""
    result = bd.summarize(benchmark, scores, draws=20, **options)
    one, other = write_run(scores, result, folder)
    return one.read_bytes(), {**json.loads(other.read_text()), "created": ""}
