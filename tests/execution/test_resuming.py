"""A run that is killed, a disk that is full, two processes at once: nothing is lost, nothing is wrong."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import bench_datasets as bd
from bench_datasets import execution
from bench_datasets._util import locks
from bench_datasets.execution import local, shards
from bench_datasets.faults import BenchError
from bench_datasets.scoring.prepare import Plan
from bench_datasets.scoring.workers import in_processes

from ..support.sample_runs import answers_of, files, plan_of, truth_of

Files = tuple[bytes, dict[str, Any]]
fork = pytest.mark.skipif(sys.platform != "linux", reason="kills processes that are forked, as Linux does")


def noting(log: Path, pause: float = 0.0) -> Any:
    """`Plan.score` that notes each part, when it begins."""
    score = Plan.score

    def call(self: Plan, units: Any, num_proc: int | None = None, *, quiet: bool = False) -> Any:
        with open(log, "a") as file:
            file.write(f"{units[0]}\n")
        time.sleep(pause)
        return score(self, units, num_proc, quiet=quiet)

    return call


@fork
@pytest.mark.parametrize(("num_proc", "kills"), [(None, 20), (2, 6)])
def test_killed_at_random_moments(
    num_proc: int | None, kills: int, undisturbed: Callable[[str], Files], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    expected, rng, began = undisturbed("pbench"), random.Random(kills), tmp_path / "began"
    monkeypatch.setattr("bench_datasets.execution.fingerprint.PART_UNITS", 1)
    monkeypatch.setattr(Plan, "score", noting(began, 0.01))
    plan = plan_of()

    def run() -> None:
        with local.scoring_in_parts(plan, tmp_path / "run", num_proc) as scores:
            files(scores, tmp_path / "run")

    killed = 0
    for _ in range(kills):
        child = multiprocessing.get_context("fork").Process(target=run)
        child.start()
        time.sleep(rng.uniform(0.02, 0.18))
        if child.pid is not None and child.is_alive():
            os.kill(child.pid, signal.SIGKILL)
            killed += 1
        child.join()
        assert child.exitcode in (0, -signal.SIGKILL)
        if child.exitcode == 0:
            break
    assert killed >= 2
    run()
    written = (tmp_path / "run" / "scores.parquet").read_bytes()
    assert written == expected[0]
    scores = bd.score("pbench", truth_of("pbench"), answers_of("pbench"))
    assert files(scores, tmp_path / "run") == expected
    times = Counter(began.read_text().split())
    assert len(times) == 35
    again = sum(times.values()) - 35
    assert again <= killed * (num_proc or 1), "only parts in flight are scored again"
    left = [path.name for path in (tmp_path / "run").iterdir() if not path.name.startswith(".result.json")]
    assert sorted(name for name in left if not name.startswith(".scores")) == ["result.json", "scores.parquet"]


@fork
def test_a_worker_that_is_killed_is_no_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent, score = os.getpid(), Plan.score

    def deadly(self: Plan, units: Any, *args: Any, **more: Any) -> Any:
        if os.getpid() != parent and 20 in units:
            os.kill(os.getpid(), signal.SIGKILL)
        return score(self, units, *args, **more)

    monkeypatch.setattr(Plan, "score", deadly)
    with pytest.raises(BenchError, match="a worker process ended by itself; was it killed for want of memory"):
        execution.score_in_parts(plan_of(), tmp_path, 2)
    monkeypatch.setattr(Plan, "score", score)
    assert len(execution.score_in_parts(plan_of(), tmp_path, 2)) == 35
    assert multiprocessing.active_children() == []


WAITS = """
import os, sys, time
from bench_datasets.scoring.workers import in_processes
def task(item):
    with open(sys.argv[1], "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(60)
for _ in in_processes(task, [1, 2, 3], 2):
    pass
"""


@fork
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    log = tmp_path / "pids"
    root = str(Path(__file__).resolve().parents[2])
    parent = subprocess.Popen([sys.executable, "-c", WAITS, log], env={**os.environ, "PYTHONPATH": root})
    wait_for(lambda: log.exists() and len(log.read_text().split()) == 2)
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(alive(int(pid)) for pid in log.read_text().split()))


def threads_here(item: int) -> tuple[int, str]:
    import pyarrow as pa

    return pa.cpu_count(), os.environ["OMP_NUM_THREADS"]


@fork
@pytest.mark.parametrize("threads", [1, 2])
def test_workers_share_the_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert set(in_processes(threads_here, range(4), 2, threads)) == {(threads, str(threads))}
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert sorted(in_processes(str, range(9), 3)) == sorted(map(str, range(9)))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)


def test_parts_stay_until_the_files_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        with local.scoring_in_parts(plan_of(), tmp_path):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    began = tmp_path / "began"
    monkeypatch.setattr(Plan, "score", noting(began))
    assert len(execution.score_in_parts(plan_of(), tmp_path)) == 35
    assert not began.exists(), "every part was there"
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk(undisturbed: Callable[[str], Files], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, calls = pq.write_table, []

    def full(table: Any, path: Path, **more: Any) -> None:
        calls.append(path)
        if len(calls) == 4:
            Path(path).write_bytes(b"PAR1 half")
            raise OSError("[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device")
        write(table, path, **more)

    expected = undisturbed("pbench")
    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OSError, match=r"No space left on device: .*part-3-of-9\.parquet'") as caught:
        execution.score_in_parts(plan_of(), tmp_path / "run")
    assert caught.value.errno == errno.ENOSPC
    (folder,) = (tmp_path / "run").iterdir()
    kept = sorted(path.name for path in folder.iterdir() if path.suffix == ".parquet")
    assert kept == [f"part-{index}-of-9.parquet" for index in range(3)]
    assert [path for path in folder.iterdir() if path.name.startswith(".")] == []
    monkeypatch.setattr(pq, "write_table", write)
    assert files(execution.score_in_parts(plan_of(), tmp_path / "run"), tmp_path / "run") == expected


@pytest.mark.parametrize("method", ["parts", "shard"])
def test_a_folder_that_cannot_be_written(method: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    plan = plan_of()
    call = {
        "parts": lambda: execution.score_in_parts(plan, file),
        "shard": lambda: execution.score_shard(plan, 0, 2, file / "parts"),
    }[method]
    with pytest.raises(OSError, match="file"):
        call()
    assert file.read_text() == "mine"


def test_internal_parts_that_are_damaged_are_scored_again(
    undisturbed: Callable[[str], Files], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = undisturbed("pbench")
    with pytest.raises(ZeroDivisionError), local.scoring_in_parts(plan_of(), tmp_path / "run"):
        _ = 1 / 0
    (folder,) = (tmp_path / "run").glob(".parts-*")
    (folder / "part-0-of-9.parquet").write_bytes((folder / "part-0-of-9.parquet").read_bytes()[:-9])
    manifest, table = shards.read_part(folder / "part-1-of-9.parquet")
    metadata = pq.read_table(folder / "part-1-of-9.parquet").schema.metadata
    pq.write_table(table.slice(1).replace_schema_metadata(metadata), folder / "part-1-of-9.parquet")
    assert manifest.index == 1
    with caplog.at_level(logging.INFO, "bench_datasets.execution.progress"):
        scores = execution.score_in_parts(plan_of(), tmp_path / "run")
    assert files(scores, tmp_path / "run") == expected
    assert "part-0-of-9.parquet: the part is cut short" in caplog.text
    assert "part-1-of-9.parquet: the rows are not those" in caplog.text
    assert "going on: 7 of 9 parts are there already" in caplog.text


@fork
@pytest.mark.parametrize("method", ["parts", "shard"])
def test_two_processes_at_once(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = tmp_path / "began"
    plan, score = plan_of(), Plan.score

    def work() -> None:
        if method == "parts":
            execution.score_in_parts(plan, tmp_path / "run")
        else:
            execution.score_shard(plan, 0, 1, tmp_path / "run")

    monkeypatch.setattr(Plan, "score", noting(began, 60))
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    wait_for(began.exists)
    monkeypatch.setattr(Plan, "score", score)
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    with pytest.raises(BenchError, match=rf"is being done already, by process {child.pid} on .*; wait for it"):
        work()
    child.kill()
    child.join()
    work()  # its lock went with it


def test_without_locks_files_are_whole_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(lock: object, **options: float) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    plan = plan_of()
    monkeypatch.setattr(locks.FileLock, "acquire", refuse)
    assert len(execution.score_in_parts(plan, tmp_path)) == 35


def test_what_dead_processes_left_is_swept(tmp_path: Path) -> None:
    import socket

    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    host = socket.gethostname()
    gone = tmp_path / f".part-0-of-1.{host}.{dead.pid}.aaaaaaaa.parquet"
    others = tmp_path / f".part-0-of-1.elsewhere.{dead.pid}.bbbbbbbb.parquet"
    living = tmp_path / f".part-0-of-1.{host}.{os.getppid()}.cccccccc.parquet"
    for path in (gone, others, living):
        path.write_text("half")
    execution.score_shard(plan_of(), 0, 1, tmp_path)
    assert [path.exists() for path in (gone, others, living)] == [False, True, True]


def test_a_clock_that_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = execution.score_shard(plan_of(), 0, 2, tmp_path)
    os.utime(file, (0, 0))
    monkeypatch.setattr(Plan, "score", lambda *args, **more: pytest.fail("scored again"))
    execution.score_shard(plan_of(), 0, 2, tmp_path)
    os.utime(file, (2**32, 2**32))
    execution.score_shard(plan_of(), 0, 2, tmp_path)


def test_a_line_a_part(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "bench_datasets.execution.progress"):
        execution.score_in_parts(plan_of(), tmp_path)
    assert len(caplog.messages) == 9
    assert caplog.messages[2].startswith("scored 12 of 35 rows (part 3 of 9), ")
    assert caplog.messages[2].endswith(" left")
