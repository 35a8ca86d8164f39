"""Hash of a plan's inputs, and the work per score row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bench_datasets import __version__
from bench_datasets._util.hashing import ContentHash, table_row_bytes
from bench_datasets.faults import FAULTS
from bench_datasets.masks.ragged import parts
from bench_datasets.scoring.batching import ArrowRows, rows_at_a_time
from bench_datasets.scoring.hashes import canonical_json
from bench_datasets.scoring.prepare import Plan

PART_UNITS, PART_BYTES = 1024, 1 << 22
"""Score rows of an internal part, and bytes of truth and predictions, at most: what is lost when a run is killed."""


@dataclass(frozen=True)
class Inputs:
    """Hash of a plan's inputs, and the work per score row.

    Attributes:
        sha256: over truth, predictions, pairing, protocol and choices; parts of other inputs don't belong together.
        weight: `(u,) int64`, bytes of truth and predictions of each unit.
        doubtful: `(u,) bool`, units whose truth bears a fault that may end the scoring; they are best scored first.
    """

    sha256: str
    weight: NDArray[np.int64]
    doubtful: NDArray[np.bool_]


def look_over(plan: Plan) -> Inputs:
    """Read everything that a plan scores, once, lot by lot.

    The hash depends on the content alone: streamed or not, from whatever format, in whatever chunks.
    """
    truth, sizes, doubtful = ContentHash(), [np.zeros(0, np.int64)], [np.zeros(0, np.bool_)]
    for table in _lots(ArrowRows(plan.labels)):
        truth.add(table)
        sizes.append(table_row_bytes(table))
        doubtful.append(_doubtful(table))
    weight = np.concatenate(sizes)[plan.units.truth]
    units = plan.units
    used = np.flatnonzero(units.answers >= 0)
    place, answers = units.answers[used], ContentHash()
    each = np.concatenate([np.zeros(0, np.int64), *map(table_row_bytes, _lots(plan.answers))])
    if not plan.options.stops:  # those that are not sound stand in no hash of the record
        for table in _lots(plan.answers, place):
            answers.add(table)
    total = np.zeros(len(units.answers) + 1, np.int64)
    total[used + 1] = each[place]
    total = np.cumsum(total)
    digest = hashlib.sha256(canonical_json([plan.record, __version__]))
    digest.update(canonical_json({name: getattr(plan.options, name) for name in ("level", "oracle", "boundary")}))
    digest.update(canonical_json([truth.hexdigest(), answers.hexdigest(), sorted(units.columns.items())]))
    for values in (units.truth, units.begin, (units.answers >= 0), units.twice):
        digest.update(values.astype("<i8").tobytes())
    weight += total[units.begin[1:]] - total[units.begin[:-1]]
    return Inputs(digest.hexdigest(), weight, np.concatenate(doubtful)[units.truth])


def _doubtful(table: pa.Table) -> NDArray[np.bool_]:
    """`(n,) bool`, truth rows with a fault that ends the scoring by default."""
    if "faults" not in table.column_names:
        return np.zeros(len(table), np.bool_)
    found = np.array(pc.fill_null(pc.greater(pc.list_value_length(table["faults"]), 0), False))
    for row in np.flatnonzero(found).tolist():
        found[row] = any(code in FAULTS and FAULTS[code].default == "stop" for code in table["faults"][row].as_py())
    return np.asarray(found, np.bool_)


def _lots(data: ArrowRows, rows: NDArray[np.int64] | None = None) -> Iterator[pa.Table]:
    """All rows, or the chosen ones, a lot at a time."""
    size = rows_at_a_time(data)
    for first in range(0, len(data) if rows is None else len(rows), size):
        yield data[first : first + size] if rows is None else data[rows[first : first + size].tolist()]


def cut(units: Sequence[int], inputs: Inputs) -> list[list[int]]:
    """Units in internal parts of `PART_UNITS` and `PART_BYTES` at most, or of a single one that is larger."""
    chosen = np.asarray(units, np.int64)
    cost = np.maximum(1 / PART_UNITS, inputs.weight[chosen] / PART_BYTES)
    return [chosen[start:stop].tolist() for start, stop in parts(cost)]
