"""The research code's own output: `<video_id>/quantitive/masks.txt` and `<video_id>/relations.json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from bench_datasets.benchmarks.pvsg.dangling_ids import category_of
from bench_datasets.benchmarks.pvsg.prediction_folders import VideoFolder, add_relations, video_folders
from bench_datasets.benchmarks.pvsg.prediction_rows import Tube, Video, to_batch
from bench_datasets.faults import BenchError
from bench_datasets.masks import parse_masks
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.json_records import MAX_RECORD, open_text

MASKS = ("quantitive/masks.txt", "quantitative/masks.txt", "masks.txt")
"""Where a video's masks may lie; the first is the research code's spelling."""

MAX_MASKS = 1 << 21
"""Most lines that one file may have."""

_CUT = " (the last line has no end: was the file cut short?)"
_LINE = "'frame track class height width counts'"


def read(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA`, a video each, out of one video's folder or a folder of them.

    A line of `masks.txt` is `frame track class height width counts`: the frame counts from 1, the class from 0 into
    the vocabulary's things and then stuff. A track with several classes takes its commonest, the first of equals.

    Raises:
        BenchError: there is no such video, or a `relations.json` cannot be read.
    """
    folders = video_folders(location, *MASKS)
    if not folders:
        raise BenchError(f"{location.shown}: expected <video_id>/{MASKS[0]}, found none in the folder")
    for folder in folders:
        yield to_batch(_video(folder))


def _video(folder: VideoFolder) -> Video:
    video = Video(folder.name)
    file = folder.pick(video, *MASKS)
    if file is None:
        video.faults.append(("malformed_mask", f"{folder.shown}: expected {MASKS[0]}, found none"))
    else:
        _add_masks(video, file)
    add_relations(video, folder)
    return video


def _add_masks(video: Video, file: Location) -> None:
    tracks: dict[int, tuple[list[int], list[dict[str, object]], Counter[int]]] = {}
    with open_text(file) as stream:
        number, line = 0, stream.readline(MAX_RECORD)
        while line:
            number += 1
            place = f"{file.shown}:{number}"
            if len(line) >= MAX_RECORD or number > MAX_MASKS:
                raise BenchError(f"{place}: expected at most {MAX_MASKS} lines of {MAX_RECORD} bytes, found more")
            parts = line.split()
            numbers = _numbers(parts[:5]) if len(parts) == 6 else None
            if numbers is not None and numbers[0] >= 1:
                frame, track, kind, height, width = numbers
                mask: dict[str, object] = {"size": [height, width], "counts": parts[5]}
                if not line.endswith(b"\n") and (wrong := parse_masks([mask])[1]):
                    video.faults.append(("malformed_mask", f"{place}: {wrong[0]}{_CUT}"))
                    break
                frames, masks, kinds = tracks.setdefault(track, ([], [], Counter()))
                frames.append(frame - 1)
                masks.append(mask)
                kinds[kind] += 1
            elif parts:
                found = ascii(line[:60].decode("utf-8", "replace").rstrip()) + _CUT * (not line.endswith(b"\n"))
                expected = f"expected {_LINE}, five integers (the frame from 1 on) and text"
                video.faults.append(("malformed_mask", f"{place}: {expected}, found {found}"))
            line = stream.readline(MAX_RECORD)
    for track, (frames, masks, kinds) in tracks.items():
        kind = max(kinds, key=lambda kind: kinds[kind])  # of equals the one that came first
        video.tubes.append(Tube(str(track), category_of(kind), frames, masks))


def _numbers(parts: list[bytes]) -> list[int] | None:
    """Five integers of at most 18 digits."""
    digits = [part[1:] if part[:1] == b"-" else part for part in parts]
    return [int(part) for part in parts] if all(one.isdigit() and len(one) <= 18 for one in digits) else None
