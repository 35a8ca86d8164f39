"""One process at a time in a folder, where the file system can tell."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from bench_datasets.faults import BenchError

try:
    import fcntl
except ImportError:  # not POSIX: files still appear whole, the work may be done twice
    fcntl = None  # type: ignore[assignment]

PATIENCE = 3.0
"""Seconds to wait for a process that is about to end."""


@contextlib.contextmanager
def alone(folder: Path, what: str) -> Iterator[None]:
    """Hold the folder's lock; it goes with the process, however that ends.

    Args:
        folder: is made; gets a file `lock`.
        what: is being done, for the message.

    Raises:
        BenchError: another process holds it.
        OSError: the file can't be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    # Of the kind that worker processes do not inherit.
    with open(folder / "lock", "a+", encoding="utf-8") as file:
        since = time.monotonic()
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    break  # a file system without locks
                if time.monotonic() - since > PATIENCE:
                    file.seek(0)
                    holder = file.read(200).strip() or "another process"
                    raise BenchError(
                        f"{folder.parent}: {what} is being done already, by {holder}; wait for it, end it, or use"
                        " another folder"
                    ) from error
                time.sleep(0.05)
            else:
                file.truncate(0)
                file.write(f"process {os.getpid()} on {socket.gethostname()}")
                file.flush()
                break
        yield
