"""The compiled loops of the numba engine: plain arrays in, exact integers out, no lock held.

Masks are read once into run ends (`int32`, a mask's place in the array being its string's place among the bytes, which
are never fewer than its runs). Foreground intervals are then `[ends[2k], ends[2k + 1])`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

_U8 = types.Array(types.uint8, 1, "C", readonly=True)
_I64 = types.Array(types.int64, 1, "C", readonly=True)
_I32 = types.Array(types.int32, 1, "C", readonly=True)
_BOX = types.Array(types.int32, 2, "C", readonly=True)
_OUT8, _OUT32, _OUT64, _OUT = types.int8[::1], types.int32[::1], types.int64[::1], types.boolean[::1]
_N = types.int64

_ONE, _TWO = np.uint64(1), np.uint64(2)
"""Positions are counted without a sign where it matters: of one with a sign, numba asks each time if it is negative."""


def _kernel(*signature: Any) -> Any:
    """Compiled for one signature, kept on disk, without the lock."""
    return njit(types.void(*signature), nogil=True, cache=True)


@njit(nogil=True, cache=True, inline="always")
def _read(data, lo, hi, pixels, ends, base, seen):
    """Read data[lo:hi] into ends[base:]; runs written, or minus a status.

    seen[0] is set where other compiled code must not see the string: for zero-length runs inside, and for a run of
    seven characters, which code that shifts 32-bit integers reads wrong.
    """
    start = np.uint64(base)
    out = start
    p = np.uint64(lo)
    index = np.uint64(0)
    total = np.int64(0)
    value = np.int64(0)
    shift = 0
    before = np.int64(0)  # the run before, and the one before that
    older = np.int64(0)
    while p < np.uint64(hi):
        digit = np.int64(data[p]) - 48
        p += _ONE
        if digit < 0 or digit > 63:
            return -6
        value |= (digit & 31) << shift
        shift += 5
        if digit & 32:
            if shift >= 35:
                return -8
            continue
        if shift == 35:
            seen[0] = True
        value -= (digit >> 4) << shift  # the sign
        if index > _TWO:
            value += older
        if value < 0:
            return -9
        older = before
        before = value
        total += value
        if total > pixels:
            return -10
        if value > 0 or not index:
            if (index ^ (out - start)) & _ONE:
                ends[out - _ONE] = total  # the zero-length run before is gone: this one goes on with its like
            else:
                ends[out] = total
                out += _ONE
        else:
            seen[0] = True
        index += _ONE
        value = 0
        shift = 0
    if shift:
        return -7
    if total != pixels:
        return -10
    return np.int64(out - start)


@njit(nogil=True, cache=True, inline="always")
def _shared(a, a0, a_runs, b, b0, b_runs):
    """Pixels shared by two masks: their intervals side by side, from where the later one begins."""
    n = a_runs >> 1
    m = b_runs >> 1
    if n == 0 or m == 0:
        return np.int64(0)
    i = 0
    j = 0
    if a[a0] < b[b0]:
        i = _skip(a, a0, n, b[b0])
    else:
        j = _skip(b, b0, m, a[a0])
    p = np.uint64(a0 + 2 * i)
    p_end = np.uint64(a0 + 2 * n)
    q = np.uint64(b0 + 2 * j)
    q_end = np.uint64(b0 + 2 * m)
    total = np.int64(0)
    while p < p_end and q < q_end:
        start = a[p]
        end = a[p + _ONE]
        while q < q_end and b[q + _ONE] <= end:  # mostly once: outlines of one thing keep pace
            total += max(np.int64(b[q + _ONE]) - np.int64(max(start, b[q])), 0)
            q += _TWO
        if q < q_end:
            total += max(np.int64(end) - np.int64(max(start, b[q])), 0)
        p += _TWO
    return total


@njit(nogil=True, cache=True, inline="always")
def _skip(ends, base, n, position):
    """First of n intervals that ends behind a position."""
    lo = 0
    hi = n
    while lo < hi:
        mid = (lo + hi) >> 1
        if ends[base + 2 * mid + 1] <= position:
            lo = mid + 1
        else:
            hi = mid
    return lo


@njit(nogil=True, cache=True, inline="always")
def _area(ends, base, runs):
    total = np.int64(0)
    p = np.uint64(base)
    stop = np.uint64(base + (runs & ~1))
    while p < stop:
        total += np.int64(ends[p + _ONE]) - np.int64(ends[p])
        p += _TWO
    return total


@_kernel(_U8, _I64, _I64, _I64, _N, _N, _OUT32, _OUT64, _OUT8, _OUT, _OUT64, types.int32[:, ::1])
def decode(data, offsets, pixels, heights, first, last, ends, count, status, irregular, area, box):
    """Read masks first to last; corners are x0, y0, x1, y1 inclusive, x1 < x0 for an empty mask."""
    seen = np.zeros(1, np.bool_)
    start = offsets[0]
    for r in range(first, last):
        box[r, 2] = -1
        box[r, 3] = -1
        if pixels[r] < 1:
            status[r] = 2
            continue
        if offsets[r] == offsets[r + 1]:
            status[r] = 5
            continue
        seen[0] = False
        base = offsets[r] - start
        runs = _read(data, offsets[r], offsets[r + 1], pixels[r], ends, base, seen)
        if runs < 0:
            status[r] = -runs
            continue
        count[r] = runs
        irregular[r] = seen[0]
        n = runs >> 1
        if n == 0:
            continue
        height = heights[r]
        total = np.int64(0)
        top = height
        bottom = np.int64(-1)
        column = np.int64(ends[base]) // height * height  # first pixel of the column that is looked at
        p = np.uint64(base)
        stop = np.uint64(base + 2 * n)
        while p < stop:
            s = np.int64(ends[p])
            e = np.int64(ends[p + _ONE])
            p += _TWO
            total += e - s
            if s - column >= 8 * height:
                column = s // height * height
            while s - column >= height:  # a step or two is quicker than a division
                column += height
            y = s - column
            last_y = e - column
            if last_y > height:
                top = 0
                bottom = height - 1
            else:
                top = min(top, y)
                bottom = max(bottom, last_y - 1)
        area[r] = total
        box[r, 0] = np.int64(ends[base]) // height
        box[r, 1] = top
        box[r, 2] = (np.int64(ends[base + 2 * n - 1]) - 1) // height
        box[r, 3] = bottom


@_kernel(_I32, _I64, _I64, _I64, _I64, _I64, _N, _N, types.uint32[::1])
def words(ends, begin, count, heights, widths, place, first, last, out):
    """Masks first to last as words: height, width, number of runs, runs."""
    for r in range(first, last):
        at = place[r]
        out[at] = heights[r]
        out[at + 1] = widths[r]
        out[at + 2] = count[r]
        before = 0
        p = np.uint64(begin[r])
        stop = np.uint64(begin[r] + count[r])
        q = np.uint64(at + 3)
        while p < stop:
            end = ends[p]
            out[q] = end - before
            before = end
            p += _ONE
            q += _ONE


@_kernel(_U8, _I64, _U8, _I64, _I64, _N, _N, _OUT64, _OUT64, _OUT64, _OUT8)
def pairs(a, a_offsets, b, b_offsets, pixels, first, last, shared, a_area, b_area, status):
    """Read, measure and intersect aligned masks in one go; nothing of them is kept."""
    longest = np.int64(0)
    for r in range(first, last):
        longest = max(longest, a_offsets[r + 1] - a_offsets[r], b_offsets[r + 1] - b_offsets[r])
    left = np.empty(longest + 1, np.int32)
    right = np.empty(longest + 1, np.int32)
    seen = np.zeros(1, np.bool_)
    for r in range(first, last):
        n = _read(a, a_offsets[r], a_offsets[r + 1], pixels[r], left, 0, seen)
        m = _read(b, b_offsets[r], b_offsets[r + 1], pixels[r], right, 0, seen)
        if n <= 0 or m <= 0 or pixels[r] < 1:
            status[r] = 1
            continue
        a_area[r] = _area(left, 0, n)
        b_area[r] = _area(right, 0, m)
        shared[r] = _shared(left, 0, n, right, 0, m)


@_kernel(_I32, _I64, _I64, _I32, _I64, _I64, _N, _N, _OUT64)
def aligned(a, a_begin, a_count, b, b_begin, b_count, first, last, shared):
    """Intersect aligned masks that were read before."""
    for r in range(first, last):
        shared[r] = _shared(a, a_begin[r], a_count[r], b, b_begin[r], b_count[r])


@njit(nogil=True, cache=True, inline="always")
def _apart(a_box, i, b_box, j):
    """Whether two boxes share no pixel; an empty mask's shares none with any."""
    return (
        (a_box[i, 2] < a_box[i, 0])
        | (b_box[j, 2] < b_box[j, 0])
        | (b_box[j, 0] > a_box[i, 2])
        | (b_box[j, 2] < a_box[i, 0])
        | (b_box[j, 1] > a_box[i, 3])
        | (b_box[j, 3] < a_box[i, 1])
    )


