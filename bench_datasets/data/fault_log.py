"""One warning for all faults that a build has noted."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from bench_datasets.faults import Fault

logger = logging.getLogger(__name__)

_EXAMPLES = 3


class Noted:
    """Counts of faults and a few of the rows that have them, for one warning at the end.

    Args:
        benchmark: what the warning begins with.
    """

    def __init__(self, benchmark: str) -> None:
        self._benchmark = benchmark
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}

    def add(self, faults: Sequence[Fault]) -> None:
        """Take in the faults of some rows, one a row and code."""
        for fault in faults:
            self._counts[fault.code] += 1
            if self._counts[fault.code] <= _EXAMPLES:
                self._examples.setdefault(fault.code, []).append(f"{fault.key} ({fault.text})")

    def log(self, level: int) -> None:
        """Log the noted faults, if there are any, at a level of `logging`."""
        if self._counts:
            lines = [
                f"{code}: {n} rows, e.g. {'; '.join(self._examples[code])}" for code, n in sorted(self._counts.items())
            ]
            head = f"{self._benchmark}: rows with faults, noted in their `faults` column"
            logger.log(level, "%s:\n  %s", head, "\n  ".join(lines))
