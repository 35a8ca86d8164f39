"""`Batch` of PBench: rows from Arrow tables, `map` batches or exports, ready to be scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bench_datasets._util.arrow import list_column
from bench_datasets._util.untrusted import load_text
from bench_datasets.benchmark import Protocol
from bench_datasets.benchmarks.pbench.protocol import get_protocol
from bench_datasets.benchmarks.pbench.schema import LEVELS
from bench_datasets.faults import BenchError, stops
from bench_datasets.masks import Decoded, joined, list_offsets, list_values
from bench_datasets.masks.ragged import CHUNK_BYTES, MaskLists, parts, read_mask_lists
from bench_datasets.predictions import lists_of
from bench_datasets.predictions.coerce import Found, read_pairs, read_scores
from bench_datasets.predictions.mask_rows import FAULTS_TYPE
from bench_datasets.scoring.batch import Batch
from bench_datasets.scoring.faulty_rows import Faulty
from bench_datasets.scoring.hashes import sound_hashes
from bench_datasets.scoring.options import ScoreOptions

CENTERS_TYPE = pa.list_(pa.list_(pa.float64(), 2))
"""Arrow type of the centres: a list of pairs x, y a row."""

CODES_TYPE = pa.list_(pa.string())

NUMBERS: Mapping[str, Callable[[Any, int], Found]] = {
    "pred_scores": lambda value, masks: read_scores(load_text(value), masks)[1],
    "pred_centers": lambda value, masks: read_pairs(value, masks, "pred_centers", ("x", "y"))[1],
    "pred_sizes": lambda value, masks: read_pairs(value, masks, "pred_sizes", ("height", "width"))[1],
}
"""Columns of numbers that go with the masks, and what finds the faults of one row: as in files of predictions."""


CHUNK_PAIRS = 1 << 21
"""Pairs of masks that are compared at a time."""


@dataclass(frozen=True)
class Rows(Batch):
    """n rows of truth with their predictions; columns are Arrow's own, so that no row costs a Python object.

    Attributes:
        keys: string, the rows' keys.
        levels: string, the rows' levels, by name.
        labels: the fields that the row hash covers, without the masks.
        clusters: string, what a row is resampled with: its image's hash, or its key.
        noted: the builder's fault codes, of `CODES_TYPE`.
        true: truth masks.
        predicted: predicted masks, in the order given; null where a row has no prediction.
        centers: the predicted centres as fractions of the image, of `CENTERS_TYPE`; null where there are none.
        reading: faults found when the predictions were read, of `FAULTS_TYPE`.
        wrong: `(n,) bool`, rows whose prediction counts as wrong and is empty here.
    """

    keys: pa.Array
    levels: pa.Array
    labels: pa.Table
    clusters: pa.Array
    noted: pa.Array
    true: MaskLists
    predicted: MaskLists
    centers: pa.Array
    reading: pa.Array
    wrong: NDArray[np.bool_]

    def chunks(self) -> Iterator[Rows]:
        """Parts of bounded work: by bytes of counts and by pairs of masks, at least a row each."""
        size = self.true.bytes_a_row() + self.predicted.bytes_a_row()
        true, predicted = np.diff(self.true.groups), np.diff(self.predicted.groups)
        for start, stop in parts(size / CHUNK_BYTES + predicted * (true + predicted) / CHUNK_PAIRS):
            yield self.slice(start, stop)

    def use_decoded(self, decoded: Decoded) -> None:
        """Take the predicted masks from an earlier decoding."""
        self.predicted.masks.remember(decoded)

    def label_columns(self) -> Mapping[str, Any]:
        """The levels."""
        return {"level": self.levels}

    def row_hashes(self) -> list[str]:
        """The hash of each row's labels and ground truth masks."""
        return sound_hashes(self.labels, self.true, self.true.problems())

    def find_faults(self, protocol: Protocol, options: ScoreOptions) -> Faulty:
        """The rows that can't be scored as they are."""
        from bench_datasets.benchmarks.pbench.validation import find_faults

        return find_faults(self, self.true.problems(), get_protocol(protocol.name), options)

    def fault_codes(self, faulty: Faulty) -> pa.Array:
        """Codes of the builder, of reading, of masks that look wrong, and of the faults."""
        from bench_datasets.benchmarks.pbench.validation import noted_masks

        odd = noted_masks(self)
        found_any = faulty.left_out or faulty.wrong or odd
        if not found_any and not len(self.noted.flatten()) and not len(self.reading.flatten()):
            return list_column(CODES_TYPE, [], np.zeros(len(self), np.int64))
        found = [
            sorted({
                *(noted or ()),
                *(fault["code"] for fault in read or () if not stops(fault["code"])),
                *faulty.codes(i),
                *(odd.get(i, ()) if i not in faulty.left_out and i not in faulty.wrong else ()),
            })
            for i, (noted, read) in enumerate(zip(self.noted.to_pylist(), self.reading.to_pylist(), strict=True))
        ]  # fmt: skip
        return pa.array(found, CODES_TYPE)

    def scorable(self, faulty: Faulty) -> Rows:
        """The rows that are scored; those that count as wrong have an empty prediction."""
        scored = self.without_predictions(list(faulty.wrong)) if faulty.wrong else self
        if not faulty.left_out:
            return scored
        good = np.ones(len(self), np.bool_)
        good[list(faulty.left_out)] = False
        return scored.take(np.flatnonzero(good))

    def key(self, row: int) -> str:
        """The key of one row."""
        return str(self.keys[row].as_py())

    @property
    def has_centers(self) -> NDArray[np.bool_]:
        """`(n,) bool`, whether the order in which a row's predictions were generated is known."""
        found: NDArray[np.bool_] = self.centers.is_valid().to_numpy(zero_copy_only=False)
        return found

    def slice(self, start: int, stop: int) -> Rows:
        """The rows from `start` to `stop`, over the same buffers."""
        found = self._each(lambda column: column.slice(start, stop - start), lambda lists: lists.slice(start, stop))
        return replace(found, wrong=self.wrong[start:stop])

    def take(self, rows: NDArray[np.int64]) -> Rows:
        """The chosen rows."""
        index = pa.array(rows, pa.int64())
        found = self._each(lambda column: column.take(index), lambda lists: lists.take(rows))
        return replace(found, wrong=self.wrong[rows])

    def without_predictions(self, rows: Sequence[int]) -> Rows:
        """The same rows, of which some have an empty prediction."""
        empty = np.zeros(len(self), np.bool_)
        empty[list(rows)] = True
        centers = pc.if_else(pa.array(empty), pa.scalar(None, CENTERS_TYPE), self.centers)
        return replace(self, predicted=self.predicted.emptied(rows), centers=centers, wrong=self.wrong | empty)

    def _each(self, column: Callable[[Any], Any], lists: Callable[[MaskLists], MaskLists]) -> Rows:
        return Rows(
            column(self.keys), column(self.levels), column(self.labels), column(self.clusters), column(self.noted),
            lists(self.true), lists(self.predicted), column(self.centers), column(self.reading), self.wrong,
        )  # fmt: skip