@njit(nogil=True, cache=True)
def _row(a, a0, a_runs, box, b, b_begin, b_count, b_box, i, j0, j1, found, h):
    """One mask's pairs, written to `found` from h on; where they end."""
    x0, y0, x1, y1 = box[0], box[1], box[2], box[3]
    for j in range(j0, j1):
        # All four at once: one jump that is hardly ever taken. An empty mask's box lies left of every other.
        if (b_box[j, 0] <= x1) & (b_box[j, 2] >= x0) & (b_box[j, 1] <= y1) & (b_box[j, 3] >= y0):
            both = _shared(a, a0, a_runs, b, b_begin[j], b_count[j])
            if both > 0:
                found[0, h] = i
                found[1, h] = j
                found[2, h] = both
                h += 1
    return h


@njit((_I32, _I64, _I64, _BOX, _I32, _I64, _I64, _BOX, _I64, _I64, _N, _N), nogil=True, cache=True)
def hits(a, a_begin, a_count, a_box, b, b_begin, b_count, b_box, group, b_groups, first, last):
    """Pairs of a's masks first to last with b's of their group that share a pixel: i, j, pixels `(3, ..)`; how many."""
    found = np.empty((3, 2 * (last - first) + 16), np.int64)
    h = 0
    for i in range(first, last):
        j0, j1 = b_groups[group[i]], b_groups[group[i] + 1]
        if h + j1 - j0 > found.shape[1]:  # there is room for the whole row before it is begun
            more = np.empty((3, max(2 * found.shape[1], h + j1 - j0)), np.int64)
            more[:, :h] = found[:, :h]
            found = more
        h = _row(a, a_begin[i], a_count[i], a_box[i], b, b_begin, b_count, b_box, i, j0, j1, found, h)
    return found, h


