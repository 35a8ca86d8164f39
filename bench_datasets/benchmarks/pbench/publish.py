"""PBench as a published dataset: columns, counts, preview."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from datasets import ClassLabel, Features, Image, Value

from bench_datasets.benchmarks.pbench.schema import LEVELS
from bench_datasets.hub import drawing
from bench_datasets.hub.dataset_form import (
    MASK,
    DatasetForm,
    Part,
    Rows,
    Tally,
    many_masks,
    picture,
    row_size,
    valid_masks,
)
from bench_datasets.masks import list_offsets

LEVEL_MEANINGS = {
    "level_0": "an object class",
    "level_1": "an attribute or a subtype",
    "level_2": "text in the image",
    "level_3": "where something is",
    "level_4": "a relation or an interaction",
    "dense": "plain nouns with very many instances",
}
"""What each part of PBench asks for."""

_COLUMNS = {
    "key": "The row's name, `<level>/<id>`, with `#2`, `#3`, ... behind an id that the level has had before.",
    "id": "The source's id.",
    "level": "The level, or `dense`.",
    "expression": "The text that says what to find.",
    "masks": f"The mask of everything that the expression names; {MASK}.",
    "count": "How many masks the source says there are.",
    "height": "Height of the image in pixels; null where there are neither masks nor an image.",
    "width": "Width of the image in pixels; null where there are neither masks nor an image.",
}


def _parts(found: Sequence[str], with_images: bool) -> Iterator[Part]:
    """The source's own layout, so that `load_dataset("pbench", data_dir=...)` reads the copy as it reads the source."""
    del with_images
    for level in (level for level in LEVELS if level in found):
        yield Part("default", "test", f"data/{level}", level, level, (level, "test"))


def _count(rows: Rows) -> list[Tally]:
    masks: dict[str, list[int]] = {}
    words: dict[str, int] = {}
    images: dict[str, set[str]] = {}
    for _, _, table in rows:
        names = [LEVELS[k] for k in table["level"].to_pylist()]
        offsets = list_offsets(pa.concat_arrays(table["masks"].chunks))
        for name, n, text in zip(names, (offsets[1:] - offsets[:-1]).tolist(), _texts(table), strict=True):
            masks.setdefault(name, []).append(n)
            words[name] = words.get(name, 0) + len(text.split())
        if "image_sha256" in table.column_names:
            for name, image in zip(names, table["image_sha256"].to_pylist(), strict=True):
                images.setdefault(name, set()).update([image] if image else [])
    hashed = any(images.values())
    lines = []
    for level in (*(level for level in LEVELS if level in masks), "all"):
        some = masks[level] if level != "all" else [n for group in masks.values() for n in group]
        pictures = images.get(level, set()) if level != "all" else set().union(*images.values())
        lines.append(
            (
                level,
                LEVEL_MEANINGS.get(level, ""),
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


def _draw(row: Mapping[str, Any], ground: bytes | None) -> dict[str, Any]:
    masks, _ = valid_masks(row["masks"] or [])
    return {
        **{name: row[name] for name in ("key", "level", "expression")},
        "count": len(masks),
        "overlay": picture(drawing.overlay(ground, row_size(row), masks), row["key"]),
    }


def _tile(row: Mapping[str, Any]) -> tuple[bytes, str, str]:
    return row["overlay"]["bytes"], row["expression"], f"{LEVELS[row['level']]}, {many_masks(row['count'])}"


FORM = DatasetForm(
    configs={"default": "an expression about an image, with the mask of everything that it names"},
    columns=_COLUMNS,
    preview=Features(
        {
            "key": Value("string"),
            "level": ClassLabel(names=list(LEVELS)),
            "expression": Value("string"),
            "count": Value("int32"),
            "overlay": Image(),
        }
    ),
    draw=_draw,
    tile=_tile,
    count=_count,
    counted=("level", "masks", "expression", "image_sha256"),
    parts=_parts,
    folders=("data",),
)
