"""`DatasetForm`: texts and columns of a benchmark's published dataset, with defaults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from datasets import Features, Image, Value

from bench_datasets.hub import drawing
from bench_datasets.masks import MASK_TYPE, MaskColumn, list_offsets

if TYPE_CHECKING:
    from bench_datasets.hub.export import Truth
    from bench_datasets.hub.shards import Shard

MASK = "COCO compressed RLE: `size` [height, width] and `counts`"
"""Words about a mask for the meaning of a column."""

_MOST = 15
"""Rows of a table of names, the most frequent first."""

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


@dataclass(frozen=True)
class Part:
    """Some rows that are written into files of their own.

    Attributes:
        config: of the published dataset.
        split: likewise.
        stem: what the files' names begin with, `default/test`.
        alias: a further config that is these rows alone, or None.
        source_split: what the source calls the split.
        opened: config and split of the builder.
    """

    config: str
    split: str
    stem: str
    alias: str | None
    source_split: str
    opened: tuple[str, str]


def default_parts(found: Sequence[str], with_images: bool) -> Iterator[Part]:
    """One config `default` with the source's splits."""
    del with_images
    for split in found:
        yield Part("default", split, f"default/{split}", None, split, ("default", split))


Grounds = Callable[["Truth", Mapping[Part, "list[Shard]"], Part, Sequence[Mapping[str, Any]]], Mapping[str, bytes]]
"""Image files by row key, for rows that hold no image of their own."""


@dataclass(frozen=True)
class DatasetForm:
    """Texts and columns of a benchmark's published dataset.

    Attributes:
        configs: meaning of a row of each config.
        columns: meaning of each column.
        preview: columns of the config `preview`.
        draw: makes a preview row of a ground truth row and the bytes of its image, or `None`.
        tile: the overlay's bytes and two lines of words of a preview row, for the card's picture.
        count: the tables of counts for the card.
        counted: columns that `count` reads.
        parts: files by part of the source, from the names of its parts and whether images are published.
        folders: folders in which an earlier publication may have left files.
        default_config: the config that is loaded without a name; the first one for `None`.
        grounds: images of preview rows by row key, where the rows hold none.
        rows_at_a_time: rows that are read at a time; with pixels a quarter of that.
        built_configs: configs that are built into the cache instead of streamed.
        complete: whether the form knows every column and always draws over images.
    """

    configs: Mapping[str, str]
    columns: Mapping[str, str]
    preview: Features
    draw: Callable[[Mapping[str, Any], bytes | None], dict[str, Any]]
    tile: Callable[[Mapping[str, Any]], tuple[bytes, str, str]]
    count: Callable[[Rows], list[Tally]]
    counted: tuple[str, ...]
    parts: Callable[[Sequence[str], bool], Iterator[Part]] = default_parts
    folders: tuple[str, ...] = ("default",)
    default_config: str | None = None
    grounds: Grounds | None = None
    rows_at_a_time: int = 64
    built_configs: tuple[str, ...] = ()
    complete: bool = True


def valid_masks(masks: Sequence[Any]) -> tuple[MaskColumn, list[int]]:
    """The masks that can be drawn, and their positions."""
    column = MaskColumn.from_arrow(pa.array(masks, MASK_TYPE))
    problems = column.problems()
    keep = [k for k in range(len(column)) if k not in problems]
    return column.take(np.array(keep, np.int64)), keep


def row_size(row: Mapping[str, Any]) -> tuple[int, int] | None:
    """Height and width of a row's image, if they are known."""
    height, width = row.get("height"), row.get("width")
    return None if height is None or width is None else (int(height), int(width))


def picture(image: Any, key: str) -> dict[str, Any]:
    """A drawn picture as a value of an image column."""
    return {"bytes": drawing.png(image), "path": f"{key.replace('/', '_')}.png"}


def most_frequent(names: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    """The most frequent names with their counts, as rows of a table."""
    ranked: Sequence[tuple[str, int]] = sorted(names.items(), key=lambda item: (-item[1], item[0]))
    return tuple((name, f"{n:,}") for name, n in ranked[:_MOST])


def note_of_others(names: Mapping[str, int]) -> str:
    """A sentence about names that `most_frequent` leaves out; empty if there are none."""
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


_COLUMNS = {
    "key": "The row's name.",
    "id": "The source's id.",
    "split": "The split that the row is in.",
    "expression": "The text that says what to find.",
    "masks": f"The row's masks; {MASK}.",
    "height": "Height in pixels.",
    "width": "Width in pixels.",
}

_TEXTS = ("expression", "text", "caption", "question")
"""Columns that say what a row is about, the likeliest first."""


def _count(rows: Rows) -> list[Tally]:
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


def _draw(row: Mapping[str, Any], ground: bytes | None) -> dict[str, Any]:
    masks, _ = valid_masks(row["masks"] or [])
    size = row_size(row)
    if size is None and len(masks):
        size = int(masks.heights[0]), int(masks.widths[0])
    return {
        "key": row["key"],
        "text": next((str(row[name]) for name in _TEXTS if row.get(name) is not None), None),
        "count": len(masks),
        "overlay": picture(drawing.overlay(ground, size, masks), row["key"]),
    }


def _tile(row: Mapping[str, Any]) -> tuple[bytes, str, str]:
    return row["overlay"]["bytes"], row["text"] or row["key"], many_masks(row["count"])


def many_masks(count: int) -> str:
    """A number of masks in words."""
    return f"{count} mask" + "s" * (count != 1)


def default_form(title: str, columns: Mapping[str, str]) -> DatasetForm:
    """The form of a benchmark that declares none: rows with a column `masks` are drawn.

    Args:
        title: of the benchmark.
        columns: meanings of its own columns.
    """
    return DatasetForm(
        configs={"default": f"a row of {title}"},
        columns={**_COLUMNS, **columns},
        preview=Features(key=Value("string"), text=Value("string"), count=Value("int32"), overlay=Image()),
        draw=_draw,
        tile=_tile,
        count=_count,
        counted=("key", "masks"),
        complete=False,
    )
