"""PBench's protocols: named, versioned values that say how a prediction becomes a number."""

from __future__ import annotations

from dataclasses import dataclass

from bench_datasets.scoring.matching import IOU_GRID
from bench_datasets.scoring.protocols import choose_protocol


@dataclass(frozen=True)
class Protocol:
    """How rows are scored and put together.

    Attributes:
        name: as in `score(..., protocol=name)`.
        version: raised whenever a number could change.
        nms: IoU above which the clean-up drops a mask (largest first), or `None` for no such clean-up.
        thresholds: IoU thresholds of a row's F1 on levels 0 to 4.
        dense_thresholds: the same on the dense part.
        without_truth: what a row without truth is: `left_out`, or `scored` (1 if nothing was predicted, else 0).
        row_score: `f1` (mean F1 over the thresholds) or `union_hit` (1 if the union IoU is at least .5).
        comparable_to: whose published numbers a complete run compares with, or `None`.
        meaning: one sentence for people.
    """

    name: str
    version: str
    nms: float | None
    thresholds: tuple[float, ...]
    dense_thresholds: tuple[float, ...]
    without_truth: str
    row_score: str
    comparable_to: str | None
    meaning: str


PROTOCOLS: dict[str, Protocol] = {
    "released": Protocol(
        "released", "1", 0.5, IOU_GRID, (0.50,), "left_out", "f1", "Falcon Perception table",
        "Macro-F1 as the benchmark's released scorer computes it; rows without ground truth are left out.",
    ),
    "paper": Protocol(
        "paper", "1", 0.5, IOU_GRID, (0.50,), "scored", "f1", None,
        "Macro-F1 as the paper's text describes it; a row without ground truth is right if nothing was predicted.",
    ),
    "card": Protocol(
        "card", "1", None, IOU_GRID, (0.50,), "scored", "union_hit", None,
        "Accuracy: the union of the predicted masks reaches IoU .5 with the union of the ground truth.",
    ),
}  # fmt: skip
"""The protocols by name, the default first."""


def get_protocol(name: str | None) -> Protocol:
    """The protocol of a name; the default (`released`) for `None`.

    Raises:
        BenchError: there is no protocol of that name.
    """
    return choose_protocol("pbench", PROTOCOLS, name)
