"""PVSG's annotation file, `pvsg.json`: read, checked field by field, and put into splits.

The file's second split is called `val` there and `test` here. A video's source comes from the file's `split`, never
from the look of its id.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench_datasets._util.untrusted import load_json
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, THINGS
from bench_datasets.faults import BenchError

SOURCES = ("vidor", "epic_kitchen", "ego4d")
"""Where the videos come from: the names in the file's `split`, and of the folders."""

SPLITS = {"train": "train", "val": "test", "test": "test"}
"""The file's names of splits, and ours."""

MAX_ANNOTATION = 1 << 30
"""Bytes that an annotation file may have; the released one has some megabytes."""

_MAX_SIDE = 1 << 14  # pixels
_MAX_FRAMES = 1 << 24
_MAX_ID = 2**31 - 1
_CATEGORY = {name: i for i, name in enumerate(CATEGORIES)}


class ObjectEntry(NamedTuple):
    """An annotated object: its id (the pixel value in the masks), and its category's index in `CATEGORIES`."""

    object_id: int
    category: int
    is_thing: bool


class RelationEntry(NamedTuple):
    """An annotated relation; spans are `[first, last]` in frames from 0, both ends in, as the file has them."""

    subject_id: int
    object_id: int
    predicate: str
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class VideoEntry:
    """One video's annotation.

    Attributes:
        video_id: its name.
        height: of its frames, pixels.
        width: of its frames, pixels.
        fps: frames a second.
        num_frames: frames that it is declared to have.
        objects: in the file's order.
        relations: in the file's order, whatever their predicates.
        captions: `{time, description}`.
        qa_pairs: `{time, question, answer}`.
        summary: a sentence, or None.
    """

    video_id: str
    height: int
    width: int
    fps: float
    num_frames: int
    objects: tuple[ObjectEntry, ...]
    relations: tuple[RelationEntry, ...]
    captions: tuple[dict[str, str | None], ...]
    qa_pairs: tuple[dict[str, str | None], ...]
    summary: str | None


class Video(NamedTuple):
    """A video of a split: its source, its entry, and the entry as canonical JSON."""

    source: str
    entry: VideoEntry
    text: str


@dataclass(frozen=True)
class Annotation:
    """The content of `pvsg.json`.

    Attributes:
        splits: the videos by our split names, in the file's order; only splits that have any.
        without_data: ids that stand in `split` and have no entry.
        without_split: ids that have an entry and stand in no split.
    """

    splits: dict[str, tuple[Video, ...]]
    without_data: tuple[str, ...]
    without_split: tuple[str, ...]


