"""Ctrl-C while the command line starts or ends: one line and exit code 130, as while it works."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType


def is_command() -> bool:
    """Whether this process is the command line, and not a program that imports the package."""
    if Path(sys.argv[0] if sys.argv else "").stem == "bench-datasets":
        return True
    return any(pair == ("-m", "bench_datasets") for pair in zip(sys.orig_argv, sys.orig_argv[1:], strict=False))


def end_in_one_line() -> None:
    """Let Ctrl-C end this process at once with one line, while nothing is there that must be tidied up."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` again, so that the work in hand is tidied up."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)