def read_rows(batch: pa.Table | Mapping[str, Any], level: str | None, *, predictions: bool = True) -> Rows:
    """Put a batch into shape.

    Args:
        batch: an Arrow table, or columns by name as `Dataset.map(batched=True)` hands them over. Truth columns as the
            builder gives them, or the source's own (`id`, `masks`, `expression`, `count`).
        level: the level of rows that have no `level` column.
        predictions: whether `pred_masks` must be there.

    Raises:
        BenchError: a column is absent or of values that don't go together, or a level is unknown.
    """
    names = batch.column_names if isinstance(batch, pa.Table) else list(batch)
    needed = ["masks"] + ([] if "key" in names else ["id"]) + (["pred_masks"] if predictions else [])
    absent = [name for name in needed if name not in names]
    if absent:
        raise BenchError(
            f"pbench rows: expected the columns {', '.join(needed)}, found {', '.join(names)}; without {absent[0]} they"
            " can't be scored (is it another benchmark's file?)"
        )
    n = len(batch["masks"])

    def column(name: str, kind: pa.DataType | None = None) -> pa.Array:
        found = _array(name, batch[name], kind) if name in names else pa.nulls(n, kind)
        if len(found) != n:
            raise BenchError(f"pbench rows: column {name}: expected {n} values, one per row, found {len(found)}")
        return found

    ids = column("id")
    levels = _levels(batch["level"] if "level" in names else pa.nulls(n), level)
    centers = _centers(batch["pred_centers"] if "pred_centers" in names else pa.nulls(n))
    keys = _keys(column("key", pa.string()), levels, ids)
    predicted = read_mask_lists(batch["pred_masks"] if predictions else [None] * n)
    reading = column("pred_faults", FAULTS_TYPE)
    numbers = {name: batch[name] for name in NUMBERS if name in names}
    images = column("image_sha256", pa.string())
    return Rows(
        keys,
        levels,
        pa.table({"expression": column("expression"), "id": ids, "level": levels}),
        keys if images.null_count == n else pc.coalesce(pc.if_else(pc.equal(images, ""), None, images), keys),
        column("faults", CODES_TYPE),
        read_mask_lists(batch["masks"]),
        predicted,
        centers,
        _with_number_faults(reading, numbers, predicted),
        np.zeros(n, np.bool_),
    )