def read_annotation(content: bytes, name: str) -> Annotation:
    """The annotation file's videos.

    Args:
        content: the file.
        name: what messages call it.

    Raises:
        BenchError: it is no JSON, a field is not what it should be, or a video stands twice; the message names the
            video and the field.
    """
    if content.startswith(b"version https://git-lfs"):
        raise BenchError(f"{name}: found a Git LFS pointer in place of the file; run `git lfs pull`")
    try:
        data = load_json(content)
    except (ValueError, RecursionError) as error:
        what = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise BenchError(f"{name}: expected PVSG's annotation as JSON, found text that is none ({what})") from error
    split, entries = _field(data, "split", dict, name), _field(data, "data", list, name)
    by_id: dict[str, Any] = {}
    for i, entry in enumerate(entries):
        video_id = _video_id(_field(entry, "video_id", str, f"{name}: data[{i}]"), name)
        if video_id in by_id:
            raise BenchError(f"{name}: expected one entry a video, found two of {video_id!r}")
        by_id[video_id] = entry
    place = _places(split, name)
    splits: dict[str, tuple[Video, ...]] = {}
    for ours in dict.fromkeys(SPLITS.values()):
        found = []
        for video_id, (source, wanted) in place.items():
            if wanted == ours and video_id in by_id:
                entry = by_id[video_id]
                text = json.dumps(entry, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
                found.append(Video(source, parse_entry(entry), text))
        if found:
            splits[ours] = tuple(found)
    if not splits:
        raise BenchError(f"{name}: expected videos in `split` that have entries in `data`, found none")
    missing = tuple(video_id for video_id in place if video_id not in by_id)
    return Annotation(splits, missing, tuple(video_id for video_id in by_id if video_id not in place))


def _places(split: Mapping[str, Any], name: str) -> dict[str, tuple[str, str]]:
    """Source and split (ours) of each video that the file's `split` names, in its order."""
    place: dict[str, tuple[str, str]] = {}
    for source, parts in split.items():
        if source not in SOURCES:
            raise BenchError(f"{name}: split: expected the sources {', '.join(SOURCES)}, found {source!r}")
        for part in _as(parts, dict, f"{name}: split.{source}"):
            if part not in SPLITS:
                raise BenchError(f"{name}: split.{source}: expected train and val, found {part!r}")
            for video_id in _field(parts, part, list, f"{name}: split.{source}"):
                _video_id(_as(video_id, str, f"{name}: split.{source}.{part}"), name)
                here = (source, SPLITS[part])
                if place.setdefault(video_id, here) != here:
                    other = "/".join(place[video_id])
                    raise BenchError(
                        f"{name}: split: expected {video_id!r} once, found it in {other} and {source}/{part}"
                    )
    return place


def parse_entry(entry: Any) -> VideoEntry:
    """One entry of the file's `data`, checked.

    Args:
        entry: `{video_id, meta {height, width, fps, num_frames}, objects, relations, captions?, qa_pairs?, summary?}`.

    Raises:
        BenchError: a field is missing or not what it should be; the message names the video and the field.

    Example:
        >>> meta = {"height": 2, "width": 3, "fps": 5, "num_frames": 4}
        >>> objects = [{"object_id": 1, "category": "adult", "is_thing": True}]
        >>> entry = {"video_id": "v", "meta": meta, "objects": objects, "relations": [[1, 1, "on", [[0, 3]]]]}
        >>> parse_entry(entry).relations[0]
        RelationEntry(subject_id=1, object_id=1, predicate='on', spans=((0, 3),))
    """
    video_id = _video_id(_field(entry, "video_id", str, "pvsg: a video"), "pvsg")
    meta = _field(entry, "meta", dict, video_id)
    where = f"{video_id}: meta"
    fps = meta.get("fps")
    if isinstance(fps, bool) or not isinstance(fps, int | float) or not (math.isfinite(fps) and fps > 0):
        raise BenchError(f"{where}.fps: expected a positive number, found {_shown(fps)}")
    objects = _objects(_field(entry, "objects", list, video_id), video_id)
    relations = [
        _relation(value, f"{video_id}: relations[{i}]")
        for i, value in enumerate(_field(entry, "relations", list, video_id))
    ]
    return VideoEntry(
        video_id=video_id,
        height=_integer(meta.get("height"), f"{where}.height", 1, _MAX_SIDE),
        width=_integer(meta.get("width"), f"{where}.width", 1, _MAX_SIDE),
        fps=float(fps),
        num_frames=_integer(meta.get("num_frames"), f"{where}.num_frames", 0, _MAX_FRAMES),
        objects=objects,
        relations=tuple(relations),
        captions=_texts(entry.get("captions"), ("time", "description"), f"{video_id}: captions"),
        qa_pairs=_texts(entry.get("qa_pairs"), ("time", "question", "answer"), f"{video_id}: qa_pairs"),
        summary=_text(entry.get("summary"), f"{video_id}: summary"),
    )


def _objects(values: Sequence[Any], video_id: str) -> tuple[ObjectEntry, ...]:
    found: dict[int, ObjectEntry] = {}
    for i, value in enumerate(values):
        where = f"{video_id}: objects[{i}]"
        category = _field(value, "category", str, where)
        if category not in _CATEGORY:
            raise BenchError(f"{where}.category: expected one of PVSG's {len(CATEGORIES)}, found {_shown(category)}")
        object_id = _integer(value.get("object_id"), f"{where}.object_id", 1, _MAX_ID)
        if object_id in found:
            raise BenchError(f"{where}.object_id: expected each object once, found {object_id} again")
        is_thing = value.get("is_thing", category in THINGS)
        found[object_id] = ObjectEntry(object_id, _CATEGORY[category], _as(is_thing, bool, f"{where}.is_thing"))
    return tuple(found.values())


def _relation(value: Any, where: str) -> RelationEntry:
    if not isinstance(value, list) or len(value) != 4:
        raise BenchError(f"{where}: expected [subject_id, object_id, predicate, spans], found {_shown(value)}")
    spans = []
    for span in _as(value[3], list, f"{where}: spans"):
        if not isinstance(span, list) or len(span) != 2:
            raise BenchError(f"{where}: expected spans [first, last], found {_shown(span)}")
        first, last = (_integer(end, f"{where}: a span's end", -_MAX_ID, _MAX_ID) for end in span)
        spans.append((first, last))
    return RelationEntry(
        _integer(value[0], f"{where}: subject_id", 0, _MAX_ID),
        _integer(value[1], f"{where}: object_id", 0, _MAX_ID),
        _as(value[2], str, f"{where}: predicate"),
        tuple(spans),
    )


def _texts(values: Any, names: tuple[str, ...], where: str) -> tuple[dict[str, str | None], ...]:
    """A list of objects of text fields; absent or null is none."""
    if values is None:
        return ()
    rows = [_as(value, dict, f"{where}[{i}]") for i, value in enumerate(_as(values, list, where))]
    return tuple({name: _text(row.get(name), f"{where}[{i}].{name}") for name in names} for i, row in enumerate(rows))


def _text(value: Any, where: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise BenchError(f"{where}: expected text, found {_shown(value)}")


def _video_id(value: str, name: str) -> str:
    """A video's id, which is also a folder's name: one that stays where it is put."""
    if not value or value in {".", ".."} or any(sign in value for sign in "/\\:\0"):
        raise BenchError(f"{name}: video_id: expected the name of a folder, found {_shown(value)}")
    return value


def _field(data: Any, name: str, kind: type, where: str) -> Any:
    if not isinstance(data, dict) or name not in data:
        found = f"the fields {', '.join(sorted(map(str, data))[:8])}" if isinstance(data, dict) else _shown(data)
        raise BenchError(f"{where}: expected a field {name!r}, found {found}; is this PVSG's annotation?")
    return _as(data[name], kind, f"{where}: {name}")


_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false"}


def _as(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise BenchError(f"{where}: expected {_KINDS[kind]}, found {_shown(value)}")
    return value


def _integer(value: Any, where: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BenchError(f"{where}: expected an integer from {low} to {high}, found {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
