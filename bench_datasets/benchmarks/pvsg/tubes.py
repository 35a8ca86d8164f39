"""Tubes: an object's masks over the frames of a video, in any of the forms in which rows come to a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.masks import (
    MASK_TYPE,
    MaskColumn,
    group_intersections,
    joined,
    list_offsets,
    list_values,
    parse_masks,
)
from bench_datasets.masks.ragged import parts

CHUNK_PAIRS = 1 << 21
"""Pairs of masks that are compared at a time."""

MAX_FRAME = 2**31 - 1
"""The largest number a frame may bear."""


@dataclass(frozen=True)
class Tubes:
    """The tubes of one video, mask by mask, by frame and within a frame by tube.

    Attributes:
        masks: m masks.
        frames: `(m,) int64`, the frame of each, from 0.
        tubes: `(m,) int64`, the tube of each, from 0.
        count: number of tubes; some may have no mask.
    """

    masks: MaskColumn
    frames: NDArray[np.int64]
    tubes: NDArray[np.int64]
    count: int

    def select(self, chosen: NDArray[np.bool_]) -> Tubes:
        """The masks where `chosen` `(m,)` is true, of as many tubes."""
        if chosen.all():
            return self
        return Tubes(self.masks.take(np.flatnonzero(chosen)), self.frames[chosen], self.tubes[chosen], self.count)

    def areas_by_frame(self, frames: int) -> NDArray[np.int64]:
        """`(count, frames) int64`, pixels of every tube in every frame from 0 to `frames` - 1."""
        result = np.zeros((self.count, frames), np.int64)
        inside = (self.frames >= 0) & (self.frames < frames)
        result[self.tubes[inside], self.frames[inside]] = self.masks.areas()[inside]
        return result

    def total_areas(self) -> NDArray[np.int64]:
        """`(count,) int64`, pixels of every tube over all its frames."""
        result = np.zeros(self.count, np.int64)
        np.add.at(result, self.tubes, self.masks.areas())
        return result


class Overlaps(NamedTuple):
    """The pairs of masks of two sets of tubes that share a pixel; each array `(n,) int64`.

    Attributes:
        frames: the frame.
        left: the mask of the first tubes.
        right: the mask of the second tubes.
        shared: pixels.
    """

    frames: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    shared: NDArray[np.int64]


def frame_overlaps(left: Tubes, right: Tubes, frames: int) -> Overlaps:
    """Shared pixels of the masks of two sets of tubes, frame by frame; every mask is decoded once.

    Args:
        left: tubes.
        right: tubes of the same video.
        frames: the video's number of frames; masks outside meet none.

    Raises:
        MaskError: a mask is unsound, or masks of one frame differ in size.

    Example:
        >>> masks = MaskColumn.from_dense([[[1, 1, 0]], [[0, 1, 1]]])
        >>> one = Tubes(masks, np.array([0, 1]), np.array([0, 0]), 1)
        >>> frame_overlaps(one, Tubes(masks, np.array([1, 2]), np.array([0, 1]), 2), 2)
        Overlaps(frames=array([1]), left=array([1]), right=array([0]), shared=array([1]))
    """
    steps = np.arange(frames + 1)
    first, second = np.searchsorted(left.frames, steps), np.searchsorted(right.frames, steps)
    pairs = np.diff(first) * np.diff(second)
    found: list[tuple[NDArray[np.int64], ...]] = []
    for start, stop in parts(pairs / CHUNK_PAIRS):
        a, b = first[start : stop + 1], second[start : stop + 1]
        shared = group_intersections(
            left.masks.part(int(a[0]), int(a[-1])), a - a[0], right.masks.part(int(b[0]), int(b[-1])), b - b[0]
        )
        some = np.flatnonzero(shared)
        place = np.concatenate([[0], np.cumsum(pairs[start:stop])])
        frame = np.searchsorted(place, some, side="right") - 1
        row, column = np.divmod(some - place[frame], np.maximum(np.diff(b), 1)[frame])
        found.append((frame + start, a[frame] + row, b[frame] + column, shared[some]))
    if not found:
        none = np.zeros(0, np.int64)
        return Overlaps(none, none, none, none)
    return Overlaps(*(np.concatenate(items).astype(np.int64) for items in zip(*found, strict=True)))


@dataclass(frozen=True)
class TubeLists:
    """The tubes of n rows; unsound masks may be among them.

    Attributes:
        masks: all masks, tube by tube, row by row.
        frames: `(m,) int64`, the frame of each mask.
        tubes: `(t + 1,) int64`, where each tube's masks begin.
        rows: `(n + 1,) int64`, where each row's tubes begin.
        present: `(n,) bool`, false where the row's list is null.
        fields: the tubes' other fields, by name, each t values.
        wrong: what is wrong by mask, where it could be told only before the masks became Arrow.
        broken: what is wrong with whole tubes, by tube.
    """

    masks: MaskColumn
    frames: NDArray[np.int64]
    tubes: NDArray[np.int64]
    rows: NDArray[np.int64]
    present: NDArray[np.bool_]
    fields: dict[str, list[Any]]
    wrong: dict[int, str]
    broken: dict[int, str]

    @property
    def groups(self) -> NDArray[np.int64]:
        """`(n + 1,) int64`, where each row's masks begin."""
        return self.tubes[self.rows]

    def bytes_a_row(self) -> NDArray[np.int64]:
        """`(n,) int64`, bytes of counts."""
        if not len(self.masks):
            return np.zeros(len(self.present), np.int64)
        return np.diff(self.masks.offsets[self.groups])

    def slice(self, start: int, stop: int) -> TubeLists:
        """The rows from `start` to `stop`, over the same buffers."""
        first, last = int(self.rows[start]), int(self.rows[stop])
        begin, end = int(self.tubes[first]), int(self.tubes[last])
        return TubeLists(
            self.masks.part(begin, end), self.frames[begin:end], self.tubes[first : last + 1] - begin,
            self.rows[start : stop + 1] - first, self.present[start:stop],
            {name: values[first:last] for name, values in self.fields.items()},
            {i - begin: text for i, text in self.wrong.items() if begin <= i < end},
            {i - first: text for i, text in self.broken.items() if first <= i < last},
        )  # fmt: skip

    def take(self, rows: NDArray[np.int64]) -> TubeLists:
        """The chosen rows, which must be sound."""
        tube = np.concatenate([np.arange(self.rows[i], self.rows[i + 1]) for i in rows] or [self.rows[:0]])
        mask = np.concatenate([np.arange(self.tubes[t], self.tubes[t + 1]) for t in tube] or [self.rows[:0]])
        sizes, counts = np.diff(self.tubes)[tube], np.diff(self.rows)[rows]
        return TubeLists(
            self.masks.take(mask), self.frames[mask], np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), self.present[rows],
            {name: [values[t] for t in tube] for name, values in self.fields.items()}, {}, {},
        )  # fmt: skip

    def problems(self) -> dict[int, list[str]]:
        """Reasons why tubes are invalid, by row; each names the tube's position in its row and the frame."""
        result: dict[int, list[str]] = {}
        for tube in sorted(self.broken):
            row = int(np.searchsorted(self.rows, tube, side="right")) - 1
            result.setdefault(row, []).append(f"tube {tube - int(self.rows[row])}: {self.broken[tube]}")
        found = {**self.masks.problems(), **self.wrong}
        for i in np.flatnonzero((self.frames < 0) | (self.frames > MAX_FRAME)).tolist():
            found.setdefault(i, f"frame: expected an integer from 0 to {MAX_FRAME}, found {self.frames[i]}")
        for i in sorted(found):
            tube = int(np.searchsorted(self.tubes, i, side="right")) - 1
            row = int(np.searchsorted(self.rows, tube, side="right")) - 1
            where = f"tube {tube - int(self.rows[row])}, frame {self.frames[i]}"
            result.setdefault(row, []).append(f"{where}: {found[i]}")
        for tube, frame in self._repeated():
            row = int(np.searchsorted(self.rows, tube, side="right")) - 1
            result.setdefault(row, []).append(f"tube {tube - int(self.rows[row])}: frame {frame} stands there twice")
        return result

    def _repeated(self) -> list[tuple[int, int]]:
        """Tube and frame of the masks that another one of their tube shares its frame with."""
        tube = np.repeat(np.arange(len(self.tubes) - 1), np.diff(self.tubes))
        order = np.lexsort((self.frames, tube))
        tube, frame = tube[order], self.frames[order]
        again = np.flatnonzero((tube[1:] == tube[:-1]) & (frame[1:] == frame[:-1]))
        return list(dict.fromkeys(zip(tube[again].tolist(), frame[again].tolist(), strict=True)))

    def video(self, row: int) -> Tubes:
        """One row's tubes, which must be sound."""
        part = self.slice(row, row + 1)
        tube = np.repeat(np.arange(len(part.tubes) - 1), np.diff(part.tubes))
        order = np.lexsort((tube, part.frames))
        return Tubes(part.masks.take(order), part.frames[order], tube[order], len(part.tubes) - 1)


