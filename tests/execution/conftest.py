"""Runs are cut into small parts, so that samples have many."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bench_datasets as bd
from bench_datasets.execution import fingerprint, local, progress

from ..support.sample_runs import answers_of, files, truth_of


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "PART_UNITS", 4)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    monkeypatch.setattr(local, "CHECKPOINT_SECONDS", 0.0)


@pytest.fixture
def undisturbed(tmp_path: Path) -> Callable[[str], tuple[bytes, dict[str, Any]]]:
    """The files of a run of one process in one go."""

    def call(benchmark: str) -> tuple[bytes, dict[str, Any]]:
        scores = bd.score(benchmark, truth_of(benchmark), answers_of(benchmark))
        return files(scores, tmp_path / "undisturbed", benchmark)

    return call
