"""Which prediction belongs to which row of the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from datasets import Dataset
from numpy.typing import NDArray

from bench_datasets._util.arrow import arrow_columns, lists_of
from bench_datasets.faults import Fault, shorten_text
from bench_datasets.masks import joined, list_offsets
from bench_datasets.predictions.mask_rows import FAULTS_TYPE

Name = TypeVar("Name", str, int, tuple[str, int])


@dataclass(frozen=True)
class Pairing:
    """The prediction of every row of the truth.

    Attributes:
        index: `(n,) int64`, the row of the predictions, -1 where there is none; n rows of the truth.
        faults: `unknown_row` and `duplicate_prediction` in the predictions' order, then `missing_prediction` in the
            truth's.
    """

    index: NDArray[np.int64]
    faults: list[Fault]


class Names(NamedTuple):
    """The columns that name rows, as Arrow arrays, and faults of reading that pairing needs, by row.

    Attributes:
        problems: what is wrong with a name.
        absent: what says that there is no prediction, such as masks that are null.
    """

    key: pa.Array
    id: pa.Array
    split: pa.Array
    position: pa.Array
    problems: dict[int, str]
    absent: dict[int, str]

    @classmethod
    def of(cls, predictions: Dataset) -> Names:
        """Those of a Dataset of predictions."""
        columns = ["key", "id", "split", "position", "pred_faults"]
        table = arrow_columns(predictions, columns)
        key, number, split, position, faults = (joined(table.column(name)) for name in columns)
        problems, absent = dict[int, str](), dict[int, str]()
        faults = lists_of(faults, FAULTS_TYPE)
        for row in np.flatnonzero(np.diff(list_offsets(faults))):
            for fault in faults[int(row)].as_py():
                if fault["code"] == "unknown_row":
                    problems[int(row)] = fault["text"]
                elif fault["code"] == "missing_prediction":
                    absent[int(row)] = fault["text"]
        return cls(key, number, split, position, problems, absent)

    def show(self, row: int) -> str:
        """How the predictions call a row."""
        key, number, split, position = (array[row].as_py() for array in self[:4])
        if key is not None:
            return str(key)
        if number is not None:
            return f"{split}/{number}" if split is not None else str(number)
        return f"{split} row {position}" if position is not None else f"prediction {row}"


def pair(
    truth_keys: Sequence[str],
    truth_ids: Sequence[int],
    truth_levels: Sequence[str],
    predictions: Dataset,
    *,
    whole: bool = True,
) -> Pairing:
    """Find every truth row's prediction.

    A prediction names its row by `key`; else by `split` and `id`; else by `id`, where only one row has it; else by
    `split` and `position`, its place in the order of the level's rows.

    Args:
        truth_keys: `(n,)` keys, `<level>/<id>[#k]`, each once.
        truth_ids: `(n,)` ids.
        truth_levels: `(n,)` names of levels.
        predictions: a Dataset as `read_predictions` gives it, m rows.
        whole: whether the truth is all there is. If not, predictions for rows beyond it are no fault, and predictions
            that are named by their order pair with a level's first rows.

    Returns:
        The pairing; of two predictions for one row the first is taken, and both are reported. A prediction whose masks
        are null is none.

    Example:
        >>> from datasets import Dataset
        >>> from bench_datasets.predictions.mask_rows import FEATURES
        >>> rows = dict.fromkeys(FEATURES, [None, None]) | dict.fromkeys(["pred_masks", "pred_faults"], [[], []])
        >>> rows["id"] = [8, 7]
        >>> found = pair(["level_0/7", "level_1/8"], [7, 8], ["level_0", "level_1"], Dataset.from_dict(rows, FEATURES))
        >>> found.index, found.faults
        (array([1, 0]), [])
    """
    names = Names.of(predictions)
    truth = TruthNames(truth_keys, truth_ids, truth_levels)
    target, problems = targets(names, truth, whole=whole)
    index = np.full(len(truth.keys), -1, np.int64)
    rows = np.flatnonzero(target >= 0)
    index[target[rows[::-1]]] = rows[::-1]  # written last, so kept: the first prediction
    faults: list[Fault] = []
    hint = _hint(names, truth, bool(len(rows)))
    second = set(rows[index[target[rows]] != rows].tolist())
    for row in sorted(second | set(problems)):
        if row in second:
            key = truth.keys[target[row]]
            text = f"predictions {index[target[row]]} and {row} (from 0) both name this row; keep one"
            faults.append(Fault("duplicate_prediction", key, text))
        elif whole or row in names.problems:
            faults.append(Fault("unknown_row", names.show(row), problems[row] + hint))
    missing = "no prediction for this row; write a line with no masks where the model found nothing" + hint
    texts = [names.absent.get(at, missing if at < 0 else "") for at in index.tolist()]
    faults += [Fault("missing_prediction", key, text) for key, text in zip(truth.keys, texts, strict=True) if text]
    index[np.isin(index, list(names.absent))] = -1
    return Pairing(index, faults)


class TruthNames:
    """The names of the ground truth rows, and the rows that they name.

    Args:
        keys: `(n,)` keys, each once.
        ids: `(n,)` ids.
        levels: `(n,)` names of levels.
    """

    def __init__(self, keys: Sequence[str], ids: Sequence[int], levels: Sequence[str]) -> None:
        self.keys, self.levels = list(keys), list(levels)
        self.ids = np.asarray(ids, np.int64).reshape(-1)

    @cached_property
    def by_key(self) -> dict[str, int]:
        """The row of each key."""
        return {key: row for row, key in enumerate(self.keys)}

    @cached_property
    def by_level(self) -> dict[str, list[int]]:
        """The rows of each level."""
        return _rows_by(self.levels)

    @cached_property
    def by_split(self) -> dict[tuple[str, int], list[int]]:
        """The rows of each level and id."""
        return _rows_by(list(zip(self.levels, self.ids.tolist(), strict=True)))

    @cached_property
    def by_id(self) -> dict[int, list[int]]:
        """The rows of each id."""
        return _rows_by(self.ids.tolist())


def _rows_by(names: Sequence[Name]) -> dict[Name, list[int]]:
    rows: dict[Name, list[int]] = {}
    for row, name in enumerate(names):
        rows.setdefault(name, []).append(row)
    return rows


def targets(names: Names, truth: TruthNames, *, whole: bool = True) -> tuple[NDArray[np.int64], dict[int, str]]:
    """The truth row that every prediction names.

    Args:
        names: of the m predictions.
        truth: of the rows.
        whole: see `pair`.

    Returns:
        `(m,) int64`, -1 where there is no such row, and what is wrong with those names, by prediction.
    """
    plain = _by_keys_alone(names, truth)
    if plain is not None:
        return plain, {}
    target = np.full(len(names.key), -1, np.int64)
    problems: dict[int, str] = {}
    keys, numbers, splits, positions = (array.to_pylist() for array in names[:4])
    uneven = _uneven(splits, positions, truth) if whole else {}
    for row, (key, number, split, position) in enumerate(zip(keys, numbers, splits, positions, strict=True)):
        found: int | str
        if row in names.problems:
            found = names.problems[row]
        elif key is not None:
            found = _by_key(key, number, split, truth)
        elif number is not None and split is not None:
            found = _single(
                truth.by_split.get((split, number), []), truth, f"no row has split {split!r} and id {number}"
            )
        elif number is not None:
            found = _single(truth.by_id.get(number, []), truth, f"no row has id {number}")
        elif split is not None and position is not None:
            rows = truth.by_level.get(split, [])
            beyond = f"{split!r} has {len(rows)} rows, and this is number {position + 1}"
            found = uneven.get(split) or (rows[position] if 0 <= position < len(rows) else beyond)
        else:
            found = "the prediction has neither a key nor an id"
        if isinstance(found, int):
            target[row] = found
        else:
            problems[row] = found
    return target, problems


def _by_keys_alone(names: Names, truth: TruthNames) -> NDArray[np.int64] | None:
    """The rows, where every prediction names one by its key and nothing contradicts it, as nearly always."""
    if names.problems or names.key.null_count:
        return None
    target = np.array([truth.by_key.get(key, -1) for key in names.key.to_pylist()], np.int64)
    if (target < 0).any():
        return None
    if names.id.null_count < len(target):
        if not pa.types.is_integer(names.id.type):
            return None
        there = names.id.is_valid().to_numpy(zero_copy_only=False)
        if not np.array_equal(names.id.drop_null().to_numpy(zero_copy_only=False), truth.ids[target[there]]):
            return None
    if names.split.null_count < len(target):
        for split, row in zip(names.split.to_pylist(), target.tolist(), strict=True):
            if split is not None and split != truth.levels[row]:
                return None
    return target


def _by_key(key: str, number: int | None, split: str | None, truth: TruthNames) -> int | str:
    row = truth.by_key.get(key)
    if row is None:
        return f"no row has the key {key!r}"
    if number is not None and number != truth.ids[row]:
        return f"the prediction's key is {key!r}, but its id {number}; the row has id {truth.ids[row]}"
    if split is not None and split != truth.levels[row]:
        return f"the prediction's key is {key!r}, but its split {split!r}"
    return row


def _single(rows: list[int], truth: TruthNames, none: str) -> int | str:
    if len(rows) == 1:
        return rows[0]
    if not rows:
        return none
    levels = list(dict.fromkeys(truth.levels[row] for row in rows))
    if len(levels) > 1:
        return f"the id stands in levels {', '.join(levels)}; name the row by key or give its split beside the id"
    keys = ", ".join(truth.keys[row] for row in rows[:4])
    return f"the id stands {len(rows)} times in {levels[0]}; name the row by its key ({keys})"


def _uneven(splits: list[str | None], positions: list[int | None], truth: TruthNames) -> dict[str, str]:
    """Levels whose predictions are named by order and are not as many as the rows."""
    lines: dict[str, int] = {}
    for split, position in zip(splits, positions, strict=True):
        if split is not None and position is not None:
            lines[split] = lines.get(split, 0) + 1
    texts = {}
    for split, count in lines.items():
        rows = len(truth.by_level.get(split, []))
        if count != rows:
            texts[split] = (
                f"{split}: {count} predictions without a name are to pair with {rows} rows by their order; give a line "
                "a row, or an id or key in every line"
            )
    return texts


def _hint(names: Names, truth: TruthNames, any_found: bool) -> str:
    """The likely cause where nothing pairs at all."""
    if any_found or not len(names.key) or not truth.keys:
        return ""
    given: pa.Array
    have: Sequence[object]
    if names.key.null_count < len(names.key):
        kind, given, have = "keys", names.key, truth.keys
    elif names.id.null_count < len(names.id):
        kind, given, have = "ids", names.id, truth.ids.tolist()
    else:
        return ""
    return unlike(kind, given.drop_null().to_pylist(), have)


def unlike(kind: str, given: Sequence[object], have: Sequence[object]) -> str:
    """A message if no given name is one of the ground truth's; empty if either side has no names.

    Args:
        kind: what is named, in the plural.
        given: the predictions' names, repeated or not.
        have: the truth's.
    """
    values = list(dict.fromkeys(given))
    if not values or not have or set(map(str, values)) & set(map(str, have)):  # alike: another cause
        return ""
    return (
        f" (none of the {len(values)} {kind} pairs with the truth: they look like {_sample(values)}, "
        f"the truth's like {_sample(list(dict.fromkeys(have)))}; are these predictions for this data?)"
    )


def _sample(values: Sequence[object]) -> str:
    shown = ", ".join(shorten_text(str(value)) for value in values[:3])
    return f"{shown}, ..., {shorten_text(str(values[-1]))}" if len(values) > 3 else shown
