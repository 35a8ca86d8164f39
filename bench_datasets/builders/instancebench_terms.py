"""InstanceBench's vocabularies: operations and their families, roles, and the track that both put an expression on."""

from __future__ import annotations

OPERATION_FAMILIES: dict[str, str] = {
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

OPERATIONS = tuple(OPERATION_FAMILIES)
"""The nine operations: the names of the `operation` label."""

FAMILIES = tuple(dict.fromkeys(OPERATION_FAMILIES.values()))
"""The five families: the names of the `family` label."""

SYNONYMS: dict[str, str] = {
    "spatial_relation": "single_anchor_relation",
    "orientation_relation": "single_anchor_relation",
}
"""Finer names that the paper uses, and the operation that they count as; the finer name is kept among the tags."""

ROLES = ("minimal", "variant", "paraphrase", "extra")
"""What an expression is in its set: the names of the `role` label."""

CORE_ROLES = ROLES[:2]
"""The roles that every set has exactly one of."""

TRACKS = ("minimal", "paraphrase", "same_target", "exclusion")
"""The names of the `track` label."""


def track_of(role: str, operation: str | None) -> str | None:
    """The track of an expression; None where an unknown operation leaves it open.

    Args:
        role: one of `ROLES`.
        operation: one of `OPERATIONS`, or None.

    Example:
        >>> track_of("variant", "ordinal"), track_of("extra", "negation_or_exclusion"), track_of("minimal", None)
        ('same_target', 'exclusion', 'minimal')
    """
    if role in TRACKS:
        return role
    if operation is None:
        return None
    return "exclusion" if operation == "negation_or_exclusion" else "same_target"
