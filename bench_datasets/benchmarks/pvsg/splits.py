"""PVSG's second split by both its names: the released file calls it `val`, `test` is ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import datasets

_VAL = re.compile(r"(^|\+)(\s*)val(?=\s*(?:[\[(+]|$))")


def as_test(split: Any) -> Any:
    """A split as `datasets` takes it, with our name in place of the file's.

    Example:
        >>> as_test("train+val[:50%]"), as_test(["val", "valid"])
        ('train+test[:50%]', ['test', 'valid'])
    """
    if isinstance(split, datasets.ReadInstruction):
        return datasets.ReadInstruction.from_spec(as_test(split.to_spec()))
    if isinstance(split, Mapping):
        return {name: as_test(value) for name, value in split.items()}
    if isinstance(split, list | tuple):
        return type(split)(as_test(value) for value in split)
    if split is None or not _VAL.search(str(split)):
        return split
    return _VAL.sub(r"\1\2test", str(split))
