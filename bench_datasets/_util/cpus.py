"""Number of processors that this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")


def usable_cpus() -> int:
    """Number of processors that this process may use, at least 1.

    It counts the processors of the process's affinity mask, and respects the limit of a container (cgroup version 1 or
    2): a limit of 1.5 processors counts as 2.

    Example:
        >>> 1 <= usable_cpus() <= (os.cpu_count() or 1)
        True
    """
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    count = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    limit = _limit_of_container()
    return max(1, count if limit is None else min(count, math.ceil(limit)))


def _limit_of_container() -> float | None:
    """Processors that the container may use, such as 1.5; `None` without a limit."""
    limits = []
    folder = _own_group()
    while folder is not None:
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        limits.append((quota, period))
        folder = None if folder == _GROUPS else folder.parent
    limits.append((_text(_GROUPS / "cpu/cpu.cfs_quota_us"), _text(_GROUPS / "cpu/cpu.cfs_period_us")))
    found = [
        int(quota) / int(period) for quota, period in limits if quota.isdigit() and period.isdigit() and int(period)
    ]
    return min(found, default=None)


def _own_group() -> Path | None:
    """The folder of this process's control group, version 2; the root where it is not known."""
    if not _GROUPS.is_dir():
        return None
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        if line.startswith("0::/"):
            folder = _GROUPS / line[4:]
            if ".." not in folder.parts and folder.is_dir():
                return folder
    return _GROUPS


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
