"""Names in PVSG predictions that lead nowhere: noted, counted, and no hit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bench_datasets.builders.pvsg_vocabulary import PREDICATES, STUFF, THINGS

CATEGORIES = (*THINGS, *STUFF)
"""The categories in the order of the vocabulary; a class index of the research code is a place here."""

_CATEGORIES, _PREDICATES = frozenset(CATEGORIES), frozenset(PREDICATES)


def noted_faults(
    tubes: Sequence[tuple[str, str | None, int]], triplets: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Faults that scoring counts and goes on from, as code and text.

    Args:
        tubes: id, category and number of masks of each.
        triplets: rows of `pred_triplets`.

    Yields:
        `unknown_category` and `tube_without_masks` by tube, `unknown_tube` by triplet.

    Example:
        >>> list(noted_faults([("1", "adlut", 3)], [{"subject_id": "1", "object_id": "2"}]))
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
