"""The fuzzer itself: a few thousand rows of it in the suite, a million by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import fuzz
import pytest

from bench_datasets.masks import parse_masks

ROOT = Path(__file__).resolve().parents[2]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "fuzz.py"), *options]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)


def test_some_thousand_rows_in_two_gib() -> None:
    done = run("--rows", "2000", "--seed", "11")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2,000 rows of ")
    assert " scored, " in done.stdout


def test_it_fails_where_memory_grows_and_where_a_lot_takes_too_long() -> None:
    stuck = run("--rows", "2000", "--patience", "0.01")
    assert stuck.returncode == 1
    assert "most recent call first" in stuck.stderr
    assert run("--rows", "100", "--growth=-100000").returncode == 1


@pytest.mark.parametrize(
    ("counts", "sound"),
    [(b"15", True), (b"6", True), (b"06", True), (b"", False), (b"16", False), (b"1o", False), (b"1 5", False)],
)
def test_the_slow_reader_reads_as_the_standard_does(counts: bytes, sound: bool) -> None:
    assert fuzz._reads([2, 3], counts) is sound
    assert (not parse_masks([{"size": [2, 3], "counts": counts}])[1]) is sound


def test_a_disagreement_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "_reads", lambda size, counts: True)
    with pytest.raises(AssertionError):
        fuzz._lot(50, {"pycocotools": fuzz.scorer("pbench", on_fault="skip-and-report", engine="pycocotools")})
