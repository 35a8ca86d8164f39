"""Files that are written whole or not at all."""

from __future__ import annotations

import ast
import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench_datasets._util.atomic import replacing, whole_file

PACKAGE = Path(__file__).resolve().parents[2] / "bench_datasets"


def test_replacing_block_that_fails_leaves_targets_and_no_other_file(tmp_path: Path) -> None:
    first, second = tmp_path / "a.parquet", tmp_path / "b.json"
    first.write_text("old")

    def fail_after_writing() -> None:
        with replacing(first, second) as (one, two):
            one.write_text("new")
            two.write_text("new")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail_after_writing()
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"a.parquet": "old"}


def test_replacing_while_block_runs_shows_no_target(tmp_path: Path) -> None:
    with replacing(tmp_path / "a.txt", tmp_path / "b.txt") as (one, two):
        one.write_text("1")
        two.write_text("2")
        assert not (tmp_path / "a.txt").exists()
        assert not (tmp_path / "b.txt").exists()
        assert [file.suffix for file in (one, two)] == [".txt", ".txt"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.txt", "b.txt"]


@pytest.mark.skipif(os.name != "posix", reason="permission bits are those of POSIX")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_whole_file_permissions_follow_umask(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        with whole_file(tmp_path / "new" / "a.txt") as stream:
            stream.write(b"text")
    finally:
        os.umask(before)
    assert (tmp_path / "new" / "a.txt").stat().st_mode & 0o777 == mode


def test_replacing_missing_folder_error_names_target(tmp_path: Path) -> None:
    target = tmp_path / "absent" / "scores.parquet"

    def write_both() -> None:
        with replacing(tmp_path / "a.txt", target) as (one, two):
            one.write_text("1")
            pq.write_table(pa.table({"n": [1]}), two)

    with pytest.raises(FileNotFoundError) as caught:
        write_both()
    assert caught.value.filename == str(target)
    assert caught.value.errno == errno.ENOENT
    assert not list(tmp_path.iterdir())


def test_replacing_error_of_another_file_is_kept(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "a.txt"):
        other.read_text()
    assert caught.value.filename == str(other)


@pytest.mark.skipif(os.name != "posix", reason="processes are looked up as on POSIX")
def test_replacing_removes_files_of_dead_processes_only(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    host = socket.gethostname()
    dead = tmp_path / f".a[1].{host}.{child.pid}.00000000.txt"
    living = tmp_path / f".a[1].{host}.{os.getppid()}.00000000.txt"
    elsewhere = tmp_path / f".a[1].another-{host}.{child.pid}.00000000.txt"
    for file in (dead, living, elsewhere):
        file.write_text("partial")
    with whole_file(tmp_path / "a[1].txt") as stream:
        stream.write(b"text")
    assert {file.name for file in tmp_path.iterdir()} == {"a[1].txt", living.name, elsewhere.name}


def test_atomic_writer_is_the_only_module_that_replaces_files() -> None:
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("replace", "rename", "mkstemp", "NamedTemporaryFile"):
                owner = node.value.id if isinstance(node.value, ast.Name) else ""
                if owner in ("os", "tempfile", "shutil"):
                    found.add(file.relative_to(PACKAGE).as_posix())
    # Two move finished files: a published copy's shards get names with their count, a built sample enters its cache.
    assert found == {"_util/atomic.py", "hub/shards.py", "data/sample_cache.py"}
