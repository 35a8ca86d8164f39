"""Sentences on a console."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from bench_datasets.cli.console import PIPE, say

SENTENCE = "  child 3 throwing ball 2: no triplet of its classes and predicate overlaps it"


def printed(width: int) -> list[str]:
    file = StringIO()
    say(Console(file=file, width=width), SENTENCE)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [30, 40, 60])
def test_say_narrow_console_wraps_between_words_and_keeps_indent(width: int) -> None:
    lines = printed(width)
    assert len(lines) > 1
    assert all(len(line) <= width for line in lines)
    assert " ".join(line.strip() for line in lines) == SENTENCE.strip()
    assert [len(line) - len(line.lstrip()) for line in lines] == [2, *[4] * (len(lines) - 1)]


def test_say_pipe_prints_one_line() -> None:
    assert printed(PIPE) == [SENTENCE]
