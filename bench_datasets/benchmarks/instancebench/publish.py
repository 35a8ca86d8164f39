"""InstanceBench as a published dataset: columns, counts, preview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from datasets import Features, Image, List, Value

from bench_datasets.benchmarks.instancebench.vocabulary import FAMILY_OF, OPERATIONS, ROLES
from bench_datasets.hub import drawing
from bench_datasets.hub.dataset_form import (
    MASK,
    DatasetForm,
    Part,
    Rows,
    Tally,
    most_frequent,
    note_of_others,
    picture,
    row_size,
    valid_masks,
)
from bench_datasets.masks import list_offsets

_COLUMNS = {
    "key": "The set's id.",
    "image_id": "The source's id of the image; sets of one image have it in common.",
    "source": "Which family of images it is from, `coco` or `openimages`.",
    "category": "The category of the target and of the other candidates.",
    "height": "Height of the image in pixels.",
    "width": "Width of the image in pixels.",
    "target": "Position of the target in `candidates`, from 0.",
    "candidates": f"The category's instances in the image, the target among them; a mask is a {MASK}.",
    "expressions": "The expressions that all mean the target, each by another path.",
    "expression_id": "The expression's id.",
    "text": "The expression itself.",
    "role": "What the expression is in its set; `minimal` and `variant` are the core roles.",
    "operation": "The operation of referential logic that the expression asks for; null where it is unknown.",
    "family": "The operation's family.",
    "track": "What has changed between the expression and the minimal one.",
    "tags": "Finer names of the operation, such as `spatial_relation`.",
    "donor_mask": "Mask of the target of the expression that a text swap asks for instead; mostly null.",
}


def _parts(found: Sequence[str], with_images: bool) -> Iterator[Part]:
    del with_images
    for config in ("default", "expressions"):
        for split in found:
            yield Part(config, split, f"{config}/{split}", None, split, (config, split))


def _count(rows: Rows) -> list[Tally]:
    operations: dict[str, Counter[str]] = {}
    sources: dict[str, Counter[str]] = {}
    categories: Counter[str] = Counter()
    images: dict[str, set[str]] = {}
    candidates: Counter[str] = Counter()
    for _, split, table in rows:
        for row in table.drop_columns("candidates").to_pylist():
            source = sources.setdefault(f"{split}, {row['source']}", Counter())
            source["sets"] += 1
            source["expressions"] += len(row["expressions"])
            images.setdefault(f"{split}, {row['source']}", set()).add(row["image_id"])
            categories[row["category"]] += 1
            for item in row["expressions"]:
                name = "unknown" if item["operation"] is None else OPERATIONS[item["operation"]]
                operations.setdefault(name, Counter())[ROLES[item["role"]]] += 1
        offsets = list_offsets(pa.concat_arrays(table["candidates"].chunks))
        candidates.update(_bucket(n) for n in (offsets[1:] - offsets[:-1]).tolist())
    order = [name for name in (*OPERATIONS, "unknown") if name in operations]
    by_operation = [
        (
            name,
            FAMILY_OF.get(name, ""),
            f"{operations[name].total():,}",
            *(f"{operations[name][role]:,}" for role in ROLES),
        )
        for name in order
    ]
    if order:
        totals = [sum(operations[name][role] for name in order) for role in ROLES]
        by_operation.append(("all", "", f"{sum(totals):,}", *(f"{n:,}" for n in totals)))
    by_source = [
        (name, f"{found['sets']:,}", f"{len(images[name]):,}", f"{found['expressions']:,}")
        for name, found in sorted(sources.items())
    ]
    sizes = [(name, f"{candidates[name]:,}") for name in _BUCKETS if candidates[name]]
    return [
        Tally(
            "Operations", ("operation", "family", "expressions", *ROLES), tuple(by_operation),
            "`minimal` and `variant` are the core roles, one of each a set.",
        ),
        Tally("Sources", ("split, source", "sets", "images", "expressions"), tuple(by_source)),
        Tally(
            "Candidates", ("candidates", "sets"), tuple(sizes),
            "A set with one candidate says nothing about identity; identity numbers are over the others.",
        ),
        Tally("Categories", ("category", "sets"), most_frequent(categories), note_of_others(categories)),
    ]  # fmt: skip


_BUCKETS = ("1", "2", "3-5", "6-10", "more than 10")


def _bucket(n: int) -> str:
    return str(n) if n < 3 else "3-5" if n < 6 else "6-10" if n < 11 else "more than 10"


def _draw(row: Mapping[str, Any], ground: bytes | None) -> dict[str, Any]:
    masks, kept = valid_masks([candidate["mask"] for candidate in row["candidates"] or []])
    target = kept.index(row["target"]) if row["target"] in kept else None
    image = drawing.overlay(ground, row_size(row), masks, target=target)
    expressions = sorted(row["expressions"] or [], key=lambda item: ROLES.index(_role(item["role"])))
    return {
        **{name: row[name] for name in ("key", "source", "category")},
        "expressions": [item["text"] for item in expressions],
        "candidates": len(masks),
        "overlay": picture(image, row["key"]),
    }


def _role(value: Any) -> str:
    return ROLES[value] if isinstance(value, int) else str(value)


def _tile(row: Mapping[str, Any]) -> tuple[bytes, str, str]:
    texts = row["expressions"] or [row["category"]]
    return row["overlay"]["bytes"], texts[0], texts[1] if len(texts) > 1 else row["category"]


FORM = DatasetForm(
    configs={
        "default": "a set of expressions about one instance of an image",
        "expressions": "an expression of such a set, with the set's other columns",
    },
    columns=_COLUMNS,
    preview=Features(
        {
            "key": Value("string"),
            "source": Value("string"),
            "category": Value("string"),
            "expressions": List(Value("string")),
            "candidates": Value("int32"),
            "overlay": Image(),
        }
    ),
    draw=_draw,
    tile=_tile,
    count=_count,
    counted=("source", "category", "image_id", "candidates", "expressions"),
    parts=_parts,
    folders=("default", "expressions"),
)
