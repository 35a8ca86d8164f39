"""Rows with faults: the scoring stops, the row is left out, or its prediction counts as wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench_datasets.faults import Fault, FaultError
from bench_datasets.scoring.options import ScoreOptions


@dataclass
class Faulty:
    """The rows of a batch that have faults, by their treatment.

    Attributes:
        options: how rows are scored.
        left_out: faults of the rows that are not scored.
        wrong: faults of the rows whose prediction counts as wrong.

    Example:
        >>> faulty = Faulty(ScoreOptions("released", on_fault="count-as-wrong"))
        >>> faulty.add(0, [], [Fault("bad_score", "level_0/7", "two scores for one mask")])
        >>> faulty.add(1, [Fault("malformed_mask", "level_0/8", "mask 0: too long")], [])
        >>> sorted(faulty.wrong), sorted(faulty.left_out), faulty.codes(0)
        ([0], [1], ['bad_score'])
    """

    options: ScoreOptions
    left_out: dict[int, list[Fault]] = field(default_factory=dict)
    wrong: dict[int, list[Fault]] = field(default_factory=dict)

    def add(self, row: int, truth: Sequence[Fault], prediction: Sequence[Fault]) -> None:
        """Decide about one row.

        A row whose ground truth has a fault can't be scored, so it never counts as wrong.

        Args:
            row: its place in the batch.
            truth: faults of its ground truth that end the scoring.
            prediction: faults of its prediction that end the scoring.

        Raises:
            FaultError: there is a fault, and the options say to stop.
        """
        faults = [*truth, *prediction]
        if not faults:
            return
        if self.options.stops:
            raise FaultError(*faults[0])
        if self.options.counts_as_wrong and not truth:
            self.wrong[row] = faults
        else:
            self.left_out[row] = list(truth) if self.options.counts_as_wrong else faults

    def codes(self, row: int) -> list[str]:
        """The codes of one row's faults, for the column `faults` of the score table."""
        return [fault.code for fault in (*self.left_out.get(row, ()), *self.wrong.get(row, ()))]

    def lists(self) -> tuple[list[Fault], list[Fault]]:
        """All faults: those of rows that are left out, then those of predictions that count as wrong."""
        return tuple([fault for row in sorted(rows) for fault in rows[row]] for rows in (self.left_out, self.wrong))  # type: ignore[return-value]
