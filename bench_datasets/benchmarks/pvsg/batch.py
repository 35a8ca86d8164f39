"""`Batch` of PVSG: ground truth and prediction of one video at a time, ready to be scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.benchmark import Protocol
from bench_datasets.benchmarks.pvsg.dangling_ids import missing_frames, odd_spans, odd_triplets
from bench_datasets.benchmarks.pvsg.prediction_columns import read_beside
from bench_datasets.benchmarks.pvsg.schema import TRUTH_COLUMNS
from bench_datasets.benchmarks.pvsg.spans import Spans
from bench_datasets.benchmarks.pvsg.tubes import MAX_FRAME, TubeLists, Tubes, read_tube_lists
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES, THINGS
from bench_datasets.faults import BenchError
from bench_datasets.masks import Decoded
from bench_datasets.scoring.batch import Batch
from bench_datasets.scoring.faulty_rows import Faulty
from bench_datasets.scoring.hashes import row_hashes
from bench_datasets.scoring.options import ScoreOptions

MAX_FRAMES = 1 << 20
"""Frames a video may have."""

_CATEGORY = {name: i for i, name in enumerate(CATEGORIES)}
_PREDICATE = {name: i for i, name in enumerate(PREDICATES)}


@dataclass(frozen=True)
class Row:
    """One video as it was given.

    Attributes:
        key: the video's id.
        values: its label fields but for the tubes, and `pred_triplets`.
        true: truth tubes, a list of one row.
        predicted: predicted tubes with `tube_id` and `category`, a list of one row.
        reading: faults found when the prediction was read.
    """

    key: str
    values: dict[str, Any]
    true: TubeLists
    predicted: TubeLists
    reading: list[tuple[str, str]]

    @cached_property
    def truth(self) -> Truth:
        """The ground truth; see `read_truth`."""
        return read_truth(self)

    @cached_property
    def labels(self) -> dict[str, Any]:
        """The fields that the row hash covers besides the masks."""
        return label_fields(self)

    @property
    def answered(self) -> bool:
        """Whether there is a prediction, be it an empty one."""
        return bool(self.predicted.present[0]) or self.values["pred_triplets"] is not None

    def without_prediction(self) -> Row:
        """The same video with an empty prediction."""
        empty = read_tube_lists([[]], ("tube_id", "category"))
        return replace(self, values={**self.values, "pred_triplets": []}, predicted=empty, reading=[])


@dataclass(frozen=True)
class Truth:
    """A video's truth; o objects, r relations.

    Attributes:
        frames: number of frames; spans are cut to them.
        height: of the frames, in pixels.
        width: of the frames, in pixels.
        tubes: of the objects.
        ids: `(o,) int64`, the objects' ids.
        categories: `(o,) int64`, index into `CATEGORIES`.
        things: `(o,) bool`, whether the object is countable.
        subjects: `(r,) int64`, index of the object; -1 for one that is not there.
        objects: `(r,) int64`, likewise.
        predicates: `(r,) int64`, index into `PREDICATES`.
        spans: of the relations.
        span_frames: `(r,) int64`, frames in the spans (as declared where no frame has masks).
    """

    frames: int
    height: int
    width: int
    tubes: Tubes
    ids: NDArray[np.int64]
    categories: NDArray[np.int64]
    things: NDArray[np.bool_]
    subjects: NDArray[np.int64]
    objects: NDArray[np.int64]
    predicates: NDArray[np.int64]
    spans: Spans
    span_frames: NDArray[np.int64]


@dataclass(frozen=True)
class Prediction:
    """A video's prediction; p tubes, t triplets by rank: the best score first, equal ones as given.

    Attributes:
        tubes: of the prediction.
        categories: `(p,) int64`, index into `CATEGORIES`; -1 for none of them.
        subjects: `(t,) int64`, index of the tube; -1 for one that is not there.
        objects: `(t,) int64`, likewise.
        predicates: `(t,) int64`, index into `PREDICATES`; -1 for none of them.
        spans: of the triplets.
        scores: `(t,) float64`.
        given: `(t,) int64`, each triplet's place in the file.
    """

    tubes: Tubes
    categories: NDArray[np.int64]
    subjects: NDArray[np.int64]
    objects: NDArray[np.int64]
    predicates: NDArray[np.int64]
    spans: Spans
    scores: NDArray[np.float64]
    given: NDArray[np.int64]

    def subject_categories(self) -> NDArray[np.int64]:
        """`(t,) int64`, category of each triplet's subject tube; -1 where there is none."""
        return self._categories(self.subjects)

    def object_categories(self) -> NDArray[np.int64]:
        """`(t,) int64`, category of each triplet's object tube; -1 where there is none."""
        return self._categories(self.objects)

    def _categories(self, tube: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.append(self.categories, -1)[tube]


@dataclass
class Videos(Batch):
    """Videos with their predictions.

    Attributes:
        rows: n videos.
        oracle: what is taken from the ground truth, or an empty text.
    """

    rows: list[Row]
    oracle: str
    _judged: list[tuple[Prediction | None, set[str]]] | None = None

    @property
    def keys(self) -> list[str]:
        """The videos' ids."""
        return [row.key for row in self.rows]

    @property
    def clusters(self) -> list[str]:
        """The videos' ids: every video is resampled on its own."""
        return self.keys

    def chunks(self) -> Iterator[Videos]:
        """One video at a time."""
        for row in self.rows:
            yield Videos([row], self.oracle)

    def use_decoded(self, decoded: Decoded) -> None:
        """Take the predicted masks from an earlier decoding."""
        first = 0
        for row in self.rows:
            last = first + len(row.predicted.masks)
            row.predicted.masks.remember(decoded.part(first, last))
            first = last

    def label_columns(self) -> Mapping[str, Any]:
        """Source and oracle."""
        return {"source": [row.values["source"] for row in self.rows], "oracle": [self.oracle] * len(self.rows)}

    def row_hashes(self) -> list[str]:
        """The hash of each video's labels and masks; empty for invalid masks."""
        from bench_datasets.benchmarks.pvsg.validation import truth_mask_faults

        found = []
        for row in self.rows:
            groups = np.array([0, len(row.true.masks)])
            sound = not truth_mask_faults(row)
            found.append(row_hashes([row.labels], row.true.masks, groups)[0] if sound else "")
        return found

    def find_faults(self, protocol: Protocol, options: ScoreOptions) -> Faulty:
        """The videos that can't be scored as they are.

        Raises:
            FaultError: there is such a video and the options say to stop.
            BenchError: the ground truth is not PVSG's.
        """
        from bench_datasets.benchmarks.pvsg.validation import judge

        del protocol
        faulty = Faulty(options)
        self._judged = [judge(row, faulty, i) for i, row in enumerate(self.rows)]
        for i, row in enumerate(self.rows):
            if i not in faulty.left_out:
                _ = row.labels, row.truth  # raise here what they raise
        return faulty

    def fault_codes(self, faulty: Faulty) -> list[list[str]]:
        """Codes of the builder, of reading, and of the faults."""
        judged = self._judged or [(None, set())] * len(self.rows)
        return [
            sorted({*(row.values["faults"] or []), *noted, *faulty.codes(i)})
            for i, (row, (_, noted)) in enumerate(zip(self.rows, judged, strict=True))
        ]

    def scorable(self, faulty: Faulty) -> Videos:
        """The videos that are scored; those that count as wrong have an empty prediction."""
        judged = self._judged or [(None, set())] * len(self.rows)
        rows, found = [], []
        for i, (row, own) in enumerate(zip(self.rows, judged, strict=True)):
            if i in faulty.left_out:
                continue
            wrong = i in faulty.wrong
            rows.append(row.without_prediction() if wrong else row)
            found.append((None, own[1]) if wrong else own)
        return Videos(rows, self.oracle, found)

    def predictions(self) -> Iterator[Prediction]:
        """The parsed prediction of each video."""
        for row, (prediction, _) in zip(self.rows, self._judged or [(None, set())] * len(self.rows), strict=True):
            yield prediction if prediction is not None else read_prediction(row)[0]


def read_rows(batch: pa.Table | Mapping[str, Any]) -> Iterator[Row]:
    """The videos of a batch, one after the other.

    Args:
        batch: an Arrow table, or columns by name as `Dataset.map(batched=True)` hands them over.

    Raises:
        BenchError: a column is absent.
    """
    names = batch.column_names if isinstance(batch, pa.Table) else list(batch)
    needed = ("key", "objects", "tubes", "relations", "pred_tubes", "pred_triplets")
    absent = [name for name in needed if name not in names]
    if absent:
        raise BenchError(
            f"pvsg rows: expected the columns {', '.join(needed)}, found {', '.join(names)}; without {absent[0]} they"
            " can't be scored (is it another benchmark's file?)"
        )
    n = len(batch["key"])
    found = read_beside(batch)
    lists = {"tubes": read_tube_lists(batch["tubes"])}
    lists["pred_tubes"] = read_tube_lists(found["pred_tubes"], ("tube_id", "category"))
    columns = {name: _values(batch[name]) if name in names else [None] * n for name in TRUTH_COLUMNS if name != "tubes"}
    columns |= {name: _values(found[name]) for name in ("pred_triplets", "pred_faults")}
    for i in range(n):
        values = {name: column[i] for name, column in columns.items()}
        reading = [(str(fault["code"]), str(fault["text"])) for fault in values.pop("pred_faults") or []]
        true, predicted = lists["tubes"].slice(i, i + 1), lists["pred_tubes"].slice(i, i + 1)
        yield Row(str(values["key"]), values, true, predicted, reading)


def label_fields(row: Row) -> dict[str, Any]:
    """The fields that the row hash covers besides the masks; categories and predicates by name."""
    frames = row.true.frames.tolist()
    bounds = row.true.tubes.tolist()
    values = row.values
    relations = [
        {**_ends(item), "predicate": _name(item["predicate"], PREDICATES, "predicate", row.key)}
        for item in values["relations"] or []
    ]
    left_out = [
        {**_ends(item), "predicate": item["predicate"], "reason": item.get("reason")}
        for item in values["relations_left_out"] or []
    ]
    fps = values["fps"]
    return {
        "video_id": row.key,
        "height": _integer(values["height"]),
        "width": _integer(values["width"]),
        "fps": None if fps is None else float(fps),
        "objects": [
            {
                "object_id": _integer(item["object_id"]),
                "category": _name(item["category"], CATEGORIES, "category", row.key),
                "is_thing": _is_thing(item, row.key),
            }
            for item in values["objects"] or []
        ],
        "tubes": [{"frames": frames[a:b]} for a, b in pairwise(bounds)],
        "relations": relations,
        "relations_left_out": left_out,
    }


def read_truth(row: Row) -> Truth:
    """A row's truth, whose masks must be sound and of one size.

    Raises:
        BenchError: objects and tubes differ in number, a name is none of the vocabulary's, or a frame is out of bounds.
    """
    objects, relations = row.values["objects"] or [], row.values["relations"] or []
    tubes = row.true.video(0)
    if len(objects) != tubes.count:
        raise BenchError(f"{row.key}: tubes: expected one an object ({len(objects)}), found {tubes.count}")
    beyond = int(tubes.frames[-1]) + 1 if len(tubes.frames) else 0
    present = row.values["frames_present"]
    declared = _integer(row.values["num_frames"]) or 0
    frames = max(beyond, int(declared if present is None else present))
    if frames > MAX_FRAMES or (len(tubes.frames) and tubes.frames[0] < 0):
        raise BenchError(
            f"{row.key}: tubes: expected frames from 0 to {MAX_FRAMES - 1}, found {tubes.frames.min(initial=0)} to"
            f" {tubes.frames.max(initial=0)} and frames_present {present}"
        )
    index = {int(item["object_id"]): i for i, item in enumerate(objects)}
    height, width = row.values["height"], row.values["width"]
    if (height is None or width is None) and len(tubes.frames):
        height, width = tubes.masks.heights[0], tubes.masks.widths[0]
    spans = [item["spans"] or [] for item in relations]
    return Truth(
        frames, int(height or 0), int(width or 0), tubes,
        np.array([int(item["object_id"]) for item in objects], np.int64),
        _codes([item["category"] for item in objects], _CATEGORY, len(CATEGORIES), "category", row.key),
        np.array([_is_thing(item, row.key) for item in objects], np.bool_),
        np.array([index.get(int(item["subject_id"]), -1) for item in relations], np.int64),
        np.array([index.get(int(item["object_id"]), -1) for item in relations], np.int64),
        _codes([item["predicate"] for item in relations], _PREDICATE, len(PREDICATES), "predicate", row.key),
        Spans.read(spans, frames), Spans.read(spans, frames or declared).sizes(),
    )  # fmt: skip


def read_prediction(row: Row) -> tuple[Prediction, list[tuple[str, str]], list[tuple[str, str]]]:
    """A row's prediction, whose masks must be sound.

    Returns:
        The prediction; what is wrong with it so that it can't be scored; and what is noted: both codes and words.
        A triplet that is noted keeps its rank and can't hit.
    """
    wrong: list[tuple[str, str]] = []
    noted: list[tuple[str, str]] = []
    ids: dict[str | None, int] = {}
    for i, given in enumerate(row.predicted.fields["tube_id"]):
        name = _id(given)
        if name in ids:
            wrong.append(("duplicate_prediction", f"tubes {ids[name]} and {i} both bear the id {name!r}"))
        ids.setdefault(name, i)
    words = row.predicted.fields["category"]
    categories = np.array([_code(name, _CATEGORY, len(CATEGORIES)) for name in words], np.int64)
    for i in np.flatnonzero(categories < 0).tolist():
        noted.append(("unknown_category", f"tube {i}: {words[i]!r:.60}"))
    tubes = row.predicted.video(0)
    absent = missing_frames(row.true.frames, tubes.frames) if len(tubes.frames) else ""
    if absent:
        noted.append(("missing_frames", absent))
    declared = _integer(row.values["num_frames"]) or _integer(row.values["frames_present"]) or 0
    beyond = int((tubes.frames >= declared).sum()) if declared else 0
    if beyond:
        noted.append(("frame_outside", f"{beyond} of {len(tubes.frames)} masks, of a video of {declared} frames"))
    sizes = np.bincount(tubes.tubes, minlength=tubes.count) if tubes.count else np.zeros(0, np.int64)
    for i in np.flatnonzero(sizes == 0).tolist():
        noted.append(("tube_without_masks", f"tube {i}"))
    triplets = row.values["pred_triplets"]
    ends: tuple[list[int], list[int]] = ([], [])
    predicates, scores, spans = [], [], []
    for k, given in enumerate(triplets if triplets is not None else []):
        item: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        for name, found in zip(("subject_id", "object_id"), ends, strict=True):
            end = _id(item.get(name))
            found.append(-1 if end is None else ids.get(end, -1))
            if found[-1] < 0:
                noted.append(("unknown_tube", f"triplet {k}: {name} {item.get(name)!r:.60}"))
        predicates.append(_code(item.get("predicate"), _PREDICATE, len(PREDICATES)))
        if predicates[-1] < 0:
            noted.append(("unknown_predicate", f"triplet {k}: {item.get('predicate')!r:.60}"))
        score: Any = item.get("score")
        if not _is_number(score):
            wrong.append(("bad_score", f"triplet {k}: score: expected a finite number, found {score!r:.60}"))
        scores.append(float(score) if _is_number(score) else 0.0)
        text = _span_problem(item.get("spans"))
        if text:
            wrong.append(("bad_span", f"triplet {k}: spans: {text}"))
        spans.append([] if text or item.get("spans") is None else item["spans"])
        if not text:
            noted += odd_spans([int(last) for _, last in spans[-1]], declared, k)
    known = [min(one) >= 0 for one in zip(*ends, predicates, strict=True)]
    reflexive = any(item["subject_id"] == item["object_id"] for item in row.values["relations"] or [])
    noted += [("no_triplets", "no triplets")] if tubes.count and not scores else []
    named = zip(*ends, predicates, spans, strict=True)
    noted += odd_triplets([one if sound else None for one, sound in zip(named, known, strict=True)], reflexive)
    rank = np.argsort(-np.array(scores, np.float64), kind="stable")
    prediction = Prediction(
        tubes, categories, np.array(ends[0], np.int64)[rank], np.array(ends[1], np.int64)[rank],
        np.array(predicates, np.int64)[rank], Spans.read(spans).take(rank), np.array(scores, np.float64)[rank], rank,
    )  # fmt: skip
    return prediction, wrong, noted


def _values(column: Any) -> list[Any]:
    return column.to_pylist() if isinstance(column, (pa.Array, pa.ChunkedArray)) else list(column)


def _id(value: Any) -> str | None:
    """A tube's id as text: files name tubes by numbers or by words."""
    return str(value) if isinstance(value, str) or _is_integer(value) else None


def _ends(item: Mapping[str, Any]) -> dict[str, Any]:
    spans = [[int(first), int(last)] for first, last in item["spans"] or []]
    return {"subject_id": int(item["subject_id"]), "object_id": int(item["object_id"]), "spans": spans}


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))


