"""InstanceBench's protocol: a named, versioned value with every threshold."""

from __future__ import annotations

from dataclasses import dataclass

from bench_datasets.scoring.protocols import choose_protocol


@dataclass(frozen=True)
class Protocol:
    """How expressions are scored and put together.

    Attributes:
        name: as in `score(..., protocol=name)`.
        version: raised whenever a number could change.
        tau: IoU from which a mask is right; the failures are taken apart at it.
        min_score: least similarity with the candidate that a prediction is assigned to.
        min_margin: by how much it must beat the second best.
        crowd: what crowd regions are: `left_out` of the candidates.
        donor: whose mask a swapped text is held against: `target_of_donor`.
        comparable_to: whose published numbers a complete run compares with.
        meaning: one sentence for people.
    """

    name: str
    version: str
    tau: float
    min_score: float
    min_margin: float
    crowd: str
    donor: str
    comparable_to: str | None
    meaning: str


PROTOCOLS: dict[str, Protocol] = {
    "default": Protocol(
        "default", "1", 0.7, 0.10, 0.05, "left_out", "target_of_donor", "InstanceBench tables",
        "Masks by IoU, identity by cosine among the instances of the target's category, as in the paper.",
    ),
}  # fmt: skip
"""The protocols by name, the default first."""


def get_protocol(name: str | None) -> Protocol:
    """The protocol of a name; `default` for `None`.

    Raises:
        BenchError: there is no protocol of that name.
    """
    return choose_protocol("instancebench", PROTOCOLS, name)
