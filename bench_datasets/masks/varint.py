"""COCO's compressed run lengths: strings to runs and back, whole columns at a time, validated as they are read.

A string holds one run after another as varints of 5 bits a character (least significant first, bit 5 says that more
follow, the sign is bit 4 of the last); from the fourth run on, the difference from the run two before is stored.
Runs alternate background and foreground, down the columns of the image.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_datasets.masks.status import MAX_VARINT, Status

_CHUNK_BYTES = 1 << 16  # keeps the temporaries of one chunk in the processor's cache


class Runs(NamedTuple):
    """The runs of n masks, one after another.

    Attributes:
        lengths: `(runs,) int64`, pixels; background first, zero-length runs merged away (a first one may be 0).
        offsets: `(n + 1,) int64`, where each mask's runs begin.
    """

    lengths: NDArray[np.int64]
    offsets: NDArray[np.int64]


def decode_counts(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], pixels: NDArray[np.int64]
) -> tuple[Runs, NDArray[np.int8], NDArray[np.bool_]]:
    """Read and validate n strings.

    Args:
        data: the strings' bytes.
        offsets: `(n + 1,) int64` into `data`.
        pixels: `(n,) int64`, height x width of each mask; below 1 for a mask that is not to be read.

    Returns:
        The runs (none for a mask that is not `Status.OK`), `(n,) int8` a `Status` a mask, and `(n,) bool` which sound
        masks' strings compiled code must not see: those with zero-length runs or a varint of seven characters.

    Example:
        >>> text = np.frombuffer(b"d0n0b1", np.uint8)
        >>> decode_counts(text, np.array([0, 6]), np.array([100]))[0].lengths
        array([20, 30, 50])
    """
    n = len(pixels)
    status = np.zeros(n, np.int8)
    irregular = np.zeros(n, np.bool_)
    lengths: list[NDArray[np.int64]] = []
    counts = np.zeros(n, np.int64)
    first = 0
    while first < n:
        last = int(np.searchsorted(offsets, offsets[first] + _CHUNK_BYTES, side="right")) - 1
        last = min(max(last, first + 1), n)
        part = slice(first, last)
        flat, counts[part], status[part], irregular[part] = _decode_chunk(
            data[offsets[first] : offsets[last]], offsets[first : last + 1] - offsets[first], pixels[part]
        )
        lengths.append(flat)
        first = last
    run_offsets = np.zeros(n + 1, np.int64)
    np.cumsum(counts, out=run_offsets[1:])
    flat = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    return Runs(flat, run_offsets), status, irregular


def _decode_chunk(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], pixels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int8], NDArray[np.bool_]]:
    """One chunk: runs of the sound masks, runs a mask, status, irregular."""
    digits = data - np.uint8(48)
    status = _structure(digits, offsets, pixels)
    good = status == Status.OK
    if not good.all():
        sizes = np.diff(offsets)
        digits = digits[np.repeat(good, sizes)]
        offsets = np.concatenate([[0], np.cumsum(sizes[good])])
        pixels = pixels[good]
    irregular = np.zeros(len(status), np.bool_)
    counts = np.zeros(len(status), np.int64)
    if not len(pixels):
        return np.zeros(0, np.int64), counts, status, irregular
    lengths, starts, irregular[good] = _values(digits, offsets)
    totals = np.add.reduceat(lengths, starts[:-1])
    negative = np.minimum.reduceat(lengths, starts[:-1]) < 0
    # A run that is longer than the mask is looked for too: with such runs the sum could wrap around to the right one.
    wrong = (totals != pixels) | (np.maximum.reduceat(lengths, starts[:-1]) > pixels)
    verdict = np.where(negative, Status.NEGATIVE_RUN, np.where(wrong, Status.BAD_SUM, Status.OK))
    status[good] = verdict.astype(np.int8)
    per_mask = np.diff(starts)
    if verdict.any():
        sound = verdict == Status.OK
        lengths = lengths[np.repeat(sound, per_mask)]
        per_mask = per_mask[sound]
        good = status == Status.OK
        starts = np.concatenate([[0], np.cumsum(per_mask)])
    if (lengths == 0).any():
        lengths, per_mask, had = _merge_zero_runs(lengths, starts)
        irregular[good] |= had
    counts[good] = per_mask
    return lengths, counts, status, irregular


def _structure(digits: NDArray[np.uint8], offsets: NDArray[np.int64], pixels: NDArray[np.int64]) -> NDArray[np.int8]:
    """What can be seen without adding anything up: empty strings, characters, ends, lengths of varints."""
    status = np.zeros(len(pixels), np.int8)
    sizes = np.diff(offsets)
    status[pixels < 1] = Status.BAD_SIZE
    status[(status == 0) & (sizes == 0)] = Status.EMPTY_COUNTS
    if not len(digits):
        return status

    def blame(positions: NDArray[np.int64], code: Status) -> None:
        rows = np.unique(np.searchsorted(offsets, positions, side="right") - 1)
        status[rows[status[rows] == 0]] = code

    strange = digits > 63
    if strange.any():
        blame(np.flatnonzero(strange), Status.BAD_CHARACTER)
    more = (digits & 32) != 0
    filled = sizes > 0
    ends = offsets[1:][filled] - 1
    unfinished = ends[more[ends]]
    if len(unfinished):
        blame(unfinished, Status.TRUNCATED)
    # A varint is too long where MAX_VARINT characters in a row all say that more follow, within one string.
    if more.sum() >= MAX_VARINT:
        last = np.flatnonzero(~more)
        gaps = np.diff(last, prepend=-1)
        long = last[gaps > MAX_VARINT]
        if len(long):
            begin = np.searchsorted(offsets, long, side="right") - 1
            inside = long - offsets[begin] + 1 > MAX_VARINT
            blame(long[inside], Status.LONG_VARINT)
    return status


def _values(
    digits: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """The runs of structurally sound, non-empty strings, where each mask's runs begin, which masks are irregular."""
    last = np.flatnonzero((digits & 32) == 0)
    begin = np.empty_like(last)
    begin[0] = 0
    np.add(last[:-1], 1, out=begin[1:])
    extra = last - begin
    value = (digits[begin] & 31).astype(np.int64)
    step, some = 1, np.flatnonzero(extra)
    while len(some):
        value[some] |= (digits[begin[some] + step] & 31).astype(np.int64) << (5 * step)
        step += 1
        some = some[extra[some] >= step]
    minus = np.flatnonzero(digits[last] & 16)
    value[minus] -= np.int64(1) << (5 * (extra[minus] + 1))
    starts = np.searchsorted(last, offsets)
    # Compiled code shifts a 32-bit integer by the length of a negative varint: seven characters are too many for it.
    longest = np.zeros(len(offsets) - 1, np.bool_)
    if step >= MAX_VARINT:
        longest = np.logical_or.reduceat(extra >= MAX_VARINT - 1, starts[:-1])
    return _undo_differences(value, starts), starts, longest


