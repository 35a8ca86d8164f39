"""One table's columns into InstanceBench predictions, the mask column as it lies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from bench_datasets.benchmarks.instancebench.prediction_lines import ANSWERS, NO_TARGET, contradiction, to_row
from bench_datasets.benchmarks.instancebench.prediction_rows import SCHEMA, Row, to_batch
from bench_datasets.benchmarks.instancebench.signature import SIGNATURE
from bench_datasets.faults import BenchError
from bench_datasets.masks import MASK_TYPE, joined
from bench_datasets.predictions.arrow_types import is_mask, keep_earlier, sound_masks
from bench_datasets.predictions.coerce import Found
from bench_datasets.predictions.foreign_fields import refuse_other_benchmark
from bench_datasets.predictions.mask_rows import faults_array

_KNOWN = (
    *("expression_id", "ref_id", "sent_id", *ANSWERS, *NO_TARGET, "run", "condition", "pred_faults"),
    *("size", "height", "width"),
    *("key", "candidates", "expressions", "video_id", "tubes", "pred_tubes", "triplets", "pred_triplets"),
    *("masks", "pred_masks", "instances"),
)


class Columns:
    """Which columns of a table say what, found once, and the conversion of its slices.

    Args:
        schema: of the table.
        shown: how messages call it.
        name: of its file or split.

    Raises:
        BenchError: it has no column of answers, nothing names its rows, or it is another benchmark's.
    """

    def __init__(self, schema: pa.Schema, shown: str, name: str) -> None:
        del name
        names = schema.names
        refuse_other_benchmark(names, shown, SIGNATURE)
        listed = ", ".join(names[:12]) or "no columns"
        if "expression_id" not in names and not {"ref_id", "sent_id"} <= set(names):
            raise BenchError(f"{shown}: expected a column expression_id, found {listed}")
        if not any(answer in names for answer in ANSWERS):
            raise BenchError(f"{shown}: expected a column mask, box or candidate_id, found {listed}")
        self.shown = shown
        self.mask = next((column for column in ("mask", "segmentation") if column in names), None)
        self.rows = 0

    @staticmethod
    def known(names: Iterable[str]) -> list[str]:
        """Those of the names that are read."""
        given = list(names)
        found = [name for name in given if name in _KNOWN]
        named = {"expression_id", "ref_id", "sent_id", "run", "condition", "key", "size", "height", "width"}
        return given if found and set(found) <= named else found  # names alone: the message lists all columns

    def convert(self, table: pa.Table) -> pa.RecordBatch:
        """A slice of the table as a batch of `rows.SCHEMA`."""
        columns = {name: joined(table.column(name)) for name in self.known(table.column_names)}
        mask = columns.get(self.mask or "")
        earlier = columns.pop("pred_faults", None)
        typed = mask is not None and is_mask(mask.type)
        named = {name: column.to_pylist() for name, column in columns.items() if not (typed and name == self.mask)}
        rows = [self._row(named, i, typed) for i in range(table.num_rows)]
        if mask is not None and typed and set(NO_TARGET) & set(named):
            for i in mask.is_valid().to_numpy(zero_copy_only=False).nonzero()[0].tolist():
                rows[i].faults += contradiction({name: named[name][i] for name in NO_TARGET if name in named})
        batch = to_batch(rows, _sound(mask, rows) if typed else None)
        faults = [row.faults for row in rows]
        if earlier is not None:
            _forget(earlier, faults)
            keep_earlier(earlier, faults)
        self.rows += len(rows)
        return pa.RecordBatch.from_arrays([*batch.columns[:-1], faults_array(faults)], schema=SCHEMA)

    def _row(self, named: dict[str, list[Any]], i: int, typed: bool) -> Row:
        record = {name: values[i] for name, values in named.items()}
        if typed:
            record["mask"] = None  # validated as it lies
        return to_row(record, f"{self.shown}, row {self.rows + i}")


def _sound(mask: pa.Array, rows: list[Row]) -> pa.Array:
    """The masks, once they are known to be sound; a null mask is an answer."""
    there = mask.is_valid().to_numpy(zero_copy_only=False)
    places = there.nonzero()[0]
    masks, wrong = sound_masks(mask.filter(pa.array(there)))
    for at, text in wrong.items():
        rows[int(places[at])].faults.append(("malformed_mask", f"mask: {text}"))
    if len(places) == len(rows):
        return masks
    index: list[int | None] = [None] * len(rows)
    for at, place in enumerate(places.tolist()):
        index[place] = at
    return masks.take(pa.array(index, pa.int64())) if len(masks) else pa.nulls(len(rows), MASK_TYPE)


def _forget(earlier: pa.Array, faults: list[Found]) -> None:
    """Leave out that a row has no name, where an earlier reading has said why."""
    for row, items in enumerate(earlier.to_pylist()):
        if any(item["code"] == "unknown_row" for item in items or [] if item):
            faults[row][:] = [fault for fault in faults[row] if fault[0] != "unknown_row"]
