"""A guess at the operation that an expression takes to follow, from its words alone.

RefCOCO has no operations. The guess is a short list of rules in a fixed order, the first that fits: it can be read,
argued with and repeated, and it is no annotation. Whatever it marks bears the tag `operation_source:lexical`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LEXICAL = "operation_source:lexical"
"""The tag of an operation that was guessed."""

_ORDINALS = "second|third|fourth|fifth|sixth|seventh|2nd|3rd|4th|5th|6th|7th|first|1st|last"
_SPACE = (
    "next to|beside|besides|behind|in front of|in back of|near|nearest to|closest to|by the|above|below|under|"
    "underneath|over the|on top of|on the|in the|inside|outside|left of|right of|to the left of|to the right of|"
    "at the|against|around|across from|leaning on|sitting on|standing on|lying on"
)
_FACING = "facing|looking at|looking toward|looking towards|looking away|turned to|turned toward|pointing at|towards?"
_DOING = "holding|wearing|riding|carrying|kicking|throwing|hitting|eating|pulling|pushing|touching|with the|with a"
_FAR = (
    "leftmost|rightmost|topmost|bottommost|uppermost|lowest|highest|closest|nearest|farthest|furthest|biggest|largest|"
    "smallest|tallest|shortest|longest|oldest|youngest|brightest|darkest|far left|far right|most|very (?:left|right)"
)
_SIDES = (
    "left|right|top|bottom|front|back|middle|center|centre|upper|lower|bigger|smaller|larger|taller|shorter|closer|"
    "darker|lighter|older|younger"
)


class Guess(NamedTuple):
    """An operation, and the finer names that are to stand among the tags."""

    operation: str
    tags: tuple[str, ...]


def _any(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b")


_NEGATION = re.compile(r"\b(?:not|no|without|except|other than|neither|nor|isnt|doesnt|none)\b|n't\b")
_IMAGE = re.compile(
    r"\b(?:on|in|at|to|from) (?:the )?(?:far )?(?:left|right|top|bottom|middle|cent(?:er|re)|front|back)\b"
)
_RULES = tuple(
    (operation, _any(words))
    for operation, words in (
        ("ordinal", rf"(?:{_ORDINALS})"),
        ("extremal", _FAR),
        ("multi_anchor_relation", "between|in between"),
        (
            "subgroup_based",
            r"of the (?:two|three|four|five|group|pair|row|ones|others)|among|in the (?:front|back) row",
        ),
    )
)
_SPATIAL, _ORIENTED, _ACTING, _SIDED = _any(_SPACE), _any(_FACING), _any(_DOING), _any(_SIDES)


def guess_operation(text: str) -> Guess:
    """The operation that the words suggest.

    In order: a negation; an ordinal; a superlative; "between"; "of the two" and the like; two relations one within the
    other; one relation (tagged where it is of space or of orientation); a side or a comparative; else what the target
    itself shows.

    Args:
        text: an expression in English.

    Example:
        >>> guess_operation("second horse from left").operation, guess_operation("man not in white").operation
        ('ordinal', 'negation_or_exclusion')
        >>> guess_operation("dog next to the bench").tags
        ('spatial_relation', 'operation_source:lexical')
    """
    words = " ".join(text.lower().replace("’", "'").split())
    if _NEGATION.search(words):
        return Guess("negation_or_exclusion", (LEXICAL,))
    for operation, pattern in _RULES:
        if pattern.search(words):
            return Guess(operation, (LEXICAL,))
    # "on the left" is a place in the image, not a relation to another thing.
    rest = _IMAGE.sub(" ", re.sub(r"\b(left|right) of\b", r"beside", words))
    spatial, oriented, acting = (pattern.findall(rest) for pattern in (_SPATIAL, _ORIENTED, _ACTING))
    if len(spatial) + len(oriented) + len(acting) > 1 and re.search(r"\b(?:who|that|which|whose)\b", rest):
        return Guess("nested_grounding", (LEXICAL,))
    if spatial or oriented:
        return Guess("single_anchor_relation", ("spatial_relation" if spatial else "orientation_relation", LEXICAL))
    if _SIDED.search(words):
        return Guess("relative_selection", (LEXICAL,))
    return Guess("target_evidence", (LEXICAL,))
