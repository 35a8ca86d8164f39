"""The check of PBench predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import ClassLabel, Dataset
from numpy.typing import NDArray

from bench_datasets.faults import BenchError, Fault, FaultError, stops
from bench_datasets.masks import MaskColumn, joined, list_offsets, list_values
from bench_datasets.predictions.arrow_types import INVERTED_MASK, WHOLE_IMAGE, empty_masks, odd_masks
from bench_datasets.predictions.check import CheckReport, Collector
from bench_datasets.predictions.coerce import level_of
from bench_datasets.predictions.pairing import Names, pair
from bench_datasets.predictions.read import Predictions, read_predictions

MANY = 600
"""More masks than the fullest row of PBench holds."""

ADVICE = {
    "malformed_mask": "the mask is no valid COCO RLE of its size: runs must sum to height x width, counts be text",
    "unreadable_mask": "the file holds no mask that can be read; each line says what was expected and what was found",
    "unknown_row": "the truth holds no such row; check the ids, or name rows by key",
    "duplicate_prediction": "two predictions for one row; keep one",
    "missing_prediction": 'write a line with no masks where nothing was found, or score with missing="empty"',
    "bad_score": "write one finite number per mask, or leave the scores out",
    "bad_box": "write two finite numbers for every centre and size, as fractions of the image",
    "wrong_benchmark": "give predictions of this benchmark, or name the benchmark that these are for",
    "resized": "masks of another size than the image are resized to it (nearest pixel); write them full size",
    "size_exchanged": "size is [width, height]; write [height, width], or the mask is scrambled when it is resized",
    "mixed_sizes": "masks of one row have several sizes; all are resized to the image's",
    "ignored_file": "files beside a row's masks in another format; they are not read",
    "odd_file_name": "mask files usually have numbers as names; move files that are no mask of their own elsewhere",
    "ignore_label": "label 255 counts as a mask; set these pixels to 0 if it means 'ignore', as in PASCAL VOC",
    "no_masks": "rows for which the model found nothing",
    "empty_mask": "masks without a pixel still count as predictions, so as false positives",
    "whole_image": WHOLE_IMAGE,
    "inverted_mask": INVERTED_MASK,
    "score_range": "scores outside [0, 1]; only their order is used",
    "outside_image": "centres outside [0, 1]; they should be fractions of the image's width and height",
    "repeated_mask": "the same mask twice in one row; clean-up keeps one of them",
    "repeated_instance": "the same centre and size again in one row: generation ran in circles",
    "many_masks": f"more than {MANY} masks, or ten times as many as the truth (and more than 20)",
}
"""What to do about each kind of finding."""


class _Truth(NamedTuple):
    keys: list[str]
    ids: list[int]
    levels: list[str]
    heights: NDArray[np.int64]
    widths: NDArray[np.int64]
    counts: NDArray[np.int64]


def check(benchmark: str, predictions: Predictions, truth: Dataset | None) -> CheckReport:
    """Everything that is wrong with PBench predictions; see `bench_datasets.predictions.check.check`."""
    errors, warnings = Collector(), Collector()
    try:
        read = read_predictions(benchmark, predictions)
    except FaultError as error:
        errors.add(error.code, error.key, error.text)
        return CheckReport(benchmark, 0, 0, errors.groups(ADVICE))
    names = Names.of(read)
    rows = None if truth is None else _truth(truth)
    row_of = np.full(len(read), -1, np.int64)
    if rows is None:
        errors.extend(_repeats(names))
    else:
        pairing = pair(rows.keys, rows.ids, rows.levels, read)
        errors.extend(pairing.faults)
        found = pairing.index >= 0
        row_of[pairing.index[found]] = np.flatnonzero(found)
    masks = first = 0
    for table in read.with_format("arrow").iter(256):
        batch = table.combine_chunks().to_batches()[0]
        masks += _check_batch(batch, first, names, rows, row_of, errors, warnings)
        first += len(batch)
    return CheckReport(benchmark, len(read), masks, errors.groups(ADVICE), warnings.groups(ADVICE))


def _check_batch(
    batch: pa.RecordBatch,
    first: int,
    names: Names,
    truth: _Truth | None,
    row_of: NDArray[np.int64],
    errors: Collector,
    warnings: Collector,
) -> int:
    """Look at one batch of predictions, of which the first is number `first`; gives its number of masks."""
    true = row_of[first : first + len(batch)]

    def called(row: int) -> str:
        return truth.keys[true[row]] if truth is not None and true[row] >= 0 else names.show(first + row)

    faulty = pc.list_value_length(batch.column("pred_faults")).to_numpy(zero_copy_only=False) > 0
    unread = np.zeros(len(batch), np.bool_)
    for row in np.flatnonzero(faulty).tolist():
        for fault in batch.column("pred_faults")[row].as_py():
            unread[row] |= fault["code"] in ("malformed_mask", "unreadable_mask", "missing_prediction")
            if truth is None or fault["code"] not in ("unknown_row", "missing_prediction"):  # pairing has told that
                (errors if stops(fault["code"]) else warnings).add(fault["code"], called(row), fault["text"])
    offsets = list_offsets(batch.column("pred_masks"))
    counts = np.diff(offsets)
    values = list_values(batch.column("pred_masks"))
    total = len(values)
    sound = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    values = values.take(pa.array(sound))
    owner = np.repeat(np.arange(len(counts)), counts)[sound]
    place = sound - offsets[:-1][owner]
    column = MaskColumn.from_arrow(values)

    def warn(code: str, row: int, text: str) -> None:
        warnings.add(code, called(row), text)

    for row in np.flatnonzero((counts == 0) & ~unread).tolist():
        warn("no_masks", row, "no masks")
    for row, text in _many(counts, truth, true):
        warn("many_masks", row, text)
    for code, row, text in _sizes(column, owner, truth, true):
        warn(code, row, text)
    for i in empty_masks(column):
        warn("empty_mask", int(owner[i]), f"mask {place[i]}: no pixel of {column.heights[i]} x {column.widths[i]}")
    for code, i in odd_masks(column):
        warn(code, int(owner[i]), f"mask {place[i]} of {column.heights[i]} x {column.widths[i]}")
    for row, at, earlier in _same(owner, place, _codes(values), column.heights, column.widths):
        warn("repeated_mask", row, f"masks {earlier} and {at} are the same")
    for code, row, text in _numbers(batch):
        warn(code, row, text)
    return total


def _many(counts: NDArray[np.int64], truth: _Truth | None, true: NDArray[np.int64]) -> Iterator[tuple[int, str]]:
    for row in np.flatnonzero(counts > 20):
        expected = int(truth.counts[true[row]]) if truth is not None and true[row] >= 0 else -1
        if counts[row] > MANY or 0 <= 10 * expected < counts[row]:
            against = f", the truth has {expected}" if expected >= 0 else ""
            yield int(row), f"{counts[row]} masks{against}"


def _sizes(
    column: MaskColumn, owner: NDArray[np.int64], truth: _Truth | None, true: NDArray[np.int64]
) -> Iterator[tuple[str, int, str]]:
    """Rows whose masks have another size than the truth's, or several sizes."""
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    if not len(begins):
        return
    first = begins[np.searchsorted(begins, np.arange(len(owner)), side="right") - 1]
    differ = (column.heights != column.heights[first]) | (column.widths != column.widths[first])
    for row in np.unique(owner[differ]):
        yield "mixed_sizes", int(row), "masks of several sizes"
    if truth is None:
        return
    known = true[owner] >= 0
    height, width = truth.heights[true[owner]], truth.widths[true[owner]]
    other = known & (height > 0) & ((column.heights != height) | (column.widths != width))
    swapped = other & (column.heights == width) & (column.widths == height)
    for code, some in (("size_exchanged", swapped), ("resized", other & ~swapped)):
        rows, at = np.unique(owner[some], return_index=True)
        for row, i in zip(rows.tolist(), np.flatnonzero(some)[at].tolist(), strict=True):
            text = f"a mask of {column.heights[i]} x {column.widths[i]}, the truth's are {height[i]} x {width[i]}"
            yield code, row, text


