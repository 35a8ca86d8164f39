"""How far a long scoring is: a bar where one can be seen, else a line in the log every few seconds."""

from __future__ import annotations

import logging
import time
from types import TracebackType

from datasets.utils import tqdm

EVERY = 5.0
"""Seconds between two lines, at least."""

log = logging.getLogger("bench_datasets.execution.progress")
"""Level INFO; the command line shows it."""


class Progress:
    """Counts rows as they get done.

    Args:
        total: rows in all.
        already: rows that an earlier run has done.
        parts: in how many parts.
        parts_already: likewise.
    """

    def __init__(self, total: int, already: int, parts: int, parts_already: int) -> None:
        self.total, self.already, self.done = total, already, already
        self.parts, self.parts_done = parts, parts_already
        if parts_already:
            log.info("going on: %d of %d parts are there already", parts_already, parts)
        self.bar = tqdm(total=total, initial=already, desc="Scoring", unit=" rows")
        self.started = self.said = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.close()

    def part(self, rows: int) -> None:
        """A part of so many rows is done."""
        self.done += rows
        self.parts_done += 1
        self.bar.update(rows)
        now = time.monotonic()
        if not self.bar.disable or now - self.said < EVERY:
            return
        self.said = now
        log.info("%s", self.line(now - self.started))

    def line(self, seconds: float) -> str:
        """How far it is, after so many seconds."""
        rate = (self.done - self.already) / max(seconds, 1e-9)
        left = (self.total - self.done) / max(rate, 1e-9)
        return (
            f"scored {self.done:,} of {self.total:,} rows (part {self.parts_done} of {self.parts}),"
            f" {rate:,.0f} rows/s, {spoken(left)} left"
        )


def spoken(seconds: float) -> str:
    """A time for people.

    Example:
        >>> spoken(42.3), spoken(754), spoken(93600)
        ('42 s', '13 min', '26 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
