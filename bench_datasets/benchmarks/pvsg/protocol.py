"""PVSG's protocols: named, versioned values that say when a triplet hits a relation and how K counts."""

from __future__ import annotations

from dataclasses import dataclass

from bench_datasets.benchmark import Protocol, choose_protocol

DEFAULT_K = (20, 50, 100)
"""Ranks of recall where none are asked for."""

DEFAULT_THRESHOLDS = (0.5, 0.1)
"""Overlaps from which a triplet hits, where none are asked for; both are named in the keys."""

WEAK_COUNTS, WEAK_ENDS = 0.1, 0.5
"""`weak_official`: the overlap from which a triplet counts, and the one that ends a relation's count."""

VOID_IGNORED, STEP = "void_ignored", "step"
"""STQ's two conventions.

`void_ignored` (the default) leaves pixels that are void in the ground truth out of both parts. `step` counts as the
STEP authors' code does: predicted countable pixels on void are false association, and void is one more class, of IoU 0,
where a labelled pixel is predicted as void.
"""

IOU = 0.5
"""Mask IoU from which a frame is hit; held against integers as 2 x intersection >= union."""


@dataclass(frozen=True, kw_only=True)
class PVSGProtocol(Protocol):
    """How triplets meet relations.

    Attributes:
        overlap: `frames` (a temporal recall over the truth's visible frames) or `volume` (IoU of the tubes' volumes).
        rank: what K counts: triplets of the `video`, or of the `subject_class` of each relation.
        once: whether each triplet and relation is used once.
        weak: whether every triplet from overlap .1 on is counted until one reaches .5.
        stq: STQ's convention, `void_ignored` or `step`.
    """

    overlap: str
    rank: str
    once: bool
    weak: bool
    stq: str = VOID_IGNORED


PROTOCOLS: dict[str, PVSGProtocol] = {
    "official": PVSGProtocol(
        name="official",
        version="1",
        overlap="frames",
        rank="video",
        once=False,
        weak=False,
        comparable_to="PVSG arXiv v1 at 0.5",
        meaning="Recall over frames of the ground truth's spans, as the released code counts it;"
        " predicting outside costs nothing.",
    ),
    "volume": PVSGProtocol(
        name="volume",
        version="1",
        overlap="volume",
        rank="video",
        once=True,
        weak=False,
        comparable_to=None,
        meaning=(
            "IoU of the tubes' volumes over their spans, the smaller of subject and object; each triplet is used once."
        ),
    ),
    "card": PVSGProtocol(
        name="card",
        version="1",
        overlap="frames",
        rank="subject_class",
        once=False,
        weak=False,
        comparable_to=None,
        meaning="As official, but K counts the triplets whose subject is of the relation's subject class.",
    ),
    "weak_official": PVSGProtocol(
        name="weak_official",
        version="1",
        overlap="frames",
        rank="video",
        once=False,
        weak=True,
        comparable_to="PVSG arXiv v1 at 0.1",
        meaning=(
            "The released 0.1 column: every triplet with overlap 0.1 counts until one reaches 0.5,"
            " so 100 % is no limit."
        ),
    ),
    "step": PVSGProtocol(
        name="step",
        version="1",
        overlap="frames",
        rank="video",
        once=False,
        weak=False,
        comparable_to=None,
        meaning="As official, but STQ as the STEP authors' code counts it: void of the ground truth is not ignored.",
        stq=STEP,
    ),
}
"""The protocols by name, the default first."""


def get_protocol(name: str | None) -> PVSGProtocol:
    """The protocol of a name; the default (`official`) for `None`.

    Raises:
        BenchError: there is no protocol of that name.

    Example:
        >>> get_protocol(None).overlap
        'frames'
    """
    return choose_protocol("pvsg", PROTOCOLS, name)
