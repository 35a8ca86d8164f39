"""The check of PVSG predictions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from datasets import Dataset

from bench_datasets.faults import BenchError, FaultError, stops
from bench_datasets.masks import MaskColumn, joined, list_offsets, list_values
from bench_datasets.predictions.arrays import empty_masks
from bench_datasets.predictions.check import CheckReport, Collector
from bench_datasets.predictions.pvsg.noted import is_predicate, noted_faults
from bench_datasets.predictions.pvsg.pairing import pair_videos
from bench_datasets.predictions.read import Predictions, read_predictions

ADVICE = {
    "malformed_mask": "no valid COCO RLE, no frame or span from 0 on, or two masks of one frame; it is left out",
    "size_mismatch": "nothing is resized here: write masks of the video's full size",
    "unknown_row": "the truth holds no such video; check the video ids",
    "duplicate_prediction": "two predictions for one video, or two tubes of one id; keep one",
    "missing_prediction": 'write the video without tubes where nothing was found, or score with missing="empty"',
    "bad_score": "write one finite number a triplet: triplets are ranked by it",
    "wrong_benchmark": "give predictions of pvsg, or name the benchmark that these are for",
    "unknown_category": "none of the 126 categories; the tube's triplets keep their rank and cannot hit",
    "unknown_tube": "the video has no tube of this id; the triplet keeps its rank and cannot hit",
    "tube_without_masks": "a tube without a mask cannot overlap anything",
    "unknown_predicate": "none of the 57 predicates; the triplet keeps its rank and cannot hit",
    "span_outside": "spans that reach past the video's last frame; frames count from 0",
    "frame_outside": "masks of frames past the video's last; frames count from 0",
    "no_spans": "triplets without a span hold on no frame and cannot hit",
    "no_tubes": "videos without a tube",
    "no_triplets": "videos without a triplet: is relations.json there?",
    "empty_mask": "masks without a pixel",
    "same_scores": "all triplets of the video have one score; they are ranked in the given order",
}
"""What to do about each kind of finding."""


class _Truth(NamedTuple):
    """By video: its id, height, width and number of frames, 0 where unknown."""

    keys: list[str]
    heights: list[int]
    widths: list[int]
    frames: list[int]


def check(predictions: Predictions, truth: Dataset | None) -> CheckReport:
    """Everything that is wrong with PVSG predictions; see `bench_datasets.predictions.check.check`."""
    errors, warnings = Collector(), Collector()
    try:
        read = read_predictions("pvsg", predictions)
    except FaultError as error:
        errors.add(error.code, error.key, error.text)
        return CheckReport("pvsg", 0, 0, errors.groups(ADVICE))
    rows = None if truth is None else _truth(truth)
    video = np.full(len(read), -1, np.int64)
    if rows is not None:
        pairing = pair_videos(rows.keys, read)
        errors.extend(pairing.faults)
        video[pairing.index[pairing.index >= 0]] = np.flatnonzero(pairing.index >= 0)
    else:
        names = list(dict.fromkeys(name for name in read["key"] if name is not None))
        faults = pair_videos(names, read, whole=False).faults
        errors.extend(fault for fault in faults if fault.code == "duplicate_prediction")
    masks = 0
    for row, table in enumerate(read.with_format("arrow").iter(1)):
        name = table.column("key")[0].as_py() or f"prediction {row}"
        for fault in table.column("pred_faults")[0].as_py():
            if not (rows is not None and fault["code"] == "unknown_row"):  # pairing has told that
                (errors if stops(fault["code"]) else warnings).add(fault["code"], name, fault["text"])
        seen = _Seen(name, errors, warnings, rows, int(video[row]))
        triplets = table.column("pred_triplets")[0].as_py()
        masks += seen.tubes(list_values(joined(table.column("pred_tubes"))), triplets)
        seen.triplets(triplets)
    return CheckReport("pvsg", len(read), masks, errors.groups(ADVICE), warnings.groups(ADVICE))


class _Seen:
    """One video's predictions, and the truth's row for it (-1 for none)."""

    def __init__(self, name: str, errors: Collector, warnings: Collector, truth: _Truth | None, row: int) -> None:
        self.name, self.errors, self.warnings = name, errors, warnings
        known = truth is not None and row >= 0
        self.size = (truth.heights[row], truth.widths[row]) if truth is not None and known else (0, 0)
        self.frames = truth.frames[row] if truth is not None and known else 0

    def tubes(self, tubes: pa.StructArray, triplets: list[dict[str, Any]]) -> int:
        """Names that lead nowhere, empty masks, masks of another size or past the end; gives the number of masks."""
        ids, categories = tubes.field("tube_id").to_pylist(), tubes.field("category").to_pylist()
        lists = tubes.field("masks")
        counts = np.diff(list_offsets(lists))
        frames = list_values(tubes.field("frames")).to_numpy(zero_copy_only=False)
        owner = np.repeat(np.arange(len(ids)), counts)
        for code, text in noted_faults(list(zip(ids, categories, counts.tolist(), strict=True)), triplets):
            self.warnings.add(code, self.name, text)
        if not ids:
            self.warnings.add("no_tubes", self.name, "no tubes")
        column = MaskColumn.from_arrow(list_values(lists))

        def place(at: int) -> str:
            return f"tube {ids[int(owner[at])]}, frame {frames[at]}"

        for at in empty_masks(column):
            self.warnings.add("empty_mask", self.name, place(at))
        if self.size[0] > 0:
            other = np.flatnonzero((column.heights != self.size[0]) | (column.widths != self.size[1]))
            if len(other):
                at = int(other[0])
                found = f"found {column.heights[at]} x {column.widths[at]} ({len(other)} of {len(column)} masks)"
                text = f"{place(at)}: expected {self.size[0]} x {self.size[1]} like the video, {found}"
                self.errors.add("size_mismatch", self.name, text)
        if self.frames > 0:
            beyond = np.flatnonzero(frames >= self.frames)
            if len(beyond):
                text = f"{place(int(beyond[0]))} of {self.frames} frames ({len(beyond)} of {len(column)} masks)"
                self.warnings.add("frame_outside", self.name, text)
        return len(column)

    def triplets(self, triplets: list[dict[str, Any]]) -> None:
        """Predicates, spans and scores."""
        if not triplets:
            self.warnings.add("no_triplets", self.name, "no triplets")
        for i, triplet in enumerate(triplets):
            if not is_predicate(triplet["predicate"]):
                self.warnings.add("unknown_predicate", self.name, f"triplet {i}: {triplet['predicate']!r}")
            last = max((span[1] for span in triplet["spans"]), default=-1)
            if last < 0:
                self.warnings.add("no_spans", self.name, f"triplet {i}")
            elif 0 < self.frames <= last:
                self.warnings.add("span_outside", self.name, f"triplet {i}: frame {last} of {self.frames} frames")
        scores = {triplet["score"] for triplet in triplets}
        if len(triplets) > 1 and len(scores) == 1 and None not in scores:
            self.warnings.add("same_scores", self.name, f"{len(triplets)} triplets of score {scores.pop():g}")


def _truth(truth: Dataset) -> _Truth:
    """What the check needs of the truth."""
    if not isinstance(truth, Dataset):
        raise BenchError(f"truth: expected a Dataset, found {type(truth).__name__}; load it without streaming")
    columns = truth.column_names
    name = next((name for name in ("key", "video_id") if name in columns), None)
    if name is None:
        raise BenchError(f"truth: expected a column key (the video's id), found {', '.join(columns)}")

    def numbers(*names: str) -> list[int]:
        there = [truth[column][:] for column in names if column in columns]
        return [next((value for value in values if value), 0) for values in zip(*there, strict=True)] or [0] * len(
            truth
        )

    return _Truth(truth[name][:], numbers("height"), numbers("width"), numbers("num_frames", "frames_present"))
