"""PVSG as a published dataset: columns, counts, preview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.parquet as pq
from datasets import Features, Image, List, Value

from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
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
from bench_datasets.hub.export import Truth
from bench_datasets.hub.shards import Shard

_TEXTS = List(Value("string"))

_COLUMNS = {
    "key": "The video's id.",
    "source": "Where the video is from: `vidor`, `epic_kitchen` or `ego4d`.",
    "height": "Height of the frames in pixels.",
    "width": "Width of the frames in pixels.",
    "fps": "Frames a second.",
    "num_frames": "Frames that the annotation declares.",
    "frames_present": "Frames that have a mask file.",
    "objects": "The annotated objects, visible or not.",
    "tubes": f"For each of `objects` the frames (from 0) where it is visible and its mask in each; {MASK}.",
    "relations": "Who does what to whom and when; `spans` are [first, last] in frames from 0, both ends in.",
    "relations_left_out": "Relations that no metric counts, as the source has them, each with the reason.",
    "captions": "Descriptions of parts of the video.",
    "qa_pairs": "Questions about the video with their answers.",
    "summary": "What happens, in a few sentences.",
    "video": "The video file's place below the source's root; null where it is not there.",
    "video_id": "The video's id.",
    "frame": "The frame's number in the video, from 0.",
    "object_ids": "The objects visible in the frame.",
    "categories": "The category of each of them.",
    "masks": f"The mask of each of them; {MASK}.",
}


def _parts(found: Sequence[str], with_images: bool) -> Iterator[Part]:
    """Videos, and frames where images are published; the source calls the split `test` `val`."""
    for config in ("videos", *(["frames"] if with_images else [])):
        for split in found:
            named = "val" if split == "test" else split
            yield Part(config, split, f"{config}/{split}", None, named, (config, split))


def _count(rows: Rows) -> list[Tally]:
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
        Tally("Predicates", ("predicate", "relations"), most_frequent(predicates), note_of_others(predicates)),
        Tally("Categories", ("category", "objects"), most_frequent(categories), note_of_others(categories)),
    ]  # fmt: skip


def _draw(row: Mapping[str, Any], ground: bytes | None) -> dict[str, Any]:
    frame = _fullest(row)
    visible = [
        (item, tube["masks"][tube["frames"].index(frame)])
        for item, tube in zip(row["objects"], row["tubes"], strict=True)
        if frame in tube["frames"]
    ]
    masks, kept = valid_masks([mask for _, mask in visible])
    names = {item["object_id"]: CATEGORIES[item["category"]] for item in row["objects"]}
    drawn = [names[visible[k][0]["object_id"]] for k in kept]
    held = [
        f"{names.get(item['subject_id'], '?')} {PREDICATES[item['predicate']]} {names.get(item['object_id'], '?')}"
        for item in row["relations"]
        if any(first <= frame <= last for first, last in item["spans"])
    ]
    image = drawing.overlay(ground, row_size(row), masks, names=drawn if len(drawn) <= 16 else ())
    return {
        **{name: row[name] for name in ("key", "source")},
        "frame": frame,
        "objects": drawn,
        "relations": list(dict.fromkeys(held)),
        "overlay": picture(image, row["key"]),
    }


def _fullest(row: Mapping[str, Any]) -> int:
    """The frame where most objects are visible, the first of equals; 0 where none is."""
    counts: dict[int, int] = {}
    for tube in row["tubes"] or []:
        for frame in tube["frames"]:
            counts[frame] = counts.get(frame, 0) + 1
    return min(counts, key=lambda frame: (-counts[frame], frame), default=0)


def _grounds(
    truth: Truth, written: Mapping[Part, list[Shard]], part: Part, chosen: Sequence[Mapping[str, Any]]
) -> dict[str, bytes]:
    """The images of the frames that are drawn, by video."""
    wanted = {(row["key"], _fullest(row)) for row in chosen}
    found: dict[str, bytes] = {}
    for video, frame, image in _frame_images(truth, written, part, wanted):
        if (video, frame) in wanted and image is not None and image.get("bytes"):
            found[video] = image["bytes"]
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


def _tile(row: Mapping[str, Any]) -> tuple[bytes, str, str]:
    text = "; ".join(row["relations"][:2]) or ", ".join(row["objects"])
    return row["overlay"]["bytes"], text, f"{row['source']}, frame {row['frame']}"


FORM = DatasetForm(
    configs={
        "videos": "a video: its objects, their masks in every frame, and their relations",
        "frames": "a frame of a video, with its image and masks",
    },
    columns=_COLUMNS,
    preview=Features(
        {
            "key": Value("string"),
            "source": Value("string"),
            "frame": Value("int32"),
            "objects": _TEXTS,
            "relations": _TEXTS,
            "overlay": Image(),
        }
    ),
    draw=_draw,
    tile=_tile,
    count=_count,
    counted=("source", "frames_present", "objects", "relations", "relations_left_out"),
    parts=_parts,
    folders=("videos", "frames"),
    default_config="videos",
    grounds=_grounds,
    rows_at_a_time=1,
    built_configs=("videos",),
)
