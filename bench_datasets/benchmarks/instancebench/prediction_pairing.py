"""Which prediction answers which expression, run by run and condition by condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from numpy.typing import NDArray

from bench_datasets.benchmarks.instancebench.prediction_rows import RUN
from bench_datasets.benchmarks.instancebench.schema import ORIGINAL
from bench_datasets.faults import BenchError, Fault
from bench_datasets.masks import joined
from bench_datasets.predictions.pairing import unlike

Group = tuple[str, str]
"""A run and a condition."""


@dataclass(frozen=True)
class ExpressionPairing:
    """The predictions of every expression of the truth.

    Attributes:
        runs: the runs, in the order of their names.
        conditions: pairs of run and condition, by run, `original` first and the others by name. Every run has its
            `original`; where there are no predictions at all the run is "0".
        index: by pair, `(n,) int64`, the row of the predictions, -1 where there is none; n expressions of the truth.
        twice: by pair, `(n,) bool`, expressions that two predictions answer.
        faults: `unknown_row` and `duplicate_prediction` in the predictions' order, then `missing_prediction` by pair
            in the truth's order, under `original` alone: an intervention need not be made on every expression.
    """

    runs: tuple[str, ...]
    conditions: tuple[Group, ...]
    index: dict[Group, NDArray[np.int64]]
    twice: dict[Group, NDArray[np.bool_]]
    faults: list[Fault]


def pair_expressions(expression_ids: Sequence[str], predictions: Dataset, *, whole: bool = True) -> ExpressionPairing:
    """Find every expression's prediction in each run and condition.

    Args:
        expression_ids: `(n,)` ids of the truth's expressions; one that stands twice is answered by the same prediction.
        predictions: a Dataset with `expression_id`, and `run`, `condition` and `pred_faults` where it has them.
        whole: whether these are all expressions that the predictions are about; if not, predictions for others are
            no fault.

    Returns:
        The pairing; of two predictions for one expression, run and condition the first is taken, and both are reported.

    Raises:
        BenchError: there is no column `expression_id`.

    Example:
        >>> from datasets import Dataset
        >>> found = pair_expressions(["a-0", "a-1"], Dataset.from_dict({"expression_id": ["a-1", "a-0"]}))
        >>> found.index[("0", "original")], found.faults
        (array([1, 0]), [])
    """
    truth = pa.array([str(name) for name in expression_ids], pa.string())
    names, runs, conditions, problems = _columns(predictions)
    target = _find(names, truth)
    pairs, of_row = _groups(runs, conditions)
    index = np.full((len(pairs), len(truth)), -1, np.int64)
    rows = np.flatnonzero(target >= 0)
    index[of_row[rows[::-1]], target[rows[::-1]]] = rows[::-1]  # written last, so kept: the first prediction
    first = index[of_row[rows], target[rows]]
    faults = _faults(names, truth, target, (rows, first), pairs, of_row, problems, whole)
    again = np.zeros(index.shape, np.bool_)
    again[of_row[rows[first != rows]], target[rows[first != rows]]] = True
    same = _find(truth, truth)  # the place of each expression's first mention
    by_pair = {pair: row[same] for pair, row in zip(pairs, index, strict=True)}
    twice = {pair: row[same] for pair, row in zip(pairs, again, strict=True)}
    hint = unlike("expressions", names.drop_null().to_pylist(), truth.to_pylist()) if not len(rows) else ""
    for pair, row in by_pair.items():
        if pair[1] == ORIGINAL:
            text = f'no prediction{_said(pair)}; write a line with "mask": null where the model found nothing{hint}'
            absent = truth.take(pa.array(np.flatnonzero(row < 0))).to_pylist()
            faults += [Fault("missing_prediction", name, text) for name in absent]
    return ExpressionPairing(tuple(dict.fromkeys(run for run, _ in pairs)), pairs, by_pair, twice, faults)


def _columns(predictions: Dataset) -> tuple[pa.Array, pa.Array, pa.Array, dict[int, str]]:
    """Ids, runs and conditions as text without nulls in the last two, and the faults of the names."""
    if "expression_id" not in predictions.column_names:
        raise BenchError(f"predictions: expected a column expression_id, found {', '.join(predictions.column_names)}")
    fields = ("expression_id", "run", "condition", "pred_faults")
    given = [name for name in fields if name in predictions.column_names]
    table = predictions.select_columns(given).with_format("arrow")[:]
    found = {name: joined(table.column(name)) for name in given}

    def text(name: str, default: str | None) -> pa.Array:
        column = found.get(name, pa.nulls(len(table), pa.string())).cast(pa.string())
        return column if default is None else pc.fill_null(column, default)

    problems: dict[int, str] = {}
    if "pred_faults" in found and len(table):
        lengths = pc.fill_null(pc.list_value_length(found["pred_faults"]), 0).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(lengths > 0).tolist():
            for fault in found["pred_faults"][row].as_py():
                if fault["code"] == "unknown_row":
                    problems[row] = fault["text"]
    return text("expression_id", None), text("run", RUN), text("condition", ORIGINAL), problems


def _find(names: pa.Array, truth: pa.Array) -> NDArray[np.int64]:
    """The first place of each name in the truth, -1 where it is null or not there."""
    found = pc.index_in(names, value_set=truth, skip_nulls=True)
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _groups(runs: pa.Array, conditions: pa.Array) -> tuple[tuple[Group, ...], NDArray[np.int64]]:
    """The pairs of run and condition in order, and the place of each row's among them."""
    run, condition = runs.dictionary_encode(), conditions.dictionary_encode()
    several = max(1, len(condition.dictionary))
    code = run.indices.to_numpy(zero_copy_only=False).astype(np.int64) * several
    code += condition.indices.to_numpy(zero_copy_only=False)
    codes, inverse = np.unique(code, return_inverse=True)
    run_names, condition_names = run.dictionary.to_pylist(), condition.dictionary.to_pylist()
    given = [(run_names[value // several], condition_names[value % several]) for value in codes.tolist()]
    needed = {(name, ORIGINAL) for name in run_names or [RUN]}
    pairs = sorted({*given, *needed}, key=lambda pair: (pair[0], pair[1] != ORIGINAL, pair[1]))
    place = {pair: i for i, pair in enumerate(pairs)}
    return tuple(pairs), np.array([place[pair] for pair in given], np.int64)[inverse.reshape(-1)]


def _faults(
    names: pa.Array,
    truth: pa.Array,
    target: NDArray[np.int64],
    found: tuple[NDArray[np.int64], NDArray[np.int64]],
    pairs: tuple[Group, ...],
    of_row: NDArray[np.int64],
    problems: dict[int, str],
    whole: bool,
) -> list[Fault]:
    """Predictions for unknown expressions and duplicate predictions, in their order."""
    rows, first = found
    second = dict(zip(rows[first != rows].tolist(), first[first != rows].tolist(), strict=True))
    unknown = np.flatnonzero(target < 0).tolist()
    hint = unlike("expressions", names.drop_null().to_pylist(), truth.to_pylist()) if not len(rows) else ""
    faults = []
    for row in sorted({*second, *(unknown if whole else problems)}):
        name = names[row].as_py()
        if row in second:
            text = f"predictions {second[row]} and {row} (from 0) both answer this{_said(pairs[of_row[row]])}; keep one"
            faults.append(Fault("duplicate_prediction", name, text))
        else:
            text = problems.get(row) or f"no expression has the id {name!r}{hint}"
            faults.append(Fault("unknown_row", name or f"prediction {row}", text))
    return faults


def _said(pair: Group) -> str:
    return "" if pair == (RUN, ORIGINAL) else f" in run {pair[0]!r}, condition {pair[1]!r}"
