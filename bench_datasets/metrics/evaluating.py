"""Where `evaluate.load` finds the metrics of the package."""

from __future__ import annotations

from pathlib import Path

from bench_datasets.benchmarks import get_benchmark


def metric_path(benchmark: str) -> str:
    """The folder to give to `evaluate.load`.

    Args:
        benchmark: its name.

    Raises:
        BenchError: there is no benchmark of that name.

    Example:
        >>> import evaluate
        >>> metric = evaluate.load(metric_path("pbench"))
        >>> mask = {"size": [2, 3], "counts": "15"}
        >>> metric.compute(predictions=[[mask]], references=[[mask]], levels=["level_0"])["macro_f1/level_0"]
        1.0
    """
    return str(Path(__file__).with_name("modules") / get_benchmark(benchmark).name)
