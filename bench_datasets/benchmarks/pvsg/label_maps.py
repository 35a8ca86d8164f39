"""One PNG per frame: label maps as DAVIS writes them, or panoptic colours as COCO and VIPSeg write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.benchmarks.pvsg.dangling_ids import category_of
from bench_datasets.benchmarks.pvsg.prediction_folders import VideoFolder, add_relations, video_folders
from bench_datasets.benchmarks.pvsg.prediction_parse import name_tube, read_category
from bench_datasets.benchmarks.pvsg.prediction_rows import LAST_FRAME, Tube, Video, to_batch
from bench_datasets.faults import BenchError, shorten
from bench_datasets.masks import encode_label_map
from bench_datasets.predictions.coerce import read_id, show
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.formats.png import MAX_LABELS, read_png
from bench_datasets.predictions.json_records import whole

TUBES, PANOPTIC = "tubes.json", "panoptic.json"
VIPSEG, VIPSEG_FRAMES = "pred.json", "pan_pred"
"""VIPSeg's submission: one file of annotations, and a folder of PNG folders."""

_DRAWN = re.compile("[1-9][0-9]*")
_IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".npy", ".npz")


def read_davis(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA`, a video each, out of one video's folder or a folder of them.

    `<video_id>/<frame>.png` are grey or palette label maps. Frames count from 0; the value 0 is void, every other value
    is a tube's id. `tubes.json` is a list of `{tube_id, category}`. `relations.json` may lie in the same folder.
    Other images in the folder, and frames without a PNG, are noted.

    Raises:
        BenchError: there is no such video, or a JSON file cannot be read.
    """
    folders = video_folders(location, TUBES)
    if not folders:
        raise BenchError(f"{location.shown}: expected <video_id>/{TUBES} and <frame>.png, found none in the folder")
    for folder in folders:
        video = Video(folder.name)
        tubes = _table(video, folder)
        frames = _frames(video, folder)
        if tubes and not frames and not video.faults:
            video.faults.append(("missing_frames", f"{folder.shown}: expected <frame>.png, found none"))
        for frame, file in frames:
            labels = _labels(video, file, colours=False)
            for label, mask in ({} if labels is None else encode_label_map(labels)).items():
                tube = tubes.setdefault(str(label), Tube(str(label), None))
                tube.add(frame, mask)
        video.tubes = list(tubes.values())
        add_relations(video, folder)
        yield to_batch(video)


def read_panoptic(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA`, a video each, out of one video's folder or a folder of them.

    `<video_id>/<frame>.png` bear a tube's id as R + 256 G + 65536 B, 0 is void, the frame counted from 0.
    `<video_id>/panoptic.json` is `{annotations: [{file_name, segments_info: [{id, category_id}]}]}`; or one
    `panoptic.json` beside the folders has `{annotations: [{video_id, annotations: [...]}]}`. VIPSeg's submission is the
    same: `pred.json`, and the PNGs in `pan_pred/<video_id>/`. A `category_id` is one of the file's `categories`
    `[{id, name}]`, else it counts from 0 into the vocabulary's things and then stuff. A tube with several categories
    takes the commonest, the first of equals. `relations.json` may lie in the folder of the PNGs.

    Raises:
        BenchError: there is no such video, or a JSON file cannot be read.
    """
    if location.kind != "directory":
        raise BenchError(f"{location.shown}: expected a folder, found one file; give the folder of the video(s)")
    inside = {relative: item for relative, item, is_folder in location.inside() if not is_folder}
    own_frames = any(name.lower().endswith(".png") and "/" not in name for name in inside)
    if PANOPTIC in inside and not own_frames:
        yield from _whole_split(location, inside, PANOPTIC, "")
        return
    if VIPSEG in inside and any(path.startswith(f"{VIPSEG_FRAMES}/") for path in inside):
        yield from _whole_split(location, inside, VIPSEG, f"{VIPSEG_FRAMES}/")
        return
    folders = video_folders(location, PANOPTIC)
    if not folders:
        raise BenchError(f"{location.shown}: expected <video_id>/{PANOPTIC} and <frame>.png, found none in the folder")
    for folder in folders:
        file = folder.first(PANOPTIC)
        content = {"annotations": []} if file is None else whole(file)
        shown = folder.shown if file is None else file.shown
        yield to_batch(_panoptic(folder, _list(content, "annotations", shown), _categories(content, shown), shown))


def _whole_split(
    location: Location, inside: Mapping[str, Location], listing: str, folders: str
) -> Iterator[pa.RecordBatch]:
    """Read one file of annotations for all videos, each with a folder of PNGs below `folders`."""
    content = whole(inside[listing])
    shown = inside[listing].shown
    named = _categories(content, shown)
    for i, item in enumerate(_list(content, "annotations", shown)):
        name = item.get("video_id") if isinstance(item, dict) else None
        if not isinstance(name, str):
            raise BenchError(f"{shown}: annotation {i}: expected {{video_id, annotations}}, found {show(item)}")
        below = f"{folders}{name}/"
        files = {path[len(below) :]: file for path, file in inside.items() if path.startswith(below)}
        folder = VideoFolder(name, f"{location.shown.rstrip('/')}/{folders}{name}", files)
        yield to_batch(_panoptic(folder, _list(item, "annotations", f"{shown}: {name}"), named, shown))


def _panoptic(folder: VideoFolder, annotations: list[Any], named: dict[int, str], shown: str) -> Video:
    video = Video(folder.name)
    segments: dict[str, dict[int, int | None]] = {}
    for i, item in enumerate(annotations):
        stem = _stem(item.get("file_name")) if isinstance(item, dict) else None
        infos = item.get("segments_info") if isinstance(item, dict) else None
        if stem is None or not isinstance(infos, list):
            text = f"{shown}: annotation {i}: expected {{file_name, segments_info}}, found {show(item)}"
            video.faults.append(("malformed_mask", text))
            continue
        if stem in segments:
            text = f"{shown}: annotation {i}: expected every frame once, found {stem!r} again; it is left out"
            video.faults.append(("duplicate_prediction", text))
            continue
        segments[stem] = _segments(video, infos, f"{shown}: annotation {i}, frame {stem}")
    tubes: dict[int, Tube] = {}
    kinds: dict[int, Counter[int]] = {}
    for own in segments.values():
        for label, kind in own.items():
            tubes.setdefault(label, Tube(str(label), None))
            if kind is not None:
                kinds.setdefault(label, Counter())[kind] += 1
    drawn = set()
    for frame, file in _frames(video, folder):
        stem = file.name[:-4]
        drawn.add(stem)
        if stem not in segments:
            text = f"{file.shown}: expected its segments_info in {shown}, found none; the frame is left out"
            video.faults.append(("malformed_mask", text))
            continue
        labels = _labels(video, file, colours=True)
        for label, mask in ({} if labels is None else encode_label_map(labels)).items():
            if label in segments[stem]:
                tubes[label].add(frame, mask)
            else:
                text = f"{file.shown}: id {label}: expected it in the frame's segments_info, found it not; left out"
                video.faults.append(("malformed_mask", text))
    for stem in segments:
        if stem not in drawn:
            video.faults.append(("malformed_mask", f"{folder.shown}/{stem}.png: expected this PNG, found none"))
    for label, counts in kinds.items():
        kind = max(counts, key=lambda kind: counts[kind])  # of equals the one that came first
        tubes[label].category = named.get(kind, f"category_id {kind}") if named else category_of(kind)
    video.tubes = list(tubes.values())
    add_relations(video, folder)
    return video


def _segments(video: Video, infos: list[Any], place: str) -> dict[int, int | None]:
    """A frame's `segments_info` as category by id; wrong and repeated ids are faults of the video."""
    found: dict[int, int | None] = {}
    for k, info in enumerate(infos):
        label = read_id(info.get("id")) if isinstance(info, dict) else None
        if label is None or label < 1:
            text = f"{place}: segment {k}: expected {{id, category_id}} with an id from 1 on (0 is void), found "
            video.faults.append(("malformed_mask", text + show(info)))
        elif label in found:
            text = f"{place}: expected every id once, found id {label} again; it is left out"
            video.faults.append(("duplicate_prediction", text))
        else:
            found[label] = read_id(info.get("category_id"))
    return found


def _table(video: Video, folder: VideoFolder) -> dict[str, Tube]:
    """The tubes of `tubes.json`, still without masks."""
    file = folder.first(TUBES)
    if file is None:
        video.faults.append(("malformed_mask", f"{folder.shown}: expected {TUBES} [{{tube_id, category}}], found none"))
        return {}
    content = whole(file)
    items = content if isinstance(content, list) else _list(content, "tubes", file.shown)
    names: set[str] = set()
    tubes = {}
    for i, item in enumerate(items):
        value = item.get("tube_id") if isinstance(item, dict) else None
        name = name_tube(video, names, value, f"{file.shown}: tube number {i}")
        if name is not None and not _DRAWN.fullmatch(name):
            expected = "expected a pixel value of the label maps, an integer from 1 on (0 is void)"
            video.faults.append(("malformed_mask", f"{file.shown}: tube number {i}: {expected}, found {show(value)}"))
        elif name is not None:
            tubes[name] = Tube(name, read_category(item.get("category")))
    return tubes


def _frames(video: Video, folder: VideoFolder) -> list[tuple[int, Location]]:
    """The PNGs directly in the folder with the frame number that each name holds.

    Images that are not read and numbers without a PNG are faults of the video.
    """
    frames: dict[int, Location] = {}
    unread, named = [], False
    for path, file in folder.files.items():
        if "/" in path or not path.lower().endswith(".png"):
            unread += [path] if path.lower().endswith(_IMAGES) else []
            continue
        named = True
        stem = path[:-4]
        number = int(stem) if stem.isascii() and stem.isdigit() and len(stem) < 19 else -1
        if not 0 <= number <= LAST_FRAME:
            text = f"{file.shown}: expected the frame's number as the name, found {stem!a}; it is left out"
            video.faults.append(("malformed_mask", text))
        elif number in frames:
            text = f"{file.shown}: expected one PNG per frame, found {frames[number].name} too; it is left out"
            video.faults.append(("malformed_mask", text))
        else:
            frames[number] = file
    if unread and not named:
        found = f"found {len(unread)} other images, such as {unread[0]}; move or convert them"
        text = f"{folder.shown}: expected <frame>.png directly in the folder, {found}"
        video.faults.append(("unreadable_mask", text))
    elif unread:
        text = f"{folder.shown}: {len(unread)} images are not read, such as {unread[0]}"
        video.faults.append(("ignored_file", f"{text}; only <frame>.png directly in the folder is"))
    absent = max(frames, default=-1) + 1 - len(frames)
    if absent:
        first = [str(frame) for frame in range(min(len(frames) + 3, max(frames))) if frame not in frames][:3]
        text = f"no PNG for {absent} of the frames 0 to {max(frames)}: {', '.join(first)}"
        video.faults.append(("missing_frames", text + ", ..." * (absent > len(first))))
    return list(frames.items())


def _labels(video: Video, file: Location, *, colours: bool) -> NDArray[Any] | None:
    """A frame's labels, or None and a fault of the video."""
    try:
        pixels = read_png(file)
        if colours and pixels.ndim == 3:
            pixels = pixels.astype(np.int32) @ np.array([1, 256, 65536], np.int32)
        elif pixels.ndim != 2:
            raise BenchError(f"{file.shown}: expected a label map of one channel (grey or palette), found colours")
        if pixels.dtype.itemsize > 2 and len(np.unique(pixels)) > MAX_LABELS:
            raise BenchError(f"{file.shown}: expected at most {MAX_LABELS} labels, found more; is it a photo?")
    except BenchError as error:
        video.faults.append(("unreadable_mask", f"{error}; the frame is left out"))
        return None
    return pixels


def _list(content: Any, field: str, shown: str) -> list[Any]:
    items = content.get(field) if isinstance(content, dict) else None
    if not isinstance(items, list):
        raise BenchError(f"{shown}: expected {{{field}: [...]}}, found {show(content)}")
    return items


def _categories(content: Any, shown: str) -> dict[int, str]:
    """Names by `category_id`, where the file has its own.

    Raises:
        BenchError: one id has two names.
    """
    items = content.get("categories") if isinstance(content, dict) else None
    found: dict[int, str] = {}
    for item in items if isinstance(items, list) else []:
        number, name = (read_id(item.get("id")), item.get("name")) if isinstance(item, dict) else (None, None)
        if number is not None and isinstance(name, str) and found.setdefault(number, name) != name:
            names = f"{shorten(found[number])} and {shorten(name)}"
            raise BenchError(f"{shown}: categories: expected one name per id, found {names} for id {number}; keep one")
    return found


def _stem(value: object) -> str | None:
    """The last part of a file's name without its ending."""
    return value.replace("\\", "/").rsplit("/", 1)[-1].rsplit(".", 1)[0] if isinstance(value, str) else None
