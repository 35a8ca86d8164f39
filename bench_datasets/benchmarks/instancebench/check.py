"""The check of InstanceBench predictions."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from numpy.typing import NDArray

from bench_datasets.benchmarks.instancebench.prediction_pairing import pair_expressions
from bench_datasets.benchmarks.instancebench.schema import CONDITIONS
from bench_datasets.faults import BenchError, FaultError, stops
from bench_datasets.masks import MaskColumn, joined, list_offsets, list_values
from bench_datasets.predictions.arrow_types import (
    INVERTED_MASK,
    WHOLE_IMAGE,
    boxes_apart,
    empty_masks,
    odd_boxes,
    odd_masks,
    size_advice,
)
from bench_datasets.predictions.check import CheckReport, Collector
from bench_datasets.predictions.read import Predictions, read_predictions

ADVICE = {
    "malformed_mask": "no valid COCO RLE of its size, or no answer at all: write mask (or null), box or candidate_id",
    "unreadable_mask": "the file holds no mask that can be read; each line says what was expected and what was found",
    "size_mismatch": "nothing is resized here: write masks of the image's full size",
    "unknown_row": "the truth holds no such expression; check the expression ids",
    "duplicate_prediction": "two answers to one expression in one run and condition; keep one, or name their runs",
    "missing_prediction": 'write "mask": null where nothing was found, or score with missing="empty"',
    "bad_score": "write one finite number, or leave the score out",
    "bad_box": "write [x, y, width, height] in pixels, four finite numbers, none of the last two negative",
    "wrong_benchmark": "give predictions of instancebench, or name the benchmark that these are for",
    "unknown_condition": f"known are {', '.join(CONDITIONS)}; others are held against original under their own name",
    "unknown_candidate": "no candidate of the image has this id; it counts as a wrong answer",
    "no_answer": "expressions answered with nothing; each counts as 0 and as unresolved",
    "empty_mask": "a mask without a pixel counts like no answer",
    "whole_image": WHOLE_IMAGE,
    "inverted_mask": INVERTED_MASK,
    "mixed_answers": "some rows have a mask and some only a box or candidate_id; the latter count as 0 in mask metrics",
    "outside_image": "boxes that reach beyond the image; write [x, y, width, height] in pixels of the full image",
    "box_apart_from_mask": "write boxes as [x, y, width, height] in pixels, not as two corners",
    "small_box": "boxes within 1 x 1 pixel: are they fractions of the image? Multiply by its width and height",
}
"""What to do about each kind of finding."""


class _Truth(NamedTuple):
    """By expression: id, height and width (0 where unknown), and its row; by row: the candidates' ids."""

    ids: list[str]
    heights: NDArray[np.int64]
    widths: NDArray[np.int64]
    rows: NDArray[np.int64]
    candidates: list[set[str]] | None


def check(benchmark: str, predictions: Predictions, truth: Dataset | None) -> CheckReport:
    """Everything that is wrong with InstanceBench predictions; see `bench_datasets.predictions.check.check`."""
    errors, warnings = Collector(), Collector()
    try:
        read = read_predictions(benchmark, predictions)
    except FaultError as error:
        errors.add(error.code, error.key, error.text)
        return CheckReport(benchmark, 0, 0, errors.groups(ADVICE))
    rows = None if truth is None else _truth(truth)
    expression = np.full(len(read), -1, np.int64)
    if rows is not None:
        pairing = pair_expressions(rows.ids, read)
        errors.extend(pairing.faults)
        for index in pairing.index.values():
            expression[index[index >= 0]] = np.flatnonzero(index >= 0)
    else:
        own = list(dict.fromkeys(name for name in read["expression_id"] if name is not None))
        faults = pair_expressions(own, read, whole=False).faults
        errors.extend(fault for fault in faults if fault.code == "duplicate_prediction")
    masks = first = 0
    bare = np.zeros(2, np.int64)
    for table in read.with_format("arrow").iter(2048):
        columns = {name: joined(table.column(name)) for name in table.column_names}
        seen = _Batch(columns, expression[first : first + len(table)], first, rows)
        masks += seen.faults(errors, warnings, rows is not None)
        seen.masks(errors, warnings)
        seen.others(warnings)
        bare += seen.kinds
        first += len(table)
    if bare.all():
        warnings.add("mixed_answers", "predictions", f"{bare[0]} rows with a mask, {bare[1]} with another answer alone")
    return CheckReport(benchmark, len(read), masks, errors.groups(ADVICE), warnings.groups(ADVICE))


