"""Names in PVSG predictions that lead nowhere: noted, counted, and no hit."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_datasets.benchmarks.pvsg.vocabulary import PREDICATES, STUFF, THINGS

CATEGORIES = (*THINGS, *STUFF)
"""The categories in the order of the vocabulary; a class index of the research code is a place here."""

_CATEGORIES, _PREDICATES = frozenset(CATEGORIES), frozenset(PREDICATES)


def noted_faults(
    tubes: Sequence[tuple[str, str | None, int]], triplets: Sequence[Mapping[str, Any]], reflexive: bool = False
) -> Iterator[tuple[str, str]]:
    """Faults that scoring counts and goes on from, as code and text.

    Args:
        tubes: id, category and number of masks of each.
        triplets: rows of `pred_triplets`.
        reflexive: whether the video's ground truth has a relation of an object with itself.

    Yields:
        `unknown_category` and `tube_without_masks` by tube; `unknown_tube`, `self_triplet` and `repeated_triplet` by
        triplet.

    Example:
        >>> triplet = {"subject_id": "1", "object_id": "2", "predicate": "on", "spans": [[0, 4]]}
        >>> list(noted_faults([("1", "adlut", 3)], [triplet]))
        [('unknown_category', "tube 1: 'adlut'"), ('unknown_tube', "triplet 0: object_id '2'")]
    """
    known = {tube_id for tube_id, _, _ in tubes}
    for tube_id, category, masks in tubes:
        if category not in _CATEGORIES:
            yield "unknown_category", f"tube {tube_id}: {_show(category)}"
        if masks == 0:
            yield "tube_without_masks", f"tube {tube_id}"
    for i, triplet in enumerate(triplets):
        for end in ("subject_id", "object_id"):
            if triplet[end] not in known:
                yield "unknown_tube", f"triplet {i}: {end} {_show(triplet[end])}"
    parts = [(one["subject_id"], one["object_id"], one.get("predicate"), one.get("spans") or []) for one in triplets]
    sound = [one if known >= {one[0], one[1]} and is_predicate(one[2]) else None for one in parts]
    yield from odd_triplets(sound, reflexive)


def odd_triplets(
    triplets: Iterable[tuple[Hashable, Hashable, Hashable, Iterable[Sequence[int]]] | None], reflexive: bool
) -> Iterator[tuple[str, str]]:
    """Find triplets of a tube with itself, and triplets that repeat an earlier one.

    Args:
        triplets: subject tube, object tube, predicate and spans of each; `None` for one that cannot hit.
        reflexive: whether the video's ground truth has a relation of an object with itself; such triplets are then
            expected.

    Example:
        >>> list(odd_triplets([("1", "2", "on", [[0, 4]]), ("1", "2", "on", [[0, 4]]), ("3", "3", "on", [])], False))
        [('repeated_triplet', 'triplet 1 repeats triplet 0'), ('self_triplet', 'triplet 2: tube 3 with itself')]
    """
    first: dict[Hashable, int] = {}
    for i, triplet in enumerate(triplets):
        if triplet is None:
            continue
        subject, target, predicate, spans = triplet
        if subject == target and not reflexive:
            yield "self_triplet", f"triplet {i}: tube {subject} with itself"
        same = first.setdefault((subject, target, predicate, *((int(a), int(b)) for a, b in spans)), i)
        if same < i:
            yield "repeated_triplet", f"triplet {i} repeats triplet {same}"


def missing_frames(masked: NDArray[np.int64], frames: NDArray[np.int64]) -> str:
    """Describe the frames that have ground-truth masks and no predicted one; empty where there is none.

    Args:
        masked: `(m,) int64`, frames with a ground-truth mask.
        frames: `(n,) int64`, frames of the predicted masks.

    Example:
        >>> missing_frames(np.arange(6), np.array([0, 0, 2]))
        'no mask in 4 of the 6 frames that have ground-truth masks: 1, 3, 4, ...'
    """
    wanted = np.unique(masked)
    absent = np.setdiff1d(wanted, frames)
    if not len(absent):
        return ""
    named = ", ".join([*map(str, absent[:3].tolist()), *(["..."] * (len(absent) > 3))])
    return f"no mask in {len(absent)} of the {len(wanted)} frames that have ground-truth masks: {named}"


def odd_spans(lasts: Sequence[int], frames: int, triplet: int) -> Iterator[tuple[str, str]]:
    """Find a triplet without a span, or with one that reaches past the video's last frame.

    Args:
        lasts: last frame of each span.
        frames: of the video; 0 where it is not known.
        triplet: its place.

    Example:
        >>> list(odd_spans([4, 30], 30, 0)), list(odd_spans([], 30, 1))
        ([('span_outside', 'triplet 0: frame 30 of 30 frames')], [('no_spans', 'triplet 1')])
    """
    last = max(lasts, default=-1)
    if last < 0:
        yield "no_spans", f"triplet {triplet}"
    elif 0 < frames <= last:
        yield "span_outside", f"triplet {triplet}: frame {last} of {frames} frames"


def is_predicate(name: str | None) -> bool:
    """Whether it is one of the 57."""
    return name in _PREDICATES


def category_of(index: int) -> str:
    """The category of a class index, from 0 into things and then stuff; text that is no category beyond.

    Example:
        >>> category_of(0), category_of(125), category_of(126)
        ('adult', 'water', 'class 126')
    """
    return CATEGORIES[index] if 0 <= index < len(CATEGORIES) else f"class {index}"


def _show(name: str | None) -> str:
    return "null" if name is None else repr(name)
