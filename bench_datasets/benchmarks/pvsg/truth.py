"""A PVSG video's annotation and label maps into its truth row: tubes, relations, faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import ClassLabel, Features, Image, List, Value
from numpy.typing import NDArray

from bench_datasets.benchmarks.pvsg.annotation import VideoEntry, parse_entry
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.faults import BenchError, Fault
from bench_datasets.masks import MASK_FEATURE, encode_label_map

_PREDICATE = {name: i for i, name in enumerate(PREDICATES)}
_SPANS = List(List(Value("int32"), length=2))

Span = tuple[int, int]


def truth_features() -> Features:
    """The columns of the config `videos`: one row a video.

    Columns:
        key: the video's id.
        source: `vidor`, `epic_kitchen` or `ego4d`.
        height, width: pixels, as the annotation's `meta` has them; a row whose masks have another size has the fault
            `mask_size`.
        fps: frames a second.
        num_frames: frames that the annotation declares.
        frames_present: frames that have a mask file; files past `num_frames` do not count.
        objects: the annotated objects, visible or not, in the file's order.
        tubes: for each object the frames (from 0, ascending) where it is visible, and its mask in each.
        relations: those with a predicate of the vocabulary, in the file's order; spans `[first, last]` in frames from
            0, both ends in, cut to the frames that have masks (none may be left). Their ids need not be among
            `objects` (fault `unknown_object`).
        relations_left_out: the others, as the file has them, and the fault's code as the reason.
        captions, qa_pairs, summary: as the file has them.
        video: path or URL of the mp4 where it is there.
        faults: codes, each once.
    """
    return Features(
        {
            "key": Value("string"),
            "source": Value("string"),
            "height": Value("int32"),
            "width": Value("int32"),
            "fps": Value("float64"),
            "num_frames": Value("int32"),
            "frames_present": Value("int32"),
            "objects": List(
                {
                    "object_id": Value("int32"),
                    "category": ClassLabel(names=list(CATEGORIES)),
                    "is_thing": Value("bool"),
                }
            ),
            "tubes": List({"frames": List(Value("int32")), "masks": List(MASK_FEATURE)}),
            "relations": List(
                {
                    "subject_id": Value("int32"),
                    "object_id": Value("int32"),
                    "predicate": ClassLabel(names=list(PREDICATES)),
                    "spans": _SPANS,
                }
            ),
            "relations_left_out": List(
                {
                    "subject_id": Value("int32"),
                    "object_id": Value("int32"),
                    "predicate": Value("string"),
                    "spans": _SPANS,
                    "reason": Value("string"),
                }
            ),
            "captions": List({"time": Value("string"), "description": Value("string")}),
            "qa_pairs": List({"time": Value("string"), "question": Value("string"), "answer": Value("string")}),
            "summary": Value("string"),
            "video": Value("string"),
            "faults": List(Value("string")),
        }
    )


def frame_features(images: bool) -> Features:
    """The columns of the config `frames`: one row a frame that has a mask file.

    Columns:
        video_id: the video.
        frame: its number, from 0.
        image: the frame, with `images`; null where there is none.
        object_ids: the annotated objects visible in it, ascending.
        categories: of each.
        masks: of each.
    """
    columns: dict[str, Any] = {"video_id": Value("string"), "frame": Value("int32")}
    if images:
        columns["image"] = Image()
    columns |= {
        "object_ids": List(Value("int32")),
        "categories": List(ClassLabel(names=list(CATEGORIES))),
        "masks": List(MASK_FEATURE),
    }
    return Features(columns)


def other_size(entry: VideoEntry, frame: int, label_map: NDArray[Any]) -> str:
    """Describe a label map whose size is not the one that the annotation says; empty for one of that size.

    Args:
        entry: the video.
        frame: the frame's number.
        label_map: `(height, width)` integers.
    """
    if label_map.shape == (entry.height, entry.width):
        return ""
    found = " x ".join(map(str, label_map.shape))
    return f"frame {frame}: expected {entry.height} x {entry.width} (height x width, as `meta` says), found {found}"


def build_video_row(
    entry: VideoEntry, frames: Iterable[tuple[int, NDArray[Any]]], source: str, *, video: str | None = None
) -> tuple[dict[str, Any], list[Fault]]:
    """A video's truth row.

    Args:
        entry: its annotation.
        frames: number and label map of each frame that has one, ascending; read once, one held at a time.
        source: where the video is from.
        video: path or URL of the mp4.

    Returns:
        A row of `truth_features()` (class labels as integers), and its faults, one per code. Masks past the declared
        number of frames are left out; masks of another size than the annotation says stay as they are (`mask_size`).

    Raises:
        BenchError: the frames are out of order.

    Example:
        >>> meta = {"height": 1, "width": 3, "fps": 5, "num_frames": 2}
        >>> objects = [{"object_id": 1, "category": "adult", "is_thing": True}]
        >>> entry = {"video_id": "v", "meta": meta, "objects": objects, "relations": [[1, 1, "on", [[0, 9]]]]}
        >>> row, faults = build_video_row(parse_entry(entry), [(0, np.array([[0, 1, 1]]))], "vidor")
        >>> row["tubes"]
        [{'frames': [0], 'masks': [{'size': [1, 3], 'counts': '12'}]}]
        >>> row["relations"][0]["spans"], row["faults"]
        ([[0, 0]], ['self_relation', 'span_clipped', 'frames_short'])
    """
    tubes: dict[int, dict[str, list[Any]]] = {item.object_id: {"frames": [], "masks": []} for item in entry.objects}
    present: list[int] = []
    beyond: list[int] = []
    sizes: list[str] = []
    unknown: dict[int, int] = {}
    for frame, label_map in frames:
        earlier = (beyond or present)[-1:]
        if earlier and frame <= earlier[0]:
            raise BenchError(f"{entry.video_id}: expected frames in ascending order, found {frame} after {earlier[0]}")
        if 0 < entry.num_frames <= frame:
            beyond.append(frame)
            continue
        present.append(frame)
        sizes += filter(None, [other_size(entry, frame, label_map)])
        for label, mask in encode_label_map(label_map).items():
            if label in tubes:
                tubes[label]["frames"].append(frame)
                tubes[label]["masks"].append(mask)
            else:
                unknown[label] = unknown.get(label, 0) + 1
    noted = _Notes(entry.video_id)
    relations, left_out = _relations(entry, present, noted)
    _note_frames(entry, present, beyond, noted)
    if sizes:
        noted.add("mask_size", _some(sizes))
    if unknown:
        shown = _some([f"{label} ({count} frames)" for label, count in sorted(unknown.items())])
        noted.add("unknown_mask_id", f"in the masks and not in the annotation: {shown}")
    hidden = [item.object_id for item in entry.objects if not tubes[item.object_id]["frames"]]
    if hidden and present:
        noted.add("object_never_visible", f"in no mask: {_some(hidden)}")
    row = {
        "key": entry.video_id,
        "source": source,
        "height": entry.height,
        "width": entry.width,
        "fps": entry.fps,
        "num_frames": entry.num_frames,
        "frames_present": len(present),
        "objects": [item._asdict() for item in entry.objects],
        "tubes": list(tubes.values()),
        "relations": relations,
        "relations_left_out": left_out,
        "captions": list(entry.captions),
        "qa_pairs": list(entry.qa_pairs),
        "summary": entry.summary,
        "video": video,
        "faults": [fault.code for fault in noted.faults],
    }
    return row, noted.faults


def row_table(row: Mapping[str, Any]) -> pa.Table:
    """A truth row as a table of one row."""
    return pa.Table.from_pylist([dict(row)], schema=truth_features().arrow_schema)


def truth_from_label_maps(case: Mapping[str, Any], source: str = "vidor") -> dict[str, Any]:
    """A truth row of an entry that holds its own label maps, as small examples do.

    Args:
        case: an entry of `pvsg.json` with one more field `label_maps`: for every frame, from 0, its height x width
            pixel values, row by row, nested or flat.
        source: where the video is said to be from.

    Raises:
        BenchError: the entry is not sound, or a map has another number of pixels.

    Example:
        >>> meta = {"height": 1, "width": 3, "fps": 5, "num_frames": 1}
        >>> case = {"video_id": "v", "meta": meta, "objects": [], "relations": [], "label_maps": [[0, 0, 0]]}
        >>> truth_from_label_maps(case)["frames_present"]
        1
    """
    entry = parse_entry(case)
    maps = []
    for frame, values in enumerate(case["label_maps"]):
        label_map = np.asarray(values)
        if label_map.ndim == 1 and label_map.size == entry.height * entry.width:
            label_map = label_map.reshape(entry.height, entry.width)
        if text := other_size(entry, frame, label_map):
            raise BenchError(f"{entry.video_id}: label_maps: {text}")
        maps.append((frame, label_map))
    return build_video_row(entry, maps, source)[0]


class _Notes:
    """A video's faults, one per code; repeated faults of a code are counted."""

    def __init__(self, video_id: str) -> None:
        self._video_id = video_id
        self._texts: dict[str, list[str]] = {}

    def add(self, code: str, text: str) -> None:
        self._texts.setdefault(code, []).append(text)

    @property
    def faults(self) -> list[Fault]:
        return [Fault(code, self._video_id, _some(texts)) for code, texts in self._texts.items()]


