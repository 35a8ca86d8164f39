"""COCO results JSON with an expression in the place of the image, asked for by name: of several, the best score."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from bench_datasets.benchmarks.instancebench.prediction_lines import name_row, named, read_box, read_candidate, to_row
from bench_datasets.benchmarks.instancebench.prediction_rows import SCHEMA, Row, to_batch
from bench_datasets.faults import BenchError
from bench_datasets.predictions.coerce import ABSENT, pick, read_number, show
from bench_datasets.predictions.files import Location
from bench_datasets.predictions.foreign_fields import refuse_other_tools
from bench_datasets.predictions.formats.coco import results
from bench_datasets.predictions.mask_rows import BATCH, weight
from bench_datasets.predictions.spool import Spool

_SCORED = SCHEMA.append(pa.field("score", pa.float64()))
_ROWS = 2048


def read(location: Location) -> Iterator[pa.RecordBatch]:
    """Batches of `rows.SCHEMA` out of a results file: `{image_id | expression_id, segmentation, score}`.

    A detector gives several results an image; a referring model gives one an expression. Recognised by itself, a
    results file is therefore read line by line, and two results for one expression are two predictions, which is a
    fault. Named `format="coco"` it is read as a detector's: of the results of one expression, run and condition the
    one with the highest score is the prediction, the first of equals. Where one of them has no finite score nothing
    is chosen, and they stay as they are.

    Args:
        location: a results file (a list, or an object per line), or a folder of such files, which are read as one.

    Raises:
        BenchError: the file is no JSON list of objects, or holds none.
    """
    group: dict[tuple[str, str, str], int] = {}
    best: dict[int, tuple[int, float]] = {}
    groups: list[int] = []
    unscored: set[int] = set()
    with Spool(_SCORED) as spool:
        pending: list[Row] = []
        held = 0
        for file, line, record in results(location):
            if not line:
                continue
            row = _row(record, f"{file.shown}:{line}")
            place = len(groups)
            name = None if row.expression_id is None else (row.expression_id, row.run, row.condition)
            mine = -1 if name is None else group.setdefault(name, len(group))
            groups.append(mine)
            if row.score is None:
                unscored.add(mine)
            elif mine not in best or row.score > best[mine][1]:
                best[mine] = (place, row.score)
            pending.append(row)
            held += weight(row.mask)
            if len(pending) >= _ROWS or held >= BATCH:
                spool.write(_scored(pending))
                pending, held = [], 0
        if pending:
            spool.write(_scored(pending))
    if not groups:
        raise BenchError(f"{location.shown}: expected at least one result, found an empty list")
    kept = np.array([mine < 0 or mine in unscored or best[mine][0] == i for i, mine in enumerate(groups)])
    table = spool.table()
    first = 0
    for batch in table.to_batches():
        chosen = batch.filter(pa.array(kept[first : first + len(batch)]))
        first += len(batch)
        yield pa.RecordBatch.from_arrays(chosen.columns[:-1], schema=SCHEMA)


def _row(record: dict[str, object], place: str) -> Row:
    refuse_other_tools(record, place)
    if "segmentation" not in record and "mask" not in record:
        row = Row(box=None)
        fields = named(record)
        name_row(row, fields, "expression_id" if "expression_id" in fields else "image_id", place)
        row.box, row.candidate_id = read_box(row, fields), read_candidate(row, fields)
        text = "mask: expected a segmentation, found none (write null where nothing was found)"
        if row.box is None and row.candidate_id is None:
            row.faults.append(("malformed_mask", text))
    else:
        row = to_row(record, place)
    given = pick(record, "score")
    row.score = None if given is ABSENT else read_number(given)
    if given is not ABSENT and row.score is None:
        row.faults.append(("bad_score", f"score: expected a finite number, found {show(given)}"))
    return row


def _scored(rows: list[Row]) -> pa.RecordBatch:
    scores = pa.array([row.score for row in rows], pa.float64())
    return pa.RecordBatch.from_arrays([*to_batch(rows).columns, scores], schema=_SCORED)