def _undo_differences(value: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Run k >= 3 was stored as its difference from run k - 2: two interleaved sums a mask.

    Even and odd places are summed over the whole array; what the masks before have left in them is taken off again.
    """
    heads = starts[:-1]
    first = value[heads]
    value[heads] = 0
    total = np.empty_like(value)
    before = np.zeros((2, len(heads)), np.int64)  # sums of the even and the odd places before each mask
    for parity in (0, 1):
        stream = np.cumsum(value[parity::2], out=total[parity::2])
        passed = (starts + 1 - parity) >> 1  # even or odd places before each mask's first run
        some = passed[:-1] > 0
        before[parity, some] = stream[passed[:-1][some] - 1]
        stream -= np.repeat(before[parity], np.diff(passed))
    total[heads] = first
    return total


def _merge_zero_runs(
    lengths: NDArray[np.int64], starts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Drop zero-length runs (a mask's first may stay) and join what they parted."""
    n = len(starts) - 1
    row = np.repeat(np.arange(n), np.diff(starts))
    colour = (np.arange(len(lengths)) - np.repeat(starts[:-1], np.diff(starts))) & 1
    had = np.zeros(n, np.bool_)
    inner = (lengths == 0) & (np.arange(len(lengths)) != starts[:-1][row])
    had[row[inner]] = True
    kept = lengths > 0
    lengths, row, colour = lengths[kept], row[kept], colour[kept]
    change = np.ones(len(lengths), np.bool_)
    change[1:] = (row[1:] != row[:-1]) | (colour[1:] != colour[:-1])
    heads = np.flatnonzero(change)
    lengths, row, colour = np.add.reduceat(lengths, heads), row[heads], colour[heads]
    opening = np.ones(len(lengths), np.bool_)
    opening[1:] = row[1:] != row[:-1]
    lead = opening & (colour == 1)
    lengths = np.insert(lengths, np.flatnonzero(lead), 0)
    per_mask = np.bincount(row, minlength=n) + np.bincount(row[lead], minlength=n)
    return lengths, per_mask, had


def encode_counts(runs: Runs) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Write runs as strings: their bytes and `(n + 1,) int64` offsets.

    Example:
        >>> data, offsets = encode_counts(Runs(np.array([20, 30, 50]), np.array([0, 3])))
        >>> data.tobytes()
        b'd0n0b1'
    """
    value = runs.lengths.copy()
    if len(value) > 3:
        index = np.arange(len(value)) - np.repeat(runs.offsets[:-1], np.diff(runs.offsets))
        late = np.flatnonzero(index > 2)
        value[late] = runs.lengths[late] - runs.lengths[late - 2]
    size = np.ones(len(value), np.int64)
    for step in range(1, MAX_VARINT):
        size += (value < -(1 << (5 * step - 1))) | (value >= (1 << (5 * step - 1)))
    ends = np.cumsum(size)
    begin = ends - size
    data = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    for step in range(int(size.max()) if len(size) else 0):
        some = np.flatnonzero(size > step)
        data[begin[some] + step] = ((value[some] >> (5 * step)) & 31) + 48 + 32 * (size[some] > step + 1)
    return data, np.concatenate([[0], ends])[runs.offsets]
