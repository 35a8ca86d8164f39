"""Fenced blocks of Markdown pages, and how they are run: in order, in an empty folder, with this very package."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from bench_datasets.cli import app

ROOT = Path(__file__).resolve().parents[2]


class Block(NamedTuple):
    """A fenced block: its page, its line there, its language, what follows that, and its text."""

    page: str
    line: int
    language: str
    rest: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def by_hand(page: Path) -> str:
    """A page's text, blank lines where something is made of the code."""
    made = re.compile(r"^<!-- (?:generate|include): .*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
    return made.sub(lambda found: "\n" * found[0].count("\n"), page.read_text(encoding="utf-8"))


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, but for those that are made of the code."""
    text = by_hand(page)
    found = re.finditer(r"^```(\w*) *([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    name = str(page.relative_to(ROOT))
    return [Block(name, text[: m.start()].count("\n") + 2, m[1], m[2], m[3]) for m in found]


def environment(place: Path) -> dict[str, str]:
    """Variables with which `bench-datasets` and `python` are these, from any folder."""
    if shutil.which("bash") is None:
        pytest.skip("bash is absent")
    place.mkdir(exist_ok=True)
    for name, arguments in (("bench-datasets", "-m bench_datasets"), ("python", "")):
        file = place / name
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        file.chmod(0o755)
    paths = {
        "PATH": os.pathsep.join([str(place), os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    return {**os.environ, **paths}


def run(
    chosen: Sequence[Block],
    shell: Mapping[str, str],
    folder: Path,
    swaps: Mapping[str, str] | None = None,
    *,
    here: bool = False,
) -> dict[str, Any]:
    """Run the blocks in Python and bash one after another; the caller stands in `folder`.

    Args:
        chosen: the blocks.
        shell: variables for bash.
        folder: where bash starts.
        swaps: texts that stand for what is not here, and what takes their place.
        here: run lines of `bench-datasets` in this process, which is sooner, and no bash.

    Returns:
        The names that Python's blocks leave behind.
    """
    names: dict[str, Any] = {"__name__": "page"}
    for block in chosen:
        text = block.text
        for old, new in (swaps or {}).items():
            text = text.replace(old, new)
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + text, block.page, "exec"), names)
        elif block.language == "bash" and here:
            for line in text.splitlines():
                program, *words = shlex.split(line)
                assert program == "bench-datasets", f"{block}: {line}"
                result = CliRunner().invoke(app, words)
                assert result.exit_code == 0, f"{block}: {line}\n{result.output}"
        elif block.language == "bash":
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text],
                env=dict(shell), cwd=folder, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return names
