"""Ctrl-C at any time: one line and exit code 130."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from bench_datasets._util import interrupts

WAIT = """
import sys
sys.argv = ["/somewhere/bin/bench-datasets"]
import datasets  # the longest part of the start; what follows stands for the rest of it
import bench_datasets.data.registry
print("ready", flush=True)
import time
time.sleep(30)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_start_interrupted_ends_in_one_line() -> None:
    process = subprocess.Popen([sys.executable, "-c", WAIT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "interrupted\n")


def test_is_command_programs_that_import_the_package_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for argv, original, expected in (
        (["/x/bin/bench-datasets", "score"], ["python", "/x/bin/bench-datasets"], True),
        (["-m", "score"], ["python", "-m", "bench_datasets", "score"], True),
        (["/x/bin/pytest"], ["python", "-m", "pytest", "bench_datasets"], False),
        (["train.py"], ["python", "train.py"], False),
        ([""], ["python"], False),
    ):
        monkeypatch.setattr(sys, "argv", argv)
        monkeypatch.setattr(sys, "orig_argv", original)
        assert interrupts.is_command() is expected, argv


def test_importing_the_package_leaves_interrupts_to_the_program() -> None:
    assert signal.getsignal(signal.SIGINT) is not interrupts._end
