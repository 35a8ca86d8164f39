"""Locks of folders: one holder at a time, named in the message, free when its process ends."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench_datasets._util import locks
from bench_datasets._util.locks import alone
from bench_datasets.faults import BenchError

HOLD = (
    "import sys, pathlib; from bench_datasets._util.locks import alone\n"
    "with alone(pathlib.Path(sys.argv[1]), 'this work'): print('held', flush=True); sys.stdin.read()"
)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.1)


def holder_of(folder: Path) -> subprocess.Popen[str]:
    """A process that holds the folder's lock until its input ends."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def refused(folder: Path) -> str:
    with pytest.raises(BenchError) as caught, alone(folder, "this work"):
        pass
    return str(caught.value)


def test_alone_while_another_process_holds_names_it_every_time(tmp_path: Path) -> None:
    child = holder_of(tmp_path / "run")
    try:
        told = [refused(tmp_path / "run") for _ in range(3)]  # a waiting process may empty the lock's file
    finally:
        child.communicate("")
    assert all(f"{tmp_path}: this work is being done already, by process {child.pid} on " in text for text in told)


def test_alone_after_holder_was_killed_is_free(tmp_path: Path) -> None:
    child = holder_of(tmp_path / "run")
    child.kill()
    child.wait()
    with alone(tmp_path / "run", "this work"):
        assert f"process {os.getpid()} on " in (tmp_path / "run" / "holder").read_text()


def test_alone_waits_for_a_process_that_is_about_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 60)
    child = holder_of(tmp_path / "run")
    assert child.stdin is not None
    child.stdin.close()
    with alone(tmp_path / "run", "this work"):
        pass
    assert child.wait() == 0


def test_alone_twice_in_one_process_is_refused(tmp_path: Path) -> None:
    with alone(tmp_path / "run", "this work"):
        assert f"by process {os.getpid()} " in refused(tmp_path / "run")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_alone_stays_held_when_forked_worker_ends(tmp_path: Path) -> None:
    with alone(tmp_path / "run", "this work"):
        worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(0,))
        worker.start()
        worker.join()
        probe = subprocess.run(
            [sys.executable, "-c", HOLD, str(tmp_path / "run")],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=ROOT, check=False,
        )  # fmt: skip
    assert "is being done already" in probe.stderr
    assert probe.stdout == ""


def test_alone_in_folder_that_is_a_file_raises_os_error(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("x")
    with pytest.raises(FileExistsError), alone(tmp_path / "run", "this work"):
        pass
