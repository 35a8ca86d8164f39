"""`score --ray`: what it asks for, and what it says where Ray is not installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WHAT = ["score", "pbench", "--ray", "--predictions", "out.parquet"]


def test_without_ray_it_says_so(run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = run(*WHAT, "--data", "truth.parquet", "--out", tmp_path / "run")
    assert done.exit_code == 1
    assert "bench-datasets[ray]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "run"], "--data must name"),
        (["--out", "run", "--data", "sample"], "--data must name"),
        (["--data", "truth.parquet"], "--out must name"),
        (["--data", "t.parquet", "--out", "run", "--num-proc", "2"], "--num-proc does not go with it"),
        (["--data", "t.parquet", "--out", "run", "--shard", "0/2"], "--shard does not go with it"),
        (["--data", "t.parquet", "--out", "run", "--limit", "3"], "--limit does not go with it"),
        (["--data", "t.parquet", "--out", "run", "--stream"], "--stream does not go with it"),
    ],
)
def test_usage(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*WHAT, *words)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())