def _is_thing(item: Mapping[str, Any], key: str) -> bool:
    """As the row says, else as the category is."""
    given = item.get("is_thing")
    return _name(item["category"], CATEGORIES, "category", key) in THINGS if given is None else bool(given)


def _span_problem(spans: Any) -> str:
    if spans is not None and not _is_list(spans):
        return f"expected a list of [first, last], found {spans!r:.60}"
    for span in spans if spans is not None else []:
        if not _is_list(span) or len(span) != 2 or not all(_is_whole(value) for value in span):
            return f"expected [first, last] in frames, found {span!r:.60}"
        if not 0 <= span[0] <= span[1] <= MAX_FRAME:
            return f"expected 0 <= first <= last <= {MAX_FRAME}, found [{span[0]}, {span[1]}]"
    return ""


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray))


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    """Whether it is a whole number, be it a float, as files may hold it."""
    return _is_integer(value) or (isinstance(value, (float, np.floating)) and float(value).is_integer())


def _code(value: Any, index: Mapping[str, int], count: int) -> int:
    """The number of a name, or of a class label; -1 for none of the vocabulary's."""
    if isinstance(value, str):
        return index.get(value, -1)
    if _is_integer(value) and 0 <= int(value) < count:
        return int(value)
    return -1


def _codes(values: Sequence[Any], index: Mapping[str, int], count: int, what: str, key: str) -> NDArray[np.int64]:
    codes = [_code(value, index, count) for value in values]
    if -1 in codes:
        found = values[codes.index(-1)]
        raise BenchError(f"{key}: {what} of the truth: expected one of PVSG's {count} names, found {found!r}")
    return np.array(codes, np.int64)


def _name(value: Any, names: Sequence[str], what: str, key: str) -> str:
    return names[int(_codes([value], _CATEGORY if what == "category" else _PREDICATE, len(names), what, key)[0])]
