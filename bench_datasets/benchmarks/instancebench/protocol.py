"""InstanceBench's protocol: a named, versioned value with every threshold."""

from __future__ import annotations

from dataclasses import dataclass

from bench_datasets.benchmark import Protocol, choose_protocol


@dataclass(frozen=True, kw_only=True)
class InstanceBenchProtocol(Protocol):
    """How expressions are scored and put together.

    Attributes:
        tau: IoU from which a mask is right; the failures are taken apart at it.
        min_score: least similarity with the candidate that a prediction is assigned to.
        min_margin: by how much it must beat the second best.
        crowd: what crowd regions are: `left_out` of the candidates.
        donor: whose mask a swapped text is held against: `target_of_donor`.
    """

    tau: float
    min_score: float
    min_margin: float
    crowd: str
    donor: str


PROTOCOLS: dict[str, InstanceBenchProtocol] = {
    "default": InstanceBenchProtocol(
        name="default",
        version="1",
        tau=0.7,
        min_score=0.10,
        min_margin=0.05,
        crowd="left_out",
        donor="target_of_donor",
        comparable_to="InstanceBench tables",
        meaning="Masks by IoU, identity by cosine among the instances of the target's category, as in the paper.",
    ),
}
"""The protocols by name, the default first."""


def get_protocol(name: str | None) -> InstanceBenchProtocol:
    """The protocol of a name; `default` for `None`.

    Raises:
        BenchError: there is no protocol of that name.
    """
    return choose_protocol("instancebench", PROTOCOLS, name)
