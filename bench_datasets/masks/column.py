"""`MaskColumn`: a column of RLE masks over Arrow's own buffers, the value that every part of the package speaks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from bench_datasets.masks import arrow
from bench_datasets.masks.decoded import Decoded
from bench_datasets.masks.engine import engine_for
from bench_datasets.masks.rle import Runs, encode_counts
from bench_datasets.masks.status import MAX_COUNTS, MAX_PIXELS, WORDS, MaskError, Status

MASK_TYPE = pa.struct([("size", pa.list_(pa.int32())), ("counts", pa.string())])
"""Arrow type of a mask: `size` [height, width], `counts` COCO's compressed RLE.

The list has no fixed length, because Arrow before 26 can't read Parquet with a null mask above a list of fixed length.
"""


class MaskColumn:
    """n masks, each of its own size, over Arrow buffers; nothing is copied and nothing is read until it is asked for.

    A column may hold unsound masks: `problems()` says what is wrong with which. Whatever computes (`runs`, `areas`,
    `rles`, the functions of `bench_datasets.masks`) first validates every mask and raises `MaskError` for an unsound
    one, so that compiled code never sees it. Each mask is decoded once; the runs are kept with the column.

    Attributes:
        data: `(bytes,) uint8`, the counts' characters.
        offsets: `(n + 1,) int64`, where each mask's counts begin in `data`.
        heights: `(n,) int64`, pixels; -1 where the size is absent or no pair of integers.
        widths: `(n,) int64`, likewise.
        present: `(n,) bool`, false for a null mask.
        counted: `(n,) bool`, false where the counts are null.

    Example:
        >>> column = MaskColumn.from_values([{"size": [10, 10], "counts": "d0n0b1"}])
        >>> column.areas()
        array([30])
    """

    def __init__(
        self,
        data: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        heights: NDArray[np.int64],
        widths: NDArray[np.int64],
        present: NDArray[np.bool_] | None = None,
        counted: NDArray[np.bool_] | None = None,
    ) -> None:
        n = len(heights)
        self.data, self.offsets, self.heights, self.widths = data, offsets, heights, widths
        self.present = np.ones(n, np.bool_) if present is None else present
        self.counted = np.ones(n, np.bool_) if counted is None else counted

    # ------------------------------------------------------------------ constructors

    @classmethod
    def from_arrow(cls, array: pa.Array | pa.ChunkedArray) -> MaskColumn:
        """A column over an Arrow array of structs with `size` and `counts`.

        Args:
            array: struct array, sliced or chunked (more than one chunk is put together first); `size` a list of two
                integers (fixed or not), `counts` string or binary, 32- or 64-bit offsets. Null masks are allowed.

        Raises:
            MaskError: the array has another type.
        """
        return cls(*arrow.mask_buffers(array))

    @classmethod
    def from_values(cls, values: Sequence[Any]) -> MaskColumn:
        """A column of trusted Python masks, `{"size": [height, width], "counts": str | bytes}`.

        For values from outside use `parse_masks`, which says what is wrong with each.
        """
        counts = [value["counts"] for value in values]
        sizes = np.array([side for value in values for side in value["size"]], np.int64).reshape(-1, 2)
        if all(type(text) is str for text in counts) and (joined := "".join(counts)).isascii():
            data = joined.encode()
        else:
            counts = [text.encode() if isinstance(text, str) else bytes(text) for text in counts]
            data = b"".join(counts)
        offsets = np.concatenate([[0], np.cumsum(np.fromiter(map(len, counts), np.int64, len(counts)))])
        return cls(np.frombuffer(data, np.uint8), offsets, sizes[:, 0], sizes[:, 1])

    @classmethod
    def from_runs(cls, runs: Runs, heights: ArrayLike, widths: ArrayLike) -> MaskColumn:
        """A column of masks given as sound runs (background first, each mask's summing to its height x width)."""
        data, offsets = encode_counts(runs)
        return cls(data, offsets, np.asarray(heights, np.int64), np.asarray(widths, np.int64))

    @classmethod
    def from_dense(cls, arrays: Sequence[ArrayLike]) -> MaskColumn:
        """A column of dense masks, each `(height, width)` bool or integer, nonzero = foreground."""
        from bench_datasets.masks.dense import encode_dense

        return cls.from_values([encode_dense(array) for array in arrays])

    # ------------------------------------------------------------------ shape

    def __len__(self) -> int:
        return len(self.heights)

    def __repr__(self) -> str:
        return f"MaskColumn({len(self)} masks, {int(self.offsets[-1] - self.offsets[0]):,} bytes)"

    @property
    def pixels(self) -> NDArray[np.int64]:
        """`(n,) int64`, height x width."""
        return self.heights * self.widths

    def to_arrow(self) -> pa.StructArray:
        """The column as an Arrow array of `MASK_TYPE`; null where the mask is."""
        counts = arrow.string_array(self.data, self.offsets)
        values = np.clip(np.stack([self.heights, self.widths], axis=1), -1, MAX_PIXELS).astype(np.int32).ravel()
        size = pa.ListArray.from_arrays(pa.array(np.arange(0, len(values) + 1, 2, dtype=np.int32)), pa.array(values))
        nulls = None if self.present.all() else pa.array(~self.present)
        return pa.StructArray.from_arrays([size, counts], fields=list(MASK_TYPE), mask=nulls)

    def to_pylist(self) -> list[dict[str, Any] | None]:
        """The masks as Python values, `{"size": [height, width], "counts": str}`."""
        return self.to_arrow().to_pylist()  # type: ignore[no-any-return]

    def part(self, start: int, stop: int) -> MaskColumn:
        """The masks from `start` to `stop`, over the same buffers; decoded masks stay decoded."""
        part = slice(start, stop)
        new = MaskColumn(
            self.data, self.offsets[start : stop + 1], self.heights[part], self.widths[part], self.present[part],
            self.counted[part],
        )  # fmt: skip
        if "decoded" in self.__dict__:
            new.__dict__["decoded"] = self.decoded.part(start, stop)
        return new

    def take(self, indices: ArrayLike) -> MaskColumn:
        """The masks at `indices` `(m,) int`, in that order; validated masks stay validated."""
        index = np.asarray(indices, np.int64)
        data, offsets = arrow.take_strings(self.data, self.offsets, index)
        new = MaskColumn(
            data,
            offsets,
            self.heights[index],
            self.widths[index],
            self.present[index],
            self.counted[index],
        )
        if "decoded" in self.__dict__:
            new.__dict__["decoded"] = self.decoded.take(index)
        return new

    # ------------------------------------------------------------------ validation

    @cached_property
    def decoded(self) -> Decoded:
        """All masks decoded, once; invalid masks have a status and no runs."""
        return engine_for(self).decode(self)

    def remember(self, decoded: Decoded) -> None:
        """Take over an earlier decoding of the same masks."""
        if len(decoded.status) != len(self):
            raise MaskError(f"decoded: expected {len(self)} masks, found {len(decoded.status)}")
        self.__dict__["decoded"] = decoded

    def readable(self) -> NDArray[np.int64]:
        """`(n,) int64`, pixels of the masks whose counts are to be read; 0 where their shape forbids it."""
        if not len(self):
            return np.zeros(0, np.int64)
        if self._ordinary:
            return self.pixels
        sized = (self.heights > 0) & (self.widths > 0)
        sound = sized & ~self._large() & ~self._long() & self.present & self.counted
        return np.where(sound, self.pixels, 0)

    def blame(self, status: NDArray[np.int8]) -> None:
        """Set `status` `(n,)` of masks whose size or length is invalid."""
        if self._ordinary:
            return
        status[self._long()] = Status.LONG_COUNTS
        status[self._large()] = Status.TOO_LARGE
        status[~self.counted] = Status.NULL_COUNTS
        status[(self.heights <= 0) | (self.widths <= 0)] = Status.BAD_SIZE
        status[~self.present] = Status.NULL

    @cached_property
    def _ordinary(self) -> bool:
        """Whether every mask is there and of a size that can be read, as nearly always."""
        h, w = self.heights, self.widths
        if not len(self) or h.min() <= 0 or w.min() <= 0 or not (self.present.all() and self.counted.all()):
            return False
        return int(h.max()) * int(w.max()) <= MAX_PIXELS and not self._long().any()

    def _large(self) -> NDArray[np.bool_]:
        """Whether masks have more than `MAX_PIXELS`, computed without overflow."""
        height, width = np.minimum(self.heights, MAX_PIXELS), np.minimum(self.widths, MAX_PIXELS)
        return (height > 0) & (width > 0) & (height * width > MAX_PIXELS)

    def _long(self) -> NDArray[np.bool_]:
        """Whether the counts hold more than `MAX_COUNTS` characters."""
        return np.diff(self.offsets) > MAX_COUNTS

    def problems(self) -> dict[int, str]:
        """Reasons why masks are invalid, by position; empty if every mask is valid.

        Example:
            >>> MaskColumn.from_values([{"size": [10, 10], "counts": "d0n0"}]).problems()
            {0: 'the runs do not sum to height x width (10 x 10 = 100)'}
        """
        return {int(i): self._problem(int(i)) for i in np.flatnonzero(self.decoded.status)}

    def _problem(self, i: int) -> str:
        status = Status(int(self.decoded.status[i]))
        words = WORDS[status]
        if status is Status.BAD_SUM:
            height, width = int(self.heights[i]), int(self.widths[i])
            words += f" ({height} x {width} = {height * width})"
        elif status in (Status.BAD_SIZE, Status.TOO_LARGE):
            words += f", found [{self.heights[i]}, {self.widths[i]}]"
        elif status is Status.BAD_CHARACTER and self.data[self.offsets[i] : self.offsets[i] + 2].tobytes() in (
            b"b'",
            b'b"',
        ):
            words = "counts are the printed form of bytes (\"b'...'\"): decode the bytes before storing them"
        return words

    def validate(self) -> MaskColumn:
        """The column itself, once every mask is known to be sound.

        Raises:
            MaskError: a mask is not; the message gives its position and what is wrong.
        """
        if self.decoded.status.any():
            problems = self.problems()
            first = next(iter(problems))
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise MaskError(f"mask {first}: {problems[first]}{more}")
        return self

    # ------------------------------------------------------------------ reading

    @property
    def runs(self) -> Runs:
        """Every mask's runs, zero-length ones merged. Raises `MaskError` if a mask is unsound."""
        return self.validate().decoded.runs

    def areas(self) -> NDArray[np.int64]:
        """`(n,) int64`, foreground pixels. Raises `MaskError` if a mask is unsound."""
        return self.validate().decoded.areas

    def words(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The input of content hashes: each mask's height, width, number of runs and runs, as uint32.

        Returns:
            All masks' words, and `(n + 1,) int64` where each mask's begin; little-endian, zero-length runs merged.

        Raises:
            MaskError: a mask is unsound.
        """
        sizes = 3 + self.validate().decoded.ends.number
        begin = np.concatenate([[0], np.cumsum(sizes)])
        return engine_for(self).words(self, begin[:-1]), begin

    def boxes(self) -> NDArray[np.int64]:
        """Each mask's bounding box, `(n, 4) int64`: x, y, width, height in pixels; all 0 for an empty mask.

        Raises:
            MaskError: a mask is unsound.

        Example:
            >>> MaskColumn.from_dense([[[0, 0, 0], [0, 1, 1]]]).boxes()
            array([[1, 1, 2, 1]])
        """
        corners = self.validate().decoded.corners(self.heights).astype(np.int64)
        sizes = np.maximum(corners[:, 2:] - corners[:, :2] + 1, 0)
        return np.concatenate([np.where(sizes > 0, corners[:, :2], 0), sizes], axis=1)

    def rles(self) -> list[dict[str, Any]]:
        """The masks as pycocotools takes them (`counts` as bytes, without zero-length runs).

        Raises:
            MaskError: a mask is unsound.
        """
        self.validate()
        return self._rles

    @cached_property
    def _rles(self) -> list[dict[str, Any]]:
        column = self.plain()
        first, last = int(column.offsets[0]), int(column.offsets[-1])
        data, offsets = column.data[first:last].tobytes(), (column.offsets - first).tolist()
        sizes = zip(self.heights.tolist(), self.widths.tolist(), strict=True)
        return [
            {"size": [h, w], "counts": data[begin:end]}
            for begin, end, (h, w) in zip(offsets[:-1], offsets[1:], sizes, strict=True)
        ]

    def plain(self) -> MaskColumn:
        """The same masks in strings that compiled code may see: the column itself, as nearly always, or rewritten.

        Raises:
            MaskError: a mask is unsound.
        """
        return self._rewritten if self.validate().decoded.irregular.any() else self

    @cached_property
    def _rewritten(self) -> MaskColumn:
        return MaskColumn.from_runs(self.runs, self.heights, self.widths)

    def decode(self, i: int) -> NDArray[np.bool_]:
        """Mask i as `(height, width) bool`. Raises `MaskError` if a mask is unsound."""
        lengths, offsets = self.runs
        runs = lengths[offsets[i] : offsets[i + 1]]
        flat = np.repeat((np.arange(len(runs)) & 1).astype(np.bool_), runs)
        dense: NDArray[np.bool_] = flat.reshape(int(self.widths[i]), int(self.heights[i])).T
        return dense
