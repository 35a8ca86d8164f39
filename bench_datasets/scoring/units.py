"""Which predictions belong to which score row: the one thing about scoring that differs from benchmark to benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from datasets import Dataset
from numpy.typing import NDArray

from bench_datasets._util.arrow import arrow_columns
from bench_datasets.faults import BenchError, Fault, FaultError
from bench_datasets.masks import joined
from bench_datasets.masks.ragged import MaskLists, read_mask_lists
from bench_datasets.predictions import pair
from bench_datasets.predictions.mask_rows import FAULTS_TYPE
from bench_datasets.scoring.options import ScoreOptions

if TYPE_CHECKING:
    from bench_datasets.benchmark import Benchmark

TWICE = {"code": "duplicate_prediction", "text": "two predictions name this row"}


@dataclass
class Units:
    """The score rows to be, each a truth row with the predictions for it.

    Attributes:
        truth: `(u,) int64`, the truth row of each unit.
        begin: `(u + 1,) int64`, where each unit's predictions begin in `answers`.
        answers: `int64`, rows of the predictions; -1 where the truth asks for one that is not there.
        names: what each of the answers is called: its row's key, say.
        twice: `(u,) bool`, units that two predictions name where one is expected.
        faults: what belongs to no unit, such as predictions for unknown rows.
        columns: further columns of the units, by name.
        missing: predictions that the truth asks for and that are not there; by default all that are -1 in `answers`.
        rows: the key of the row that each of the answers is for, where `names` are of something smaller in it.
    """

    truth: NDArray[np.int64]
    begin: NDArray[np.int64]
    answers: NDArray[np.int64]
    names: Sequence[str]
    twice: NDArray[np.bool_]
    faults: list[Fault]
    columns: dict[str, list[Any]] = field(default_factory=dict)
    missing: int = -1
    rows: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.missing < 0:
            self.missing = int((self.answers < 0).sum())

    def __len__(self) -> int:
        return len(self.truth)

    def fault(self, place: int, code: str, text: str) -> FaultError:
        """The error about a prediction: under its row's key, with the prediction's own name if it differs.

        Args:
            place: of the answer in `answers`.
            code: a key of `FAULTS`.
            text: what is wrong.
        """
        name = self.names[place]
        if not self.rows:
            return FaultError(code, name, f"prediction, {text}")
        return FaultError(code, self.rows[place], f"prediction for {name}, {text}")

    @classmethod
    def row_by_row(cls, index: NDArray[np.int64], keys: list[str], faults: list[Fault]) -> Units:
        """One prediction a truth row.

        Args:
            index: `(n,) int64`, the prediction of each truth row, -1 for none.
            keys: of the truth rows.
            faults: of the pairing; missing predictions are met again while scoring and are left out here.
        """
        place = {key: i for i, key in enumerate(keys)} if faults else {}
        twice = np.zeros(len(keys), np.bool_)
        others = []
        for fault in faults:
            if fault.code == "duplicate_prediction" and fault.key in place:
                twice[place[fault.key]] = True
            if fault.code != "missing_prediction":
                others.append(fault)
        return cls(np.arange(len(keys)), np.arange(len(keys) + 1), index, keys, twice, others)


def attach_rows(
    table: pa.Table,
    found: pa.Table | None,
    place: NDArray[np.int64],
    begin: NDArray[np.int64],
    columns: dict[str, list[Any]],
    schema: pa.Schema,
    options: ScoreOptions,
) -> pa.Table:
    """Truth rows with their one prediction each beside them: the `attach` of benchmarks with one prediction a row.

    Args:
        table: truth rows of n units.
        found: prediction rows, or `None` if there are none.
        place: `(n,) int64`, the row of `found`, -1 for none.
        begin: `(n + 1,) int64`, where each unit's predictions begin in `place`: one each here.
        columns: further columns of the units: none here.
        schema: of the prediction columns.
        options: of the scoring; nothing depends on them here.
    """
    del begin, columns, options
    column = placed(found, place)
    arrays = [column(name, schema.field(name).type) for name in schema.names]
    return pa.table([*table.columns, *arrays], names=[*table.column_names, *schema.names])


def placed(found: pa.Table | None, place: NDArray[np.int64]) -> Callable[[str, pa.DataType], pa.Array]:
    """A function that gives a column of prediction rows, by name and type, at their places: null where there is none.

    Args:
        found: prediction rows, or `None` if there are none.
        place: `(n,) int64`, the row of `found`, -1 for none.

    Example:
        >>> placed(pa.table({"n": [5, 6]}), np.array([1, -1, 0]))("n", pa.int64()).to_pylist()
        [6, None, 5]
    """
    as_it_is = found is not None and np.array_equal(place, np.arange(len(found)))
    spread = pa.array(place, mask=place < 0)

    def column(name: str, kind: pa.DataType) -> pa.Array:
        if found is None or name not in found.column_names:
            return pa.nulls(len(place), kind)
        values = joined(found[name])
        return values if as_it_is else values.take(spread)

    return column


def blame(table: pa.Table, twice: NDArray[np.bool_]) -> pa.Table:
    """Units that two predictions name bear that fault, in place of those of either."""
    old = table["pred_faults"].to_pylist() if "pred_faults" in table.column_names else [None] * len(table)
    faults = pa.array([[TWICE] if two else other for two, other in zip(twice, old, strict=True)], FAULTS_TYPE)
    if "pred_faults" not in table.column_names:
        return table.append_column("pred_faults", faults)
    return table.set_column(table.column_names.index("pred_faults"), "pred_faults", faults)


def pair_rows(benchmark: Benchmark, truth: Dataset, predictions: Dataset, options: ScoreOptions, whole: bool) -> Units:
    """Pair one prediction with each ground truth row, by key, or by id and part.

    Args:
        benchmark: names the rows.
        truth: the truth columns.
        predictions: as `read_predictions` gives them.
        options: of the scoring; `level` is the part of rows that name none.
        whole: whether predictions for unknown rows are a fault.

    Raises:
        BenchError: two ground truth rows bear one key.
    """
    columns = [name for name in ("key", "id", "level") if name in truth.column_names]
    table = arrow_columns(truth, columns) if columns else None
    keys, ids, parts = benchmark.row_names(table, options.level, truth.column_names)
    if len(set(keys)) < len(keys):
        key = next(key for key, count in Counter(keys).items() if count > 1)
        raise BenchError(
            f'{key}: two truth rows bear this key; load them with load_dataset("{benchmark.name}", data_dir=...), which'
            " numbers repeated ids in the source's order"
        )
    found = pair(keys, ids, parts, predictions, whole=whole)
    return Units.row_by_row(found.index, keys, found.faults)


def split_masks(table: pa.Table) -> tuple[MaskLists, pa.Table]:
    """The masks of prediction rows, and their other fields.

    Args:
        table: n prediction rows with a column `pred_masks`.

    Raises:
        BenchError: there is no column `pred_masks`.
    """
    if "pred_masks" not in table.column_names:
        raise BenchError(f"predictions: expected a column pred_masks, found {', '.join(table.column_names)}")
    others = [name for name in table.column_names if name not in ("pred_masks", "pred_faults")]
    return read_mask_lists(table["pred_masks"]), table.select(others)
