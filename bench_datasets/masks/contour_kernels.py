"""The compiled loop behind boundary F: contours against contours, column by column, no lock held."""

from __future__ import annotations

import numpy as np
from numba import njit, types

_IN = types.Array(types.int64, 1, "C", readonly=True)
_OUT = types.int64[::1]


@njit(nogil=True, cache=True, inline="always")
def _subtract(left, right, n, starts, ends, first, last, shift, side, kept_left, kept_right):
    """Intervals less others that are moved by `shift` and made longer by `side` at both ends; how many are kept."""
    out = 0
    j = first
    for i in range(n):
        at = left[i]
        stop = right[i]
        while j < last and ends[j] + shift + side <= at:
            j += 1
        k = j
        while k < last and at < stop:
            begin = starts[k] + shift - side
            if begin >= stop:
                break
            if begin > at:
                kept_left[out] = at
                kept_right[out] = begin
                out += 1
            at = max(at, ends[k] + shift + side)
            k += 1
        if at < stop:
            kept_left[out] = at
            kept_right[out] = stop
            out += 1
    return out


@njit(types.void(*[_IN] * 10, types.int64, types.int64, _OUT), nogil=True, cache=True)
def hits(of_starts, of_ends, of_first, starts, ends, near_first, base, heights, widths, tolerance, first, last, found):
    """Number of contour pixels within the tolerance of another contour, on images first to last.

    Both contours are intervals none of which goes on in a second column; `of_first` and `near_first` `(n + 1,)` say
    where each image's begin. For each column, what is not hit yet is met with the other contour's columns, the
    nearest first.
    """
    for image in range(first, last):
        a0 = of_first[image]
        a1 = of_first[image + 1]
        b0 = near_first[image]
        b1 = near_first[image + 1]
        if a0 == a1 or b0 == b1:
            continue
        height = heights[image]
        zero = base[image]
        radius = tolerance[image]
        reach = min(radius, widths[image] - 1)
        side = np.empty(reach + 1, np.int64)
        for away in range(reach + 1):
            side[away] = np.int64(np.sqrt(np.float64(radius * radius - away * away)))
        # The columns that the other contour is in, and where each one's intervals begin.
        column = np.empty(b1 - b0, np.int64)
        begin = np.empty(b1 - b0 + 1, np.int64)
        columns = 0
        for k in range(b0, b1):
            x = (starts[k] - zero) // height
            if columns == 0 or column[columns - 1] != x:
                column[columns] = x
                begin[columns] = k
                columns += 1
        begin[columns] = b1
        # What of a column is left has no more parts than pixels.
        most = np.int64(0)
        pixels = np.int64(0)
        before = np.int64(-1)
        for i in range(a0, a1):
            x = (of_starts[i] - zero) // height
            if x != before:
                before = x
                pixels = 0
            pixels += of_ends[i] - of_starts[i]
            most = max(most, pixels)
        most = min(most, a1 - a0 + b1 - b0)
        left = np.empty(most + 1, np.int64)
        right = np.empty(most + 1, np.int64)
        kept_left = np.empty(most + 1, np.int64)
        kept_right = np.empty(most + 1, np.int64)
        total = np.int64(0)
        i = a0
        after = 0
        while i < a1:
            x = (of_starts[i] - zero) // height
            n = 0
            stop = zero + (x + 1) * height
            while i < a1 and of_starts[i] < stop:
                left[n] = of_starts[i]
                right[n] = of_ends[i]
                total += of_ends[i] - of_starts[i]
                n += 1
                i += 1
            while after < columns and column[after] < x:
                after += 1
            up = after
            down = after - 1
            while n:
                to_up = column[up] - x if up < columns else reach + 1
                to_down = x - column[down] if down >= 0 else reach + 1
                if to_up > reach and to_down > reach:
                    break
                if to_up <= to_down:
                    c = up
                    up += 1
                    away = to_up
                else:
                    c = down
                    down -= 1
                    away = to_down
                n = _subtract(
                    left, right, n, starts, ends, begin[c], begin[c + 1], (x - column[c]) * height, side[away],
                    kept_left, kept_right,
                )  # fmt: skip
                left, kept_left = kept_left, left
                right, kept_right = kept_right, right
            for k in range(n):
                total -= right[k] - left[k]
        found[image] = total
