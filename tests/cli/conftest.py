"""Runs of the command line, in this process and in one of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bench_datasets.cli import app

from ..support.processes import environment


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run in this process; gives exit_code, stdout and stderr apart."""
    monkeypatch.setenv("COLUMNS", "100")

    def call(*args: object) -> Any:
        return CliRunner().invoke(app, [str(arg) for arg in args])

    return call


@pytest.fixture
def spawn() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run in a process of its own, piped, and killed after a minute."""

    def call(*args: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bench_datasets", *map(str, args)]
        return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)

    return call


@pytest.fixture
def mini(shared: Path) -> list[object]:
    """Options that name the real rows and predictions for them."""
    data = shared / "data"
    return ["--data", data / "pbench_mini", "--predictions", data / "predictions_a" / "pbench.jsonl", "--draws", 50]
