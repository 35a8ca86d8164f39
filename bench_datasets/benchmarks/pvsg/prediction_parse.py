"""A PVSG prediction out of untrusted Python values: the video's name, tubes, triplets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench_datasets._util.untrusted import load_text
from bench_datasets.benchmarks.pvsg.prediction_rows import LAST_FRAME, Tube, Video
from bench_datasets.benchmarks.pvsg.signature import SIGNATURE
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.predictions.coerce import (
    ABSENT,
    Found,
    as_list,
    image_size,
    is_text,
    no_prediction,
    pick,
    read_id,
    read_number,
    read_word,
    show,
    show_fields,
)
from bench_datasets.predictions.foreign_fields import refuse_other_benchmark

TUBES, TRIPLETS = ("pred_tubes", "tubes"), ("pred_triplets", "triplets")
"""Names of the fields; the first that is there counts."""


def to_video(record: Mapping[str, Any], place: str) -> Video:
    """One record as a video.

    Raises:
        BenchError: it is no prediction of PVSG.
    """
    refuse_other_benchmark(record, place, SIGNATURE)
    video = Video()
    video.height, video.width = image_size(record)
    if video.width is None:
        video.height = None
    read_key(video, record, place)
    tubes, triplets = (load_text(pick(record, *names)) for names in (TUBES, TRIPLETS))
    if (
        triplets is ABSENT and {"tubes", "relations"} <= set(record) and not {"objects", "pred_tubes"} & set(record)
    ):  # as relations.json calls them
        triplets = load_text(record["relations"])
    if tubes is ABSENT and triplets is ABSENT:
        found = show_fields(record)
        video.faults.append(("malformed_mask", f"tubes: expected tubes and triplets, found the fields {found}"))
    elif (tubes is None or tubes is ABSENT) and (triplets is None or triplets is ABSENT):
        video.faults.append(no_prediction("tubes and triplets"))
    if tubes is not ABSENT:
        add_tubes(video, tubes)
    if triplets is not ABSENT:
        video.triplets = read_triplets(triplets, video.faults)
    return video


def read_key(video: Video, record: Mapping[str, Any], place: str) -> None:
    """Read the video's id, `video_id` or `key`; a fault of the video where there is none, or two that differ."""
    given = {name: record[name] for name in ("video_id", "key") if record.get(name) is not None}
    words = {name: read_word(value) for name, value in given.items()}
    if not given:
        problem = "video_id: expected the video's id, found none"
    elif None in words.values():
        name = next(name for name, word in words.items() if word is None)
        problem = f"{name}: expected text, found {show(given[name])}"
    elif len(set(words.values())) > 1:
        problem = f"video_id: found {words['video_id']!r}, but key {words['key']!r}; give one of them"
    else:
        video.key = next(iter(words.values()))
        return
    video.faults.append(("unknown_row", f"{place}: {problem}"))


MAX_TUBES = 2**14
"""Most tubes of one video that are read; bounds the time that one video takes."""

MAX_TRIPLETS = 2**20
"""Most triplets of one video that are read; every pair of a hundred tubes with every predicate gives 564,300."""


def refuse_many(video: Video, tubes: int) -> bool:
    """Whether a video has more than `MAX_TUBES` tubes, which is then a fault of it."""
    if tubes > MAX_TUBES:
        found = f"found {tubes:,}; none of them is read"
        video.faults.append(("malformed_mask", f"tubes: expected at most {MAX_TUBES:,} tubes in one video, {found}"))
    return tubes > MAX_TUBES


def add_tubes(video: Video, value: object) -> None:
    """Read a list of `{tube_id, category, frames, masks}`; what cannot be a tube is left out with a fault."""
    items = [] if value is None else as_list(value)
    if items is None:
        video.faults.append(("malformed_mask", f"tubes: expected a list of tubes, found {show(value)}"))
        return
    if refuse_many(video, len(items)):
        return
    names: set[str] = set()
    for i, raw in enumerate(items):
        item = load_text(raw)
        name = name_tube(video, names, item.get("tube_id") if isinstance(item, Mapping) else ABSENT, f"tube number {i}")
        if name is None or not isinstance(item, Mapping):
            continue
        tube = Tube(name, read_category(item.get("category")))
        video.tubes.append(tube)
        lists = [as_list(load_text(item.get(part))) for part in ("frames", "masks")]
        for part, values in zip(("frames", "masks"), lists, strict=True):
            if values is None:
                text = f"tube {name}: {part}: expected a list, found {show(item.get(part))}"
                video.faults.append(("malformed_mask", text))
        if lists[0] is not None and lists[1] is not None:
            tube.frames, tube.masks = lists[0], [load_text(mask) for mask in lists[1]]


