"""Temporary folders of this process, and files that appear complete or not at all."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from bench_datasets.faults import BenchError, BenchWarning

PREFIX = "bench-datasets-"
"""Beginning of the names of all temporary folders."""

LOCK = ".lock"
"""File that a running process holds locked in its temporary folder."""

NEW = 60.0
"""Seconds for which a folder is never taken for a left-over, so that its process has time to lock it."""

_locks: list[BaseFileLock] = []


def temporary_folder(name: str) -> Path:
    """Make a new folder `<temporary folder of this process>/<name>...`.

    The process holds a lock in its temporary folder. It removes the folder when it ends. If the process is killed,
    the next process that needs a temporary folder removes it.

    Args:
        name: beginning of the new folder's name.

    Returns:
        The path of an empty folder that only this user can read.

    Raises:
        BenchError: no temporary folder can be written; the message says to set TMPDIR.

    Example:
        >>> temporary_folder("rows-").is_dir()
        True
    """
    with full_disk_explained():
        return Path(tempfile.mkdtemp(prefix=name, dir=_process_folder(os.getpid())))


@contextlib.contextmanager
def full_disk_explained() -> Iterator[None]:
    """Turn an error of writing temporary files into one that says what to do.

    Raises:
        BenchError: the block raised an OSError, for example because the disk is full.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        place = tempfile.gettempdir() if tempfile.tempdir or _has_temporary_place() else "the temporary folder"
        raise BenchError(
            f"{place}: expected room for temporary files, found none ({reason}); set TMPDIR to a folder with room"
        ) from error


def writable_cache(folder: str | os.PathLike[str]) -> str:
    """The cache folder if it can be written, else a temporary folder of this process.

    Args:
        folder: path of the cache, or a URL, which is returned as it is.

    Warns:
        BenchWarning: once, if the folder cannot be written.
    """
    if "://" in str(folder):
        return str(folder)
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError as error:
        return _temporary_cache(os.getpid(), str(folder), error.strerror or str(error))


@functools.lru_cache(maxsize=1)
def _temporary_cache(owner: int, folder: str, reason: str) -> str:
    """A cache for one process."""
    warnings.warn(
        f"the cache {folder} cannot be written ({reason}); what is built now is removed when this process ends:"
        " set HF_HOME to a folder that can be written",
        BenchWarning,
        stacklevel=4,
    )
    return str(temporary_folder("cache-"))


@functools.lru_cache(maxsize=1)
def _process_folder(owner: int) -> str:
    """The one folder of the process `owner`; left-overs of dead processes go first."""
    _remove_left_overs()
    folder = tempfile.mkdtemp(prefix=PREFIX)
    lock = FileLock(os.path.join(folder, LOCK))
    with contextlib.suppress(OSError, NotImplementedError):  # a file system without locks
        lock.acquire(timeout=5)
    _locks.append(lock)

    def remove() -> None:
        if os.getpid() == owner:  # a forked process has the same exit handlers
            lock.release()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _remove_left_overs() -> None:
    """Remove folders of this user whose lock no process holds."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                _remove_if_unlocked(entry.path)


def _remove_if_unlocked(folder: str) -> None:
    path = os.path.join(folder, LOCK)
    with contextlib.suppress(OSError, NotImplementedError, Timeout):
        found = os.stat(path)
        if time.time() - found.st_mtime < NEW or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
            return
        with FileLock(path, timeout=0):
            shutil.rmtree(folder, ignore_errors=True)


def _has_temporary_place() -> bool:
    try:
        tempfile.gettempdir()
    except OSError:
        return False
    return True
