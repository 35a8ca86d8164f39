"""Single fields of a prediction, read out of untrusted Python values: the name of a row, scores, pairs of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from numbers import Real
from typing import Any, NamedTuple, SupportsInt, cast

from bench_datasets.benchmark import known_parts
from bench_datasets.faults import shorten, shorten_text

Found = list[tuple[str, str]]
"""Faults of one row, as code and text."""

MAX_MASKS = 2**14
"""Most masks of one row that are read; bounds the time that one row takes."""

MAX_NOTED = 20
"""Most unsound masks of one row that are named one by one."""

ABSENT = object()
"""What `pick` gives where a record has none of the names."""


class Name(NamedTuple):
    """How a prediction names its row; `problem` says why it does not."""

    key: str | None = None
    id: int | None = None
    split: str | None = None
    problem: str | None = None

    @property
    def empty(self) -> bool:
        """Neither a key, nor an id, nor a mistaken one."""
        return self.key is None and self.id is None and self.problem is None


def pick(record: Mapping[str, Any], *names: str) -> Any:
    """The first of these fields that the record has, else `ABSENT`."""
    return next((record[name] for name in names if name in record), ABSENT)


def read_name(record: Mapping[str, Any], split: str | None = None, ids: Sequence[str] = ("id",)) -> Name:
    """The name in a record's `key`, `id` and `split` (or `level`).

    Args:
        record: the fields.
        split: of the file, where the record states none.
        ids: fields that may hold the id, the first that is not null counts.
    """
    key = record.get("key")
    raw = next((record[name] for name in ids if record.get(name) is not None), None)
    field = "split" if record.get("split") is not None else "level"
    stated = record.get("split") if field == "split" else _level(record.get("level"))
    if key is not None and not (isinstance(key, str) and key and is_text(key)):
        return Name(problem=f"key: expected text such as 'level_0/7', found {show(key)}")
    if stated is not None and not (isinstance(stated, str) and is_text(stated)):
        return Name(problem=f"{field}: expected text such as 'level_0', found {show(stated)}")
    number = None if raw is None else read_id(raw)
    if raw is not None and number is None and key is None:
        return Name(problem=f"id: expected an integer, or text of digits, found {show(raw)}")
    if split is not None and stated is not None and stated != split:
        return Name(problem=f"{field}: the row says {shorten(stated)}, but the file's name says {split!r}")
    return Name(key, number, stated if stated is not None else split)


def _level(value: object) -> object:
    """A level by its name, where it is the number that the ground truth's `ClassLabel` has for it."""
    number = None if isinstance(value, (bool, str)) else read_id(value)
    return value if number is None or not 0 <= number < len(known_parts()) else known_parts()[number]


