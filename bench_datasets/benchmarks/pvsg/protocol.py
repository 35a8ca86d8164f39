"""PVSG's protocols: named, versioned values that say when a triplet hits a relation and how K counts."""

from __future__ import annotations

from dataclasses import dataclass

from bench_datasets.scoring.protocols import choose_protocol

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


@dataclass(frozen=True)
class Protocol:
    """How triplets meet relations.

    Attributes:
        name: as in `score(..., protocol=name)`.
        version: raised whenever a number could change.
        overlap: `frames` (a temporal recall over the truth's visible frames) or `volume` (IoU of the tubes' volumes).
        rank: what K counts: triplets of the `video`, or of the `subject_class` of each relation.
        once: whether each triplet and relation is used once.
        weak: whether every triplet from overlap .1 on is counted until one reaches .5.
        stq: STQ's convention, `void_ignored` or `step`.
        comparable_to: whose published numbers a complete run compares with, or `None`.
        meaning: one sentence for people.
    """

    name: str
    version: str
    overlap: str
    rank: str
    once: bool
    weak: bool
    comparable_to: str | None
    meaning: str
    stq: str = VOID_IGNORED


PROTOCOLS: dict[str, Protocol] = {
    "official": Protocol(
        "official", "1", "frames", "video", False, False, "PVSG arXiv v1 at 0.5",
        "Recall over frames of the ground truth's spans, as the released code counts it;"
        " predicting outside costs nothing.",
    ),
    "volume": Protocol(
        "volume", "1", "volume", "video", True, False, None,
        "IoU of the tubes' volumes over their spans, the smaller of subject and object; each triplet is used once.",
    ),
    "card": Protocol(
        "card", "1", "frames", "subject_class", False, False, None,
        "As official, but K counts the triplets whose subject is of the relation's subject class.",
    ),
    "weak_official": Protocol(
        "weak_official", "1", "frames", "video", False, True, "PVSG arXiv v1 at 0.1",
        "The released 0.1 column: every triplet with overlap 0.1 counts until one reaches 0.5, so 100 % is no limit.",
    ),
    "step": Protocol(
        "step", "1", "frames", "video", False, False, None,
        "As official, but STQ as the STEP authors' code counts it: void of the ground truth is not ignored.",
        STEP,
    ),
}  # fmt: skip
"""The protocols by name, the default first."""


def get_protocol(name: str | None) -> Protocol:
    """The protocol of a name; the default (`official`) for `None`.

    Raises:
        BenchError: there is no protocol of that name.

    Example:
        >>> get_protocol(None).overlap
        'frames'
    """
    return choose_protocol("pvsg", PROTOCOLS, name)
