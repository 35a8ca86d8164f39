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


class ShortRuns(NamedTuple):
    """`Runs` of 32-bit integers, as they are decoded.

    Attributes:
        lengths: `(runs,) int32`, pixels.
        offsets: `(n + 1,) int64`.
    """

    lengths: NDArray[np.int32]
    offsets: NDArray[np.int64]


class Reading(NamedTuple):
    """The result of decoding n strings.

    Attributes:
        runs: of the masks that are `Status.OK`; the others have none.
        areas: `(n,) int64`, foreground pixels; 0 for a mask that is not `Status.OK`.
        status: `(n,) int8`, a `Status` a mask.
        irregular: `(n,) bool`, which sound masks' strings compiled code must not see: those with zero-length runs or
            a varint of seven characters.
    """

    runs: ShortRuns
    areas: NDArray[np.int64]
    status: NDArray[np.int8]
    irregular: NDArray[np.bool_]


def decode_counts(data: NDArray[np.uint8], offsets: NDArray[np.int64], pixels: NDArray[np.int64]) -> Reading:
    """Read and validate n strings.

    Args:
        data: the strings' bytes.
        offsets: `(n + 1,) int64` into `data`.
        pixels: `(n,) int64`, height x width of each mask; below 1 for a mask that is not to be read.

    Example:
        >>> text = np.frombuffer(b"d0n0b1", np.uint8)
        >>> decode_counts(text, np.array([0, 6]), np.array([100])).runs.lengths
        array([20, 30, 50], dtype=int32)
    """
    n = len(pixels)
    lengths = np.empty(int(offsets[-1] - offsets[0]), np.int32)  # a run has a character at least
    begin, areas = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    status, irregular = np.zeros(n, np.int8), np.zeros(n, np.bool_)
    first = at = 0
    while first < n:
        last = int(np.searchsorted(offsets, offsets[first] + _CHUNK_BYTES, side="right")) - 1
        last = min(max(last, first + 1), n)
        chunk, own, part = data[offsets[first] : offsets[last]], offsets[first : last + 1], slice(first, last)
        found = _decode_chunk(
            chunk, own - own[0], pixels[part], begin[1:][part], areas[part], status[part], irregular[part]
        )
        lengths[at : at + len(found)] = found
        first, at = last, at + len(found)
    np.cumsum(begin, out=begin)
    return Reading(ShortRuns(lengths[:at], begin), areas, status, irregular)


