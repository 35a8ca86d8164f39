"""Numbers before they are estimated: what each is a function of, by part of the rows and by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.faults import BenchError
from bench_datasets.results.result import Metric, Slice
from bench_datasets.results.statistics import Estimate, Statistic, estimate

Part = tuple[str, str]
"""A column and a value of it; two empty texts stand for all rows."""

ALL: Part = ("", "")

Gathered = dict[Part, dict[str, Statistic]]
"""Every number of a score table, by part and name."""


AT_A_TIME = 512
"""Numbers that are estimated together: bounds what is held of their draws; the draws are the same for all."""


def by_column(
    table: pa.Table,
    columns: Sequence[str],
    numbers: Callable[[NDArray[np.int64]], dict[str, Statistic]],
    others: Sequence[str] = (),
) -> Gathered:
    """The numbers of all rows, and those of the rows with each value of some columns.

    Args:
        table: n score rows.
        columns: names of columns of the table.
        numbers: makes the numbers of some rows, `(r,) int64`.
        others: further names that the caller cuts slices by, for the message.

    Raises:
        BenchError: a column is absent, or a list.

    Example:
        >>> table = pa.table({"part": ["a", "b", "a"]})
        >>> list(by_column(table, ["part"], lambda rows: {}))
        [('', ''), ('part', 'a'), ('part', 'b')]
    """
    found: Gathered = {ALL: numbers(np.arange(len(table)))}
    for column in dict.fromkeys(columns):
        if column not in table.column_names or pa.types.is_nested(table.schema.field(column).type):
            flat = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
            listed = f"{', '.join(others)} or one of {', '.join(flat)}" if others else f"one of {', '.join(flat)}"
            raise BenchError(f"by: expected {listed}; got {column!r}")
        values = np.array([str(value) for value in table[column].to_pylist()])
        for value in sorted(set(values.tolist())):
            found[column, value] = numbers(np.flatnonzero(values == value))
    return found


def better_when_higher(name: str, lower: Collection[str]) -> bool:
    """Whether more is better, by the words of a metric's name.

    Example:
        >>> better_when_higher("identity_error@0.7", {"identity_error"})
        False
    """
    return not any(word.split("@")[0] in lower for word in name.split("/"))


def assemble(
    gathered: Gathered,
    clusters: Sequence[str],
    draws: int,
    seed: int,
    *,
    lower: Collection[str] = (),
    counts: Collection[str] = (),
) -> tuple[dict[str, Metric], list[Slice]]:
    """Estimate every number once, with the same draws.

    Args:
        gathered: the numbers.
        clusters: the cluster of each row of the table.
        draws: bootstrap draws; 0 for no intervals.
        seed: of the draws.
        lower: names of which less is better.
        counts: names that are plain counts and get no interval.

    Returns:
        The numbers of all rows, and a slice for each part.
    """
    flat = {(part, name): item for part, items in gathered.items() for name, item in items.items()}
    keys = {str(i): key for i, key in enumerate(flat)}
    found: dict[str, Estimate] = {}
    names = list(keys)
    for first in range(0, len(names), AT_A_TIME):
        found |= estimate({i: flat[keys[i]] for i in names[first : first + AT_A_TIME]}, clusters, draws, seed)
    grouped: dict[Part, dict[str, Metric]] = {part: {} for part in gathered}
    for i, (part, name) in keys.items():
        item = found[i]
        interval = None if name.split("/")[0] in counts else item.ci95
        grouped[part][name] = Metric(item.value, item.n, interval, better_when_higher(name, lower))
    slices = [Slice(by, value, metrics) for (by, value), metrics in grouped.items() if by]
    return grouped.get(ALL, {}), slices
