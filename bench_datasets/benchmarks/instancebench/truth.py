"""InstanceBench's manifest lines into truth rows: one a set, or one an expression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from datasets import ClassLabel, Features, Image, List, Value

from bench_datasets.benchmarks.instancebench.index import Index
from bench_datasets.benchmarks.instancebench.manifest import Expression, Tces
from bench_datasets.benchmarks.instancebench.source_masks import Candidates, sound_candidates
from bench_datasets.benchmarks.instancebench.vocabulary import (
    FAMILIES,
    FAMILY_OF,
    OPERATION_TAG,
    OPERATIONS,
    ROLES,
    TRACKS,
    track_of,
)
from bench_datasets.data.images import Picture
from bench_datasets.faults import Fault
from bench_datasets.masks import MASK_FEATURE

CORE_ROLES = ROLES[:2]
"""The roles that every set has exactly one of."""

EXPRESSION: dict[str, Any] = {
    "expression_id": Value("string"),
    "text": Value("string"),
    "role": ClassLabel(names=list(ROLES)),
    "operation": ClassLabel(names=list(OPERATIONS)),
    "family": ClassLabel(names=list(FAMILIES)),
    "track": ClassLabel(names=list(TRACKS)),
    "tags": List(Value("string")),
    "donor_mask": MASK_FEATURE,
}
"""An expression's fields. `operation` and `family` are null where the operation is unknown, and `track` where that
leaves it open."""


def truth_features(images: bool, *, by_expression: bool = False) -> Features:
    """The truth rows' columns.

    Args:
        images: with the two columns of images.
        by_expression: a row an expression: its fields are columns, in place of the list `expressions`.

    Example:
        >>> truth_features(False)["expressions"].feature["role"].names
        ['minimal', 'variant', 'paraphrase', 'extra']
    """
    columns: dict[str, Any] = {
        "key": Value("string"),
        "image_id": Value("string"),
        "source": Value("string"),
        "category": Value("string"),
        "height": Value("int32"),
        "width": Value("int32"),
        "target": Value("int32"),
        "candidates": List({"instance_id": Value("string"), "mask": MASK_FEATURE, "iscrowd": Value("bool")}),
    }
    columns |= EXPRESSION if by_expression else {"expressions": List(EXPRESSION)}
    columns["faults"] = List(Value("string"))
    if images:
        columns |= {"image": Image(), "image_sha256": Value("string")}
    return Features(columns)


def truth_table(
    sets: Sequence[Tces],
    index: Index,
    *,
    picture: Callable[[Tces], Picture] | None = None,
    by_expression: bool = False,
    recorded: Mapping[str, Sequence[str]] | None = None,
) -> tuple[pa.Table, list[Fault]]:
    """Truth rows of some sets.

    Args:
        sets: lines of a manifest.
        index: of their split.
        picture: gives a set's image; None where images are not wanted.
        by_expression: a row an expression instead of a row a set.
        recorded: faults that the sets' rows bear already, by `tces_id`; they stay, before those found now.

    Returns:
        Rows of `truth_features`, and the faults found, at most one a set and code.
    """
    rows: list[dict[str, Any]] = []
    faults: list[Fault] = []
    for tces, candidates in zip(sets, sound_candidates(sets), strict=True):
        noted = {**dict.fromkeys((recorded or {}).get(tces.tces_id, ()), "as recorded"), **candidates.faults}
        expressions = [_expression(expression, index, tces, noted) for expression in tces.expressions]
        _note_roles(tces, index, noted)
        row: dict[str, Any] = {
            "key": tces.tces_id,
            "image_id": tces.image_id,
            "source": tces.source,
            "category": tces.category,
            "height": tces.height,
            "width": tces.width,
            "target": candidates.target,
            "candidates": _listed(candidates),
        }
        if picture is not None:
            row |= _shown(picture(tces), tces, noted)
        row["faults"] = list(noted)
        rows += [{**row, **one} for one in expressions] if by_expression else [{**row, "expressions": expressions}]
        faults += [Fault(code, tces.tces_id, text) for code, text in noted.items()]
    schema = truth_features(picture is not None, by_expression=by_expression).arrow_schema
    return pa.Table.from_pylist(rows, schema=schema), faults


def _listed(candidates: Candidates) -> list[dict[str, Any]]:
    return [
        {"instance_id": name, "mask": mask, "iscrowd": crowd}
        for name, mask, crowd in zip(candidates.ids, candidates.masks, candidates.crowds, strict=True)
    ]


def _expression(expression: Expression, index: Index, tces: Tces, noted: dict[str, str]) -> dict[str, Any]:
    """An expression's fields; a donor's mask of another size than the image is left out and noted."""
    operation, name = expression.operation, expression.expression_id
    track: str | None = track_of(expression.role, operation or "")
    if operation is None and track not in ROLES:
        track = None
    donor = None if expression.donor is None else index.donors[expression.donor]
    if donor is not None and tuple(donor["size"]) != (tces.height, tces.width):
        height, width = donor["size"]
        text = f"the donor of {name}: {height} x {width} where {tces.height} x {tces.width} was expected"
        noted["size_mismatch"] = "; ".join(filter(None, [noted.get("size_mismatch"), text]))
        donor = None
    return {
        "expression_id": name,
        "text": expression.text,
        "role": ROLES.index(expression.role),
        "operation": None if operation is None else OPERATIONS.index(operation),
        "family": None if operation is None else FAMILIES.index(FAMILY_OF[operation]),
        "track": None if track is None else TRACKS.index(track),
        "tags": _tags(expression),
        "donor_mask": donor,
    }


def _tags(expression: Expression) -> list[str]:
    """An expression's tags, and the word that stood where its operation belongs and is none."""
    if expression.operation is not None:
        return expression.tags
    found = f"{OPERATION_TAG}{ascii(expression.named)[:60]}"
    return expression.tags if found in expression.tags else [*expression.tags, found]


def _note_roles(tces: Tces, index: Index, noted: dict[str, str]) -> None:
    """Note faults in the roles of the expressions of one set."""
    twice = [e.expression_id for e in tces.expressions if e.expression_id in index.repeated]
    if twice:
        noted["repeated_expression"] = "expressions " + ", ".join(dict.fromkeys(twice))
    unknown = [f"{e.expression_id}: {ascii(e.named)[:60]}" for e in tces.expressions if e.operation is None]
    if unknown:
        noted["unknown_operation"] = "expressions " + "; ".join(unknown[:3])
    roles = Counter(expression.role for expression in tces.expressions)
    missing = [role for role in CORE_ROLES if not roles[role]]
    if missing:
        noted["core_role_missing"] = f"no {' and no '.join(missing)} expression"
    for role in CORE_ROLES:
        if roles[role] > 1:
            ids = ", ".join(e.expression_id for e in tces.expressions if e.role == role)
            text = f"{roles[role]} {role} expressions: {ids}"
            noted["core_role_repeated"] = "; ".join(filter(None, [noted.get("core_role_repeated"), text]))


def _shown(picture: Picture, tces: Tces, noted: dict[str, str]) -> dict[str, Any]:
    """The image columns; an image that the manifest names and that cannot be read is noted, null is no fault."""
    if picture.problem:
        noted["image_missing"] = picture.problem
    elif picture.size is not None and picture.size != (tces.height, tces.width):
        height, width = picture.size
        text = f"an image of {height} x {width} where {tces.height} x {tces.width} was expected"
        noted["image_size_mismatch"] = text
    return {"image": picture.value, "image_sha256": picture.sha256}
