"""`ScoreOptions`: the options of `score`, `scorer` and `map_score`, validated once."""

from __future__ import annotations

from dataclasses import dataclass

from bench_datasets.faults import BenchError

MISSING = ("error", "empty")
COUNT_AS_WRONG = "count-as-wrong"
ON_FAULT = ("stop", "skip-and-report", COUNT_AS_WRONG)
ORACLES = ("tubes", "relations")


@dataclass(frozen=True)
class ScoreOptions:
    """The choices behind a score.

    Attributes:
        protocol: a protocol's name.
        missing: `error`: a row without a prediction is a fault; `empty`: it counts as an empty prediction.
        on_fault: `stop`: a fault ends the scoring with the row's key; `skip-and-report`: the row is left out and
            counted; `count-as-wrong`: a faulty or missing prediction counts as wrong, and a row whose ground truth has
            a fault is left out.
        level: PBench: the level of rows that have no `level` column of their own.
        engine: what computes with the masks, `numba` or `pycocotools`; the fastest there is for `None`.
        threads: how many the numba engine may use in each process.
        oracle: PVSG: `tubes` scores the truth's tubes with the predicted relations, `relations` the predicted tubes
            with the truth's relations.
        boundary: whether outlines are compared too (boundary IoU, boundary F), in further columns.

    Raises:
        BenchError: a choice is none of those.
    """

    protocol: str
    missing: str = "error"
    on_fault: str = "stop"
    level: str | None = None
    engine: str | None = None
    threads: int = 1
    oracle: str | None = None
    boundary: bool = False

    def __post_init__(self) -> None:
        for name, value, allowed in (("missing", self.missing, MISSING), ("on_fault", self.on_fault, ON_FAULT)):
            if value not in allowed:
                raise BenchError(f"{name}: expected one of {', '.join(allowed)}, got {value!r}")
        if self.oracle is not None and self.oracle not in ORACLES:
            raise BenchError(f"oracle: expected one of {', '.join(ORACLES)} or None, got {self.oracle!r}")

    @property
    def stops(self) -> bool:
        """Whether a fault ends the scoring."""
        return self.on_fault == "stop"

    @property
    def counts_as_wrong(self) -> bool:
        """Whether a faulty prediction counts as wrong."""
        return self.on_fault == COUNT_AS_WRONG