def row_names(
    table: pa.Table | None, level: str | None, columns: Sequence[str]
) -> tuple[list[str], list[int], list[str]]:
    """Keys, ids and levels of rows.

    Args:
        table: their columns `key`, `id`, `level`, as far as they have them.
        level: the level of rows without a `level` column.
        columns: all columns of the rows, for the error.

    Raises:
        BenchError: there is no `id`, or a level is unknown.
    """
    if table is None or "id" not in table.column_names:
        raise BenchError(
            f"pbench rows: expected a column id, found {', '.join(columns)}; is it another benchmark's data?"
        )

    def column(name: str, kind: pa.DataType | None = None) -> pa.Array:
        return _array(name, table[name], kind) if name in table.column_names else pa.nulls(len(table), kind)

    ids = column("id")
    levels = _levels(table["level"] if "level" in table.column_names else pa.nulls(len(table)), level)
    return _keys(column("key", pa.string()), levels, ids).to_pylist(), ids.to_pylist(), levels.to_pylist()


def _array(name: str, values: Any, kind: pa.DataType | None) -> pa.Array:
    """A column as one Arrow array; of the type given, if one is."""
    try:
        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            if kind is not None and pa.types.is_list(kind):
                return lists_of(values, kind)
            array = joined(values)
            if pa.types.is_run_end_encoded(array.type):
                array = pc.run_end_decode(array)
            return array if kind is None or array.type == kind else array.cast(kind)
        if isinstance(values, np.ndarray) and values.ndim > 1:
            values = values.tolist()
        return pa.array(values, kind, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        expected = "values of one kind" if kind is None else f"values that Arrow takes as {kind}"
        raise BenchError(f"pbench rows: column {name}: expected {expected}, found others ({error})") from error


def _levels(column: Any, given: str | None) -> pa.Array:
    """The levels by name; of an Arrow column, each that occurs is looked at once."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        array = joined(column)
        if array.null_count == len(array):
            return pa.repeat(_level(None, given), len(array)) if len(array) else pa.array([], pa.string())
        if not pa.types.is_nested(array.type):
            array = _array("level", array, None)
            if pa.types.is_dictionary(array.type):  # whose entries may be of values that no row has
                array = array.dictionary_decode()
            encoded = array.dictionary_encode()
            known = pa.array([_level(value, given) for value in encoded.dictionary.to_pylist()], pa.string())
            found = known.take(encoded.indices)
            return found.fill_null(_level(None, given)) if found.null_count else found
        column = array.to_pylist()
    values = column.tolist() if isinstance(column, np.ndarray) else column
    return pa.array([_level(value, given) for value in values], pa.string())


def _keys(keys: pa.Array, levels: pa.Array, ids: pa.Array) -> pa.Array:
    """The keys that are there, and for the other rows `<level>/<id>`."""
    nameless = pc.or_kleene(pc.is_null(keys), pc.equal(keys, ""))
    if not pc.any(nameless).as_py():
        return keys
    made = pc.binary_join_element_wise(levels, _array("id", ids, pa.string()), "/")
    found = pc.if_else(nameless, made, keys)
    if found.null_count:
        raise BenchError(
            "pbench rows: expected an integer as id of every row, found null; give each row an id or a key"
        )
    return found


def _level(value: object, given: str | None) -> str:
    if value is None:
        value = given
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= value < len(LEVELS):
        return LEVELS[int(value)]
    if value in LEVELS:
        return str(value)
    if value is None:
        raise BenchError(
            'pbench rows: no column `level`, and none was given; say level="level_0" (the source names its splits so)'
        )
    raise BenchError(f"level: expected one of {', '.join(LEVELS)}, got {value!r}")


def _with_number_faults(reading: pa.Array, columns: Mapping[str, Any], predicted: MaskLists) -> pa.Array:
    """The faults of reading, with those of scores, centres and sizes that do not go with the masks.

    As in files of predictions, the faults of a row's masks come first, and numbers without a list of masks are not
    read. A row that has a fault of reading already is left as it is: what was wrong is null there.

    Args:
        reading: of `FAULTS_TYPE`.
        columns: the columns of `NUMBERS` that there are.
        predicted: the masks of the n rows.
    """
    found: dict[int, Found] = {}
    counts = np.diff(predicted.groups)
    for name, column in columns.items():
        if not _aligned_numbers(column, counts):
            values = column.to_pylist() if isinstance(column, (pa.Array, pa.ChunkedArray)) else list(column)
            for i, value in enumerate(values):
                own = NUMBERS[name](value, int(counts[i]))
                if own:
                    found[i] = [*found.get(i, ()), *own]
    for i in [i for i in found if not predicted.is_list(i)]:
        del found[i]
    if not found:
        return reading
    unsound = predicted.problems()
    for i, own in found.items():
        own[:0] = [("malformed_mask", text) for text in unsound.get(i, ())]
    old = reading.to_pylist()
    new = [row or [{"code": code, "text": text} for code, text in found.get(i, ())] for i, row in enumerate(old)]
    return pa.array(new, FAULTS_TYPE)


def _aligned_numbers(column: Any, counts: NDArray[np.int64]) -> bool:
    """Whether an Arrow column holds finite numbers, one (or one pair) per mask; rows may be null."""
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        return False
    array = joined(column)
    if array.null_count == len(array):
        return True
    if not pa.types.is_list(array.type):
        return False
    if (np.diff(list_offsets(array)) != counts)[array.is_valid().to_numpy(zero_copy_only=False)].any():
        return False
    values = list_values(array)
    if pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type):
        if values.null_count or not pc.all(pc.equal(pc.list_value_length(values), 2)).as_py():
            return len(values) == 0
        values = values.flatten()
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)) or values.null_count:
        return len(values) == 0
    return bool(len(values) == 0 or pc.all(pc.is_finite(values)).as_py())


def _centers(column: Any) -> pa.Array:
    """The centres, of `CENTERS_TYPE`; one that is not there is NaN, and a row of something else has none."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        array = joined(column)
        if array.null_count == len(array):
            return pa.nulls(len(array), CENTERS_TYPE)
        if array.type == CENTERS_TYPE and not array.flatten().null_count:
            return array
        column = array.to_pylist()
    rows = [None if value is None else _pairs(value) for value in column]
    found = [[] if value is not None and row is None else row for value, row in zip(column, rows, strict=True)]
    return pa.array(found, CENTERS_TYPE)


def _pairs(value: Any) -> list[list[float]] | None:
    """Parse a list of pairs; `None` if the value is not one."""
    try:
        pairs = np.array([[np.nan, np.nan] if item is None else item for item in value], np.float64)
    except (TypeError, ValueError):
        return None
    if not len(pairs):
        return []
    return pairs.tolist() if pairs.shape[1:] == (2,) else None
