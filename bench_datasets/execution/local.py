"""Scoring on one machine; long runs are kept part by part, so that a run that was stopped can go on."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from datasets import Dataset

from bench_datasets._util.locks import alone
from bench_datasets.execution.fingerprint import Inputs, cut, look_over
from bench_datasets.execution.merge_shards import join
from bench_datasets.execution.progress import Progress, log
from bench_datasets.execution.shards import Manifest, done, part_name, read_part, units_of, write_part
from bench_datasets.faults import BenchError
from bench_datasets.scoring.prepare import Plan
from bench_datasets.scoring.workers import in_processes

CHECKPOINT_SECONDS = 5.0
"""Seconds of scoring after which finished rows are kept on disk; a shorter run in one process writes no parts."""


def score_shard(
    plan: Plan, index: int, count: int, folder: str | os.PathLike[str], num_proc: int | None = None
) -> Path:
    """Score one of several parts and write it; do nothing if it is there already.

    Like `score_in_parts`, it goes on where an earlier run was stopped.

    Args:
        plan: what is to be scored.
        index: number of the part, from 0.
        count: number of parts.
        folder: gets `part-<index>-of-<count>.parquet` and its manifest.
        num_proc: processes.

    Returns:
        The part's file.

    Raises:
        BenchError: the numbers are out of range; the folder holds the part for other inputs, or damaged; or another
            process is scoring it.
        OSError: the folder can't be written.
    """
    if not 0 <= index < count:
        raise BenchError(f"shard: expected I/N with I from 0 to N - 1, got {index}/{count}")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    inputs = look_over(plan)
    manifest = Manifest(plan.benchmark, index, count, inputs.sha256, plan.record, len(plan.units))
    name = part_name(index, count)
    if not done(place, manifest):
        meanwhile = place / f".{name}-{inputs.sha256[:16]}"
        with alone(meanwhile, name):
            if not done(place, manifest):
                tables = _score(plan, units_of(plan, count)[index], inputs, meanwhile, num_proc)
                write_part(join(tables, plan.benchmark), manifest, place)
            shutil.rmtree(meanwhile, ignore_errors=True)
    return place / name


def score_in_parts(plan: Plan, folder: str | os.PathLike[str], num_proc: int | None = None) -> Dataset:
    """Score everything; a run of more than a few seconds keeps finished parts in `folder` until all are there.

    A run that was stopped, however roughly, goes on with the parts that are missing when it is called again with the
    same inputs; parts of other inputs are left alone.

    Args:
        plan: what is to be scored.
        folder: where the parts are kept meanwhile, under a name of their own.
        num_proc: processes that each take a part at a time.

    Returns:
        The same score table, to the byte, as `scoring.score` gives.

    Raises:
        BenchError: another process is scoring the same in this folder.
        OSError: the folder can't be written.
    """
    with scoring_in_parts(plan, folder, num_proc) as scores:
        return scores


@contextlib.contextmanager
def scoring_in_parts(plan: Plan, folder: str | os.PathLike[str], num_proc: int | None = None) -> Iterator[Dataset]:
    """Score like `score_in_parts`, and keep the parts until the block has ended well."""
    begun = plan.schema.empty_table()
    if (num_proc is None or num_proc < 2) and not any(Path(folder).glob(".parts-*")):
        begun = _begin(plan)
        if len(begun) == len(plan.units):
            yield plan.finish(begun)
            return
    inputs = look_over(plan)
    place = Path(folder) / f".parts-{inputs.sha256[:16]}"
    with alone(place, "this scoring"):
        yield plan.finish(join(_score(plan, plan.everything, inputs, place, num_proc, begun), plan.benchmark))
        shutil.rmtree(place, ignore_errors=True)


def _begin(plan: Plan) -> pa.Table:
    """The score rows of the first units, as many as can be scored in `CHECKPOINT_SECONDS`."""
    end = time.monotonic() + CHECKPOINT_SECONDS
    tables = [plan.schema.empty_table()]
    done = 0
    while done < len(plan.units) and time.monotonic() < end:
        tables.append(plan.score(plan.everything[done : done + plan.lot], quiet=True))
        done += len(tables[-1])
    return pa.concat_tables(tables)


def _score(
    plan: Plan, units: Sequence[int], inputs: Inputs, place: Path, num_proc: int | None, begun: pa.Table | None = None
) -> list[pa.Table]:
    """Score units in internal parts, those that are missing; the score rows of each.

    Args:
        plan: what is to be scored.
        units: their numbers.
        inputs: what goes in.
        place: folder of the parts.
        num_proc: processes.
        begun: score rows of the first units, where they are known already.
    """
    pieces = cut(units, inputs)
    manifest = Manifest(plan.benchmark, 0, len(pieces), inputs.sha256, plan.record, len(units))
    task = _Task(plan, pieces, manifest, place)
    first = 0
    for index, piece in enumerate(pieces):
        if begun is not None and first + len(piece) <= len(begun):
            write_part(begun.slice(first, len(piece)), replace(manifest, index=index), place)
        first += len(piece)
    missing = [index for index in range(len(pieces)) if not _usable(place, replace(manifest, index=index))]
    missing.sort(key=lambda index: not inputs.doubtful[pieces[index]].any())  # an error comes soon or not at all
    already = len(units) - sum(len(pieces[index]) for index in missing)
    with Progress(len(units), already, len(pieces), len(pieces) - len(missing)) as progress:
        for index in in_processes(task, missing, num_proc, plan.options.threads):
            progress.part(len(pieces[index]))
    files = [place / part_name(index, len(pieces)) for index in range(len(pieces))]
    return [plan.features.arrow_schema.empty_table(), *(read_part(file)[1] for file in files)]


def _usable(place: Path, manifest: Manifest) -> bool:
    """Whether an internal part is there; one that is damaged is scored again."""
    try:
        return done(place, manifest)
    except BenchError as error:
        log.info("scored again: %s", error)
        (place / part_name(manifest.index, manifest.count)).unlink(missing_ok=True)
        return False


@dataclass(frozen=True)
class _Task:
    """Scores and writes an internal part, by its number; travels to worker processes."""

    plan: Plan
    pieces: list[list[int]]
    manifest: Manifest
    place: Path

    def __call__(self, index: int) -> int:
        table = self.plan.score(self.pieces[index], quiet=True)
        write_part(table, replace(self.manifest, index=index), self.place)
        return index
