"""The config `preview` of a published dataset: a few rows as pictures, small enough to look through in a browser."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Features, Image, List, Value

from bench_datasets.benchmarks.instancebench.vocabulary import ROLES
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.hub import drawing
from bench_datasets.hub.export import Part, Truth
from bench_datasets.hub.shards import Shard, read_shards, write_shards
from bench_datasets.masks import MASK_TYPE, MaskColumn

MOST_ROWS = 256
"""Rows of the preview."""

TILES = 12
"""Rows that the card's picture shows."""

_TEXTS = List(Value("string"))

FEATURES: dict[str, Features] = {
    "pbench": Features(
        {
            "key": Value("string"),
            "level": ClassLabel(names=list(PBENCH_LEVELS)),
            "expression": Value("string"),
            "count": Value("int32"),
            "overlay": Image(),
        }
    ),
    "instancebench": Features(
        {
            "key": Value("string"),
            "source": Value("string"),
            "category": Value("string"),
            "expressions": _TEXTS,
            "candidates": Value("int32"),
            "overlay": Image(),
        }
    ),
    "pvsg": Features(
        {
            "key": Value("string"),
            "source": Value("string"),
            "frame": Value("int32"),
            "objects": _TEXTS,
            "relations": _TEXTS,
            "overlay": Image(),
        }
    ),
}
"""The preview's columns."""

ANY = Features(
    {"key": Value("string"), "text": Value("string"), "count": Value("int32"), "overlay": Image()},
)
"""Those of another package's benchmark whose rows have masks."""

_SAYS = ("expression", "text", "caption", "question")
"""Columns that say what a row is about, the likeliest first."""


@dataclass(frozen=True)
class Preview:
    """What was made.

    Attributes:
        shards: the config's files by split.
        picture: a PNG of some rows; None where there is nothing to draw.
        over_images: whether the masks are drawn over the images.
    """

    shards: dict[str, list[Shard]]
    picture: bytes | None
    over_images: bool


Grounds = Mapping[tuple[str, int], bytes]
"""Image files by video and frame."""


