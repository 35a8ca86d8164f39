"""A published copy of PVSG: rows of videos and of frames, checked as the annotation and the masks of a source are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from bench_datasets.benchmarks.pvsg.annotation import SOURCES, VideoEntry, parse_entry
from bench_datasets.benchmarks.pvsg.truth import frame_features, truth_features
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.data.published_copy import IMAGE, Beside, CopyShard, check_faults, read_batches
from bench_datasets.data.source import Access
from bench_datasets.faults import BenchError, Fault
from bench_datasets.masks import MaskColumn, list_offsets, list_values

VIDEO_LABELS = truth_features()
"""The columns that a copy's files of videos must have."""

FRAME_LABELS = frame_features(False)
"""Likewise of frames."""

_FRAME_ROWS = 16


def video_tables(
    shards: Sequence[CopyShard], access: Access, keys: set[str] | None = None
) -> Iterator[tuple[int, pa.Table, list[Fault]]]:
    """Truth rows of a copy's videos, one at a time.

    Args:
        shards: files of the copy's config `videos`.
        access: token and storage options.
        keys: of the videos met so far.

    Yields:
        The file's number, a row of `truth_features()`, and the faults that it bears.

    Raises:
        BenchError: a row is not what it should be; the message names the file, the row, the video and the field.
    """
    keys = set() if keys is None else keys
    for number, shard in enumerate(shards):
        for first, batch in read_batches(shard, VIDEO_LABELS, Beside(False, False), access, rows=1):
            row = {name: batch.column(name)[0].as_py() for name in batch.schema.names if name != "tubes"}
            place = f"{shard.name}: row {first}"
            try:
                entry = parse_entry(_as_entry(row))
                _check_row(row, entry, keys)
                _check_tubes(batch.column("tubes"), entry)
                codes = check_faults(row["faults"], entry.video_id)
            except BenchError as error:
                raise BenchError(f"{place}: {error}") from None
            keys.add(entry.video_id)
            # Where the source had the mp4 is no place in the copy.
            batch = batch.set_column(batch.schema.get_field_index("video"), "video", pa.nulls(1, pa.string()))
            table = _cast(batch, VIDEO_LABELS.arrow_schema, place)
            yield number, table, [Fault(code, entry.video_id, "as recorded") for code in codes]


def frame_tables(
    shards: Sequence[CopyShard], reads: Beside, access: Access
) -> Iterator[tuple[int, pa.Table, list[Fault]]]:
    """Rows of a copy's frames; as `video_tables`, of its config `frames`."""
    schema = frame_features(reads.image).arrow_schema
    for number, shard in enumerate(shards):
        for first, batch in read_batches(shard, FRAME_LABELS, reads, access, rows=_FRAME_ROWS):
            _check_frames(batch, f"{shard.name}: row", first)
            table, faults = _cast(batch, schema, f"{shard.name}: rows from {first} on"), []
            if reads.image:
                ids, images = table["video_id"].to_pylist(), table[IMAGE].is_null().to_pylist()
                faults = [
                    Fault("image_missing", name, "a frame") for name, none in zip(ids, images, strict=True) if none
                ]
            yield number, table, faults


def frames_of_videos(shards: Sequence[CopyShard], access: Access) -> Iterator[tuple[int, pa.Table, list[Fault]]]:
    """Rows of frames, without images, made of a copy's videos.

    A frame in which no object is visible stands in no tube. Where a video's masks have no gap, its frames are known all
    the same; else (fault `mask_missing`) those are left out, and the fault is noted.
    """
    schema = FRAME_LABELS.arrow_schema
    for number, table, _ in video_tables(shards, access):
        (row,) = table.select(["key", "frames_present", "objects", "tubes", "faults"]).to_pylist()
        seen: dict[int, list[tuple[int, int, Any]]] = {}
        if "mask_missing" not in row["faults"]:
            seen = {frame: [] for frame in range(row["frames_present"])}
        for item, tube in zip(row["objects"], row["tubes"], strict=True):
            for frame, mask in zip(tube["frames"], tube["masks"], strict=True):
                seen.setdefault(frame, []).append((item["object_id"], item["category"], mask))
        rows = []
        for frame, visible in sorted(seen.items()):
            ids, categories, masks = (
                zip(*sorted(visible, key=lambda item: item[0]), strict=True) if visible else ((),) * 3
            )
            names = {"video_id": row["key"], "frame": frame}
            rows.append({**names, "object_ids": ids, "categories": categories, "masks": masks})
        unknown = row["frames_present"] - len(rows)
        noted = [Fault("mask_missing", row["key"], f"{unknown} frames without objects are left out")] * (unknown > 0)
        for first in range(0, len(rows), _FRAME_ROWS):
            yield number, pa.Table.from_pylist(rows[first : first + _FRAME_ROWS], schema=schema), noted
            noted = []


