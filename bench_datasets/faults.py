"""The one public list of what can be wrong with a row, and the errors that say so.

A fault is a named thing that is wrong with the data, not with the program. Builders note the faults of the truth in
the row's `faults` column; those of predictions come from `check` or stop the scoring. What a fault does by default
stands here: `stop` ends the scoring with the row's key (unless it was asked to skip and report), `noted` is counted.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

Default = Literal["stop", "noted"]

SHOWN = 60
"""Most characters of a foreign value that a message shows."""


class BenchError(ValueError):
    """A mistake in the user's input; the message names it and the remedy."""


class BenchWarning(UserWarning):
    """A problem that a caller must know and that is no error.

    The installation lacks something and the package works around it, or numbers leave rows out because the caller asked
    for it.
    """


class Fault(NamedTuple):
    """One fault found: its code, the row's key (its position, where there are no keys) and the words for a person."""

    code: str
    key: str
    text: str


class FaultError(BenchError):
    """Scoring stopped at a fault that the protocol does not provide for.

    Attributes:
        code: a key of `FAULTS`.
        key: the row's key, or its position in the call where there are no keys.
    """

    def __init__(self, code: str, key: str, text: str) -> None:
        super().__init__(f"{shorten_text(key, 200)}: {cut(text)} [{shorten_text(code)}]")
        self.code, self.key, self.text = code, key, text

    def __reduce__(self) -> tuple[type[FaultError], tuple[str, str, str]]:
        """Travel between processes: a worker's fault is raised as it was."""
        return type(self), (self.code, self.key, self.text)


@dataclass(frozen=True)
class FaultKind:
    """A fault code: where it is found, its default treatment, and its meaning in one sentence."""

    code: str
    where: str
    default: Default
    meaning: str


def fault_kinds(where: str, default: Default, **meanings: str) -> dict[str, FaultKind]:
    """Fault codes of one place and one default treatment.

    Args:
        where: where they are found, such as `predictions`.
        default: what they do by default.
        meanings: a sentence for each code.

    Example:
        >>> fault_kinds("my bench truth", "noted", blurred="a blurred image")["blurred"].default
        'noted'
    """
    return {code: FaultKind(code, where, default, meaning) for code, meaning in meanings.items()}


class FaultTable(Mapping[str, FaultKind]):
    """Fault codes of all benchmarks, then those that each benchmark declares as its `faults`.

    Args:
        shared: the codes of all benchmarks.
    """

    def __init__(self, shared: Mapping[str, FaultKind]) -> None:
        self._shared = shared
        self._declared: Callable[[], Iterable[Mapping[str, FaultKind]]] = tuple

    def add_declared(self, declared: Callable[[], Iterable[Mapping[str, FaultKind]]]) -> None:
        """Set the function that gives each benchmark's codes; it is called when a code is no shared one."""
        self._declared = declared

    def __getitem__(self, code: str) -> FaultKind:
        for kinds in self._tables():
            if code in kinds:
                return kinds[code]
        raise KeyError(code)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(code for kinds in self._tables() for code in kinds))

    def __len__(self) -> int:
        return sum(1 for _ in self)  # `list` asks for the length

    def _tables(self) -> Iterator[Mapping[str, FaultKind]]:
        yield self._shared
        yield from self._declared()


FAULTS = FaultTable({
    **fault_kinds(
        "predictions",
        "stop",
        malformed_mask="a mask that is no valid RLE of its size",
        unreadable_mask="a file of masks that cannot be read, or whose values are no mask (probabilities, a photo)",
        size_mismatch="a mask of another size than the row's, where the protocol does not resize",
        unknown_row="a prediction for a row that the truth does not hold",
        duplicate_prediction="two predictions for one row, or two of its parts with one id",
        missing_prediction="a row without a prediction",
        bad_score="a score that is no finite number, or not one score per mask",
        bad_box="a box that is not four finite numbers, or has a negative side",
        unaligned_prediction="a list of predictions that is not one item per expression of its row",
        wrong_benchmark="rows of another benchmark",
    ),
    **fault_kinds(
        "predictions",
        "noted",
        ignored_file="a file beside a row's masks that is not read",
        polygon_part_dropped="a polygon of fewer than three points among others of one mask; it is left out",
        inverted_mask="a mask that covers the image's whole border, as a mask with exchanged values does",
        whole_image="a mask that covers every pixel of the image, as a soft mask cut at 0 does",
        odd_file_name="a mask file whose name is no number, beside files with numbers as names; it counts as a mask",
        outside_image="a box that reaches beyond the image",
        small_box="a box within 1 x 1 pixel, as a box in fractions of the image is",
        resized="a mask of another size than the ground truth's; it is resized to it (nearest pixel)",
        size_exchanged="a mask whose size is [width, height] of the ground truth's; it is resized, which scrambles it",
        ignore_label="label 255 beside other labels of a label map; it counts as a mask, not as 'ignore'",
    ),
})  # fmt: skip
"""Every fault code, with where it is found and what it does by default."""


def shorten(value: object, limit: int = SHOWN) -> str:
    """A foreign value for a message: its `repr`, of bounded length, without characters that a terminal obeys.

    Args:
        value: any value; only the beginning of a long one is read.
        limit: most characters.

    Example:
        >>> shorten("level_0/7"), shorten("x" * 1_000_000, 12), shorten([1, "a"])
        ("'level_0/7'", "'xxxxxxxx...", "[1, 'a']")
    """
    if isinstance(value, bytes):
        value = value[: limit + 1]
    try:
        text = _Short(limit).repr(value)
        text.encode()
    except UnicodeEncodeError:  # JSON may hold halves of characters
        text = text.encode("ascii", "backslashreplace").decode()
    except (ValueError, RecursionError):  # integers of thousands of digits, lists within lists within lists
        return "(too long to show)"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def cut(text: str, limit: int = 1000) -> str:
    """A message of bounded length.

    Example:
        >>> cut("no row has the key 'a'"), len(cut("x" * 1_000_000))
        ("no row has the key 'a'", 1000)
    """
    return text if len(text) <= limit else text[: limit - 3] + "..."


class _Short(reprlib.Repr):
    """`repr` that looks at the beginning of a value alone."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.maxlevel, self.maxlist, self.maxtuple, self.maxdict, self.maxset = 3, 20, 20, 20, 20
        self.maxother = self.maxlong = limit + 1

    def repr_str(self, x: str, level: int) -> str:
        """The beginning of a text."""
        return repr(x[: self.limit + 1])

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """The first fields, in their order."""
        if level <= 0:
            return "{...}"
        fields = [f"{self.repr1(k, level - 1)}: {self.repr1(x[k], level - 1)}" for k in islice(x, self.maxdict)]
        return "{" + ", ".join(fields + ["..."] * (len(x) > self.maxdict)) + "}"


def shorten_text(text: str, limit: int = SHOWN) -> str:
    r"""A foreign text for a message, without quotes where it is short and can be printed.

    Example:
        >>> shorten_text("level_0/7"), len(shorten_text("x" * 1_000_000)), shorten_text("a\x1b[2J")
        ('level_0/7', 60, "'a\\x1b[2J'")
    """
    if not text[: limit + 1].isprintable():
        return shorten(text, limit)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def stops(code: str) -> bool:
    """Whether a fault code ends the scoring by default; an unknown code does.

    Example:
        >>> stops("malformed_mask"), stops("crowd_candidate"), stops("no such code")
        (True, False, True)
    """
    return code not in FAULTS or FAULTS[code].default == "stop"
