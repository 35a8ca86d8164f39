"""From a benchmark's source to its truth rows: builders that `load_dataset` knows by name."""

from __future__ import annotations

from bench_datasets.benchmarks import BENCHMARKS
from bench_datasets.builders.provenance import provenance
from bench_datasets.builders.registry import register, source_hash
from bench_datasets.builders.truth import open_truth

__all__ = ["open_truth", "provenance", "register", "register_all", "source_hash"]


def register_all() -> None:
    """Register every benchmark's builder with `datasets`. Nothing is fetched, and no builder is imported."""
    for name, benchmark in BENCHMARKS.items():
        register(name, benchmark.builder)