def _as_entry(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a row to an entry of the annotation file; its parser refuses values of another type."""
    kept = _each(row["relations"], lambda item: _relation(item, _name(PREDICATES, item["predicate"])))
    left_out = _each(row["relations_left_out"], lambda item: _relation(item, item["predicate"]))
    return {
        "video_id": row["key"],
        "meta": {name: row[name] for name in ("height", "width", "fps", "num_frames")},
        "objects": _each(row["objects"], lambda item: {**item, "category": _name(CATEGORIES, item["category"])}),
        "relations": None if None in (kept, left_out) else [*kept, *left_out],
        **{name: row[name] for name in ("captions", "qa_pairs", "summary")},
    }


def _each(values: Any, change: Any) -> Any:
    return None if values is None else [None if item is None else change(item) for item in values]


def _name(names: Sequence[str], value: Any) -> Any:
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value


def _relation(item: Mapping[str, Any], predicate: Any) -> list[Any]:
    return [item["subject_id"], item["object_id"], predicate, item["spans"]]


def _check_row(row: Mapping[str, Any], entry: VideoEntry, keys: set[str]) -> None:
    """Check the fields of a row besides its entry and tubes."""
    video = entry.video_id
    if video in keys:
        raise BenchError(
            f"{video}: expected a key of its own, found one that an earlier row has; publish the copy again"
        )
    if row["source"] not in SOURCES:
        raise BenchError(f"{video}: source: expected one of {', '.join(SOURCES)}, found {ascii(row['source'])[:60]}")
    present = row["frames_present"]
    if not isinstance(present, int) or present < 0:
        raise BenchError(f"{video}: frames_present: expected a number of frames, found {present}")
    for i, item in enumerate(row["relations"] or ()):
        for first, last in item["spans"]:
            if not 0 <= first <= last:
                raise BenchError(f"{video}: relations[{i}]: expected spans from 0 on, found [{first}, {last}]")
    for i, item in enumerate(row["relations_left_out"] or ()):
        check_faults([item["reason"]], f"{video}: relations_left_out[{i}]")


def _check_tubes(column: pa.Array, entry: VideoEntry) -> None:
    """A video's tubes: one an object, a sound mask of the video's size for each frame, the frames ascending."""
    tubes = list_values(column)
    if column.null_count or tubes.null_count or len(tubes) != len(entry.objects):
        raise BenchError(
            f"{entry.video_id}: tubes: expected one for each of {len(entry.objects)} objects, found "
            f"{len(tubes) - tubes.null_count}"
        )
    frames, masks = tubes.field("frames"), tubes.field("masks")
    starts, ends = list_offsets(frames), list_offsets(masks)
    numbers = list_values(frames).to_pylist()
    column = MaskColumn.from_arrow(list_values(masks))
    wrong = column.problems()
    for k, item in enumerate(entry.objects):
        where = f"{entry.video_id}: tube of object {item.object_id}"
        own = numbers[int(starts[k]) : int(starts[k + 1])]
        n = int(ends[k + 1] - ends[k])
        if len(own) != n:
            raise BenchError(f"{where}: expected a mask for each of {len(own)} frames, found {n}")
        if None in own or own != sorted(set(own)) or (own and own[0] < 0):
            raise BenchError(f"{where}: expected frames from 0 on, ascending, each once")
        for at in range(int(ends[k]), int(ends[k + 1])):
            frame, size = own[at - int(ends[k])], (int(column.heights[at]), int(column.widths[at]))
            if at in wrong:
                raise BenchError(f"{where}: frame {frame}: malformed mask: {wrong[at]}")
            if size != (entry.height, entry.width):
                raise BenchError(
                    f"{where}: frame {frame}: expected a mask of {entry.height} x {entry.width} (height x width), "
                    f"found {size[0]} x {size[1]}"
                )


def _check_frames(batch: pa.RecordBatch, place: str, first: int) -> None:
    """Rows of frames: their ids and numbers, and a sound mask for each object, all of one size."""
    names = ("video_id", "frame", "object_ids", "categories")
    masks = batch.column("masks")
    offsets, column = list_offsets(masks), MaskColumn.from_arrow(list_values(masks))
    wrong = column.problems()
    for i, (video, frame, ids, categories) in enumerate(
        zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    ):
        where = f"{place} {first + i}: {ascii(str(video))[1:-1][:60]}, frame {frame}"
        lo, hi = int(offsets[i]), int(offsets[i + 1])
        if not video or frame is None or frame < 0:
            raise BenchError(f"{where}: expected a video's id and a frame's number from 0 on")
        if ids is None or None in ids or ids != sorted(set(ids)) or not len(ids) == len(categories or ()) == hi - lo:
            raise BenchError(f"{where}: expected ids, ascending, each once, with a category and a mask each")
        for value in categories or ():
            if value is None or not 0 <= value < len(CATEGORIES):
                raise BenchError(f"{where}: categories: expected 0 to {len(CATEGORIES) - 1}, found {value}")
        for at in range(lo, hi):
            if at in wrong:
                raise BenchError(f"{where}: object {ids[at - lo]}: malformed mask: {wrong[at]}")
            if (column.heights[at], column.widths[at]) != (column.heights[lo], column.widths[lo]):
                raise BenchError(f"{where}: object {ids[at - lo]}: a mask of another size than the frame's others")


def _cast(batch: pa.RecordBatch, schema: pa.Schema, place: str) -> pa.Table:
    """Rows that have been checked, as the columns of `schema`."""
    try:
        return pa.Table.from_batches([batch]).select(schema.names).cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise BenchError(
            f"{place}: expected values in range, found others ({' '.join(str(error).split())[:160]})"
        ) from None
