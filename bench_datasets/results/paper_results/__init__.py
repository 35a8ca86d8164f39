"""Numbers that the benchmarks' papers print, to set a result beside."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from bench_datasets.benchmark import get_benchmark


@cache
def published(benchmark: str) -> dict[str, Any]:
    """The published table of a benchmark.

    Args:
        benchmark: its name.

    Returns:
        `source` (where it is printed), `protocol` (what it compares with), `models` (percent by model and part, or by
        model and metric key) and `exceptions` (what is known to be odd, by model). Of InstanceBench also `counts`,
        printed intervals (`ci95`), `failures` pooled over models, and `notes`.

    Example:
        >>> published("pbench")["models"]["SAM3"]["level_0"]
        64.3
    """
    text = (resources.files(__package__) / f"{get_benchmark(benchmark).name}.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
