"""What a published dataset holds, counted from its own files: the tables of its card."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench_datasets.benchmarks.instancebench.vocabulary import FAMILY_OF, OPERATIONS, ROLES
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.masks import list_offsets

LEVELS = {
    "level_0": "an object class",
    "level_1": "an attribute or a subtype",
    "level_2": "text in the image",
    "level_3": "where something is",
    "level_4": "a relation or an interaction",
    "dense": "plain nouns with very many instances",
}
"""What each part of PBench asks for."""

_MOST = 15
"""Rows of a table of names, the commonest first."""

Rows = Iterable[tuple[str, str, pa.Table]]
"""Config, split and rows, some at a time."""


@dataclass(frozen=True)
class Tally:
    """A table of counts.

    Attributes:
        title: what it is about.
        heads: of its columns.
        rows: words, and numbers as they are shown.
        note: a sentence below it; may be empty.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def count(benchmark: str, rows: Rows) -> list[Tally]:
    """The tables of a benchmark; none is empty.

    Args:
        benchmark: its name.
        rows: of its main config, as they are published; columns that are not counted may be absent.
    """
    found = {"pbench": _pbench, "instancebench": _instancebench, "pvsg": _pvsg}.get(benchmark, _any)(rows)
    return [tally for tally in found if tally.rows]


COUNTED: dict[str, tuple[str, ...]] = {
    "pbench": ("level", "masks", "expression", "image_sha256"),
    "instancebench": ("source", "category", "image_id", "candidates", "expressions"),
    "pvsg": ("source", "frames_present", "objects", "relations", "relations_left_out"),
}
"""The columns that are counted."""

COUNTED_ELSEWHERE = ("key", "masks")
"""Those of another package's benchmark."""


def _any(rows: Rows) -> list[Tally]:
    found: dict[str, Counter[str]] = {}
    masked = False
    for _, split, table in rows:
        line = found.setdefault(split, Counter())
        line["rows"] += len(table)
        if "masks" in table.column_names:
            masked = True
            counts = np.diff(list_offsets(pa.concat_arrays(table["masks"].chunks)))
            line["masks"] += int(counts.sum())
            line["none"] += int((counts == 0).sum())
    heads = ("split", "rows", *(("masks", "none") if masked else ()))
    lines = [(split, *(f"{line[head]:,}" for head in heads[1:])) for split, line in found.items()]
    return [Tally("Rows", heads, tuple(lines), "`none` counts rows without a mask." if masked else "")]


def _pbench(rows: Rows) -> list[Tally]:
    masks: dict[str, list[int]] = {}
    words: dict[str, int] = {}
    images: dict[str, set[str]] = {}
    for _, _, table in rows:
        names = [PBENCH_LEVELS[k] for k in table["level"].to_pylist()]
        offsets = list_offsets(pa.concat_arrays(table["masks"].chunks))
        for name, n, text in zip(names, (offsets[1:] - offsets[:-1]).tolist(), _texts(table), strict=True):
            masks.setdefault(name, []).append(n)
            words[name] = words.get(name, 0) + len(text.split())
        if "image_sha256" in table.column_names:
            for name, image in zip(names, table["image_sha256"].to_pylist(), strict=True):
                images.setdefault(name, set()).update([image] if image else [])
    hashed = any(images.values())
    lines = []
    for level in (*(level for level in PBENCH_LEVELS if level in masks), "all"):
        some = masks[level] if level != "all" else [n for group in masks.values() for n in group]
        pictures = images.get(level, set()) if level != "all" else set().union(*images.values())
        lines.append(
            (
                level,
                LEVELS.get(level, ""),
                f"{len(some):,}",
                *([f"{len(pictures):,}"] if hashed else []),
                f"{sum(some):,}",
                f"{statistics.mean(some):.1f}",
                f"{max(some):,}",
                f"{some.count(0):,}",
                f"{(words[level] if level != 'all' else sum(words.values())) / len(some):.1f}",
            )
        )
    heads = ("level", "asks for", "rows", *(["images"] if hashed else []), "masks", "a row", "most", "none", "words")
    note = (
        "`a row` is the mean number of masks, `most` the largest; `none` counts rows that nothing answers; `words` is"
        " the mean length of the expressions."
    )
    return [Tally("Levels", heads, tuple(lines), note)]


def _texts(table: pa.Table) -> list[str]:
    return [text or "" for text in table["expression"].to_pylist()]


def _instancebench(rows: Rows) -> list[Tally]:
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
        Tally("Categories", ("category", "sets"), _commonest(categories), _more(categories)),
    ]  # fmt: skip


_BUCKETS = ("1", "2", "3-5", "6-10", "more than 10")


def _bucket(n: int) -> str:
    return str(n) if n < 3 else "3-5" if n < 6 else "6-10" if n < 11 else "more than 10"


def _pvsg(rows: Rows) -> list[Tally]:
    found: dict[str, Counter[str]] = {}
    predicates: Counter[str] = Counter()
    categories: Counter[str] = Counter()
    heads = ("split, source", "videos", "frames", "objects", "relations", "spans", "left out")
    for _, split, table in rows:
        for row in table.to_pylist():
            line = found.setdefault(f"{split}, {row['source']}", Counter())
            line["videos"] += 1
            line["frames"] += row["frames_present"] or 0
            line["objects"] += len(row["objects"])
            line["relations"] += len(row["relations"])
            line["spans"] += sum(len(item["spans"]) for item in row["relations"])
            line["left out"] += len(row["relations_left_out"])
            predicates.update(PREDICATES[item["predicate"]] for item in row["relations"])
            categories.update(CATEGORIES[item["category"]] for item in row["objects"])
    lines = [(name, *(f"{line[head]:,}" for head in heads[1:])) for name, line in sorted(found.items())]
    if len(lines) > 1:
        lines.append(("all", *(f"{sum(line[head] for line in found.values()):,}" for head in heads[1:])))
    return [
        Tally(
            "Sources", heads, tuple(lines),
            "`relations` are those that metrics count; `left out` are those with a predicate outside the vocabulary.",
        ),
        Tally("Predicates", ("predicate", "relations"), _commonest(predicates), _more(predicates)),
        Tally("Categories", ("category", "objects"), _commonest(categories), _more(categories)),
    ]  # fmt: skip


def _commonest(names: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    ranked: Sequence[tuple[str, int]] = sorted(names.items(), key=lambda item: (-item[1], item[0]))
    return tuple((name, f"{n:,}") for name, n in ranked[:_MOST])


def _more(names: Mapping[str, int]) -> str:
    return f"The {_MOST} commonest of {len(names)}." if len(names) > _MOST else ""


def size_category(rows: int) -> str:
    """The Hub's word for a number of rows.

    Example:
        >>> size_category(35), size_category(6338), size_category(20_000_000)
        ('n<1K', '1K<n<10K', '10M<n<100M')
    """
    if rows < 1000:
        return "n<1K"
    names = ("1K", "10K", "100K", "1M", "10M", "100M", "1B")
    k = min(len(str(rows)) - 4, len(names) - 2)
    return f"{names[k]}<n<{names[k + 1]}"
