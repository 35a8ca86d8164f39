"""Mean IoU, overall IoU and precision at thresholds, of rows with one true mask each.

Masks become integers in `score_table`; everything after it reads integers alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bench_datasets.benchmark import Benchmark
from bench_datasets.faults import FaultError
from bench_datasets.masks import quotient, union_overlaps
from bench_datasets.masks.ragged import read_mask_lists
from bench_datasets.results.estimates import ALL, Gathered
from bench_datasets.results.statistics import Statistic
from bench_datasets.scoring.hashes import row_hashes
from bench_datasets.scoring.options import ScoreOptions


def score_table(benchmark: Benchmark, batch: pa.Table | Mapping[str, Any], options: ScoreOptions) -> pa.Table:
    """A score row for each row of the batch."""
    table = batch if isinstance(batch, pa.Table) else None
    rows = {name: table[name].to_pylist() for name in table.column_names} if table is not None else dict(batch)
    true, given = (read_mask_lists(batch[name]) for name in ("masks", "pred_masks"))
    keys, n = rows["key"], len(rows["key"])
    wrong = {i: ("malformed_mask", f"pred_masks, {texts[0]}") for i, texts in given.problems().items()}
    for i in range(n):
        own = slice(given.groups[i], given.groups[i + 1])
        size = true.masks.heights[true.groups[i]], true.masks.widths[true.groups[i]]
        sizes = set(zip(given.masks.heights[own], given.masks.widths[own], strict=True))
        if reading := (rows.get("pred_faults") or [None] * n)[i]:
            wrong[i] = (reading[0]["code"], reading[0]["text"])
        elif i not in wrong and not given.present[i] and options.missing == "error":
            wrong[i] = ("missing_prediction", 'no prediction; predict the row, or ask for missing="empty"')
        elif i not in wrong and sizes - {size}:
            wrong[i] = ("size_mismatch", f"expected masks of {size[0]} x {size[1]}, the row's size")
    if wrong and options.stops:
        first = min(wrong)
        raise FaultError(wrong[first][0], keys[first], wrong[first][1])
    sound = np.array([i for i in range(n) if i not in wrong], np.int64)
    left, right = given.take(sound), true.take(sound)
    counts = np.zeros((3, n), np.int64)
    counts[:, sound] = union_overlaps(len(sound), (left.masks, left.row_of), (right.masks, right.row_of))
    labels = [{name: rows[name][i] for name in ("id", "split", "expression")} for i in range(n)]
    chosen = benchmark.protocol(options.protocol)
    columns = {
        "key": keys, "cluster": keys, "protocol": [f"{chosen.name}@{chosen.version}"] * n,
        "row_sha256": row_hashes(labels, true.masks, true.groups), "split": rows["split"],
        "faults": [[wrong[i][0]] if i in wrong else [] for i in range(n)], "skipped": [i in wrong for i in range(n)],
        **dict(zip(("intersection", "predicted", "true"), counts.tolist(), strict=True)),
    }  # fmt: skip
    return pa.Table.from_pydict(columns, schema=benchmark.score_features().arrow_schema.remove_metadata())


def statistics(table: pa.Table, *, thresholds: Sequence[float] | None = None, by: Sequence[str] = ()) -> Gathered:
    """Every number as a function of summed columns, which is what gives it an interval and lets runs be compared."""
    shared, predicted, true = (table[name].to_numpy() for name in ("intersection", "predicted", "true"))
    union = predicted + true - shared
    iou, one = quotient(shared, union), np.ones(len(table))
    chosen = thresholds or (0.5, 0.7, 0.9)

    def numbers(rows: Any) -> dict[str, Statistic]:
        def share(top: Any, bottom: Any = one) -> Statistic:
            return Statistic(rows, np.stack([top, bottom], axis=1)[rows], lambda s: s[..., 0] / s[..., 1], len(rows))

        return {"miou": share(iou), "oiou": share(shared, union), **{f"p@{t:g}": share(iou >= t) for t in chosen}}

    found: Gathered = {ALL: numbers(np.arange(len(table)))}
    for column in by:
        values = np.array([str(value) for value in table[column].to_pylist()])
        found |= {(column, value): numbers(np.flatnonzero(values == value)) for value in sorted(set(values.tolist()))}
    return found