@_kernel(_I32, _I64, _I64, _BOX, _I64, _I32, _I64, _I64, _BOX, _I64, _I64, _I64, _N, _N, types.int64[:, ::1])
def tubes(a, a_begin, a_count, a_box, a_tube, b, b_begin, b_count, b_box, b_tube, a_frames, b_frames, first, last, out):
    """Frames first to last: every pair of a frame's masks added to its tubes' cell."""
    for f in range(first, last):
        for i in range(a_frames[f], a_frames[f + 1]):
            for j in range(b_frames[f], b_frames[f + 1]):
                if not _apart(a_box, i, b_box, j):
                    out[a_tube[i], b_tube[j]] += _shared(a, a_begin[i], a_count[i], b, b_begin[j], b_count[j])


@_kernel(_I32, _I64, _I64, _BOX, _I64, _I64, _I64, types.float64, _N, _N, _OUT)
def suppress(ends, begin, count, box, area, order, groups, threshold, first, last, keep):
    """Greedy suppression of groups first to last; a mask is compared with kept masks that may overlap it."""
    for g in range(first, last):
        kept = np.empty(groups[g + 1] - groups[g], np.int64)
        k = 0
        for q in range(groups[g], groups[g + 1]):
            i = order[q]
            alive = True
            for z in range(k):
                j = kept[z]
                if _apart(box, i, box, j):
                    continue
                # The largest IoU two areas allow is their quotient; kept masks are no smaller.
                if area[i] / area[j] <= threshold:
                    continue
                both = _shared(ends, begin[i], count[i], ends, begin[j], count[j])
                if both / (area[i] + area[j] - both) > threshold:
                    alive = False
                    break
            if alive:
                kept[k] = i
                k += 1
                keep[i] = True


