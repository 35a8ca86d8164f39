"""Scoring on one machine: part by part, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from datasets import Dataset
from datasets.utils import tqdm

from bench_datasets.engines.parts import done, inputs_hash, merge, part_name, units_of, write_part
from bench_datasets.faults import BenchError
from bench_datasets.metrics.planning import Plan

PART_UNITS = 1024
"""Score rows of an internal part, about: what is lost at most when a run is killed."""

_log = logging.getLogger(__name__)


def score_shard(
    plan: Plan, index: int, count: int, folder: str | os.PathLike[str], num_proc: int | None = None
) -> Path:
    """Score one of several parts and write it; do nothing if it is there already.

    Args:
        plan: what is to be scored.
        index: number of the part, from 0.
        count: number of parts.
        folder: gets `part-<index>-of-<count>.parquet` and its manifest.
        num_proc: processes.

    Returns:
        The part's file.

    Raises:
        BenchError: the numbers are out of range, or the folder holds the part for other inputs, or damaged.
    """
    if not 0 <= index < count:
        raise BenchError(f"shard: expected I/N with I from 0 to N - 1, got {index}/{count}")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    inputs = inputs_hash(plan)
    if not done(place, index, count, inputs):
        table = plan.score(units_of(plan, count)[index], num_proc)
        write_part(plan, table, index, count, inputs, place)
    return place / part_name(index, count)


def score_in_parts(plan: Plan, folder: str | os.PathLike[str], num_proc: int | None = None) -> Dataset:
    """Score everything in internal parts kept in `folder` until all are there.

    A run that was stopped, however roughly, goes on with the parts that are missing when it is called again with the
    same inputs; parts of other inputs are left alone.

    Args:
        plan: what is to be scored.
        folder: where the parts are kept meanwhile, under a name of their own.
        num_proc: processes that each take a part at a time.

    Returns:
        The same score table, to the byte, as `scoring.score` gives.
    """
    inputs = inputs_hash(plan)
    count = max(1, -(-len(plan.units) // PART_UNITS))
    place = Path(folder) / f".parts-{inputs[:16]}"
    place.mkdir(parents=True, exist_ok=True)
    units = units_of(plan, count)
    missing = [index for index in range(count) if not _usable(place, index, count, inputs)]
    total = sum(map(len, units))
    already = total - sum(len(units[index]) for index in missing)
    if already:
        _log.warning("going on: %d of %d parts are there already", count - len(missing), count)
    started = time.monotonic()
    with tqdm(total=total, initial=already, desc="Scoring", unit=" rows") as progress:
        finished = already
        for index in _work(plan, units, missing, count, inputs, place, num_proc):
            finished += len(units[index])
            progress.update(len(units[index]))
            if not sys.stderr.isatty():
                rate = (finished - already) / max(time.monotonic() - started, 1e-9)
                left = (total - finished) / max(rate, 1e-9)
                _log.info("part %d of %d written, %d of %d rows, %.0f s left", index + 1, count, finished, total, left)
    scores = merge([place])
    shutil.rmtree(place, ignore_errors=True)
    return scores


def _usable(place: Path, index: int, count: int, inputs: str) -> bool:
    """Whether a part is there; a damaged one of our own making is scored again."""
    try:
        return done(place, index, count, inputs)
    except BenchError as error:
        _log.warning("%s", error)
        (place / part_name(index, count)).unlink(missing_ok=True)
        return False


def _work(
    plan: Plan, units: list[list[int]], missing: list[int], count: int, inputs: str, place: Path, num_proc: int | None
) -> Iterator[int]:
    """Score and write the missing parts; their numbers, as they get done."""
    task = _Task(plan, units, count, inputs, place)
    if num_proc is None or num_proc < 2 or len(missing) < 2:
        yield from map(task, missing)
        return
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    with multiprocessing.get_context(method).Pool(min(num_proc, len(missing))) as pool:
        yield from pool.imap_unordered(task, missing)


class _Task:
    """Scores and writes a part; travels to worker processes."""

    def __init__(self, plan: Plan, units: list[list[int]], count: int, inputs: str, place: Path) -> None:
        self.plan, self.units, self.count, self.inputs, self.place = plan, units, count, inputs, place

    def __call__(self, index: int) -> int:
        table = self.plan.score(self.units[index], quiet=True)
        write_part(self.plan, table, index, self.count, self.inputs, self.place)
        return index
