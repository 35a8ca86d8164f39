"""Reasons why a mask is invalid, as a code for arrays and as text."""

from __future__ import annotations

from enum import IntEnum

from bench_datasets.faults import BenchError

MAX_PIXELS = 2**31 - 1
"""Largest height x width of a mask; run ends then fit int32."""

MAX_COUNTS = 2**24
"""Most characters of a mask's compressed counts, and so most runs; bounds the memory that one mask takes."""

MAX_VARINT = 7
"""Most characters that one run may take: 35 bits, more than any run below `MAX_PIXELS` needs."""


class Status(IntEnum):
    """Why a mask is refused; `OK` is 0, so that `status.any()` asks whether one is."""

    OK = 0
    NULL = 1
    BAD_SIZE = 2
    TOO_LARGE = 3
    NULL_COUNTS = 4
    EMPTY_COUNTS = 5
    BAD_CHARACTER = 6
    TRUNCATED = 7
    LONG_VARINT = 8
    NEGATIVE_RUN = 9
    BAD_SUM = 10
    LONG_COUNTS = 11


WORDS: dict[Status, str] = {
    Status.OK: "sound",
    Status.NULL: "the mask is null",
    Status.BAD_SIZE: "size must be two positive integers [height, width]",
    Status.TOO_LARGE: "size is too large: height x width must be below 2^31 pixels",
    Status.NULL_COUNTS: "counts are null",
    Status.EMPTY_COUNTS: "counts are empty",
    Status.BAD_CHARACTER: "counts hold a character outside COCO's RLE alphabet ('0' to 'o')",
    Status.TRUNCATED: "counts end in the middle of a run (a truncated string)",
    Status.LONG_VARINT: "counts hold a run of more than 7 characters",
    Status.NEGATIVE_RUN: "counts hold a negative run",
    Status.BAD_SUM: "the runs do not sum to height x width",
    Status.LONG_COUNTS: f"counts are too long: at most {MAX_COUNTS:,} characters are read",
}


class MaskError(BenchError):
    """A mask, or the way masks were put together, is unsound; the message says which and why."""
