"""The benchmarks of this package, one folder per benchmark."""

from __future__ import annotations

import warnings
from typing import Any

NAMES = ("pbench", "instancebench", "pvsg")
"""The folders' names, in the order in which they are listed."""


def __getattr__(name: str) -> Any:
    """Names that stood here before this was a package; the old import works until version 0.2."""
    from bench_datasets import benchmark

    if name.startswith("_") or not hasattr(benchmark, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    text = f"bench_datasets.benchmarks.{name} is now bench_datasets.benchmark.{name}; the old path works until 0.2"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return getattr(benchmark, name)
