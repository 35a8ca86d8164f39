"""Workers that a command forks end at SIGTERM at once, so that a pool of them never waits for ever."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FORKS = """
import importlib, os, signal, time

importlib.import_module("bench_datasets.cli.app")._end_cleanly_on_signals()
workers = []
for _ in range(100):
    worker = os.fork()
    if not worker:
        time.sleep(20)
        os._exit(7)
    os.kill(worker, signal.SIGTERM)  # before the worker has set itself up
    workers.append(worker)
ends = [os.waitpid(worker, 0)[1] for worker in workers]
print(sum(os.WIFSIGNALED(end) and os.WTERMSIG(end) == signal.SIGTERM for end in ends))
try:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)
except SystemExit as error:
    print("parent ended with", error.code)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_sigterm_right_after_the_fork_ends_every_worker_and_the_parent_cleanly() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == ["100", "parent ended with 143"]
