"""From a batch of PBench rows to its score rows: a pure function, masks in, small integers out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets._util.arrow import list_column, spread
from bench_datasets.benchmarks.pbench import BENCHMARK
from bench_datasets.benchmarks.pbench.batch import CODES_TYPE, Rows, read_rows
from bench_datasets.benchmarks.pbench.measure import MATCHED, POSITIONS, measure
from bench_datasets.benchmarks.pbench.protocol import PBenchProtocol, get_protocol
from bench_datasets.benchmarks.pbench.validation import find_faults, noted_masks
from bench_datasets.faults import stops
from bench_datasets.masks import Decoded
from bench_datasets.masks.ragged import CHUNK_BYTES, parts
from bench_datasets.scoring.faulty_rows import Faulty
from bench_datasets.scoring.hashes import sound_hashes
from bench_datasets.scoring.options import ScoreOptions

CHUNK_PAIRS = 1 << 21
"""Pairs of masks that are compared at a time."""

DEFAULTS: dict[str, Any] = {**{name: [] for name in MATCHED}, **dict.fromkeys(POSITIONS)}
"""What stands in a skipped row's measured columns; 0 in all others."""


def score_table(batch: pa.Table | Mapping[str, Any], options: ScoreOptions, decoded: Decoded | None = None) -> pa.Table:
    """Score a batch.

    Args:
        batch: rows with `pred_masks` beside the truth, as an Arrow table or as columns by name.
        options: how; the protocol, and what to do about faults.
        decoded: the predicted masks, where they were decoded before.

    Returns:
        One score row a row of the batch, in the batch's order, with the columns of `SCORE_COLUMNS` (and of
        `BOUNDARY_COLUMNS`, if the options ask for them).

    Raises:
        FaultError: a row has a fault and the options say to stop.
        BenchError: a column is absent.
    """
    protocol = get_protocol(options.protocol)
    rows = read_rows(batch, options.level)
    if decoded is not None:
        rows.predicted.masks.remember(decoded)
    schema = _schema(options.boundary)
    chunks = [pa.table(_score_chunk(chunk, protocol, options), schema=schema) for chunk in _chunks(rows)]
    return pa.concat_tables(chunks).combine_chunks() if chunks else schema.empty_table()


@cache
def _schema(boundary: bool) -> pa.Schema:
    return BENCHMARK.score_features(boundary=boundary).arrow_schema.remove_metadata()


def _chunks(rows: Rows) -> Iterator[Rows]:
    """Parts of bounded work: by bytes of counts and by pairs of masks, at least a row each."""
    size = rows.true.bytes_a_row() + rows.predicted.bytes_a_row()
    true, predicted = np.diff(rows.true.groups), np.diff(rows.predicted.groups)
    for start, stop in parts(size / CHUNK_BYTES + predicted * (true + predicted) / CHUNK_PAIRS):
        yield rows.slice(start, stop)


def row_faults(batch: pa.Table | Mapping[str, Any], options: ScoreOptions) -> Faulty:
    """The rows of a batch that can't be scored as they are; nothing is scored.

    Args:
        batch: as for `score_table`.
        options: how rows would be scored.

    Raises:
        FaultError: there is such a row and the options say to stop.
        BenchError: a column is absent.
    """
    rows = read_rows(batch, options.level)
    return find_faults(rows, rows.true.problems(), get_protocol(options.protocol), options)


def _score_chunk(rows: Rows, protocol: PBenchProtocol, options: ScoreOptions) -> dict[str, Any]:
    n, unsound = len(rows), rows.true.problems()
    faulty = find_faults(rows, unsound, protocol, options)
    good = np.ones(n, np.bool_)
    good[list(faulty.left_out)] = False
    scored = rows if not faulty.wrong else rows.without_predictions(list(faulty.wrong))
    scored = scored if good.all() else scored.take(np.flatnonzero(good))
    measured = measure(scored, protocol, boundary=options.boundary)
    if faulty.wrong:
        wrong = np.zeros(n, np.bool_)
        wrong[list(faulty.wrong)] = True
        measured = _with_false_positives(measured, wrong[good])
    return {
        "key": rows.keys,
        "cluster": rows.clusters,
        "protocol": pa.repeat(f"{protocol.name}@{protocol.version}", n),
        "row_sha256": sound_hashes(rows.labels, rows.true, unsound),
        "level": rows.levels,
        "faults": _codes(rows, faulty, noted_masks(rows)),
        "skipped": ~good,
        **{name: spread(values, good, DEFAULTS.get(name, 0)) for name, values in measured.items()},
    }


def _with_false_positives(measured: Mapping[str, pa.Array], wrong: NDArray[np.bool_]) -> dict[str, pa.Array]:
    """Count one mask without a pixel in the rows without ground truth whose prediction counts as wrong.

    An empty prediction is the right one for such a row, so a faulty prediction must not be scored as empty there.
    """
    found = dict(measured)
    for name in ("raw_count", "nms_count", "kept_count"):
        counts = measured[name].to_numpy() + (wrong & (measured["true_count"].to_numpy() == 0))
        found[name] = pa.array(counts, measured[name].type)
    return found


def _codes(rows: Rows, faulty: Faulty, odd: Mapping[int, Sequence[str]]) -> pa.Array:
    """Codes of what the builder, the reading of predictions and the scoring found, sorted, each once."""
    found_any = faulty.left_out or faulty.wrong or odd
    if not found_any and not len(rows.noted.flatten()) and not len(rows.reading.flatten()):
        return list_column(CODES_TYPE, [], np.zeros(len(rows), np.int64))
    found = [
        sorted(
            {
                *(noted or ()),
                *(fault["code"] for fault in read or () if not stops(fault["code"])),
                *faulty.codes(i),
                *(odd.get(i, ()) if i not in faulty.left_out and i not in faulty.wrong else ()),
            }
        )
        for i, (noted, read) in enumerate(zip(rows.noted.to_pylist(), rows.reading.to_pylist(), strict=True))
    ]
    return pa.array(found, CODES_TYPE)
