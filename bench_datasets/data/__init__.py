"""From a benchmark's source to its truth rows: builders that `load_dataset` knows by name."""

from __future__ import annotations

from bench_datasets.benchmark import BENCHMARKS
from bench_datasets.data.load import open_truth
from bench_datasets.data.provenance import provenance
from bench_datasets.data.registry import register, register_later
from bench_datasets.faults import BenchError
from bench_datasets.plugins import warn

__all__ = ["open_truth", "provenance", "register", "register_all", "register_later"]


def register_all() -> None:
    """Register every benchmark's builder with `datasets`. Nothing is fetched; no builder and no plug-in is imported."""
    for name in BENCHMARKS.own:
        register(name, f"bench_datasets.benchmarks.{name}.build")
    for name, plugin in BENCHMARKS.plugins.items():
        try:
            register_later(name)
        except BenchError as error:
            warn(f"{plugin} can't be loaded by name: {error}")
