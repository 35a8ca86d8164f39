"""The folder of a run on Ray: nothing that looks like a result stays after an error; Ray itself is not needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench_datasets.execution.ray import _meanwhile
from bench_datasets.faults import BenchError


def fail(out: Path) -> None:
    with _meanwhile(str(out)) as (fs, place):
        fs.makedirs(f"{place}/scores")
        (Path(place) / "scores" / "0.parquet").write_bytes(b"PAR1")
        raise BenchError("a fault")


def test_meanwhile_error_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="a fault"):
        fail(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_meanwhile_error_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BenchError, match="a fault"):
        fail(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_meanwhile_name_of_a_score_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="out: expected a folder"):
        fail(tmp_path / "scores.parquet")
    assert list(tmp_path.iterdir()) == []
