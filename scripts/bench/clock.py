"""Times that can be compared: every case in turn, again and again, in one process; medians and ratios."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Case = Callable[[], Any]


SHORTEST = 0.02
"""Seconds that a measurement takes at least: what is quicker runs several times in a row."""


def alternate(cases: Mapping[str, Case], repetitions: int, budget: float = float("inf")) -> dict[str, float]:
    """Median seconds of each case.

    The cases take turns, so that a slower or faster spell of the machine falls on all of them. Each should have run
    once before, for what is imported, compiled or cached then. The garbage collector rests meanwhile.

    Args:
        cases: functions by name.
        repetitions: turns.
        budget: seconds after which no further turn begins (one is always taken).
    """
    times: dict[str, list[float]] = {name: [] for name in cases}
    rows: dict[str, int] = {}
    began = time.perf_counter()
    for turn in range(repetitions):
        if turn and time.perf_counter() - began > budget:
            break
        gc.collect()
        gc.disable()
        try:
            for name, case in cases.items():
                if name not in rows:
                    rows[name] = max(1, int(SHORTEST / max(_timed(case, 1), 1e-7)))
                times[name].append(_timed(case, rows[name]))
        finally:
            gc.enable()
    return {name: statistics.median(found) for name, found in times.items()}


def _timed(case: Case, row: int) -> float:
    start = time.perf_counter()
    for _ in range(row):
        case()
    return (time.perf_counter() - start) / row


def seconds(value: float) -> str:
    """A time for people.

    Example:
        >>> seconds(0.00312), seconds(2.5), seconds(0.00002)
        ('3.1 ms', '2.5 s', '20 us')
    """
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if value * factor >= 1 or unit == "us":
            shown = value * factor
            return f"{shown:.0f} {unit}" if shown >= 20 else f"{shown:.2g} {unit}"
    raise AssertionError


def ratio(value: float | None) -> str:
    """A ratio for people: two digits."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
