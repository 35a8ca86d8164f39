"""PBench's protocols: named, versioned values that say how a prediction becomes a number."""

from __future__ import annotations

from dataclasses import dataclass

from bench_datasets.benchmark import Protocol, choose_protocol

IOU_GRID: tuple[float, ...] = (0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80, 0.85, 0.90, 0.95)
"""IoU thresholds of Macro-F1, as literals: 0.50 + 0.05 * k would miss 0.85 by a rounding."""


@dataclass(frozen=True, kw_only=True)
class PBenchProtocol(Protocol):
    """How rows are scored and put together.

    Attributes:
        nms: IoU above which the clean-up drops a mask (largest first), or `None` for no such clean-up.
        thresholds: IoU thresholds of a row's F1 on levels 0 to 4.
        dense_thresholds: the same on the dense part.
        without_truth: what a row without truth is: `left_out`, or `scored` (1 if nothing was predicted, else 0).
        row_score: `f1` (mean F1 over the thresholds) or `union_hit` (1 if the union IoU is at least .5).
    """

    nms: float | None
    thresholds: tuple[float, ...]
    dense_thresholds: tuple[float, ...]
    without_truth: str
    row_score: str


PROTOCOLS: dict[str, PBenchProtocol] = {
    "released": PBenchProtocol(
        name="released",
        version="1",
        nms=0.5,
        thresholds=IOU_GRID,
        dense_thresholds=(0.50,),
        without_truth="left_out",
        row_score="f1",
        comparable_to="Falcon Perception table",
        meaning="Macro-F1 as the benchmark's released scorer computes it; rows without ground truth are left out.",
    ),
    "paper": PBenchProtocol(
        name="paper",
        version="1",
        nms=0.5,
        thresholds=IOU_GRID,
        dense_thresholds=(0.50,),
        without_truth="scored",
        row_score="f1",
        comparable_to=None,
        meaning=(
            "Macro-F1 as the paper's text describes it; a row without ground truth is right if nothing was predicted."
        ),
    ),
    "card": PBenchProtocol(
        name="card",
        version="1",
        nms=None,
        thresholds=IOU_GRID,
        dense_thresholds=(0.50,),
        without_truth="scored",
        row_score="union_hit",
        comparable_to=None,
        meaning="Accuracy: the union of the predicted masks reaches IoU .5 with the union of the ground truth.",
    ),
}
"""The protocols by name, the default first."""


def get_protocol(name: str | None) -> PBenchProtocol:
    """The protocol of a name; the default (`released`) for `None`.

    Raises:
        BenchError: there is no protocol of that name.
    """
    return choose_protocol("pbench", PROTOCOLS, name)