def _decode_chunk(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    pixels: NDArray[np.int64],
    counts: NDArray[np.int64],
    areas: NDArray[np.int64],
    status: NDArray[np.int8],
    irregular: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """One chunk: runs of the sound masks; writes the number of runs, area, status and irregular of each mask."""
    digits = data - np.uint8(48)
    more = np.flatnonzero(digits > 31)
    if not _well_formed(digits, more, offsets, pixels):
        status[:] = _structure(digits, offsets, pixels)
        good, sizes = status == Status.OK, np.diff(offsets)
        digits = digits[np.repeat(good, sizes)]
        more = np.flatnonzero(digits > 31)
        offsets = np.concatenate([[0], np.cumsum(sizes[good])])
        pixels = pixels[good]
    if not len(pixels):
        return np.zeros(0, np.int64)
    good = status == Status.OK
    lengths, starts = _values(digits, more, offsets)
    totals, foreground = _sums(lengths, starts)
    had = _longest(more, offsets)
    heads, per_mask = starts[:-1], np.diff(starts)
    least, wrong = lengths.min(), totals != pixels
    if lengths.max() > pixels.min():
        # A run that is longer than its mask is looked for: with such runs the sum could wrap around to the right one.
        wrong |= np.maximum.reduceat(lengths, heads) > pixels
    if least < 0 or wrong.any():
        negative = np.minimum.reduceat(lengths, heads) < 0
        status[good] = np.where(negative, Status.NEGATIVE_RUN, np.where(wrong, Status.BAD_SUM, Status.OK))
        sound = ~(negative | wrong)
        good = status == Status.OK
        lengths = lengths[np.repeat(sound, per_mask)]
        per_mask, foreground, had = per_mask[sound], foreground[sound], had[sound]
        starts = np.concatenate([[0], np.cumsum(per_mask)])
    if least <= 0 and np.count_nonzero(lengths) + np.count_nonzero(lengths[starts[:-1]] == 0) < len(lengths):
        lengths, per_mask, merged = _merge_zero_runs(lengths, starts)
        had |= merged
    counts[good], areas[good], irregular[good] = per_mask, foreground, had
    return lengths


def _sums(lengths: NDArray[np.int64], starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each mask's pixels and foreground pixels."""
    heads, odd = starts[:-1], starts >> 1  # odd places of the whole array before each mask
    totals = np.add.reduceat(lengths, heads)
    sums, some = np.zeros_like(totals), odd[1:] > odd[:-1]
    if some.any():
        sums[some] = np.add.reduceat(lengths[1::2], odd[:-1][some])
    return totals, np.where(heads & 1, totals - sums, sums)


def _well_formed(
    digits: NDArray[np.uint8], more: NDArray[np.int64], offsets: NDArray[np.int64], pixels: NDArray[np.int64]
) -> bool:
    """Whether there is nothing for `_structure` to find, as nearly always."""
    if pixels.min() < 1 or (offsets[1:] == offsets[:-1]).any() or digits.max() > 63:
        return False
    if (digits[offsets[1:] - 1] > 31).any():
        return False
    reach = MAX_VARINT - 1  # so many places further on, as many characters say that more follow: too many
    return not (more[reach:] - more[:-reach] == reach).any()


def _structure(digits: NDArray[np.uint8], offsets: NDArray[np.int64], pixels: NDArray[np.int64]) -> NDArray[np.int8]:
    """Check the structure of strings: empty ones, characters, ends and lengths of varints."""
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
    digits: NDArray[np.uint8], more: NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The runs of structurally sound, non-empty strings, and where each mask's runs begin.

    Varints of up to three characters are added up at their first one, all at once in 16 bits; longer ones are few, and
    are put together one character after another.

    Args:
        digits: the characters, from 0 to 63.
        more: where one says that more follow.
        offsets: `(n + 1,) int64` into `digits`.
    """
    low = (digits & 31).view(np.int8)
    own = low - ((digits & 48) == 16) * np.int8(32)  # with the sign, where it is the last
    if not len(more):
        return _undo_differences(own.astype(np.int64), offsets), offsets
    wide, factor = own.astype(np.int16), (digits > 31) * np.int16(32)
    two = wide[1:] * factor[:-1]
    two += wide[:-1]
    wide[:-2] += two[1:] * factor[:-2]
    wide[-2] = two[-1]
    opens = np.ones(len(digits), np.bool_)
    np.less(digits[:-1], 32, out=opens[1:])
    value = wide.take(np.flatnonzero(opens)).astype(np.int64)
    third = np.flatnonzero(more[2:] - more[:-2] == 2) + 2  # of the places in a row, as many say that more follow
    third = third[digits[more[third] + 1] < 32]
    at, run = more[third], more[third] - third  # a run lies as many places before its end as have more before it
    value[run] = own[at + 1]
    while len(at):
        value[run] = (value[run] << 5) | low[at]
        at -= 1
        deeper = np.flatnonzero(digits[at] > 31)  # at -1 is the last character, which ends a run
        at, run = at[deeper], run[deeper]
    starts = offsets - np.searchsorted(more, offsets)
    return _undo_differences(value, starts), starts


def _longest(more: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which masks have a varint of `MAX_VARINT` characters.

    Compiled code shifts a 32-bit integer by the length of a negative varint: seven characters are too many for it.
    """
    reach = MAX_VARINT - 2
    begin = more[:-reach][more[reach:] - more[:-reach] == reach]
    found = np.zeros(len(offsets) - 1, np.bool_)
    found[np.searchsorted(offsets, begin, side="right") - 1] = True
    return found


def _undo_differences(value: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Run k >= 3 was stored as its difference from run k - 2: two interleaved sums a mask.

    Even and odd places are summed over the whole array; at the first of each mask, what the mask before leaves in the
    sum is taken off. (A sum over every second place is several times as fast as one over neighbours.)
    """
    heads = starts[:-1]
    first = value[heads]
    value[heads] = 0
    total = np.empty_like(value)
    for parity in (0, 1):
        stream = value[parity::2]
        passed = (starts + 1 - parity) >> 1  # even or odd places before each mask's first run
        begin = passed[:-1][passed[1:] > passed[:-1]]
        if len(begin) > 1:
            stream[begin[1:]] -= np.add.reduceat(stream, begin)[:-1]
        np.cumsum(stream, out=total[parity::2])
    total[heads] = first
    return total


def _merge_zero_runs(
    lengths: NDArray[np.int64], starts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Drop zero-length runs (the first of a mask may stay) and merge their neighbours."""
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
