"""A part of the truth (a level, the first rows of each kind) and the predictions that are for it.

A part must not change what a prediction means: an id that two rows of the whole share stays ambiguous when one of them
is left out, and the third line of a file stays the third row's. So predictions are paired with the whole first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, IterableDataset

from bench_datasets.benchmark import Benchmark
from bench_datasets.faults import BenchError
from bench_datasets.predictions.mask_rows import FAULTS_TYPE
from bench_datasets.predictions.pairing import Names, TruthNames, targets
from bench_datasets.predictions.spool import Spool

_BATCH = 256


@dataclass
class _RowNames:
    """Keys, ids and levels of rows."""

    keys: list[str] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)

    def add(self, keys: Iterable[str], ids: Iterable[int], levels: Iterable[str]) -> None:
        self.keys += keys
        self.ids += ids
        self.levels += levels

    def table(self) -> TruthNames:
        return TruthNames(self.keys, self.ids, self.levels)


@dataclass
class Part:
    """Some rows of the truth.

    Attributes:
        rows: their label columns.
        level: the level that all of them are of, or None.
        everything: the names of all rows of the source.
        scope: the names of all rows of the level; `everything` where there is none.
        named: what predictions for rows of the source may be called, where that is not one of the names above.
        prediction_key: column of predictions that holds such a name.
    """

    rows: Dataset
    level: str | None
    everything: _RowNames
    scope: _RowNames
    named: set[str]
    prediction_key: str


def take(
    truth: Dataset | IterableDataset, metric: Benchmark, *, level: str | None, limit: int | None, by: Sequence[str]
) -> Part:
    """Take a part of the truth, in one pass.

    Args:
        truth: all rows, streaming or not.
        metric: the benchmark's benchmark.
        level: the level whose rows are taken, or None for all.
        limit: how many rows, or None for all.
        by: columns; `limit` rows are taken of each combination of their values.

    Raises:
        BenchError: no row is left.
    """
    columns = truth.column_names or list(truth.features or ())
    labels = truth.select_columns([name for name in metric.truth_columns if name in columns])
    everything, scope, taken = _RowNames(), _RowNames(), Counter[tuple[Any, ...]]()
    named: set[str] = set()
    chosen: list[int] = []
    tables: list[pa.Table] = []
    first = 0
    for table in labels.with_format("arrow").iter(batch_size=_BATCH):
        keys, ids, levels = _row_names(table, metric, columns)
        everything.add(keys, ids, levels)
        named.update(metric.predicted_names(table, keys))
        values = [table.column(name).to_pylist() for name in by]
        kept = []
        for row, value in enumerate(zip(*values, strict=True) if by else [()] * len(keys)):
            if level is not None and levels[row] != level:
                continue
            scope.add([keys[row]], [ids[row]], [levels[row]])
            taken[value] += 1
            if limit is None or taken[value] <= limit:
                kept.append(row)
        chosen += [first + row for row in kept]
        if isinstance(truth, IterableDataset):
            tables.append(table.take(pa.array(kept, pa.int64())))
        first += len(keys)
    if not chosen:
        there = ", ".join(dict.fromkeys(everything.levels)) or "no rows"
        raise BenchError(f"truth: expected rows of {level or 'any level'}, found {there}")
    if isinstance(truth, IterableDataset):
        info = truth.info.copy()
        info.features = labels.features
        rows = Dataset(pa.concat_tables(tables).combine_chunks(), info=info, split=truth.split)
    else:
        rows = labels.select(chosen)
    return Part(rows, level, everything, scope, named, metric.prediction_key)


def _row_names(table: pa.Table, metric: Benchmark, columns: Sequence[str]) -> tuple[list[str], list[int], list[str]]:
    """Keys, ids and levels of rows; a benchmark that has only keys gets no ids and no levels."""
    names = table.select([name for name in ("key", "id", "level") if name in table.column_names])
    return metric.row_names(names, None, columns)


def mark_strangers(predictions: Dataset, part: Part) -> Dataset:
    """The predictions, those that name nothing in the whole source with the fault `unknown_row`.

    For benchmarks whose predictions bear names that mean the same in every part; see `restrict` for the other.
    """
    column = part.prediction_key
    names = predictions.select_columns([column]).with_format("arrow")[:].column(column).to_pylist()
    strange = {row for row, name in enumerate(names) if name is not None and name not in part.named}
    if not strange:
        return predictions

    def mark(row: dict[str, Any], index: int) -> dict[str, Any]:
        if index not in strange:
            return {"pred_faults": row["pred_faults"]}
        fault = {"code": "unknown_row", "text": f"nothing in the truth is called {names[index]!r}"}
        return {"pred_faults": [*(row["pred_faults"] or []), fault]}

    columns = ["pred_faults"]
    faults = predictions.select_columns(columns).map(mark, with_indices=True, load_from_cache_file=False)
    return predictions.remove_columns(columns).add_column(
        "pred_faults", faults["pred_faults"][:], feature=predictions.features["pred_faults"]
    )


def restrict(predictions: Dataset, part: Part) -> Dataset:
    """The predictions for a part's rows, each named by its row's key, and those that name no row at all.

    Args:
        predictions: as `read_predictions` gives them.
        part: what `take` gave.

    Returns:
        The same columns; a prediction for no row of the source bears the fault `unknown_row`, one for a row outside of
        the part is left out.
    """
    names = Names.of(predictions)
    scope = part.scope.table()
    target, problems = targets(names, scope)
    outside = np.zeros(len(target), np.bool_)
    if part.level is not None:
        outside = (target < 0) & (targets(names, part.everything.table())[0] >= 0)
        outside |= np.array([split is not None and split != part.level for split in names.split.to_pylist()], np.bool_)
    wanted = set(part.rows["key"]) if "key" in part.rows.column_names else set(scope.keys)
    kept = [
        row for row in range(len(target)) if not outside[row] and (target[row] < 0 or scope.keys[target[row]] in wanted)
    ]
    keys = [scope.keys[place] if place >= 0 else None for place in target.tolist()]
    schema = predictions.features.arrow_schema
    arrow = predictions.with_format("arrow")
    with Spool(schema) as spool:
        for start in range(0, len(kept), _BATCH):
            rows = kept[start : start + _BATCH]
            table = _named(arrow[rows], [keys[row] for row in rows], [problems.get(row) for row in rows])
            for batch in table.cast(schema).combine_chunks().to_batches():
                spool.write(batch)
    return spool.dataset(predictions.features)


def _named(table: pa.Table, keys: Sequence[str | None], problems: Sequence[str | None]) -> pa.Table:
    """Predictions with their rows' keys, and with the fault of those that have none."""
    given, faults = table.column("key").to_pylist(), table.column("pred_faults").to_pylist()
    found = [key or old for key, old in zip(keys, given, strict=True)]
    for row, text in enumerate(problems):
        if text is not None and not any(fault["code"] == "unknown_row" for fault in faults[row] or []):
            faults[row] = [*(faults[row] or []), {"code": "unknown_row", "text": text}]
    table = table.set_column(table.column_names.index("key"), "key", pa.array(found, pa.string()))
    return table.set_column(table.column_names.index("pred_faults"), "pred_faults", pa.array(faults, FAULTS_TYPE))
