"""Console output: results on stdout, messages on stderr, colour and progress on terminals only."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from bench_datasets.faults import BenchError, BenchWarning


@dataclass(frozen=True)
class Settings:
    """The global options.

    Attributes:
        debug: show tracebacks.
        verbose: let libraries print their progress and warnings.
    """

    debug: bool = False
    verbose: bool = False


_state = {"settings": Settings()}


def settle(settings: Settings) -> None:
    """Keep the global options and, unless they say otherwise, the libraries' own output down."""
    _state["settings"] = settings
    if settings.verbose:
        return
    import datasets

    datasets.utils.disable_progress_bars()
    datasets.utils.logging.set_verbosity_error()
    # What builders warn of stands in the rows' faults, which every command shows.
    logging.getLogger("bench_datasets").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    warnings.filterwarnings("always", category=BenchWarning)
    warnings.showwarning = _show_warning


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Print a warning as one line on stderr."""
    remark(f"warning: {message}")


class _Output(Console):
    """A console whose reader may leave: `| head -1` gets its line, and the command ends as it would have."""

    def on_broken_pipe(self) -> None:
        """Print nothing more."""
        self.quiet = True
        nowhere()


def nowhere() -> None:
    """Let stdout go nowhere, after its reader has left."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


PIPE = 100_000
"""Columns of a pipe or a file: nothing is wrapped there."""


CONTINUED = 2
"""Spaces by which the further lines of an indented sentence stand behind its first."""


def out() -> Console:
    """The console for results: as wide as the terminal or as $COLUMNS says; without end in a pipe or a file."""
    console = _Output(highlight=False, emoji=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = PIPE
    return console


def say(console: Console, text: str, style: str = "") -> None:
    """Print a sentence with its indent: wrapped between words, or on one line in a pipe or a file."""
    text = text.rstrip()
    indent = len(text) - len(text.lstrip())
    line = Text(clean(text), style=style)
    if console.width >= PIPE:
        line.pad_left(indent)
        console.print(line, soft_wrap=True)
        return
    for number, piece in enumerate(line.wrap(console, max(20, console.width - indent - CONTINUED * (indent > 0)))):
        piece.rstrip()
        piece.pad_left(indent + CONTINUED * (indent > 0 and number > 0))
        console.print(piece, soft_wrap=True)


def err() -> Console:
    """The console for everything else."""
    return Console(stderr=True, highlight=False, emoji=False)


def complain(text: str) -> None:
    """One red line on stderr."""
    err().print(Text(clean(text), style="bold red"), soft_wrap=True)


def remark(text: str) -> None:
    """One line about the work on stderr."""
    err().print(Text(clean(text), style="yellow"), soft_wrap=True)


@contextlib.contextmanager
def working(text: str) -> Iterator[None]:
    """Show the current step on a terminal; elsewhere print a line every few seconds of a long bootstrap."""
    console = err()
    if not console.is_terminal or _state["settings"].verbose:
        with _log_on_stderr("bench_datasets.results.statistics"):
            yield
        return
    with console.status(Text(text)):
        yield


@contextlib.contextmanager
def progress() -> Iterator[None]:
    """Let a progress bar show, where stderr is a terminal; elsewhere a line every few seconds."""
    with _log_on_stderr("bench_datasets.execution.progress"):
        yield from _progress_bars()


@contextlib.contextmanager
def waits() -> Iterator[None]:
    """Print a line on stderr for each wait for the Hub."""
    with _log_on_stderr("bench_datasets.hub"):
        yield


def _progress_bars() -> Iterator[None]:
    import datasets

    if not err().is_terminal or "HF_DATASETS_DISABLE_PROGRESS_BARS" in os.environ or _state["settings"].verbose:
        yield
        return
    datasets.utils.enable_progress_bars()
    try:
        yield
    finally:
        datasets.utils.disable_progress_bars()


@contextlib.contextmanager
def _log_on_stderr(name: str) -> Iterator[None]:
    """Print a logger's messages of level INFO and above as plain lines on stderr."""
    logger, handler = logging.getLogger(name), _Lines()
    level, up = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = up


class _Lines(logging.Handler):
    """Writes each record as one harmless line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write it."""
        with contextlib.suppress(OSError, ValueError):  # nobody reads any more
            print(clean(record.getMessage()), file=sys.stderr, flush=True)


def clean(text: str) -> str:
    r"""Text that can do a terminal no harm: one line, control characters escaped.

    Example:
        >>> clean("a\nb\x1b[2J")
        'a b\\x1b[2J'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))


def last_words(error: BaseException) -> str:
    """An error as one line: ours as it is, the system's with the file's name, any other with its kind."""
    found = error
    while not isinstance(found, BenchError | OSError) and found.__cause__ is not None:
        found = found.__cause__  # `datasets` wraps what goes wrong in a build
    if isinstance(found, OSError) and not isinstance(found, BenchError) and found.strerror:
        return f"{found.filename}: {found.strerror}" if found.filename else found.strerror
    text = str(found).strip() or "no message"
    if isinstance(found, BenchError):
        text = worded(text)
        sourceless = type(found).__name__ in ("SourceNotFoundError", "SourceUnreachableError")
        stop = "" if text.endswith((".", "!", "?")) else "."
        return f"{text}{stop} On the command line: --data with a folder, a URL or sample." if sourceless else text
    from bench_datasets.data.source import is_of_the_way, why

    if is_of_the_way(found):
        return f"{why(found)}; run it again (--debug shows where)"
    return f"{type(found).__name__}: {text} (--debug shows where)"


_OPTIONS = (
    (re.compile(r"\b(missing|format)=(['\"])([\w-]+)\2"), r"--\1 \3"),
    (re.compile(r"\bon_fault=(['\"])([\w-]+)\1"), r"--on-fault \2"),
    (re.compile(r"\bformat=(?=\W|$)"), "--format"),
    (re.compile(r"\b(run|condition)='(\w+)'"), r"--\1 \2"),
    (re.compile(r"\bread them as '(\w+)'"), r"`score \1` and `check \1` take them"),
)
"""Arguments of Python's functions, and what they are on the command line."""


def worded(text: str) -> str:
    """A message of the package in the command line's own words.

    Example:
        >>> worded("predict it, or ask for missing='empty'; say which with format='jsonl'")
        'predict it, or ask for --missing empty; say which with --format jsonl'
    """
    for python, option in _OPTIONS:
        text = python.sub(option, text)
    return text


def program() -> str:
    """How a shell starts this very installation: by name where that is found first, else by path, or with Python."""
    own = Path(sys.executable).parent / "bench-datasets"
    found = shutil.which("bench-datasets")
    if found is not None and (Path(found).absolute() == own.absolute() or not own.is_file()):
        return "bench-datasets"
    if not own.is_file():
        return f"{shlex.quote(sys.executable)} -m bench_datasets"
    here = Path.cwd()
    return shlex.quote(str(own.relative_to(here) if own.is_relative_to(here) else own))


def echo(text: str) -> None:
    """Print text for machines on stdout, as it is."""
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere()
