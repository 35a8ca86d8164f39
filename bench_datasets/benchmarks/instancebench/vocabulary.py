"""InstanceBench's terms: roles, operations of referential logic, their families, and tracks."""

from __future__ import annotations

ROLES = ("minimal", "variant", "paraphrase", "extra")
"""What an expression is in its set; the first two are the core roles."""

FAMILY_OF = {
    "ordinal": "same_class_selection",
    "extremal": "same_class_selection",
    "relative_selection": "same_class_selection",
    "subgroup_based": "same_class_selection",
    "single_anchor_relation": "single_anchor_relation",
    "multi_anchor_relation": "multi_anchor_composition",
    "nested_grounding": "multi_anchor_composition",
    "target_evidence": "target_centric_visual_evidence",
    "negation_or_exclusion": "negation_or_exclusion",
}
"""The family of each of the nine operations."""

OPERATIONS = tuple(FAMILY_OF)
"""The nine operations."""

OPERATION_TAG = "operation_found:"
"""What the tag begins with that keeps a word found in an operation's place which is none of the nine."""

FAMILIES = tuple(dict.fromkeys(FAMILY_OF.values()))
"""The five families."""

SYNONYMS = {"spatial_relation": "single_anchor_relation", "orientation_relation": "single_anchor_relation"}
"""Finer names that count as one of the nine; the finer name stays as a tag."""

TRACKS = ("minimal", "paraphrase", "same_target", "exclusion")
"""Parts of the set by what changes between the expression and the minimal one."""


def track_of(role: str, operation: str) -> str:
    """The track of an expression.

    Example:
        >>> track_of("variant", "ordinal"), track_of("extra", "negation_or_exclusion")
        ('same_target', 'exclusion')
    """
    if role in ("minimal", "paraphrase"):
        return role
    return "exclusion" if operation == "negation_or_exclusion" else "same_target"
