"""The commands put together: global options, and how a run ends.

Exit codes: 0 done, 1 bad input (one line `error: ...` on stderr), 2 bad usage, 130 interrupted, 143 ended by
SIGTERM.
"""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bench_datasets import __version__
from bench_datasets._util import interrupts
from bench_datasets.cli import (
    check,
    compare,
    convert,
    demo,
    doctor,
    explain,
    info,
    leaderboard,
    merge,
    publish,
    report,
    score,
)
from bench_datasets.cli.console import Settings, complain, last_words, settle
from bench_datasets.cli.repeated_options import Once

_GLOBAL = ("--debug", "--verbose")


class Commands(TyperGroup):
    """The group of commands: global flags may stand anywhere, and what goes wrong ends as one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take global flags from behind the command, too."""
        end = args.index("--") if "--" in args else len(args)
        flags = [arg for arg in args[:end] if arg in _GLOBAL]
        rest = [arg for arg in args[:end] if arg not in _GLOBAL]
        return super().parse_args(ctx, [*dict.fromkeys(flags), *rest, *args[end:]])

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        debug = bool(ctx.params.get("debug"))
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            if debug:
                raise
            complain("interrupted")
            raise typer.Exit(130) from None
        except Exception as error:
            usage = type(error).__module__.split(".")[0] in ("click", "typer")
            if debug or usage or (isinstance(error, OSError) and error.errno == errno.EPIPE):
                raise
            complain(f"error: {last_words(error)}")
            raise typer.Exit(1) from None


app = typer.Typer(
    name="bench-datasets",
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bench-datasets {__version__}")
        raise typer.Exit


@app.callback(epilog="Exit codes: 0 done, 1 bad input, 2 bad usage. Try it without any data: bench-datasets demo")
def _settings(
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Let libraries show their progress and warnings.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Score models on referring-segmentation and video-scene-graph benchmarks."""
    settle(Settings(debug=debug, verbose=verbose))


app.command("demo", cls=Once)(demo.demo)
app.command("info", cls=Once)(info.info)
app.command("check", cls=Once)(check.check)
app.command("score", cls=Once)(score.score)
app.command("explain", cls=Once)(explain.explain)
app.command("merge", cls=Once)(merge.merge)
app.command("compare", cls=Once)(compare.compare)
app.command("report", cls=Once)(report.report)
app.command("leaderboard", cls=Once)(leaderboard.leaderboard)
app.command("doctor", cls=Once)(doctor.doctor)
app.add_typer(convert.app, name="convert")
app.add_typer(publish.app, name="publish")


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    Args:
        args: the arguments; those of the process for None.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what a terminal's encoding lacks is escaped
            stream.reconfigure(errors="backslashreplace")
    _end_cleanly_on_signals()
    if args is not None:
        app(args=list(args), prog_name="bench-datasets")
        return
    interrupts.raise_again()
    try:
        app(prog_name="bench-datasets")
    finally:
        interrupts.end_in_one_line()


def _end_cleanly_on_signals() -> None:
    """Let SIGTERM and SIGHUP end the process as `sys.exit` does, so that temporary files are removed."""
    for number in _ending_signals():
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)
    _forget_handlers_in_forks()


def _ending_signals() -> list[int]:
    return [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _end(number: int, frame: Any) -> None:
    del frame
    raise SystemExit(128 + number)


@functools.lru_cache(maxsize=1)
def _forget_handlers_in_forks() -> None:
    """Let these signals end a forked worker at once, also one that arrives while the worker starts.

    Python drops signals that it has not handled yet when it sets up a forked process. A pool that ends its workers
    would then wait for ever. So the signals are blocked during the fork, and stay pending until the worker has no
    handler.
    """
    if not hasattr(os, "register_at_fork"):  # Windows
        return
    blocked = threading.local()

    def block() -> None:
        blocked.before = signal.pthread_sigmask(signal.SIG_BLOCK, _ending_signals())

    def restore() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked.before)

    def forget() -> None:
        for number in _ending_signals():
            if signal.getsignal(number) is _end:
                signal.signal(number, signal.SIG_DFL)
        restore()

    os.register_at_fork(before=block, after_in_parent=restore, after_in_child=forget)