def read_id(value: object) -> int | None:
    """An id given as an integer, an integral float (what pandas makes of a column with gaps) or text of digits.

    Example:
        >>> read_id("7"), read_id(7.0), read_id("seven"), read_id(True)
        (7, 7, None, None)
    """
    number = None
    if isinstance(value, str):
        number = int(value) if re.fullmatch(r"-?[0-9]{1,19}", value) else None
    elif read_number(value) is not None:
        whole = int(cast("SupportsInt", value))
        number = whole if value == whole else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def read_number(value: object) -> float | None:
    """A finite number as a float; None for anything else, truth values and text of digits among it."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def read_word(value: object) -> str | None:
    """An id as text: text that is not empty, or an integer (or an integral float) in digits; else None.

    Example:
        >>> read_word("a-0"), read_word(7), read_word(7.0), read_word(""), read_word(True)
        ('a-0', '7', '7', None, None)
    """
    if isinstance(value, str):
        return value if value and is_text(value) else None
    number = read_id(value)
    return None if number is None else str(number)


def read_scores(value: object, masks: int) -> tuple[list[float | None] | None, Found]:
    """Parse scores and list their faults; null for the whole row unless there is one per mask."""
    if value is None or value is ABSENT:
        return None, []
    items = as_list(value)
    if items is None:
        return None, [("bad_score", f"scores: expected a list of numbers, found {show(value)}")]
    if len(items) != masks:
        return None, [("bad_score", f"scores: expected one per mask ({masks}), found {len(items)}")]
    scores = [read_number(item) for item in items]
    wrong = [i for i, score in enumerate(scores) if score is None]
    return scores, [("bad_score", f"score {i}: expected a finite number, found {show(items[i])}") for i in wrong]


def read_pairs(
    value: object, masks: int, field: str, names: tuple[str, str]
) -> tuple[list[list[float] | None] | None, Found]:
    """Pairs of numbers aligned with the masks, each `[a, b]` or `{names[0]: a, names[1]: b}`."""
    if value is None or value is ABSENT:
        return None, []
    items = as_list(value)
    if items is None or len(items) != masks:
        found = show(value) if items is None else f"{len(items)}"
        return None, [("bad_box", f"{field}: expected a list of one pair a mask ({masks}), found {found}")]
    pairs: list[list[float] | None] = []
    faults: Found = []
    for i, item in enumerate(items):
        parts = [item.get(name) for name in names] if isinstance(item, Mapping) else as_list(item)
        numbers = [read_number(part) for part in parts] if parts is not None and len(parts) == 2 else [None]
        sound = all(number is not None for number in numbers)
        pairs.append(cast("list[float]", numbers) if sound else None)
        if not sound:
            wanted = f"two finite numbers ({names[0]}, {names[1]})"
            faults.append(("bad_box", f"mask {i}: {field}: expected {wanted}, found {show(item)}"))
    return pairs, faults


def as_list(value: object) -> list[Any] | None:
    """A list, tuple, range, array or tensor as a list (of arrays, where it has several dimensions); else None."""
    if isinstance(value, (list, tuple, range)):
        return list(value)
    if hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
        array = cast("Any", value)
        return list(array) if array.ndim > 1 else list(array.tolist())
    return None


def level_of(name: str) -> str | None:
    """The level that a file's name speaks of: `level_3.jsonl`, `dense-00000-of-00001.parquet`; else None."""
    stem = name.split(".", 1)[0]
    return next((level for level in known_parts() if stem == level or stem.startswith(f"{level}-")), None)


def is_text(value: str) -> bool:
    """Whether it can be written as UTF-8 (JSON may hold halves of characters)."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def show(value: object) -> str:
    """A value for a message, of bounded length."""
    return "null" if value is None else f"{type(value).__name__} {shorten(value)}"


def show_fields(names: Iterable[str]) -> str:
    """The names of a record's fields for a message: the first eight in alphabetical order, each shortened.

    Example:
        >>> show_fields(["masks", "id"]), show_fields([])
        ('id, masks', 'nothing')
    """
    return ", ".join(shorten_text(str(name)) for name in nsmallest(8, names)) or "nothing"


def mask_faults(wrong: Iterable[tuple[int, str]], code: str = "malformed_mask") -> Found:
    """Faults of the masks of one row: the first `MAX_NOTED` one by one, the others as a number.

    Args:
        wrong: place in the row and what is wrong, for each.
        code: of the faults.

    Example:
        >>> mask_faults([(0, "the mask is null")])
        [('malformed_mask', 'mask 0: the mask is null')]
        >>> mask_faults((i, "the mask is null") for i in range(1000))[-1]
        ('malformed_mask', 'and 980 more masks of this row')
    """
    items = iter(wrong)
    faults = [(code, f"mask {i}: {text}") for i, text in islice(items, MAX_NOTED)]
    more = sum(1 for _ in items)
    if more:
        faults.append((code, f"and {more:,} more masks of this row"))
    return faults


def no_prediction(field: str) -> tuple[str, str]:
    """The fault of a row whose masks are null, which is how a table says that a row has no prediction.

    Args:
        field: what is null.

    Example:
        >>> no_prediction("masks")[0]
        'missing_prediction'
    """
    text = f"{field}: null means that there is no prediction; write an empty list where the model found nothing"
    return "missing_prediction", text


def too_many(count: int) -> tuple[str, str]:
    """The fault of a row with more than `MAX_MASKS` masks, none of which is read."""
    text = f"masks: expected at most {MAX_MASKS:,} masks in one row, found {count:,}; none of them is read"
    return "malformed_mask", text


def image_size(record: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Height and width that a record states as `size` or `height` and `width`, for its polygons; else None."""
    size = as_list(record.get("size"))
    pair = size if size is not None and len(size) == 2 else [record.get("height"), record.get("width")]
    height, width = (None if isinstance(side, str) else read_id(side) for side in pair)
    return height, width
