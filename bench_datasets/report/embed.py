"""Embedded data of the page: safe JSON, and pictures as data within a budget of bytes."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LIMIT = 5_000_000
"""Bytes that a page may have."""

_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&'\u2028\u2029\u0085\ufeff"}


def script_json(value: Any) -> str:
    r"""A value as JSON for an inline `<script>`: no markup, no line ends of JavaScript, no lone surrogates.

    Example:
        >>> script_json("</script><!--")
        '"\\u003c/script\\u003e\\u003c!--"'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_UNSAFE).encode("utf-8", "backslashreplace").decode("utf-8")


ALPHABET = "".join(chr(c) for c in range(0xC0, 0xCC)) + "".join(
    c for c in map(chr, range(0x20, 0x7F)) if c not in "<>&\"'\\"
)
"""One character for each hundredth from 0 to 1: the commonest IoUs take a byte."""

assert len(ALPHABET) == 101


def hundredths(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """`(n,) int64`: the largest k with value >= k / 100, so that thresholds of two digits meet the same values.

    Example:
        >>> hundredths(np.array([0.55, 0.5499, 0.29, 1.0])).tolist()
        [55, 54, 29, 100]
    """
    grid = np.array([k / 100 for k in range(101)])
    return np.clip(np.searchsorted(grid, values, side="right") - 1, 0, 100)


def coded(values: NDArray[np.float64]) -> str:
    """Values from 0 to 1 as one character each."""
    return "".join(ALPHABET[k] for k in hundredths(values).tolist())


class Pictures:
    """Pictures of a page: inline as long as the budget lasts, else in a folder beside it, or not at all.

    Args:
        budget: bytes of base64 that may be inlined.
        folder: where the rest goes, or `None`.
    """

    def __init__(self, budget: int, folder: Path | None) -> None:
        self.left, self.folder = budget, folder
        self.known: dict[str, str] = {}

    def add_all(self, pictures: list[bytes]) -> list[str] | None:
        """Addresses of some pictures that belong together; `None` if they do not fit and there is no folder."""
        names = [hashlib.sha256(data).hexdigest()[:20] for data in pictures]
        new = {name: data for name, data in zip(names, pictures, strict=True) if name not in self.known}
        cost = sum(len(data) * 4 // 3 + 40 for data in new.values()) + 8 * len(pictures)
        if cost <= self.left:
            self.left -= cost
            for name, data in new.items():
                self.known[name] = f"data:image/{_kind(data)};base64,{base64.b64encode(data).decode('ascii')}"
        elif self.folder is None:
            return None
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, data in new.items():
                file = f"{name}.{_kind(data)}"
                (self.folder / file).write_bytes(data)
                self.known[name] = f"{self.folder.name}/{file}"
        return names


def _kind(data: bytes) -> str:
    return "png" if data.startswith(b"\x89PNG") else "jpeg"
