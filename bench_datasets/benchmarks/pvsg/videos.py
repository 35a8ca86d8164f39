"""Videos behind PVSG's relations: the key frames, the masks of truth and best triplet in them, the tubes over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_datasets.benchmarks.pvsg import report_timeline
from bench_datasets.benchmarks.pvsg.batch import Prediction, Truth, read_prediction, read_rows, read_truth
from bench_datasets.benchmarks.pvsg.frames import frame_images
from bench_datasets.benchmarks.pvsg.relation_matching import Hits
from bench_datasets.benchmarks.pvsg.source_files import ImageFolder, find_layout
from bench_datasets.benchmarks.pvsg.tubes import Tubes
from bench_datasets.data.source import Access
from bench_datasets.faults import BenchError
from bench_datasets.masks import MaskColumn, pair_iou
from bench_datasets.report.inputs import Material
from bench_datasets.report.layers import Frame, base, dense, difference_layer, masks_layer
from bench_datasets.report.page_data import Panel
from bench_datasets.report.runs import Run

THRESHOLD = 0.5


class Answer(NamedTuple):
    """A run's prediction for a relation.

    Attributes:
        rank: of its best triplet; -1 where none of its classes and predicate overlaps.
        overlap: of that triplet.
        hit: whether it hits at overlap .5.
        subject: the predicted tube, -1 for none.
        object: likewise.
    """

    rank: int
    overlap: float
    hit: bool
    subject: int
    object: int


class Videos:
    """Some videos with the predictions of all runs.

    Args:
        runs: of the report.
        material: truth and predictions.
        keys: the videos.
    """

    def __init__(self, runs: Sequence[Run], material: Material, keys: Sequence[str]) -> None:
        self.runs = runs
        self.truth: dict[str, Truth] = {}
        self.answers: list[dict[str, Prediction]] = []
        self.sources: dict[str, tuple[str, str | None]] = {}
        for i in range(len(runs)):
            found: dict[str, Prediction] = {}
            for batch in material.batches(i, set(keys)):
                for row in read_rows(batch):
                    self.truth.setdefault(row.key, read_truth(row))
                    self.sources.setdefault(row.key, (str(row.values["source"]), None))
                    found[row.key] = read_prediction(row)[0]
            self.answers.append(found)
        places = {key: k for k, key in enumerate(runs[0].table["key"].to_pylist())}
        tables = [{key: run.table.slice(places[key], 1) for key in keys} for run in runs]
        self.hits = [
            {key: Hits.read(table, run.protocol) for key, table in own.items()}
            for run, own in zip(runs, tables, strict=True)
        ]
        self.scores = [{key: table.to_pylist()[0] for key, table in own.items()} for own in tables]
        self.images = _Frames(material)

    def relation(self, key: str, r: int, never: int) -> tuple[list[Panel], str]:
        """Panels of the key frames, and the drawing over time.

        Args:
            key: the video.
            r: the relation's place in it.
            never: the rank that stands for no hit.
        """
        truth = self.truth[key]
        ends = int(truth.subjects[r]), int(truth.objects[r])
        found = [self._answer(i, key, r, never) for i in range(len(self.runs))]
        fits = [
            [
                _fit(truth.tubes, end, self.answers[i][key].tubes, tube)
                for end, tube in zip(ends, (answer.subject, answer.object), strict=True)
            ]
            for i, answer in enumerate(found)
        ]
        frames = self._frames(truth, r, ends)
        panels = [
            self._panel(key, ends, found, frame, self._measured(key, ends, found, fits, frame)) for frame in frames
        ]
        spans = truth.spans.ranges(r)
        tracks = []
        for i, (run, answer) in enumerate(zip(self.runs, found, strict=True)):
            prediction = self.answers[i][key]
            own = prediction.spans.ranges(answer.rank) if answer.rank >= 0 else []
            tracks.append(report_timeline.Track(i, run.name, own, answer.hit, _words(answer), *fits[i]))
        drawn = report_timeline.draw(f"{key}, relation {r}", truth.frames, spans, tracks)
        return panels, str(report_timeline.LEGEND + drawn)

    def _answer(self, run: int, key: str, r: int, never: int) -> Answer:
        """The best triplet of a relation's classes and predicate; without one, the tubes that fit best."""
        hits, prediction, truth = self.hits[run][key], self.answers[run][key], self.truth[key]
        overlap = hits.volume if hits.protocol.overlap == "volume" else hits.recall
        pairs = np.flatnonzero((hits.relation == r) & hits.same & (overlap > 0))
        hit = bool(hits.first(THRESHOLD)[r] != never)
        if len(pairs):
            best = pairs[np.lexsort((hits.rank[pairs], -overlap[pairs]))[0]]
            rank = int(hits.triplet[best])
            return Answer(
                rank, float(overlap[best]), hit, int(prediction.subjects[rank]), int(prediction.objects[rank])
            )
        tubes = [_closest(truth, int(end), prediction) for end in (truth.subjects[r], truth.objects[r])]
        return Answer(-1, 0.0, hit, *tubes)

    def _frames(self, truth: Truth, r: int, ends: tuple[int, int]) -> list[int]:
        """The middle, first and last frame of the spans in which subject or object is seen."""
        seen = np.zeros(truth.frames, np.bool_)
        for end in ends:
            own = truth.tubes.frames[truth.tubes.tubes == end] if end >= 0 else np.zeros(0, np.int64)
            seen[own[own < truth.frames]] = True
        inside = np.flatnonzero(seen & truth.spans.mask(r, truth.frames))
        if not len(inside):
            inside = np.flatnonzero(seen) if seen.any() else np.array([0])
        wanted = [int(inside[0]), int(inside[len(inside) // 2]), int(inside[-1])]
        return sorted(set(wanted))

    def _measured(
        self,
        key: str,
        ends: tuple[int, int],
        found: Sequence[Answer],
        fits: Sequence[list[dict[int, float]]],
        frame: int,
    ) -> list[str]:
        """Each run's IoUs with subject and object in a frame, and by volume, over all frames, as in the scores."""
        lines = []
        for i, answer in enumerate(found):
            said = []
            tubes = (answer.subject, answer.object)
            for name, end, tube, fit in zip(("subject", "object"), ends, tubes, fits[i], strict=True):
                if end >= 0 and tube >= 0:
                    here = f"{fit[frame]:.3f}" if frame in fit else "not seen"
                    said.append(f"{name} {here} ({_volume(self.scores[i][key], end, tube):.3f})")
            lines.append(f"\nIoU in this frame (in all frames): {', '.join(said)}" if said else "")
        return lines

    def _panel(
        self, key: str, ends: tuple[int, int], found: Sequence[Answer], frame: int, measured: Sequence[str]
    ) -> Panel:
        truth = self.truth[key]
        size = (truth.height or 240, truth.width or 320)
        at = Frame.fit(size)
        true = dense(_masks(truth.tubes, ends, frame), at)
        layers, facts = [], []
        for i, answer in enumerate(found):
            given = dense(_masks(self.answers[i][key].tubes, (answer.subject, answer.object), frame), at)
            layers.append((masks_layer(given, at, predicted=True), difference_layer(true, given, at)))
            facts.append(_words(answer) + measured[i])
        picture = base(self.images.get(key, self.sources[key][0], frame), at)
        layer = masks_layer(true, at, predicted=False)
        return Panel(f"frame {frame}", (at.height, at.width), picture, layer, layers, facts)


def _words(answer: Answer) -> str:
    if answer.rank >= 0:
        return (
            f"best triplet: rank {answer.rank + 1}, overlap {answer.overlap:.3f}, {'hit' if answer.hit else 'no hit'}"
        )
    found = (answer.subject >= 0) + (answer.object >= 0)
    tubes = (
        "and no tubes of its classes do",
        "the closest tube of its classes is shown",
        "the closest tubes are shown",
    )
    return f"no triplet overlaps, {tubes[found]}"


def _masks(tubes: Tubes, wanted: Sequence[int], frame: int) -> MaskColumn:
    """The masks of some tubes in one frame."""
    return tubes.masks.take(
        np.flatnonzero((tubes.frames == frame) & np.isin(tubes.tubes, [w for w in wanted if w >= 0]))
    )


def _fit(left: Tubes, one: int, right: Tubes, other: int) -> dict[int, float]:
    """IoU of two tubes by frame, over the frames in which the first is seen."""
    if one < 0:
        return {}
    mine = np.flatnonzero(left.tubes == one)
    found = dict.fromkeys(left.frames[mine].tolist(), 0.0)
    if other < 0:
        return found
    theirs = np.flatnonzero(right.tubes == other)
    _, a, b = np.intersect1d(left.frames[mine], right.frames[theirs], return_indices=True)
    iou: NDArray[np.float64] = pair_iou(left.masks.take(mine[a]), right.masks.take(theirs[b]))
    return found | dict(zip(left.frames[mine[a]].tolist(), iou.tolist(), strict=True))


def _volume(row: Mapping[str, Any], end: int, tube: int) -> float:
    """IoU of a truth object and a predicted tube of its class over all frames, from a score row's integers."""
    twins = zip(row["twin_object"], row["twin_tube"], row["twin_shared"], strict=True)
    shared = next((pixels for one, other, pixels in twins if (one, other) == (end, tube)), 0)
    union = row["object_area"][end] + row["tube_area"][tube] - shared
    return shared / union if union else 0.0


def _closest(truth: Truth, end: int, prediction: Prediction) -> int:
    """The predicted tube of an object's class that fits it best, -1 for none that meets it."""
    best, chosen = 0.0, -1
    if end < 0:
        return chosen
    for tube in np.flatnonzero(prediction.categories == truth.categories[end]).tolist():
        total = sum(_fit(truth.tubes, end, prediction.tubes, tube).values())
        if total > best:
            best, chosen = total, tube
    return chosen


class _Frames:
    """Images of frames, where they are available."""

    def __init__(self, material: Material) -> None:
        self.videos = dict(zip(material.keys, material.truth["video"], strict=True))
        self.access = Access()
        self.layout: Any = None
        if material.data is None or not material.images:
            return
        root = material.data
        if root == "sample":
            from bench_datasets.samples import pvsg_sample_dir

            root = pvsg_sample_dir()
        try:
            self.layout = find_layout(root.rstrip("/"), self.access, "")
        except BenchError:  # a prepared copy of the truth has no images beside it
            self.layout = None

    def get(self, key: str, source: str, frame: int) -> Any:
        """A frame's image, or `None`."""
        if self.layout is None:
            return None
        try:
            folder = ImageFolder(self.layout, self.access, source, "frames", key)
            return next(iter(frame_images(folder, self.videos.get(key), self.access, [frame])))[1]
        except BenchError:  # the masks are shown on a plain ground
            return None