def name_tube(video: Video, names: set[str], value: object, place: str) -> str | None:
    """A tube's id as text, once; else None and a fault of the video."""
    name = None if value is ABSENT else read_word(value)
    if name is None:
        found = "something else" if value is ABSENT else f"tube_id {show(value)}"
        text = f"{place}: expected {{tube_id, category, frames, masks}} with an id of text or integer, found {found}"
        video.faults.append(("malformed_mask", text))
    elif name in names:
        text = f"{place}: expected every tube once, found tube_id {name!r} again; it is left out"
        video.faults.append(("duplicate_prediction", text))
        name = None
    else:
        names.add(name)
    return name


def read_category(value: object, names: Sequence[str] = CATEGORIES) -> str | None:
    """A category's name, or that of its class label, be it text; null where there is none, else the value as text.

    Args:
        value: as it was given.
        names: the names by class label.

    Example:
        >>> read_category("adult"), read_category(0), read_category("0"), read_category(1000), read_category(None)
        ('adult', 'adult', 'adult', '1000', None)
    """
    label = read_id(value)
    if label is None and isinstance(value, str) and is_text(value):
        return value
    return names[label] if label is not None and 0 <= label < len(names) else read_word(value)


def read_triplets(value: object, faults: Found) -> list[dict[str, Any]]:
    """A list of `{subject_id, object_id, predicate, score, spans}` as rows of `pred_triplets`, in the given order."""
    items = [] if value is None else as_list(value)
    if items is None:
        faults.append(("bad_score", f"triplets: expected a list of triplets, found {show(value)}"))
        return []
    if len(items) > MAX_TRIPLETS:
        found = f"found {len(items):,}; none of them is read"
        faults.append(("bad_score", f"triplets: expected at most {MAX_TRIPLETS:,} triplets in one video, {found}"))
        return []
    triplets = []
    for i, raw in enumerate(items):
        item = load_text(raw)
        sound = isinstance(item, Mapping)
        if not isinstance(item, Mapping):
            expected = "expected {subject_id, object_id, predicate, score, spans}"
            faults.append(("bad_score", f"triplet {i}: {expected}, found {show(raw)}"))
            item = {}
        score = read_number(item.get("score"))
        if score is None and sound:
            text = f"triplet {i}: score: expected a finite number, found {show(item.get('score'))}"
            faults.append(("bad_score", text))
        triplets.append(
            {
                "subject_id": read_word(item.get("subject_id")),
                "object_id": read_word(item.get("object_id")),
                "predicate": read_category(item.get("predicate"), PREDICATES),
                "score": score,
                "spans": _spans(item, i, faults),
            }
        )
    return triplets


def _spans(record: Mapping[str, Any], triplet: int, faults: Found) -> list[list[int]]:
    value = record.get("spans")
    others = [name for name in ("duration", "span", "segments", "frames") if name in record]
    if "spans" not in record and others:
        text = f"triplet {triplet}: spans: expected [[first, last], ...], found {others[0]}; write it as spans"
        faults.append(("bad_span", text))
        return []
    items = [] if value is None else as_list(load_text(value))
    if items is None:
        faults.append(("bad_span", f"triplet {triplet}: spans: expected a list, found {show(value)}"))
        return []
    spans = []
    for i, item in enumerate(items):
        span = _span(as_list(item))
        if span is None:
            expected = f"expected [first, last], integers with 0 <= first <= last <= {LAST_FRAME}"
            text = f"triplet {triplet}: span {i}: {expected}, found {show(item)}; it is left out"
            faults.append(("bad_span", text))
        else:
            spans.append(span)
    return spans


def _span(items: Sequence[Any] | None) -> list[int] | None:
    if items is None or len(items) != 2 or any(isinstance(item, str) for item in items):
        return None
    first, last = (read_id(item) for item in items)
    if first is None or last is None or not 0 <= first <= last <= LAST_FRAME:
        return None
    return [first, last]
