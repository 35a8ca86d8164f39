"""Estimate of the processor time and memory of a scoring, from counts and measured constants.

The model is a sum: so many seconds a row, a mask, a byte of RLE and a pair of masks that meet. `scripts/bench/cost.py`
measures the constants; they hold for the machine named in `MACHINE`, and scale with the speed of another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from numpy.typing import NDArray

from bench_datasets.benchmark import get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.masks import joined
from bench_datasets.scoring.validate import KEPT_BYTES

TERMS = ("rows", "masks", "bytes", "pairs")
"""What time is counted by."""

MACHINE = "one core of a shared two-core virtual machine, numba engine"

START = 3.0
"""Seconds to begin: imports, opening, the first call of every function."""

SHARE = 0.9
"""How much of a further process's time is of use."""

BASE, ROW_BYTES, LOT_BYTES = 300 << 20, 3000, 96 << 20
"""Memory of a process that scores nothing; what each score row takes while all are joined; what a worker takes."""


@dataclass(frozen=True)
class Counts:
    """How much there is to score, truth and predictions together.

    Attributes:
        rows: score rows (PBench rows, expressions, videos).
        masks: of truth and predictions.
        bytes: of their RLE.
        pairs: of a mask of the truth and a predicted one that are in one row (PVSG: one frame).
        frames: PVSG: of all videos.
    """

    rows: int
    masks: int
    bytes: int
    pairs: int
    frames: int = 0

    def times(self, factor: float) -> Counts:
        """The counts multiplied by a factor, for more rows or several models."""
        return Counts(*(round(getattr(self, name) * factor) for name in ("rows", "masks", "bytes", "pairs", "frames")))


@dataclass(frozen=True)
class Cost:
    """Estimated time and memory of a scoring.

    Attributes:
        seconds: of wall-clock time, on `num_proc` free cores.
        cpu_seconds: of processor time, over all of them.
        memory: bytes that are resident, mapped files aside.
        mapped: bytes of truth and predictions in mapped files: resident while there is room.
        num_proc: processes.
    """

    seconds: float
    cpu_seconds: float
    memory: int
    mapped: int
    num_proc: int


def estimate(benchmark: str, counts: Counts, *, num_proc: int = 1) -> Cost:
    """Time and memory of one scoring.

    Args:
        benchmark: its name.
        counts: what there is.
        num_proc: processes.

    Raises:
        BenchError: `num_proc` is below 1.

    Example:
        >>> small, large = (estimate("pbench", Counts(n, 8 * n, 1600 * n, 16 * n)) for n in (1_000, 1_000_000))
        >>> small.seconds < 10 < large.seconds
        True
    """
    if num_proc < 1:
        raise BenchError(f"num_proc: expected 1 or more, got {num_proc}")
    alone, scoring = get_benchmark(benchmark).seconds_alone, get_benchmark(benchmark).seconds_shared
    one = START + sum(value * getattr(counts, term) for term, value in alone.items())
    shared = sum(value * getattr(counts, term) for term, value in scoring.items())
    cores = 1 + SHARE * (num_proc - 1)
    working = LOT_BYTES * num_proc if num_proc > 1 else min(KEPT_BYTES, 2 * counts.bytes)
    memory = BASE + ROW_BYTES * counts.rows + working
    return Cost(one + shared / cores, one + shared, memory, counts.bytes + 40 * counts.masks, num_proc)


def count(benchmark: str, truth: Dataset) -> Counts:
    """Count rows, masks, bytes and pairs, if a model predicts as many masks as the ground truth holds.

    Args:
        benchmark: its name.
        truth: rows as the builder gives them.
    """
    metric = get_benchmark(benchmark)
    labels = truth.select_columns([name for name in metric.truth_columns if name in truth.column_names])
    total = Counts(0, 0, 0, 0)
    for table in labels.with_format("arrow").iter(batch_size=64):
        part = _of_table(table)
        total = Counts(*(getattr(total, name) + getattr(part, name) for name in total.__dict__))
    return total


def _of_table(table: pa.Table) -> Counts:
    columns = {name: joined(table[name]) for name in table.column_names}
    found = [_masks(array) for array in columns.values()]
    masks, size = (int(sum(part[k].sum() for part in found)) for k in (0, 1))
    frames = 0
    rows = len(table)
    if "tubes" in columns:
        shown = _shown(columns["tubes"])
        pairs, frames = int(sum((counts**2).sum() for counts in shown)), sum(map(len, shown))
    elif "expressions" in columns:
        asked, candidates = (_lengths(columns[name]) for name in ("expressions", "candidates"))
        pairs, rows = int((asked * candidates).sum()), int(asked.sum())
        predicted = rows * (size / max(masks, 1))
        return Counts(rows, masks + rows, round(size + predicted), pairs, 0)
    else:
        pairs = int((_lengths(columns["masks"]) ** 2).sum()) if "masks" in columns else 0
    return Counts(rows, 2 * masks, 2 * size, pairs, frames)


def _shown(tubes: pa.Array) -> list[NDArray[np.int64]]:
    """Of each video, how many tubes are to be seen in each of its frames."""
    result = []
    for video in tubes:
        frames = pc.list_flatten(video.values.field("frames")) if video.is_valid else pa.array([], pa.int32())
        result.append(np.unique(frames.to_numpy(zero_copy_only=False), return_counts=True)[1].astype(np.int64))
    return result


def _masks(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`(n,) int64` twice: masks that hang on each element, and the bytes of their counts."""
    kind, none = array.type, np.zeros(len(array), np.int64)
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        if set(names) == {"size", "counts"}:
            there = array.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
            return there, _numbers(pc.binary_length(array.flatten()[names.index("counts")]))
        found = [_masks(child) for child in array.flatten()]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        bounds = np.concatenate([[0], np.cumsum(_lengths(array))])
        masks, size = (np.concatenate([[0], np.cumsum(part)])[bounds] for part in _masks(array.flatten()))
        return np.diff(masks), np.diff(size)
    else:
        return none, none
    return sum((part[0] for part in found), none), sum((part[1] for part in found), none)


def _lengths(array: pa.Array) -> NDArray[np.int64]:
    return _numbers(pc.list_value_length(array))


def _numbers(array: pa.Array) -> NDArray[np.int64]:
    found: NDArray[np.int64] = np.asarray(pc.fill_null(array, 0).to_numpy(zero_copy_only=False), np.int64)
    return found
