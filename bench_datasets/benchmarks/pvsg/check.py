"""The check of PVSG predictions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from datasets import Dataset
from numpy.typing import NDArray

from bench_datasets.benchmarks.pvsg.dangling_ids import is_predicate, missing_frames, noted_faults, odd_spans
from bench_datasets.benchmarks.pvsg.prediction_pairing import pair_videos
from bench_datasets.benchmarks.pvsg.vocabulary import THINGS
from bench_datasets.faults import FAULTS, BenchError, Fault, FaultError, stops
from bench_datasets.masks import MaskColumn, joined, list_offsets, list_values
from bench_datasets.predictions.arrow_types import INVERTED_MASK, WHOLE_IMAGE, empty_masks, odd_masks, size_advice
from bench_datasets.predictions.check import CheckReport, Collector
from bench_datasets.predictions.read import Predictions, read_predictions

ADVICE = {
    "malformed_mask": "a mask, a frame or an id that is not as the format asks; each line says what was expected",
    "unreadable_mask": "the file holds no mask that can be read; each line says what was expected and what was found",
    "whole_image": WHOLE_IMAGE,
    "inverted_mask": INVERTED_MASK,
    "bad_span": "write spans as [first, last], whole frames from 0 with both ends included",
    "size_mismatch": "nothing is resized here: write masks of the video's full size",
    "unknown_row": "the truth holds no such video; check the video ids",
    "duplicate_prediction": "two predictions for one video, or one id twice; keep one",
    "missing_prediction": 'write the video without tubes where nothing was found, or score with missing="empty"',
    "bad_score": "write one finite number a triplet: triplets are ranked by it",
    "wrong_benchmark": "give predictions of pvsg, or name the benchmark that these are for",
    "unknown_category": "none of the 126 categories; the tube's triplets keep their rank and cannot hit",
    "unknown_tube": "the video has no tube of this id; the triplet keeps its rank and cannot hit",
    "tube_without_masks": "a tube without a mask cannot overlap anything",
    "self_triplet": "subject and object are one tube; in this video no relation is of an object with itself",
    "repeated_triplet": "the same tubes, predicate and spans as an earlier triplet; it takes up a rank",
    "ignored_file": "move or remove it; docs/predictions.md says which files are read",
    "missing_frames": "nothing is found in these frames: are files or lines missing?",
    "unknown_predicate": "none of the 57 predicates; the triplet keeps its rank and cannot hit",
    "span_outside": "spans that reach past the video's last frame; frames count from 0",
    "frame_outside": "masks of frames past the video's last; frames count from 0",
    "no_spans": "triplets without a span hold on no frame and cannot hit",
    "no_tubes": "videos without a tube",
    "no_triplets": "videos without a triplet: is relations.json, or the field triplets, there?",
    "empty_mask": "masks without a pixel",
    "same_scores": "all triplets of the video have one score; they are ranked in the given order",
}
"""What to do about each kind of finding."""


class _Video(NamedTuple):
    """Fields of a ground truth row that `check` needs; 0 and None if the row lacks them."""

    key: str
    height: int
    width: int
    frames: int
    masked: NDArray[np.int64] | None
    reflexive: bool
    faults: list[tuple[str, str]]


def check(benchmark: str, predictions: Predictions, truth: Dataset | None) -> CheckReport:
    """Everything that is wrong with PVSG predictions; see `bench_datasets.predictions.check.check`."""
    errors, warnings = Collector(), Collector()
    try:
        read = read_predictions(benchmark, predictions)
    except FaultError as error:
        errors.add(error.code, error.key, error.text)
        return CheckReport(benchmark, 0, 0, errors.groups(ADVICE))
    rows = None if truth is None else _truth(truth)
    video: dict[int, _Video] = {}
    if rows is not None:
        pairing = pair_videos([row.key for row in rows], read)
        errors.extend(pairing.faults)
        video = {int(at): row for at, row in zip(pairing.index, rows, strict=True) if at >= 0}
        for row in rows:
            errors.extend(Fault(code, row.key, text) for code, text in row.faults)
    else:
        names = list(dict.fromkeys(name for name in read["key"] if name is not None))
        faults = pair_videos(names, read, whole=False).faults
        errors.extend(fault for fault in faults if fault.code == "duplicate_prediction")
    masks = 0
    for at, table in enumerate(read.with_format("arrow").iter(1)):
        name = table.column("key")[0].as_py() or f"prediction {at}"
        told = set()
        for fault in table.column("pred_faults")[0].as_py():
            told.add(fault["code"])
            if not (
                rows is not None and fault["code"] in ("unknown_row", "missing_prediction")
            ):  # pairing has told that
                (errors if stops(fault["code"]) else warnings).add(fault["code"], name, fault["text"])
        if "missing_prediction" in told:
            continue
        seen = _Seen(name, errors, warnings, video.get(at))
        triplets = table.column("pred_triplets")[0].as_py()
        masks += seen.tubes(list_values(joined(table.column("pred_tubes"))), triplets, "missing_frames" in told)
        seen.triplets(triplets)
    return CheckReport(benchmark, len(read), masks, errors.groups(ADVICE), warnings.groups(ADVICE))


class _Seen:
    """One video's predictions, and the truth's row for it (None for none)."""

    def __init__(self, name: str, errors: Collector, warnings: Collector, truth: _Video | None) -> None:
        self.name, self.errors, self.warnings = name, errors, warnings
        self.size = (truth.height, truth.width) if truth is not None else (0, 0)
        self.frames = truth.frames if truth is not None else 0
        self.masked = truth.masked if truth is not None else None
        self.reflexive = truth is None or truth.reflexive

    def tubes(self, tubes: pa.StructArray, triplets: list[dict[str, Any]], told: bool) -> int:
        """Names that lead nowhere, frames without a mask, empty masks, masks of another size or past the end.

        Args:
            tubes: of the prediction.
            triplets: of the prediction.
            told: whether the reader found that frames are missing.

        Returns:
            The number of masks.
        """
        ids, categories = tubes.field("tube_id").to_pylist(), tubes.field("category").to_pylist()
        lists = tubes.field("masks")
        counts = np.diff(list_offsets(lists))
        frames = list_values(tubes.field("frames")).to_numpy(zero_copy_only=False)
        owner = np.repeat(np.arange(len(ids)), counts)
        listed = list(zip(ids, categories, counts.tolist(), strict=True))
        for code, text in noted_faults(listed, triplets, self.reflexive):
            self.warnings.add(code, self.name, text)
        if self.masked is not None and len(frames) and not told and (text := missing_frames(self.masked, frames)):
            self.warnings.add("missing_frames", self.name, text)
        if not ids:
            self.warnings.add("no_tubes", self.name, "no tubes")
        column = MaskColumn.from_arrow(list_values(lists))

        def place(at: int) -> str:
            return f"tube {ids[int(owner[at])]}, frame {frames[at]}"

        for at in empty_masks(column):
            self.warnings.add("empty_mask", self.name, place(at))
        for code, at in odd_masks(column):
            if categories[int(owner[at])] in THINGS:
                self.warnings.add(code, self.name, place(at))
        if self.size[0] > 0:
            other = np.flatnonzero((column.heights != self.size[0]) | (column.widths != self.size[1]))
            if len(other):
                at = int(other[0])
                found = f"found {column.heights[at]} x {column.widths[at]} ({len(other)} of {len(column)} masks)"
                text = f"{place(at)}: expected {self.size[0]} x {self.size[1]} like the video, {found}"
                text += size_advice((column.heights[at], column.widths[at]), self.size)
                self.errors.add("size_mismatch", self.name, text)
        if self.frames > 0:
            beyond = np.flatnonzero(frames >= self.frames)
            if len(beyond):
                text = f"{place(int(beyond[0]))} of {self.frames} frames ({len(beyond)} of {len(column)} masks)"
                self.warnings.add("frame_outside", self.name, text)
        return len(column)

    def triplets(self, triplets: list[dict[str, Any]]) -> None:
        """Predicates, spans and scores."""
        found = [] if triplets else [("no_triplets", "no triplets")]
        scores = {triplet["score"] for triplet in triplets}
        if len(triplets) > 1 and len(scores) == 1 and None not in scores:
            found.append(("same_scores", f"{len(triplets)} triplets of score {scores.pop():g}"))
        for i, triplet in enumerate(triplets):
            if not is_predicate(triplet["predicate"]):
                found.append(("unknown_predicate", f"triplet {i}: {triplet['predicate']!r}"))
            found += odd_spans([span[1] for span in triplet["spans"]], self.frames, i)
        for code, text in found:
            self.warnings.add(code, self.name, text)


def _truth(truth: Dataset) -> list[_Video]:
    """Fields of the ground truth that `check` needs, by row."""
    if not isinstance(truth, Dataset):
        raise BenchError(f"truth: expected a Dataset, found {type(truth).__name__}; load it without streaming")
    columns = truth.column_names
    name = next((name for name in ("key", "video_id") if name in columns), None)
    if name is None:
        raise BenchError(f"truth: expected a column key (the video's id), found {', '.join(columns)}")
    wanted = (name, "height", "width", "num_frames", "frames_present", "tubes", "relations", "faults")
    rows = truth.select_columns([column for column in wanted if column in columns]).with_format("arrow")
    return [_video(table, name) for table in rows.iter(1)]


def _video(table: pa.Table, name: str) -> _Video:
    """One truth row."""

    def value(column: str) -> Any:
        return table.column(column)[0].as_py() if column in table.column_names else None

    height, width = (int(value(side) or 0) for side in ("height", "width"))
    faults = [
        (code, f"ground truth: {FAULTS[code].meaning}")
        for code in value("faults") or []
        if code in FAULTS and stops(code)
    ]
    masked = None
    if "tubes" in table.column_names:
        tubes = list_values(joined(table.column("tubes")))
        masked = np.unique(list_values(tubes.field("frames")).to_numpy(zero_copy_only=False)).astype(np.int64)
        column = MaskColumn.from_arrow(list_values(tubes.field("masks")))
        wrong = column.problems()
        differ = (column.heights != height) | (column.widths != width)
        other = np.flatnonzero(differ & (height > 0) & (width > 0))
        if wrong:
            text = f"tubes (truth): {wrong[min(wrong)]} ({len(wrong)} of {len(column)} masks)"
            faults.append(("malformed_mask", f"{text}; mend the source's row"))
        elif len(other):
            found = f"{column.heights[other[0]]} x {column.widths[other[0]]} ({len(other)} of {len(column)} masks)"
            faults.append(("size_mismatch", f"tubes (truth): expected {height} x {width}, found {found}"))
    relations = value("relations")
    reflexive = relations is None or any(item["subject_id"] == item["object_id"] for item in relations)
    frames = int(value("num_frames") or value("frames_present") or 0)
    return _Video(value(name), height, width, frames, masked, reflexive, faults)