class _Batch:
    """One batch of predictions, of which the first is number `first`, and the expressions that they answer."""

    def __init__(
        self, columns: dict[str, pa.Array], expression: NDArray[np.int64], first: int, truth: _Truth | None
    ) -> None:
        self.columns, self.expression, self.first, self.truth = columns, expression, first, truth
        self.names = columns["expression_id"].to_pylist()
        self.masked = self._there("mask")
        self.bare = ~self.masked & (self._there("box") | self._there("candidate_id"))
        lengths = pc.list_value_length(columns["pred_faults"]).to_numpy(zero_copy_only=False)
        self.faulty = lengths > 0
        self.kinds = np.array([self.masked.sum(), (self.bare & ~self.faulty).sum()])

    def _there(self, name: str) -> NDArray[np.bool_]:
        return self.columns[name].is_valid().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

    def name(self, row: int) -> str:
        return self.names[row] or f"prediction {self.first + row}"

    def faults(self, errors: Collector, warnings: Collector, paired: bool) -> int:
        """Collect the faults found while reading; returns the number of masks, invalid ones included."""
        unsound = 0
        for row in np.flatnonzero(self.faulty).tolist():
            for fault in self.columns["pred_faults"][row].as_py():
                unsound += fault["code"] in ("malformed_mask", "unreadable_mask") and fault["text"].startswith("mask: ")
                if not (paired and fault["code"] == "unknown_row"):  # pairing has told that
                    (errors if stops(fault["code"]) else warnings).add(fault["code"], self.name(row), fault["text"])
        return int(self.masked.sum()) + unsound

    def masks(self, errors: Collector, warnings: Collector) -> None:
        """Answers with nothing, empty masks, masks of another size than the image."""
        for row in np.flatnonzero(~self.masked & ~self.bare & ~self.faulty).tolist():
            warnings.add("no_answer", self.name(row), "null")
        rows = np.flatnonzero(self.masked)
        column = MaskColumn.from_arrow(self.columns["mask"].take(pa.array(rows)))
        for i in empty_masks(column):
            text = f"no pixel of {column.heights[i]} x {column.widths[i]}"
            warnings.add("empty_mask", self.name(int(rows[i])), text)
        for code, i in odd_masks(column):
            warnings.add(code, self.name(int(rows[i])), f"a mask of {column.heights[i]} x {column.widths[i]}")
        height, width = self._sizes(rows)
        other = (height > 0) & ((column.heights != height) | (column.widths != width))
        for i in np.flatnonzero(other).tolist():
            text = f"expected a mask of {height[i]} x {width[i]}, found {column.heights[i]} x {column.widths[i]}"
            text += size_advice((column.heights[i], column.widths[i]), (height[i], width[i]))
            errors.add("size_mismatch", self.name(int(rows[i])), text)

    def others(self, warnings: Collector) -> None:
        """Conditions, candidates and boxes."""
        conditions = self.columns["condition"].to_pylist()
        for row, condition in enumerate(conditions):
            if condition not in CONDITIONS:
                warnings.add("unknown_condition", self.name(row), f"condition {condition!r}")
        if self.truth is not None and self.truth.candidates is not None:
            for row in np.flatnonzero(self._there("candidate_id") & (self.expression >= 0)).tolist():
                given = self.columns["candidate_id"][row].as_py()
                known = self.truth.candidates[int(self.truth.rows[self.expression[row]])]
                if given not in known:
                    some = ", ".join(sorted(known)[:5]) or "none"
                    warnings.add("unknown_candidate", self.name(row), f"{given!r}; the candidates are {some}")
        rows = np.flatnonzero(self._there("box"))
        box = list_values(self.columns["box"].take(pa.array(rows))).to_numpy(zero_copy_only=False).reshape(-1, 4)
        height, width = self._sizes(rows)
        for code, i in odd_boxes(box, height, width):
            shown = ", ".join(f"{side:g}" for side in box[i])
            text = f"[{shown}] in an image of {height[i]} x {width[i]}" if height[i] else f"[{shown}]"
            warnings.add(code, self.name(int(rows[i])), text)
        both = np.flatnonzero(self.masked[rows])
        masks = MaskColumn.from_arrow(self.columns["mask"].take(pa.array(rows[both])))
        for i in both[boxes_apart(box[both], masks)].tolist():
            shown = ", ".join(f"{side:g}" for side in box[i])
            warnings.add("box_apart_from_mask", self.name(int(rows[i])), f"[{shown}]")

    def _sizes(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Height and width of the images that rows speak of, 0 where unknown."""
        if self.truth is None or not len(self.truth.ids):
            return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        at = self.expression[rows]
        return np.where(at >= 0, self.truth.heights[at], 0), np.where(at >= 0, self.truth.widths[at], 0)


def _truth(truth: Dataset) -> _Truth:
    """The ground truth columns that the check needs: a row per TCES, or per expression (config `expressions`)."""
    if not isinstance(truth, Dataset):
        raise BenchError(f"truth: expected a Dataset, found {type(truth).__name__}; load it without streaming")
    columns = truth.column_names
    if not {"expressions", "expression_id"} & set(columns):
        raise BenchError(f"truth: expected a column expressions (or expression_id), found {', '.join(columns)}")
    nested = "expressions" in columns
    kept = [name for name in ("expressions", "expression_id", "height", "width", "candidates") if name in columns]
    ids: list[str] = []
    rows: list[NDArray[np.int64]] = []
    sizes: list[NDArray[np.int64]] = []
    candidates: list[set[str]] = []
    first = 0
    for table in truth.select_columns(kept).with_format("arrow").iter(256):
        n = len(table)
        counts = np.ones(n, np.int64)
        if nested:
            lists = joined(table.column("expressions"))
            counts = np.diff(list_offsets(lists))
            ids += list_values(lists).field("expression_id").to_pylist()
        else:
            ids += table.column("expression_id").to_pylist()
        rows.append(first + np.repeat(np.arange(n), counts))
        sides = [
            pc.fill_null(joined(table.column(side)), 0).to_numpy(zero_copy_only=False) if side in kept else np.zeros(n)
            for side in ("height", "width")
        ]
        sizes.append(np.repeat(np.stack(sides, axis=1).astype(np.int64), counts, axis=0))
        if "candidates" in kept:
            lists = joined(table.column("candidates"))
            own, ends = list_values(lists).field("instance_id").to_pylist(), list_offsets(lists).tolist()
            candidates += [{str(name) for name in own[a:b]} for a, b in pairwise(ends)]
        first += n
    height, width = np.concatenate([np.zeros((0, 2), np.int64), *sizes]).T
    of = np.concatenate([np.zeros(0, np.int64), *rows])
    return _Truth([str(name) for name in ids], height, width, of, candidates if "candidates" in kept else None)
