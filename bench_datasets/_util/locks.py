"""One process at a time in a folder, where the file system has locks."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from bench_datasets.faults import BenchError

PATIENCE = 3.0
"""Seconds to wait for a process that is about to end."""


@contextlib.contextmanager
def alone(folder: Path, what: str) -> Iterator[None]:
    """Hold the folder's lock; the operating system frees it when the process ends, however that ends.

    The lock is that of `filelock`, on POSIX and on Windows. Its file may be emptied by a process that waits, so the
    holder's name stands in a file of its own, `holder`. Where the file system has no locks, nothing is held: files
    still appear whole, the work may be done twice.

    On POSIX a forked worker shares the lock: it is free when the process and its workers have ended.

    Args:
        folder: is made; gets the files `lock` and `holder`.
        what: is being done, for the message.

    Raises:
        BenchError: another process, or another call in this one, holds it.
        OSError: the files can't be made.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp()) / "run"
        >>> with alone(folder, "this scoring"):
        ...     sorted(file.name for file in folder.iterdir())
        ['holder', 'lock']
    """
    folder.mkdir(parents=True, exist_ok=True)
    file, holder = folder / "lock", folder / "holder"
    file.touch()  # says by itself that the folder can't be written; what comes later is the lock's
    lock = FileLock(str(file))
    with contextlib.suppress(OSError, NotImplementedError):  # a file system without locks
        try:
            lock.acquire(timeout=PATIENCE, poll_interval=0.05)
        except Timeout as error:
            raise _held(folder, what, _named(holder)) from error
        except RuntimeError as error:  # newer versions of filelock see that a process would wait for itself
            raise _held(folder, what, f"process {os.getpid()} itself") from error
    try:
        if lock.is_locked:
            with contextlib.suppress(OSError):  # the name is for messages only
                holder.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
        yield
    finally:
        lock.release()


def _named(holder: Path) -> str:
    """The process that holds the lock, as its file names it."""
    with contextlib.suppress(OSError):
        return holder.read_text(encoding="utf-8", errors="replace")[:200].strip() or "another process"
    return "another process"


def _held(folder: Path, what: str, holder: str) -> BenchError:
    return BenchError(
        f"{folder.parent}: {what} is being done already, by {holder}; wait for it, end it, or use another folder"
    )
