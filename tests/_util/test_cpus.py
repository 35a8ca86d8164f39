"""Number of processors that a process may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench_datasets._util import cpus


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cpus, "_GROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(cpus, "_own_group", lambda: tmp_path / "job" if (tmp_path / "job").is_dir() else tmp_path)
    return tmp_path


def test_usable_cpus_without_limit_is_affinity(groups: Path) -> None:
    assert cpus.usable_cpus() == 8
    (groups / "cpu.max").write_text("max 100000\n")
    assert cpus.usable_cpus() == 8


@pytest.mark.parametrize(("text", "expected"), [("150000 100000", 2), ("50000 100000", 1), ("900000 100000", 8)])
def test_usable_cpus_in_container_of_cgroup_2(text: str, expected: int, groups: Path) -> None:
    (groups / "cpu.max").write_text(text)
    assert cpus.usable_cpus() == expected


def test_usable_cpus_takes_smallest_limit_of_parent_groups(groups: Path) -> None:
    (groups / "job").mkdir()
    (groups / "job" / "cpu.max").write_text("600000 100000")
    (groups / "cpu.max").write_text("300000 100000")
    assert cpus.usable_cpus() == 3


def test_usable_cpus_in_container_of_cgroup_1(groups: Path) -> None:
    (groups / "cpu").mkdir()
    (groups / "cpu" / "cpu.cfs_quota_us").write_text("200000")
    (groups / "cpu" / "cpu.cfs_period_us").write_text("100000")
    assert cpus.usable_cpus() == 2
    (groups / "cpu" / "cpu.cfs_quota_us").write_text("-1")
    assert cpus.usable_cpus() == 8


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity can't be set here")
def test_usable_cpus_follows_affinity_of_process() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cpus.usable_cpus() == 1
    finally:
        os.sched_setaffinity(0, before)
