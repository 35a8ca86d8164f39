"""`Batch`: ground truth rows with their predictions, and the one way to score them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bench_datasets._util.arrow import spread
from bench_datasets.benchmark import Benchmark, Protocol
from bench_datasets.scoring.faulty_rows import Faulty
from bench_datasets.scoring.options import ScoreOptions

if TYPE_CHECKING:
    from bench_datasets.masks import Decoded


class Batch(ABC):
    """n ground truth rows with their predictions, as a benchmark reads them.

    Attributes:
        keys: n keys of the rows.
        clusters: n names; rows of one cluster are resampled together.
    """

    keys: Any
    clusters: Any

    def __len__(self) -> int:
        return len(self.keys)

    def chunks(self) -> Iterator[Batch]:
        """Parts of bounded work, at least one row each; by default the whole batch."""
        yield self

    def use_decoded(self, decoded: Decoded) -> None:
        """Take the predicted masks from an earlier decoding; by default they are decoded again."""
        del decoded

    def label_columns(self) -> Mapping[str, Any]:
        """Columns of the score table that skipped rows have too, n values each; by default none."""
        return {}

    @abstractmethod
    def row_hashes(self) -> list[str]:
        """The hash of each row's labels and masks; empty for a row with invalid ground truth masks."""

    @abstractmethod
    def find_faults(self, protocol: Protocol, options: ScoreOptions) -> Faulty:
        """The rows that can't be scored as they are.

        Raises:
            FaultError: there is such a row and the options say to stop.
        """

    @abstractmethod
    def fault_codes(self, faulty: Faulty) -> Any:
        """All fault codes of each row, sorted, each once: noted ones and those of `faulty`."""

    @abstractmethod
    def scorable(self, faulty: Faulty) -> Batch:
        """The rows that are scored; those that count as wrong have an empty prediction."""


def score_batch(benchmark: Benchmark, rows: Batch, options: ScoreOptions) -> pa.Table:
    """Score a batch.

    Args:
        benchmark: measures the rows.
        rows: n rows.
        options: how to score.

    Returns:
        n score rows in the same order.

    Raises:
        FaultError: a row has a fault and the options say to stop.
    """
    protocol = benchmark.protocol(options.protocol)
    schema = score_schema(benchmark, options.boundary)
    tables = []
    for part in rows.chunks():
        faulty = part.find_faults(protocol, options)
        good = np.ones(len(part), np.bool_)
        good[list(faulty.left_out)] = False
        measured = benchmark.measure(part.scorable(faulty), protocol, options)
        columns = {
            "key": part.keys,
            "cluster": part.clusters,
            "protocol": pa.repeat(f"{protocol.name}@{protocol.version}", len(part)),
            "row_sha256": part.row_hashes(),
            "faults": part.fault_codes(faulty),
            "skipped": ~good,
            **part.label_columns(),
        }
        for name, values in measured.items():
            kind = schema.field(name).type
            column = values if isinstance(values, pa.Array) else pa.array(values, kind)
            default = benchmark.skipped_values.get(name, [] if pa.types.is_list(kind) else 0)
            columns[name] = spread(column, good, default)
        tables.append(pa.table(columns, schema=schema))
    return pa.concat_tables(tables).combine_chunks() if tables else schema.empty_table()


@cache
def score_schema(benchmark: Benchmark, boundary: bool) -> pa.Schema:
    """The Arrow schema of a benchmark's score table, without metadata."""
    return benchmark.score_features(boundary=boundary).arrow_schema.remove_metadata()
