"""Error kinds: what went wrong in each row, and how often."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, IterableDataset
from numpy.typing import NDArray

from bench_datasets._util.grid import Grid, html_tables, text_lines
from bench_datasets.benchmark import get_benchmark
from bench_datasets.results.summarize import one_protocol, read_table


@dataclass(frozen=True)
class Kind:
    """One kind of error: its name, and its meaning in a sentence."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Errors:
    """The errors of a run, row by row.

    Attributes:
        kinds: the kinds of the benchmark.
        groups: columns of the table by whose values errors are counted, the main one first.
        table: n rows: what names each, the columns of `groups`, and an integer column a kind (how often it occurs in
            the row). One row may show several kinds.
    """

    kinds: tuple[Kind, ...]
    groups: tuple[str, ...]
    table: pa.Table

    def __len__(self) -> int:
        return len(self.table)

    def matrix(self) -> NDArray[np.int64]:
        """`(n, kinds) int64`, how often each kind occurs in each row."""
        columns = [self.table[kind.name].to_numpy().astype(np.int64) for kind in self.kinds]
        return np.stack(columns, axis=1) if columns else np.zeros((len(self.table), 0), np.int64)

    def counts(self, by: str | None = None) -> dict[str, dict[str, int]]:
        """How often each kind occurs, summed over the rows of each value of a column.

        Args:
            by: one of the table's columns; the main group for `None`.
        """
        return self._sums(self.matrix(), by)

    def rows(self, by: str | None = None) -> dict[str, dict[str, int]]:
        """Number of rows that show each kind, by the values of a column."""
        return self._sums((self.matrix() > 0).astype(np.int64), by)

    def grid(self) -> Grid:
        """The counts by the first group, as a table."""
        names = [kind.name for kind in self.kinds]
        rows = [[group, *(f"{row[name]:,}" for name in names)] for group, row in self.counts().items()]
        return Grid("", [self.groups[0], *names], rows, hints={kind.name: kind.meaning for kind in self.kinds})

    def __str__(self) -> str:
        return "\n".join(text_lines(self.grid()))

    def _repr_html_(self) -> str:
        return html_tables([self.grid()])

    def _sums(self, values: NDArray[np.int64], by: str | None) -> dict[str, dict[str, int]]:
        names = [str(value) for value in self.table[by or self.groups[0]].to_pylist()]
        place = {name: i for i, name in enumerate(sorted(set(names)))}
        sums = np.zeros((len(place), len(self.kinds)), np.int64)
        np.add.at(sums, [place[name] for name in names], values)
        return {
            name: {kind.name: int(sums[i, k]) for k, kind in enumerate(self.kinds)} for name, i in place.items()
        }  # fmt: skip


def find_errors(
    benchmark: str, scores: Dataset | IterableDataset | pa.Table, rows: Iterable[pa.Table] | None = None, **options: Any
) -> Errors:
    """The error kinds of every scored row.

    Args:
        benchmark: its name.
        scores: what `score` gave.
        rows: truth rows with their predictions beside them (`pred_masks`, ...), in batches; what only the masks can
            tell is left undecided without them. Other benchmarks than PBench need none.
        **options: PVSG: `threshold` and `k` of the recall whose losses are told apart.

    Returns:
        One row a PBench row, an InstanceBench expression, a PVSG relation.

    Raises:
        BenchError: the table is no score table of this benchmark.

    Example:
        >>> find_errors("pbench", scores).counts("level")["level_3"]["missed"]              # doctest: +SKIP
        17
    """
    metric = get_benchmark(benchmark)
    table = read_table(scores, metric)
    protocol = metric.protocol(one_protocol(table)["name"])
    found: Errors = metric.error_kinds(table, protocol, rows, **options)
    return found
