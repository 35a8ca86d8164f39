"""Fault codes of InstanceBench, besides those of all benchmarks."""

from __future__ import annotations

from bench_datasets.faults import fault_kinds

FAULTS = {
    **fault_kinds(
        "instancebench predictions",
        "noted",
        box_apart_from_mask="a box that overlaps its own prediction's mask little (IoU of the boxes below 0.5)",
        unknown_candidate="a candidate_id that no candidate of the row has; it counts as a wrong prediction",
    ),
    **fault_kinds(
        "instancebench truth",
        "stop",
        target_missing="a target that is no candidate: absent, a crowd, or without a valid mask of the image's size",
        target_empty="a target without a pixel",
        repeated_expression="an expression id that stands twice",
        unknown_operation="an operation that is none of the nine",
        core_role_missing="no minimal or no variant expression",
        core_role_repeated="more than one minimal or variant expression",
    ),
    **fault_kinds(
        "instancebench truth",
        "noted",
        candidate_without_mask="a candidate without a valid mask; it is left out",
        crowd_candidate="a crowd region among the candidates; it is ignored",
        sides_exchanged="polygons that fit the image only if its height and width are exchanged",
    ),
}
"""Its codes, with where they are found and what they do by default."""
