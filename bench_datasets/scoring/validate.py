"""Every prediction validated and hashed before the first one is scored; what that read is kept for the scoring."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.benchmark import Benchmark, get_benchmark
from bench_datasets.faults import stops
from bench_datasets.masks import Decoded, get_engine, using_engine
from bench_datasets.masks.ragged import CHUNK_BYTES, parts
from bench_datasets.predictions import lists_of
from bench_datasets.predictions.mask_rows import FAULTS_TYPE
from bench_datasets.scoring.batching import ArrowRows, is_run, rows_at_a_time, rows_of
from bench_datasets.scoring.hashes import sound_hashes
from bench_datasets.scoring.options import ScoreOptions
from bench_datasets.scoring.units import Units
from bench_datasets.scoring.workers import in_processes

KEPT_BYTES = 1 << 28
"""Bytes of runs that are kept from the validation to the scoring; masks beyond that are read again."""

LOT_BYTES = 1 << 25
"""Bytes of counts of a lot that is read at once; a heavier one is read part by part, and not kept."""


class UnsoundMasksError(Exception):
    """A predicted mask is invalid, and the predictions were read without validation."""


class Reading(NamedTuple):
    """The decoded predictions of some units.

    Attributes:
        first: the first unit.
        begin: `(units + 1,) int64`, where each unit's masks begin.
        decoded: all their masks, in order; those that are null or missing left out as the metric leaves them out.
    """

    first: int
    begin: NDArray[np.int64]
    decoded: Decoded

    @property
    def last(self) -> int:
        """The unit after the last one."""
        return self.first + len(self.begin) - 1


class Readings:
    """Readings by unit, each handed out once. A copy in another process is empty: there masks are read again."""

    def __init__(self, readings: Sequence[Reading] = ()) -> None:
        self._readings = {reading.first: reading for reading in readings}
        self._firsts = sorted(self._readings)

    def __reduce__(self) -> tuple[type[Readings], tuple[()]]:
        return Readings, ()

    def take(self, units: Sequence[int]) -> Decoded | None:
        """The decoded predictions of these units, or `None` if they were not kept."""
        numbers = np.asarray(units, np.int64)
        if not is_run(numbers):
            return None
        first, last = int(numbers[0]), int(numbers[-1]) + 1
        found: list[Decoded] = []
        while first < last:
            at = bisect_right(self._firsts, first) - 1
            reading = self._readings.get(self._firsts[at]) if at >= 0 else None
            end = 0 if reading is None else min(reading.last, last)
            if reading is None or end <= first:
                return None
            masks = reading.begin[first - reading.first], reading.begin[end - reading.first]
            found.append(reading.decoded.part(*masks))
            if end == reading.last:  # units come in order: those before it had their turn
                del self._readings[reading.first]
            first = end
        return Decoded.joined(found)


class Verified(NamedTuple):
    """The result of the validation.

    Attributes:
        hashes: of the sound predictions that will be scored, in any order.
        readings: their masks, as far as they were kept.
    """

    hashes: list[str]
    readings: Readings


def verify(
    metric: Benchmark,
    answers: ArrowRows,
    units: Units,
    options: ScoreOptions,
    num_proc: int | None = None,
    size: int | None = None,
    *,
    doubtful: bool = False,
) -> Verified:
    """Validate every prediction that will be scored, before the first one is.

    Args:
        metric: the benchmark's benchmark.
        answers: the predictions' columns that are scored.
        units: which belong together.
        options: how they will be scored.
        num_proc: processes; 1 for `None`.
        size: units at a time; best as many as will be scored at a time. By default, what `answers` suggest.
        doubtful: whether the masks were read without validation and can be read again with it.

    Raises:
        FaultError: one is faulty and the options say to stop.
        UnsoundMasksError: a mask is invalid and `doubtful` is true.
    """
    size = size or rows_at_a_time(answers)
    lots = [(first, min(first + size, len(units.begin) - 1)) for first in range(0, len(units.begin) - 1, size)]
    alone = num_proc is None or num_proc < 2
    task = _Verification(metric.name, answers, units, options, alone, doubtful)
    hashes, readings, room = list[str](), list[Reading](), KEPT_BYTES
    with using_engine(options.engine, options.threads):
        if not alone:
            get_engine()  # loaded here, once for all processes
        for own, reading in in_processes(task, lots, num_proc, options.threads):
            hashes += own
            if reading is not None and (room := room - reading.decoded.nbytes) >= 0:
                readings.append(reading)
    return Verified(hashes, Readings(readings))


@dataclass(frozen=True)
class _Verification:
    """Validates the predictions of the units from one to another; travels to worker processes."""

    benchmark: str
    answers: ArrowRows
    units: Units
    options: ScoreOptions
    keep: bool
    doubtful: bool

    def __call__(self, lot: tuple[int, int]) -> tuple[list[str], Reading | None]:
        """Validate one batch of units; returns hashes and decoded masks."""
        with using_engine(self.options.engine, self.options.threads):
            return self._read(*lot)

    def _read(self, first: int, last: int) -> tuple[list[str], Reading | None]:
        begin = self.units.begin[first : last + 1]
        place = begin[0] + np.flatnonzero(self.units.answers[begin[0] : begin[-1]] >= 0)
        if not len(place):
            return [], None
        table = rows_of(self.answers, self.units.answers[place])
        given = table["pred_faults"] if "pred_faults" in table.column_names else pa.nulls(len(place))
        noted = lists_of(given, FAULTS_TYPE)
        lists, fields = get_benchmark(self.benchmark).split_predictions(table)
        reading = None
        if self.keep and lists.bytes_a_row().sum() <= LOT_BYTES:
            reading = Reading(first, lists.groups[np.searchsorted(place, begin)], lists.masks.decoded)
        hashes = list[str]()
        for start, stop in parts(lists.bytes_a_row() / CHUNK_BYTES):
            some = slice(start, stop)
            hashes += self._hashes(lists.slice(start, stop), fields[some], place[some], noted[some])
        return hashes, reading

    def _hashes(self, part: Any, fields: pa.Table | list[Any], place: NDArray[np.int64], noted: pa.Array) -> list[str]:
        problems = part.problems()
        if problems and self.doubtful:
            raise UnsoundMasksError
        if self.options.stops and (problems or len(noted.flatten())):
            for k, read in enumerate(noted.to_pylist()):
                found = [(fault["code"], fault["text"]) for fault in read or () if stops(fault["code"])]
                if k in problems or found:
                    code, text = found[0] if found else ("malformed_mask", problems[k][0])
                    raise self.units.fault(int(place[k]), code, f"{text}; `check` lists all that is wrong")
        names = [self.units.names[k] for k in place.tolist()]
        return [digest for digest in sound_hashes(_named(names, fields), part, problems) if digest]


def _named(names: list[str], fields: pa.Table | list[Any]) -> pa.Table | list[Any]:
    """The fields that a prediction's hash covers besides its masks: its row's key, and its other fields."""
    if isinstance(fields, pa.Table):
        return pa.table({"key": pa.array(names, pa.string()), **{name: fields[name] for name in fields.column_names}})
    return [{"key": name, **others} for name, others in zip(names, fields, strict=True)]