def make_preview(truth: Truth, written: Mapping[Part, list[Shard]], folder: Path) -> Preview:
    """Draw rows from all over the dataset.

    Args:
        truth: what is published. Masks are drawn over the images where these are published, too, or are our own.
        written: the files of its parts.
        folder: the repo's folder on this machine.
    """
    over, grounded = truth.with_images or truth.is_sample, truth.benchmark in FEATURES
    parts = [part for part in written if part.config in ("default", "videos") and written[part]]
    if truth.benchmark not in FEATURES:
        parts = [part for part in parts if "masks" in pq.read_schema(written[part][0].file).names]
    shards: dict[str, list[Shard]] = {}
    tiles: list[tuple[bytes, str, str]] = []
    for split, group in itertools.groupby(parts, lambda part: part.split):
        some = list(group)
        rows: list[dict[str, Any]] = []
        for part in some:
            quota = MOST_ROWS // max(1, len(parts))
            chosen = list(_chosen(truth, part, written[part], quota, over))
            grounds = _frames(truth, written, part, chosen) if over and truth.benchmark == "pvsg" else {}
            grounded = grounded or any(_ground(row, over) is not None for row in chosen)
            drawn = [_DRAW.get(truth.benchmark, _any)(row, over, grounds) for row in chosen]
            rows += drawn
            shown = [row for row in drawn if row.get("count") != 0 and row.get("objects") != []]
            tiles += [_tile(truth.benchmark, row) for row in _spread(shown, max(1, TILES // len(parts)))]
        features = FEATURES.get(truth.benchmark, ANY)
        table = pa.Table.from_pylist(rows, schema=features.arrow_schema)
        shards[split] = write_shards([table], features, folder, f"preview/{split}")
    return Preview(shards, drawing.mosaic(tiles[:TILES]) if tiles else None, over and grounded)


def _spread(items: Sequence[Any], most: int) -> list[Any]:
    """Some of them, from the first on and at even distances."""
    n = min(most, len(items))
    return [items[k * len(items) // n] for k in range(n)]


def _chosen(truth: Truth, part: Part, shards: Sequence[Shard], most: int, over: bool) -> Iterator[dict[str, Any]]:
    """Rows of a part at even distances, as plain values with the labels' names as numbers."""
    wanted = set(_spread(range(sum(shard.rows for shard in shards)), most))
    if over and not truth.with_images and truth.benchmark != "pvsg":  # the pictures are ours, and not among the files
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


def _sound(masks: Sequence[Any]) -> tuple[MaskColumn, list[int]]:
    """The masks that can be drawn, and their positions."""
    column = MaskColumn.from_arrow(pa.array(masks, MASK_TYPE))
    problems = column.problems()
    keep = [k for k in range(len(column)) if k not in problems]
    return column.take(np.array(keep, np.int64)), keep


def _ground(row: Mapping[str, Any], over: bool) -> bytes | None:
    image = row.get("image") if over else None
    return None if image is None else image.get("bytes")


def _picture(image: Any, name: str) -> dict[str, Any]:
    return {"bytes": drawing.png(image), "path": f"{name}.png"}


def _size(row: Mapping[str, Any]) -> tuple[int, int] | None:
    height, width = row.get("height"), row.get("width")
    return None if height is None or width is None else (int(height), int(width))


def _pbench(row: Mapping[str, Any], over: bool, grounds: Grounds) -> dict[str, Any]:
    del grounds
    masks, _ = _sound(row["masks"] or [])
    image = drawing.overlay(_ground(row, over), _size(row), masks)
    return {
        **{name: row[name] for name in ("key", "level", "expression")},
        "count": len(masks),
        "overlay": _picture(image, row["key"].replace("/", "_")),
    }


def _any(row: Mapping[str, Any], over: bool, grounds: Grounds) -> dict[str, Any]:
    del grounds
    masks, _ = _sound(row["masks"] or [])
    size = _size(row)
    if size is None and len(masks):
        size = int(masks.heights[0]), int(masks.widths[0])
    return {
        "key": row["key"],
        "text": next((str(row[name]) for name in _SAYS if row.get(name) is not None), None),
        "count": len(masks),
        "overlay": _picture(drawing.overlay(_ground(row, over), size, masks), row["key"].replace("/", "_")),
    }


def _instancebench(row: Mapping[str, Any], over: bool, grounds: Grounds) -> dict[str, Any]:
    del grounds
    masks, kept = _sound([candidate["mask"] for candidate in row["candidates"] or []])
    target = kept.index(row["target"]) if row["target"] in kept else None
    image = drawing.overlay(_ground(row, over), _size(row), masks, target=target)
    expressions = sorted(row["expressions"] or [], key=lambda item: ROLES.index(_role(item["role"])))
    return {
        **{name: row[name] for name in ("key", "source", "category")},
        "expressions": [item["text"] for item in expressions],
        "candidates": len(masks),
        "overlay": _picture(image, row["key"]),
    }


def _pvsg(row: Mapping[str, Any], over: bool, grounds: Grounds) -> dict[str, Any]:
    frame = _fullest(row)
    visible = [
        (item, tube["masks"][tube["frames"].index(frame)])
        for item, tube in zip(row["objects"], row["tubes"], strict=True)
        if frame in tube["frames"]
    ]
    masks, kept = _sound([mask for _, mask in visible])
    names = {item["object_id"]: CATEGORIES[item["category"]] for item in row["objects"]}
    drawn = [names[visible[k][0]["object_id"]] for k in kept]
    held = [
        f"{names.get(item['subject_id'], '?')} {PREDICATES[item['predicate']]} {names.get(item['object_id'], '?')}"
        for item in row["relations"]
        if any(first <= frame <= last for first, last in item["spans"])
    ]
    image = drawing.overlay(
        grounds.get((row["key"], frame)) if over else None, _size(row), masks, names=drawn if len(drawn) <= 16 else ()
    )
    return {
        **{name: row[name] for name in ("key", "source")},
        "frame": frame,
        "objects": drawn,
        "relations": list(dict.fromkeys(held)),
        "overlay": _picture(image, row["key"]),
    }


_DRAW: dict[str, Callable[[Mapping[str, Any], bool, Grounds], dict[str, Any]]] = {
    "pbench": _pbench,
    "instancebench": _instancebench,
    "pvsg": _pvsg,
}


def _role(value: Any) -> str:
    return ROLES[value] if isinstance(value, int) else str(value)


def _fullest(row: Mapping[str, Any]) -> int:
    """The frame where most objects are visible, the first of equals; 0 where none is."""
    counts: dict[int, int] = {}
    for tube in row["tubes"] or []:
        for frame in tube["frames"]:
            counts[frame] = counts.get(frame, 0) + 1
    return min(counts, key=lambda frame: (-counts[frame], frame), default=0)


def _frames(
    truth: Truth, written: Mapping[Part, list[Shard]], part: Part, chosen: Sequence[Mapping[str, Any]]
) -> dict[tuple[str, int], bytes]:
    """The images of the frames that are drawn."""
    wanted = {(row["key"], _fullest(row)) for row in chosen}
    found: dict[tuple[str, int], bytes] = {}
    for video, frame, image in _frame_images(truth, written, part, wanted):
        if (video, frame) in wanted and image is not None and image.get("bytes"):
            found[video, frame] = image["bytes"]
        if len(found) == len(wanted):
            break
    return found


def _frame_images(
    truth: Truth, written: Mapping[Part, list[Shard]], part: Part, wanted: set[tuple[str, int]]
) -> Iterator[tuple[str, int, Any]]:
    names = ("video_id", "frame", "image")
    if not truth.with_images:
        for row in truth.open("frames", images=True)[part.split].with_format("arrow").iter(batch_size=1):
            yield tuple(row[name][0].as_py() for name in names)
        return
    for shard in (
        shard for p, shards in written.items() if (p.config, p.split) == ("frames", part.split) for shard in shards
    ):
        with pq.ParquetFile(shard.file) as file:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=list(names[:2]))
                if wanted & set(zip(*(table[name].to_pylist() for name in names[:2]), strict=True)):
                    for row in file.read_row_group(group, columns=list(names)).to_pylist():
                        yield tuple(row[name] for name in names)


def _tile(benchmark: str, row: Mapping[str, Any]) -> tuple[bytes, str, str]:
    """A row's overlay with two lines of words for the card's picture."""
    data = row["overlay"]["bytes"]
    if benchmark not in FEATURES:
        return data, row["text"] or row["key"], f"{row['count']} mask" + "s" * (row["count"] != 1)
    if benchmark == "pbench":
        many = f"{row['count']} mask" + "s" * (row["count"] != 1)
        return data, row["expression"], f"{PBENCH_LEVELS[row['level']]}, {many}"
    if benchmark == "instancebench":
        texts = row["expressions"] or [row["category"]]
        return data, texts[0], texts[1] if len(texts) > 1 else row["category"]
    return data, "; ".join(row["relations"][:2]) or ", ".join(row["objects"]), f"{row['source']}, frame {row['frame']}"
