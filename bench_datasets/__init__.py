"""Datasets, metrics and results of referring-segmentation and video-scene-graph benchmarks.

Importing the package registers its benchmarks, so that `load_dataset("pbench")` and `evaluate.load("pbench")` work;
everything else is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from bench_datasets._util import interrupts

if interrupts.is_command():  # importing takes a second, in which Ctrl-C would print a traceback
    interrupts.end_in_one_line()

from bench_datasets._moved import serve_old_paths
from bench_datasets.data import register_all
from bench_datasets.hf_evaluate.loading import serve_by_name

if TYPE_CHECKING:
    from bench_datasets.display.explain import explain
    from bench_datasets.display.show import show
    from bench_datasets.execution import merge
    from bench_datasets.faults import BenchError, FaultError
    from bench_datasets.hf_evaluate.loading import metric_path
    from bench_datasets.predictions import read_predictions
    from bench_datasets.predictions.features import answer_features, predictor
    from bench_datasets.results.compare import Comparison, compare
    from bench_datasets.results.result import Metric, Result
    from bench_datasets.results.run_files import read_scores, write_run
    from bench_datasets.results.summarize import summarize
    from bench_datasets.scoring.check import check
    from bench_datasets.scoring.score import map_score, score, score_features, scorer

__version__ = "0.1.0"

_HOMES = {
    "BenchError": "bench_datasets.faults",
    "FaultError": "bench_datasets.faults",
    "Metric": "bench_datasets.results.result",
    "Result": "bench_datasets.results.result",
    "Comparison": "bench_datasets.results.compare",
    "answer_features": "bench_datasets.predictions.features",
    "check": "bench_datasets.scoring.check",
    "compare": "bench_datasets.results.compare",
    "explain": "bench_datasets.display.explain",
    "map_score": "bench_datasets.scoring.score",
    "merge": "bench_datasets.execution",
    "metric_path": "bench_datasets.hf_evaluate.loading",
    "predictor": "bench_datasets.predictions.features",
    "read_predictions": "bench_datasets.predictions",
    "read_scores": "bench_datasets.results.run_files",
    "score": "bench_datasets.scoring.score",
    "score_features": "bench_datasets.scoring.score",
    "scorer": "bench_datasets.scoring.score",
    "show": "bench_datasets.display.show",
    "summarize": "bench_datasets.results.summarize",
    "write_run": "bench_datasets.results.run_files",
}

__all__ = [
    "BenchError",
    "Comparison",
    "FaultError",
    "Metric",
    "Result",
    "answer_features",
    "check",
    "compare",
    "explain",
    "map_score",
    "merge",
    "metric_path",
    "predictor",
    "read_predictions",
    "read_scores",
    "score",
    "score_features",
    "scorer",
    "show",
    "summarize",
    "write_run",
]

serve_old_paths()
register_all()
serve_by_name()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
