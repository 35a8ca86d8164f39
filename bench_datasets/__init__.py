"""Datasets, metrics and results of referring-segmentation and video-scene-graph benchmarks.

Importing the package registers its benchmarks, so that `load_dataset("pbench")` and `evaluate.load("pbench")` work;
everything else is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from bench_datasets import interrupts

if interrupts.is_command():  # importing takes a second, in which Ctrl-C would print a traceback
    interrupts.end_in_one_line()

from bench_datasets.builders import register_all
from bench_datasets.metrics.evaluating import serve_by_name

if TYPE_CHECKING:
    from bench_datasets.engines import merge
    from bench_datasets.faults import BenchError, FaultError
    from bench_datasets.metrics.answering import answer_features, predictor
    from bench_datasets.metrics.checking import check
    from bench_datasets.metrics.comparing import Comparison, compare
    from bench_datasets.metrics.evaluating import metric_path
    from bench_datasets.metrics.explaining import explain
    from bench_datasets.metrics.files import read_scores, write_run
    from bench_datasets.metrics.scoring import map_score, score, score_features, scorer
    from bench_datasets.metrics.showing import show
    from bench_datasets.metrics.summarizing import summarize
    from bench_datasets.predictions import read_predictions
    from bench_datasets.results import Metric, Result

__version__ = "0.1.0"

_HOMES = {
    "BenchError": "bench_datasets.faults",
    "FaultError": "bench_datasets.faults",
    "Metric": "bench_datasets.results",
    "Result": "bench_datasets.results",
    "Comparison": "bench_datasets.metrics.comparing",
    "answer_features": "bench_datasets.metrics.answering",
    "check": "bench_datasets.metrics.checking",
    "compare": "bench_datasets.metrics.comparing",
    "explain": "bench_datasets.metrics.explaining",
    "map_score": "bench_datasets.metrics.scoring",
    "merge": "bench_datasets.engines",
    "metric_path": "bench_datasets.metrics.evaluating",
    "predictor": "bench_datasets.metrics.answering",
    "read_predictions": "bench_datasets.predictions",
    "read_scores": "bench_datasets.metrics.files",
    "score": "bench_datasets.metrics.scoring",
    "score_features": "bench_datasets.metrics.scoring",
    "scorer": "bench_datasets.metrics.scoring",
    "show": "bench_datasets.metrics.showing",
    "summarize": "bench_datasets.metrics.summarizing",
    "write_run": "bench_datasets.metrics.files",
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
