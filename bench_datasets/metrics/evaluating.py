"""Where `evaluate.load` finds the metrics of the package."""

from __future__ import annotations

from pathlib import Path

from bench_datasets.benchmarks import get_benchmark
from bench_datasets.faults import BenchError


def metric_path(benchmark: str) -> str:
    """The folder to give to `evaluate.load`.

    Args:
        benchmark: its name.

    Raises:
        BenchError: there is no benchmark of that name, or a plug-in's has no such module.

    Example:
        >>> import evaluate
        >>> metric = evaluate.load(metric_path("pbench"))
        >>> mask = {"size": [2, 3], "counts": "15"}
        >>> metric.compute(predictions=[[mask]], references=[[mask]], levels=["level_0"])["macro_f1/level_0"]
        1.0
    """
    folder = Path(__file__).with_name("modules") / get_benchmark(benchmark).name
    if not folder.is_dir():
        raise BenchError(f"{benchmark}: there is no `evaluate` module; score with bd.score or bd.map_score")
    return str(folder)
