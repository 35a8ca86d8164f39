"""The config `preview` of a published dataset: a few rows as pictures, small enough to look through in a browser."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench_datasets.benchmark import get_benchmark
from bench_datasets.hub import drawing
from bench_datasets.hub.dataset_form import Part
from bench_datasets.hub.export import Truth
from bench_datasets.hub.shards import Shard, read_shards, write_shards

MOST_ROWS = 256
"""Rows of the preview."""

TILES = 12
"""Rows that the card's picture shows."""


@dataclass(frozen=True)
class Preview:
    """The preview images that were made.

    Attributes:
        shards: the config's files by split.
        picture: a PNG of some rows; None where there is nothing to draw.
        over_images: whether the masks are drawn over the images.
    """

    shards: dict[str, list[Shard]]
    picture: bytes | None
    over_images: bool


def make_preview(truth: Truth, written: Mapping[Part, list[Shard]], folder: Path) -> Preview:
    """Draw rows from all over the dataset.

    Args:
        truth: what is published. Masks are drawn over the images where these are published, too, or are our own.
        written: the files of its parts.
        folder: the repo's folder on this machine.
    """
    form = get_benchmark(truth.benchmark).dataset_form()
    over, grounded = truth.with_images or truth.is_sample, form.complete
    parts = [part for part in written if part.config == truth.parts[0].config and written[part]]
    if not form.complete:
        parts = [part for part in parts if "masks" in pq.read_schema(written[part][0].file).names]
    shards: dict[str, list[Shard]] = {}
    tiles: list[tuple[bytes, str, str]] = []
    for split, group in itertools.groupby(parts, lambda part: part.split):
        some = list(group)
        rows: list[dict[str, Any]] = []
        for part in some:
            quota = MOST_ROWS // max(1, len(parts))
            from_source = over and form.grounds is None and not truth.with_images  # the images are not in the files
            chosen = list(_chosen(truth, part, written[part], quota, from_source=from_source))
            if over and form.grounds is not None:
                grounds = dict(form.grounds(truth, written, part, chosen))
            else:
                grounds = {row["key"]: image for row in chosen if (image := _ground(row, over)) is not None}
            grounded = grounded or bool(grounds)
            drawn = [form.draw(row, grounds.get(row["key"])) for row in chosen]
            rows += drawn
            shown = [row for row in drawn if row.get("count") != 0 and row.get("objects") != []]
            tiles += [form.tile(row) for row in _spread(shown, max(1, TILES // len(parts)))]
        table = pa.Table.from_pylist(rows, schema=form.preview.arrow_schema)
        shards[split] = write_shards([table], form.preview, folder, f"preview/{split}")
    return Preview(shards, drawing.mosaic(tiles[:TILES]) if tiles else None, over and grounded)


def _spread(items: Sequence[Any], most: int) -> list[Any]:
    """Some of them, from the first on and at even distances."""
    n = min(most, len(items))
    return [items[k * len(items) // n] for k in range(n)]


def _chosen(
    truth: Truth, part: Part, shards: Sequence[Shard], most: int, *, from_source: bool
) -> Iterator[dict[str, Any]]:
    """Rows of a part at even distances, as plain values with the labels' names as numbers."""
    wanted = set(_spread(range(sum(shard.rows for shard in shards)), most))
    if from_source:
        data = truth.open(part.opened[0], images=True)[part.opened[1]]
        tables: Iterator[Any] = data.with_format("arrow").iter(batch_size=16)
    else:
        tables = read_shards(shards)
    first = 0
    for table in tables:
        here = [k for k in range(len(table)) if first + k in wanted]
        first += len(table)
        if here:
            yield from pa.table(table).take(here).to_pylist()


def _ground(row: Mapping[str, Any], over: bool) -> bytes | None:
    image = row.get("image") if over else None
    return None if image is None else image.get("bytes")
