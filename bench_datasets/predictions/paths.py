"""Names of rows in the paths of files, for formats of one file or folder a row."""

from __future__ import annotations

import re

from bench_datasets.benchmarks import PBENCH_LEVELS
from bench_datasets.predictions.rows import Row


def row_of(level: str | None, name: str, shown: str) -> Row:
    """The row that a file or folder called `<id>` (in `<level>`) speaks of.

    Example:
        >>> row = row_of("level_0", "7#2", "masks/level_0/7#2")
        >>> row.key, row_of(None, "12", "masks/12").id
        ('level_0/7#2', 12)
    """
    if level is not None and level not in PBENCH_LEVELS:
        problem = f"expected one of the levels {', '.join(PBENCH_LEVELS)}, found {level!r}"
    elif level is not None and re.fullmatch(r"-?[0-9]{1,18}(#[0-9]+)?", name):
        return Row(key=f"{level}/{name}")
    elif level is None and re.fullmatch(r"-?[0-9]{1,18}", name):
        return Row(id=int(name))
    else:
        problem = f"expected the row's id as the name, found {name!a}"
    return Row(faults=[("unknown_row", f"{shown}: {problem}")])


def name_in(relative: str) -> tuple[str | None, str]:
    """The level, if there is one, and the row's name in a file's path: `<id>`, `<level>__<id>` or `<level>/<id>`.

    Example:
        >>> name_in("7.npz"), name_in("level_0__7.npz"), name_in("dense/7#2.npy")
        ((None, '7'), ('level_0', '7'), ('dense', '7#2'))
    """
    folder, _, file = relative.rpartition("/")
    stem = file.rpartition(".")[0] or file
    level, _, name = (folder, "", stem) if folder else stem.rpartition("__")
    return level or None, name