def _codes(values: pa.Array) -> NDArray[np.int64]:
    """A number for every distinct text of counts."""
    counts = values.field("counts")
    if not len(counts):
        return np.zeros(0, np.int64)
    return np.asarray(counts.dictionary_encode().indices.to_numpy(zero_copy_only=False), np.int64)


def _same(
    owner: NDArray[np.int64], place: NDArray[np.int64], *columns: NDArray[np.int64] | NDArray[np.float64]
) -> Iterator[tuple[int, int, int]]:
    """Row, place and earlier place of every item that repeats one of its row."""
    if len(owner) < 2:
        return
    codes = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in columns]
    order = np.lexsort((place, *codes, owner))
    repeat = np.ones(len(order) - 1, np.bool_)
    for column in (owner, *codes):
        repeat &= column[order][1:] == column[order][:-1]
    for i in np.flatnonzero(repeat):
        yield int(owner[order[i + 1]]), int(place[order[i + 1]]), int(place[order[i]])


def _numbers(batch: pa.RecordBatch) -> Iterator[tuple[str, int, str]]:
    """Scores and centres out of range, and instances that stand in a row twice."""
    lists = batch.column("pred_scores")
    offsets = list_offsets(lists)
    scores = pc.fill_null(list_values(lists), 0).to_numpy(zero_copy_only=False)
    owner = np.repeat(np.arange(len(lists)), np.diff(offsets))
    odd = (scores < 0) | (scores > 1)
    rows, at = np.unique(owner[odd], return_index=True)
    for row, i in zip(rows.tolist(), np.flatnonzero(odd)[at].tolist(), strict=True):
        yield "score_range", row, f"score {i - offsets[row]} is {scores[i]:g}"
    lists = batch.column("pred_centers")
    offsets = list_offsets(lists)
    pairs = _pairs(lists)
    owner = np.repeat(np.arange(len(lists)), np.diff(offsets))
    place = np.arange(len(owner)) - offsets[:-1][owner]
    finite = np.isfinite(pairs).all(axis=1)
    odd = finite & ((pairs < 0) | (pairs > 1)).any(axis=1)
    for i in np.flatnonzero(odd):
        yield "outside_image", int(owner[i]), f"mask {place[i]}: centre {pairs[i, 0]:g}, {pairs[i, 1]:g}"
    sizes = _pairs(batch.column("pred_sizes"))
    columns = [pairs[finite, 0], pairs[finite, 1]]
    if len(sizes) == len(pairs):
        columns += [np.nan_to_num(sizes[finite, 0], nan=-1.0), np.nan_to_num(sizes[finite, 1], nan=-1.0)]
    for row, at_place, earlier in _same(owner[finite], place[finite], *columns):
        yield "repeated_instance", row, f"instances {earlier} and {at_place} have the same centre and size"


