"""Old import paths still work, warn, and lead to the same objects."""

from __future__ import annotations

import importlib
import sys

import pytest

import bench_datasets  # noqa: F401 - serves the old paths
from bench_datasets._moved import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_moved_module_import_warns_and_gives_same_objects(old: str) -> None:
    sys.modules.pop(f"bench_datasets.{old}", None)
    with pytest.warns(DeprecationWarning, match=rf"bench_datasets\.{old} is now"):
        module = importlib.import_module(f"bench_datasets.{old}")
    new = importlib.import_module(f"bench_datasets.{MOVED[old]}")
    names = [name for name in vars(new) if not name.startswith("_")]
    assert names
    assert all(getattr(module, name) is getattr(new, name) for name in names)


def test_moved_unknown_module_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"metrics\.absent"):
        importlib.import_module("bench_datasets.metrics.absent")


def test_moved_names_of_benchmarks_warn_and_give_same_objects() -> None:
    from bench_datasets import benchmark, benchmarks

    with pytest.warns(DeprecationWarning, match="bench_datasets.benchmark.get_benchmark"):
        assert benchmarks.get_benchmark is benchmark.get_benchmark
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        benchmarks.absent  # noqa: B018
