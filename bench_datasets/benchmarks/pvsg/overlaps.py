"""Overlap of every triplet with every relation of its classes: frame counts and volumes, exact integers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_datasets.benchmarks.pvsg.batch import Prediction, Truth
from bench_datasets.benchmarks.pvsg.spans import FARTHEST, Spans, cumulative
from bench_datasets.benchmarks.pvsg.tubes import Overlaps, Tubes

Ints = NDArray[np.int64]


class Twins:
    """Truth and predicted tubes of one class that meet somewhere, frame by frame.

    Args:
        truth: of the video.
        prediction: of the video.
        overlaps: what truth tubes (left) and predicted ones (right) share.

    Attributes:
        row: `(o, p) int64`, the row of a pair in the arrays below; their last row, all 0, where the two never meet or
            are of different classes.
        good: `(u + 1, frames) bool`, frames where the IoU of the two masks is at least .5.
        shared: `(u + 1, frames + 1) int64`, shared pixels, summed over the frames before each.
        pairs: `(u, 2) int64`, truth and predicted tube of each row.
    """

    def __init__(self, truth: Truth, prediction: Prediction, overlaps: Overlaps) -> None:
        left, right = truth.tubes, prediction.tubes
        a, b = left.tubes[overlaps.left], right.tubes[overlaps.right]
        same = truth.categories[a] == prediction.categories[b]
        code, place = np.unique(a[same] * max(right.count, 1) + b[same], return_inverse=True)
        frame, shared = overlaps.frames[same], overlaps.shared[same]
        area = left.masks.areas()[overlaps.left[same]] + right.masks.areas()[overlaps.right[same]]
        self.row = np.full((left.count, right.count), len(code), np.int64)
        self.row.ravel()[code] = np.arange(len(code))
        self.good = np.zeros((len(code) + 1, truth.frames), np.bool_)
        self.good[place, frame] = 2 * shared >= area - shared
        pixels = np.zeros((len(code) + 1, truth.frames), np.int64)
        pixels[place, frame] = shared
        self.shared = cumulative(pixels)
        self.pairs = np.stack(np.divmod(code, max(right.count, 1)), axis=1)


class Relations(NamedTuple):
    """The relations of one video, independent of the triplets; each `(r,) int64`.

    Attributes:
        visible: frames of the spans where both truth masks are visible.
        subject_area: pixels of the subject over the spans.
        object_area: pixels of the object over the spans.
        best: the most of the visible frames in which one pair of predicted tubes of the right classes has IoU .5 with
            both masks.
    """

    visible: Ints
    subject_area: Ints
    object_area: Ints
    best: Ints


class Pairs(NamedTuple):
    """Triplets beside relations whose subject and object are of their classes; each `(n,)`.

    Attributes:
        relation: index of the relation.
        rank: the triplet's rank in the video, from 0.
        class_rank: its rank among the triplets whose subject is of that class.
        same_predicate: whether the predicates agree too.
        frames: visible frames hit within the triplet's spans.
        timeless: visible frames hit, its spans aside.
        subject_shared: pixels that the subjects share over the frames in both spans.
        subject_area: pixels of the predicted subject over the triplet's spans.
        object_shared: pixels that the objects share over the frames in both spans.
        object_area: pixels of the predicted object over the triplet's spans.
    """

    relation: Ints
    rank: Ints
    class_rank: Ints
    same_predicate: NDArray[np.bool_]
    frames: Ints
    timeless: Ints
    subject_shared: Ints
    subject_area: Ints
    object_shared: Ints
    object_area: Ints


def measure(truth: Truth, prediction: Prediction, twins: Twins) -> tuple[Relations, Pairs]:
    """Hold every triplet against every relation of its classes.

    Masks of the prediction outside the truth's frames meet nothing, but they are part of its volume: their pixels
    count in `subject_area` and `object_area` where the triplet's spans reach them.
    """
    areas = truth.tubes.areas_by_frame(truth.frames)
    summed = cumulative(areas)
    subject_category, object_category = prediction.subject_categories(), prediction.object_categories()
    volumes = [
        span_areas(prediction.tubes, tube, prediction.spans) for tube in (prediction.subjects, prediction.objects)
    ]
    class_rank = ranks_within(subject_category)
    members = {c: np.flatnonzero(prediction.categories == c) for c in np.unique(prediction.categories).tolist()}
    none = np.zeros(0, np.int64)
    relations = np.zeros((4, len(truth.subjects)), np.int64)
    found: list[tuple[NDArray[np.int64] | NDArray[np.bool_], ...]] = []
    for r, (s, o) in enumerate(zip(truth.subjects.tolist(), truth.objects.tolist(), strict=True)):
        if s < 0 or o < 0:
            continue
        ranges = truth.spans.ranges(r)
        frames = np.flatnonzero((areas[s] > 0) & (areas[o] > 0) & truth.spans.mask(r, truth.frames))
        relations[:3, r] = len(frames), *(sum(int(summed[x, b] - summed[x, a]) for a, b in ranges) for x in (s, o))
        a = twins.row[s, members.get(int(truth.categories[s]), none)]
        b = twins.row[o, members.get(int(truth.categories[o]), none)]
        if not len(a) or not len(b) or not len(frames):
            joint = np.zeros((len(a), len(b)))
        else:
            # Counts of frames, so exact in float32, which is multiplied fastest.
            joint = twins.good[a][:, frames].astype(np.float32) @ twins.good[b][:, frames].T.astype(np.float32)
        relations[3, r] = int(joint.max(initial=0))
        rank = np.flatnonzero((subject_category == truth.categories[s]) & (object_category == truth.categories[o]))
        if not len(rank):
            continue
        spans = prediction.spans.take(rank)
        left, right = twins.row[s, prediction.subjects[rank]], twins.row[o, prediction.objects[rank]]
        hit, timeless = _frames_hit(twins, left, right, frames, spans)
        found.append((
            np.full(len(rank), r), rank, class_rank[rank], prediction.predicates[rank] == truth.predicates[r],
            hit, timeless,
            spans.sums(twins.shared, left, ranges), volumes[0][rank],
            spans.sums(twins.shared, right, ranges), volumes[1][rank],
        ))  # fmt: skip
    columns = [np.concatenate(items) for items in zip(*found, strict=True)] if found else [none] * len(Pairs._fields)
    columns[3] = columns[3].astype(np.bool_)
    return Relations(*relations), Pairs(*columns)


def _frames_hit(twins: Twins, left: Ints, right: Ints, frames: Ints, spans: Spans) -> tuple[Ints, Ints]:
    """Per triplet: of `frames`, those where both its tubes hit, within its spans and in all."""
    code, place = np.unique(left * len(twins.good) + right, return_inverse=True)
    both = twins.good[code // len(twins.good)][:, frames] & twins.good[code % len(twins.good)][:, frames]
    summed = cumulative(both.astype(np.int64))
    within = Spans(np.searchsorted(frames, spans.first), np.searchsorted(frames, spans.stop), spans.offsets)
    return within.sums(summed, place), summed[place, -1]


def ranks_within(groups: Ints) -> Ints:
    """`(t,) int64`, how many earlier items are of each item's group.

    Example:
        >>> ranks_within(np.array([7, 7, 3, 7]))
        array([0, 1, 0, 2])
    """
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    first = np.searchsorted(ordered, ordered, side="left")
    result = np.empty(len(groups), np.int64)
    result[order] = np.arange(len(groups)) - first
    return result


def span_areas(tubes: Tubes, tube: Ints, spans: Spans) -> Ints:
    """`(t,) int64`, pixels of each triplet's tube over its spans, be they within the video or not; 0 for tube -1."""
    wide = 4 * FARTHEST
    key = tubes.tubes * wide + np.clip(tubes.frames, -FARTHEST, FARTHEST) + FARTHEST
    order = np.argsort(key)
    summed = np.concatenate([[0], np.cumsum(tubes.masks.areas()[order])])
    base = np.repeat(tube, np.diff(spans.offsets)) * wide + FARTHEST
    first, stop = (np.searchsorted(key[order], base + edge) for edge in (spans.first, spans.stop))
    values = np.where(base >= FARTHEST, summed[stop] - summed[first], 0)
    total = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(total[spans.offsets[1:]] - total[spans.offsets[:-1]])