def _pairs(lists: pa.Array) -> NDArray[np.float64]:
    """`(n, 2) float64` of all rows, NaN where a pair is null."""
    items = list_values(lists)
    pairs = np.full((len(items), 2), np.nan)
    valid = items.is_valid().to_numpy(zero_copy_only=False)
    pairs[valid] = items.flatten().to_numpy(zero_copy_only=False).reshape(-1, 2)
    return pairs


def _repeats(names: Names) -> Iterator[Fault]:
    """Predictions that bear the name of an earlier one."""
    seen: dict[str, int] = {}
    for row in range(len(names.key)):
        name = names.show(row)
        if name in seen:
            text = f"predictions {seen[name]} and {row} (from 0) both name this row; keep one"
            yield Fault("duplicate_prediction", name, text)
        seen.setdefault(name, row)


def _truth(truth: Dataset) -> _Truth:
    """The ground truth columns that the check needs: the builder's, or those of one split on the Hub."""
    if not isinstance(truth, Dataset):
        raise BenchError(f"truth: expected a Dataset, found {type(truth).__name__}; load it without streaming")
    columns = truth.column_names
    if "id" not in columns or "masks" not in columns:
        raise BenchError(f"truth: expected columns id and masks, found {', '.join(columns)}")
    kept = [name for name in ("key", "id", "level", "height", "width", "masks") if name in columns]
    arrow = truth.select_columns(kept).with_format("arrow")
    ids: list[int] = []
    given: list[str] = []
    levels: list[str] = []
    sizes: list[NDArray[np.int64]] = []
    feature = truth.features.get("level")
    split = level_of(str(truth.split).split("[", 1)[0]) if truth.split else None
    for table in arrow.iter(256):
        n = table.num_rows
        ids += table.column("id").to_pylist()
        if "level" in kept:
            values = table.column("level").to_pylist()
            levels += [feature.names[value] for value in values] if isinstance(feature, ClassLabel) else values
        else:
            levels += [split or ""] * n
        given += table.column("key").to_pylist() if "key" in kept else []
        sizes.append(_truth_sizes(joined(table.column("masks")), table))
    keys = given or _unique(
        [f"{level}/{number}" if level else str(number) for level, number in zip(levels, ids, strict=True)]
    )
    height, width, count = np.concatenate([np.zeros((0, 3), np.int64), *sizes]).T
    return _Truth(keys, ids, levels, height, width, count)


def _truth_sizes(lists: pa.Array, table: pa.Table) -> NDArray[np.int64]:
    """`(n, 3)` height, width (0 where unknown) and number of masks."""
    offsets = list_offsets(lists)
    result = np.zeros((len(lists), 3), np.int64)
    result[:, 2] = np.diff(offsets)
    values = list_values(lists)
    some = result[:, 2] > 0
    if pa.types.is_struct(values.type):
        column = MaskColumn.from_arrow(values.take(pa.array(offsets[:-1][some])))
        result[some, 0], result[some, 1] = column.heights, column.widths
    for i, side in enumerate(("height", "width")):
        if side in table.column_names:
            result[:, i] = pc.fill_null(table.column(side), 0).to_numpy()
    return result


def _unique(keys: list[str]) -> list[str]:
    """Keys with #2, #3, ... behind repeats, in order."""
    seen: dict[str, int] = {}
    unique = []
    for key in keys:
        seen[key] = seen.get(key, 0) + 1
        unique.append(key if seen[key] == 1 else f"{key}#{seen[key]}")
    return unique
