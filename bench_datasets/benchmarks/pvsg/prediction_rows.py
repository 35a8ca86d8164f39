"""Rows of PVSG predictions, one a video: the columns, and from Python values to Arrow batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa
from datasets import Features, List, Value
from numpy.typing import NDArray

from bench_datasets.masks import MASK_FEATURE, MASK_TYPE, MaskColumn, parse_masks
from bench_datasets.predictions.coerce import Found, read_id, show
from bench_datasets.predictions.mask_rows import faults_array

FEATURES = Features(
    {
        "key": Value("string"),
        "pred_tubes": List(
            {
                "tube_id": Value("string"),
                "category": Value("string"),
                "frames": List(Value("int32")),
                "masks": List(MASK_FEATURE),
            }
        ),
        "pred_triplets": List(
            {
                "subject_id": Value("string"),
                "object_id": Value("string"),
                "predicate": Value("string"),
                "score": Value("float64"),
                "spans": List(List(Value("int32"), length=2)),
            }
        ),
        "pred_faults": List({"code": Value("string"), "text": Value("string")}),
    }
)
"""Columns of PVSG predictions, one row a video.

`key` is the video's id, null where it could not be read. A tube's `frames` count from 0, ascend, each once, and are
aligned with its `masks`; an unsound mask, and a second one of the same frame, is left out and noted in `pred_faults`.
Triplets keep the order in which they were given; names that could not be read and scores that are no finite number are
null. `spans` are [first, last] frames from 0, both in.
"""

SCHEMA: pa.Schema = FEATURES.arrow_schema
"""The same as an Arrow schema."""

LAST_FRAME = 2**31 - 1
"""The largest frame number."""

MAX_VIDEO_MASKS = 2**21
"""Most masks of one video that are read; bounds the time and memory that one video takes."""

_TUBE: pa.StructType = SCHEMA.field("pred_tubes").type.value_type


@dataclass
class Tube:
    """One tube as it was read: frames and masks are still untrusted values.

    `masks` may be a range: places in the video's `sound` masks.
    """

    tube_id: str
    category: str | None
    frames: Sequence[Any] = field(default_factory=list)
    masks: Sequence[Any] = field(default_factory=list)

    def add(self, frame: int, mask: dict[str, Any]) -> None:
        """One more mask of a tube whose frames and masks are lists."""
        cast("list[int]", self.frames).append(frame)
        cast("list[dict[str, Any]]", self.masks).append(mask)


@dataclass
class Video:
    """One prediction as it was read.

    Attributes:
        key: the video's id.
        tubes: of it.
        triplets: rows of `pred_triplets`, in order.
        faults: what reading found.
        height: of the frames, for polygons, or None.
        width: likewise.
        sound: masks that are validated already (null where unsound) and what is wrong with which, where tubes' masks
            are ranges.
    """

    key: str | None = None
    tubes: list[Tube] = field(default_factory=list)
    triplets: list[dict[str, Any]] = field(default_factory=list)
    faults: Found = field(default_factory=list)
    height: int | None = None
    width: int | None = None
    sound: tuple[pa.Array, dict[int, str]] | None = None


def to_batch(video: Video) -> pa.RecordBatch:
    """A batch of `SCHEMA` of one row: masks validated, frames put in order."""
    _even(video)
    owner = np.repeat(np.arange(len(video.tubes)), [len(tube.masks) for tube in video.tubes]).astype(np.int64)
    frames = _frames(video)
    masks, wrong, noted = _masks(video)
    kept = frames >= 0
    for at, text in wrong.items():
        kept[at] = False
        if frames[at] >= 0:
            video.faults.append(("malformed_mask", f"{_place(video, owner[at], frames[at])}: {text}"))
    for at, text in noted.items():
        if frames[at] >= 0:
            video.faults.append(("polygon_part_dropped", f"{_place(video, owner[at], frames[at])}: {text}"))
    order = np.flatnonzero(kept)
    order = order[np.lexsort((order, frames[order], owner[order]))]
    again = np.zeros(len(order), np.bool_)
    again[1:] = (owner[order][1:] == owner[order][:-1]) & (frames[order][1:] == frames[order][:-1])
    for at in order[again].tolist():
        text = f"{_place(video, owner[at], frames[at])}: expected one mask a frame, found another; it is left out"
        video.faults.append(("malformed_mask", text))
    order = order[~again]
    masks = masks.take(pa.array(order))
    _same_size(video, MaskColumn.from_arrow(masks), owner[order], frames[order])
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner[order], minlength=len(video.tubes)))]).astype(np.int32)
    tubes = pa.StructArray.from_arrays(
        [
            pa.array([tube.tube_id for tube in video.tubes], pa.string()),
            pa.array([tube.category for tube in video.tubes], pa.string()),
            pa.ListArray.from_arrays(pa.array(offsets), pa.array(frames[order].astype(np.int32))),
            pa.ListArray.from_arrays(pa.array(offsets), masks),
        ],
        fields=list(_TUBE),
    )
    arrays = [
        pa.array([video.key], pa.string()),
        pa.ListArray.from_arrays(pa.array([0, len(video.tubes)], pa.int32()), tubes),
        pa.array([video.triplets], SCHEMA.field("pred_triplets").type),
        faults_array([video.faults]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _even(video: Video) -> None:
    """Empty the tubes that have not one frame per mask, and all tubes of a video with too many masks."""
    for tube in video.tubes:
        if len(tube.frames) != len(tube.masks):
            found = f"found {len(tube.frames)} frames and {len(tube.masks)} masks; all are left out"
            video.faults.append(("malformed_mask", f"tube {tube.tube_id}: expected one frame a mask, {found}"))
            tube.frames, tube.masks = [], []
    total = sum(len(tube.masks) for tube in video.tubes)
    if total > MAX_VIDEO_MASKS:
        text = f"tubes: expected at most {MAX_VIDEO_MASKS:,} masks in one video, found {total:,}; none of them is read"
        video.faults.append(("malformed_mask", text))
        for tube in video.tubes:
            tube.frames, tube.masks = [], []


def _frames(video: Video) -> NDArray[np.int64]:
    """Frame numbers of all masks; -1 where one is none."""
    numbers: list[int] = []
    for tube in video.tubes:
        for i, frame in enumerate(tube.frames):
            number = frame if type(frame) is int else read_id(frame) if not isinstance(frame, str) else None
            if number is None or not 0 <= number <= LAST_FRAME:
                text = f"tube {tube.tube_id}, mask {i}: frame: expected an integer from 0 on, found {show(frame)}"
                video.faults.append(("malformed_mask", text))
                number = -1
            numbers.append(number)
    return np.array(numbers, np.int64)


def _masks(video: Video) -> tuple[pa.Array, dict[int, str], dict[int, str]]:
    """All masks of the video, null where invalid, with the reasons and notes by position."""
    if video.sound is None:
        values = [mask for tube in video.tubes for mask in tube.masks]
        noted: dict[int, str] = {}
        if not values:
            return pa.array([], MASK_TYPE), {}, {}
        return *parse_masks(values, height=video.height, width=video.width, noted=noted), noted
    array, wrong = video.sound
    places = [place for tube in video.tubes for place in tube.masks]
    return array.take(pa.array(places, pa.int64())), {i: wrong[at] for i, at in enumerate(places) if at in wrong}, {}


def _same_size(video: Video, masks: MaskColumn, owner: NDArray[np.int64], frames: NDArray[np.int64]) -> None:
    """Note masks of another size than most of the video's; the first such is named."""
    if not len(masks):
        return
    size = (masks.heights << 32) + masks.widths
    sizes, first, counts = np.unique(size, return_index=True, return_counts=True)
    if len(sizes) == 1:
        return
    usual = min(range(len(sizes)), key=lambda i: (-counts[i], first[i]))
    other = np.flatnonzero(size != sizes[usual])
    at, most = int(other[0]), int(first[usual])
    text = (
        f"{_place(video, owner[at], frames[at])}: expected a mask of {masks.heights[most]} x {masks.widths[most]} like "
        f"most of the video's, found {masks.heights[at]} x {masks.widths[at]} ({len(other)} of {len(masks)} differ)"
    )
    video.faults.append(("size_mismatch", text))


def _place(video: Video, tube: np.int64, frame: np.int64) -> str:
    return f"tube {video.tubes[int(tube)].tube_id}, frame {int(frame)}"
