"""Error kinds: what went wrong in each row, from its score columns and, where they are at hand, its masks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from datasets import Dataset, IterableDataset

from bench_datasets.benchmarks import get_benchmark
from bench_datasets.metrics.errors.kinds import Errors, Kind
from bench_datasets.metrics.summarizing import one_protocol, read_table

__all__ = ["Errors", "Kind", "find_errors"]


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
    metric = get_benchmark(benchmark).metric_module()
    table = read_table(scores, metric)
    protocol = metric.get_protocol(one_protocol(table)["name"])
    found: Errors = get_benchmark(benchmark).companion("errors").find(table, protocol, rows, **options)
    return found