def read_tube_lists(column: pa.Array | pa.ChunkedArray | Sequence[Any], fields: Sequence[str] = ()) -> TubeLists:
    """The tubes of a column.

    Args:
        column: an Arrow array of lists of structs with `frames` and `masks` (read in place), or any sequence of
            Python lists of mappings with these; a row may be null.
        fields: further fields of each tube.
    """
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        array = joined(column)
        found = _from_arrow(array, fields)
        if found is not None:
            return found
        column = array.to_pylist()
    return _from_python(column, fields)


def _from_arrow(array: pa.Array, fields: Sequence[str]) -> TubeLists | None:
    """The same without a Python object a mask, where the column is as even as ours are."""
    kind = array.type
    if not _is_list(kind) or not pa.types.is_struct(kind.value_type):
        return None
    types = {field.name: field.type for field in kind.value_type}
    if not {"frames", "masks"} <= set(types) or not all(_is_list(types[name]) for name in ("frames", "masks")):
        return None
    if not pa.types.is_integer(types["frames"].value_type) or not pa.types.is_struct(types["masks"].value_type):
        return None
    tubes = list_values(array)
    frames, masks = tubes.field("frames"), tubes.field("masks")
    numbers = list_values(frames)
    if tubes.null_count or frames.null_count or masks.null_count or numbers.null_count:
        return None
    begin = list_offsets(masks)
    if not np.array_equal(begin, list_offsets(frames)):
        return None
    values = {name: tubes.field(name).to_pylist() if name in types else [None] * len(tubes) for name in fields}
    return TubeLists(
        MaskColumn.from_arrow(list_values(masks)), numbers.to_numpy(zero_copy_only=False).astype(np.int64), begin,
        list_offsets(array), array.is_valid().to_numpy(zero_copy_only=False), values, {}, {},
    )  # fmt: skip


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _from_python(rows: Sequence[Any], fields: Sequence[str]) -> TubeLists:
    frames: list[int] = []
    masks: list[Any] = []
    sizes: list[int] = []
    counts: list[int] = []
    values: dict[str, list[Any]] = {name: [] for name in fields}
    broken: dict[int, str] = {}
    for row in rows:
        items = [] if row is None else row
        if not _is_sequence(items):
            items = [items]
        counts.append(len(items))
        for tube in items:
            numbers, shapes, text = _read_tube(tube)
            if text:
                broken[len(sizes)] = text
            sizes.append(len(shapes))
            frames += numbers
            masks += shapes
            for name in fields:
                values[name].append(tube.get(name) if isinstance(tube, Mapping) else None)
    sound, wrong = parse_masks(masks)
    return TubeLists(
        MaskColumn.from_arrow(sound if len(sound) else pa.array([], MASK_TYPE)), np.array(frames, np.int64),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([row is not None for row in rows], np.bool_), values, wrong, broken,
    )  # fmt: skip


def _read_tube(tube: Any) -> tuple[list[int], list[Any], str]:
    """Parse one tube: frames and masks, or the reason why it is invalid."""
    if not isinstance(tube, Mapping):
        return [], [], f"expected a tube with frames and masks, found {type(tube).__name__}"
    frames: Any = tube.get("frames")
    masks: Any = tube.get("masks")
    if not _is_sequence(frames) or not _is_sequence(masks):
        return [], [], f"expected lists of frames and masks, found {type(frames).__name__} and {type(masks).__name__}"
    if len(frames) != len(masks):
        return [], [], f"expected one mask a frame, found {len(frames)} frames and {len(masks)} masks"
    for frame in frames:
        if not isinstance(frame, (int, np.integer)) or isinstance(frame, bool) or abs(int(frame)) > MAX_FRAME:
            return [], [], f"expected frames as integers, found {frame!r:.40}"
    return [int(frame) for frame in frames], list(masks), ""


def _is_sequence(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, Mapping))