@njit(nogil=True, cache=True)
def _union(ends, begin, count, first, last, out, spare):
    """The union of masks first to last as intervals in out; how many. Two at a time, then two of those, and so on."""
    n = last - first
    bounds = np.empty(n + 1, np.uint64)  # where each mask's intervals begin in the array
    at = np.uint64(0)
    for k in range(n):
        bounds[k] = at
        p = np.uint64(begin[first + k])
        stop = p + np.uint64(count[first + k] & ~1)
        while p < stop:
            out[at] = ends[p]
            at += _ONE
            p += _ONE
    bounds[n] = at
    source = out
    target = spare
    while n > 1:
        at = np.uint64(0)
        half = 0
        for k in range(0, n, 2):
            i = bounds[k]
            i_end = bounds[k + 1]
            j = i_end
            j_end = bounds[min(k + 2, n)]
            bounds[half] = at
            reached = np.int32(-1)  # end of the interval that was written last
            while i < i_end or j < j_end:
                if j >= j_end or (i < i_end and source[i] <= source[j]):
                    s = source[i]
                    e = source[i + _ONE]
                    i += _TWO
                else:
                    s = source[j]
                    e = source[j + _ONE]
                    j += _TWO
                if s <= reached:
                    reached = max(reached, e)
                    target[at - _ONE] = reached
                else:
                    target[at] = s
                    target[at + _ONE] = e
                    reached = e
                    at += _TWO
            half += 1
        bounds[half] = at
        n = half
        source, target = target, source
    for k in range(np.int64(at)):
        out[k] = source[k]
    return np.int64(at >> _ONE)


@_kernel(_I32, _I64, _I64, _I64, _I32, _I64, _I64, _I64, _N, _N, _OUT64, _OUT64, _OUT64)
def unions(a, a_begin, a_count, a_groups, b, b_begin, b_count, b_groups, first, last, shared, left, right):
    """Groups first to last: each side's union, its pixels and the pixels the two share."""
    most = np.int64(0)
    for g in range(first, last):
        total = np.int64(0)
        for i in range(a_groups[g], a_groups[g + 1]):
            total += a_count[i] + 1
        most = max(most, total)
        total = np.int64(0)
        for j in range(b_groups[g], b_groups[g + 1]):
            total += b_count[j] + 1
        most = max(most, total)
    of_a = np.empty(most + 2, np.int32)
    of_b = np.empty(most + 2, np.int32)
    spare = np.empty(most + 2, np.int32)
    for g in range(first, last):
        n = _union(a, a_begin, a_count, a_groups[g], a_groups[g + 1], of_a, spare)
        m = _union(b, b_begin, b_count, b_groups[g], b_groups[g + 1], of_b, spare)
        left[g] = _area(of_a, 0, 2 * n)
        right[g] = _area(of_b, 0, 2 * m)
        shared[g] = _shared(of_a, 0, 2 * n, of_b, 0, 2 * m)
