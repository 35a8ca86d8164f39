"""Temporary folders: removed at the end, after a kill by the next process, and explained when the disk is full."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pytest

from bench_datasets._util import temporary
from bench_datasets.faults import BenchError, BenchWarning
from bench_datasets.predictions.spool import Spool

SCHEMA = pa.schema([("n", pa.int64())])
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def own_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files, and no temporary folder of this process yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for function in (temporary._process_folder, temporary._temporary_cache):
        function.cache_clear()
        monkeypatch.setattr(temporary, "_locks", [])
    return tmp_path


@pytest.fixture(autouse=True)
def _forget_folders() -> object:
    yield
    temporary._process_folder.cache_clear()
    temporary._temporary_cache.cache_clear()


def left_over(folder: Path, age: float) -> Path:
    """A folder as a killed process leaves it: with an unlocked lock file of that age in seconds."""
    dead = folder / f"{temporary.PREFIX}dead{age:g}"
    dead.mkdir()
    (dead / temporary.LOCK).touch()
    (dead / "rows.arrow").write_bytes(b"x")
    os.utime(dead / temporary.LOCK, (time.time() - age,) * 2)
    return dead


def test_temporary_folder_of_dead_process_is_removed(own_tmpdir: Path) -> None:
    dead = left_over(own_tmpdir, age=3600)
    made = temporary.temporary_folder("rows-")
    assert made.parent.parent == own_tmpdir
    assert not dead.exists()


def test_temporary_folder_that_is_new_or_has_no_lock_stays(own_tmpdir: Path) -> None:
    new = left_over(own_tmpdir, age=1)
    foreign = own_tmpdir / f"{temporary.PREFIX}foreign"
    foreign.mkdir()
    temporary.temporary_folder("rows-")
    assert new.exists()
    assert foreign.exists()


def test_temporary_folder_of_living_process_stays(own_tmpdir: Path) -> None:
    code = (
        "import sys, time; from bench_datasets._util.temporary import temporary_folder;"
        "print(temporary_folder('rows-').parent, flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "TMPDIR": str(own_tmpdir), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as living:
        assert living.stdout is not None
        held = Path(living.stdout.readline().strip())
        os.utime(held / temporary.LOCK, (time.time() - 3600,) * 2)
        temporary.temporary_folder("rows-")
        assert held.exists()
        living.communicate("")
    assert not held.exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_spool_full_disk_says_to_set_tmpdir(own_tmpdir: Path, number: int) -> None:
    class Full:
        def write_batch(self, batch: pa.RecordBatch) -> None:
            raise OSError(number, os.strerror(number))

        def close(self) -> None:
            pass

    def write() -> None:
        with Spool(SCHEMA) as spool:
            spool._writer = Full()
            spool.write(pa.record_batch({"n": [1]}))

    with pytest.raises(BenchError, match="set TMPDIR to a folder with room"):
        write()


def test_temporary_folder_without_any_writable_place_says_to_set_tmpdir(
    own_tmpdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(own_tmpdir / "absent"))
    with pytest.raises(BenchError, match="set TMPDIR to a folder with room"):
        temporary.temporary_folder("rows-")


def test_writable_cache_is_used(tmp_path: Path) -> None:
    assert temporary.writable_cache(tmp_path / "new") == str(tmp_path / "new")
    assert temporary.writable_cache("hf://buckets/cache") == "hf://buckets/cache"


def test_unwritable_cache_falls_back_with_one_warning(own_tmpdir: Path) -> None:
    (own_tmpdir / "file").touch()
    with pytest.warns(BenchWarning, match="set HF_HOME to a folder that can be written") as warned:
        first, again = (temporary.writable_cache(own_tmpdir / "file" / "datasets") for _ in range(2))
    assert first == again
    assert Path(first).is_dir()
    assert len(warned) == 1


@pytest.mark.parametrize(("signal", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_signal_removes_temporary_files(tmp_path: Path, signal: str, code: int) -> None:
    program = (
        "import importlib, os, signal, time\n"
        "app = importlib.import_module('bench_datasets.cli.app')\n"
        "from bench_datasets._util.temporary import temporary_folder\n"
        "def work(**options):\n"
        "    temporary_folder('rows-')\n"
        f"    os.kill(os.getpid(), signal.{signal})\n"
        "    time.sleep(30)\n"
        "app.app = work\n"
        "app.main([])\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, timeout=60, check=False)
    assert done.returncode == code
    assert list(tmp_path.iterdir()) == []