def _some(values: Sequence[object], shown: int = 3) -> str:
    text = ", ".join(str(value) for value in values[:shown])
    return text if len(values) <= shown else f"{text} and {len(values) - shown} more"


def _note_frames(entry: VideoEntry, present: Sequence[int], beyond: Sequence[int], noted: _Notes) -> None:
    """Note frames without masks and masks past the declared end.

    Frames lack masks at the end (`frames_short`), or elsewhere, or everywhere (`mask_missing`).
    """
    if list(beyond) == [entry.num_frames] and present and present[0] == 1:
        text = f"masks of frames 1 to {entry.num_frames} of {entry.num_frames} frames, which count from 0; rename them"
        noted.add("frames_from_one", text)
        return
    if beyond:
        noted.add("frames_beyond", f"masks of frame {_some(beyond)} of {entry.num_frames} frames (from 0)")
    if not present:
        noted.add("mask_missing", f"no masks at all of {entry.num_frames} frames")
        return
    if present[-1] + 1 < entry.num_frames:
        noted.add("frames_short", f"{present[-1] + 1} frames of {entry.num_frames}")
    gaps = sorted(set(range(present[-1])) - set(present))
    if gaps:
        noted.add("mask_missing", f"no masks of frame {_some(gaps)}")


def _relations(
    entry: VideoEntry, present: Sequence[int], noted: _Notes
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Relations with a known predicate, their spans cut to the frames that have masks; and those left out.

    Where no frame has one, spans are cut to the frames declared.
    """
    bounds = (present[0], present[-1]) if present else (0, entry.num_frames - 1)
    ids = {item.object_id for item in entry.objects}
    kept: list[dict[str, Any]] = []
    left_out: list[dict[str, Any]] = []
    for subject_id, object_id, predicate, spans in entry.relations:
        name = f"{subject_id} {predicate} {object_id}"
        ends = {"subject_id": subject_id, "object_id": object_id}
        if predicate not in _PREDICATE:
            noted.add("unknown_predicate", name)
            as_given = [list(span) for span in spans]
            left_out.append({**ends, "predicate": predicate, "spans": as_given, "reason": "unknown_predicate"})
            continue
        strangers = sorted({subject_id, object_id} - ids)
        if strangers:
            noted.add("unknown_object", f"{name}: no object {_some(strangers)}")
        if subject_id == object_id:
            noted.add("self_relation", name)
        cut = _cut(spans, bounds, name, noted)
        kept.append({**ends, "predicate": _PREDICATE[predicate], "spans": cut})
    return kept, left_out


def _cut(spans: Sequence[Span], bounds: Span, name: str, noted: _Notes) -> list[list[int]]:
    """Cut spans to the bounds (both ends included) in the file's order; each change is noted."""
    cut = []
    if not spans:
        noted.add("span_missing", name)
    for first, last in spans:
        if first > last:
            noted.add("span_reversed", f"{name}: frames {first} to {last}")
            continue
        start, end = max(first, bounds[0]), min(last, bounds[1])
        if start > end:
            noted.add("span_outside", f"{name}: frames {first} to {last} of {bounds[0]} to {bounds[1]}")
            continue
        if (start, end) != (first, last):
            noted.add("span_clipped", f"{name}: frames {first} to {last} of {bounds[0]} to {bounds[1]}")
        cut.append([start, end])
    return cut
