"""PVSG's numbers again, from their definitions, over dense arrays and with plain loops, without the package."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Dense = NDArray[Any]
STUFF = ("floor", "wall")


@dataclass
class Video:
    """A video: `labels` (frames, height, width) of object ids, predicted tubes as category and mask by frame."""

    labels: Dense
    objects: list[tuple[int, str]]
    relations: list[tuple[int, int, str, list[list[int]]]]
    tubes: list[tuple[str, dict[int, Dense]]] = field(default_factory=list)
    triplets: list[tuple[int, int, str, float, list[list[int]]]] = field(default_factory=list)

    def true(self, object_id: int, frame: int) -> Dense:
        return self.labels[frame] == object_id

    def predicted(self, tube: int, frame: int) -> Dense:
        return self.tubes[tube][1].get(frame, np.zeros(self.labels.shape[1:], bool)).astype(bool)

    @property
    def frames(self) -> int:
        return len(self.labels)

    def ranked(self) -> list[tuple[int, int, str, float, list[list[int]]]]:
        return sorted(self.triplets, key=lambda triplet: -triplet[3])


def inside(frame: int, spans: list[list[int]]) -> bool:
    return any(first <= frame <= last for first, last in spans)


def frame_overlap(video: Video, triplet: Any, relation: Any, *, timeless: bool = False) -> float:
    subject, obj, _, _, spans = triplet
    seen = hit = 0
    for f in range(video.frames):
        a, b = video.true(relation[0], f), video.true(relation[1], f)
        if not inside(f, relation[3]) or not a.any() or not b.any():
            continue
        seen += 1
        good = all(
            (true & found).sum() >= 0.5 * (true | found).sum()
            for true, found in ((a, video.predicted(subject, f)), (b, video.predicted(obj, f)))
        )
        hit += good and (timeless or inside(f, spans))
    return hit / seen if seen else 0.0


def volume_overlap(video: Video, triplet: Any, relation: Any) -> float:
    result = []
    for tube, object_id in zip(triplet[:2], relation[:2], strict=True):
        both = found = true = 0
        for f in range(video.frames):
            if inside(f, relation[3]):
                true += int(video.true(object_id, f).sum())
            if inside(f, relation[3]) and inside(f, triplet[4]):
                both += int((video.true(object_id, f) & video.predicted(tube, f)).sum())
        for f, mask in video.tubes[tube][1].items():
            if inside(f, triplet[4]):
                found += int(mask.sum())
        result.append(both / (found + true - both) if both else 0.0)
    return min(result)


def classes_agree(video: Video, triplet: Any, relation: Any) -> bool:
    category = dict(video.objects)
    return all(
        video.tubes[tube][0] == category[object_id] for tube, object_id in zip(triplet[:2], relation[:2], strict=True)
    )


def hits(
    video: Video, protocol: str, k: int, t: float, *, predicates: bool = True, timeless: bool = False
) -> list[int]:
    """For each relation how often it is counted."""
    category = dict(video.objects)
    ranked = video.ranked()
    counts = [0] * len(video.relations)
    overlap = volume_overlap if protocol == "volume" and not timeless else frame_overlap

    def able(triplet: Any, relation: Any) -> bool:
        return classes_agree(video, triplet, relation) and (not predicates or triplet[2] == relation[2])

    if protocol == "volume" and not timeless:
        for triplet in ranked[:k]:
            free = [r for r, n in enumerate(counts) if not n and able(triplet, video.relations[r])]
            values = [overlap(video, triplet, video.relations[r]) for r in free]
            if values and max(values) >= t:
                counts[free[values.index(max(values))]] = 1
        return counts
    for r, relation in enumerate(video.relations):
        own = ranked
        if protocol == "card":
            own = [triplet for triplet in ranked if video.tubes[triplet[0]][0] == category[relation[0]]]
        for triplet in own[:k]:
            if not able(triplet, relation):
                continue
            value = frame_overlap(video, triplet, relation, timeless=timeless)
            if protocol == "weak_official":
                counts[r] += value >= 0.1
                if value >= 0.5:
                    break
            else:
                counts[r] = max(counts[r], int(value >= t))
    return counts


def recall(videos: list[Video], protocol: str, k: int, t: float, **how: Any) -> tuple[float, float]:
    """R and mR."""
    found: dict[str, list[int]] = {}
    for video in videos:
        for relation, count in zip(video.relations, hits(video, protocol, k, t, **how), strict=True):
            found.setdefault(relation[2], []).append(count)
    every = [count for counts in found.values() for count in counts]
    if not every:
        return math.nan, math.nan
    return sum(every) / len(every), sum(sum(c) / len(c) for c in found.values()) / len(found)


def losses(videos: list[Video], protocol: str, k: int, t: float) -> tuple[float, float]:
    first = second = total = 0
    for video in videos:
        for relation, count in zip(video.relations, hits(video, protocol, k, t), strict=True):
            total += 1
            if count:
                continue
            pairs = itertools.product(range(len(video.tubes)), repeat=2)
            best = max(
                (
                    frame_overlap(video, (a, b, "", 0, []), relation, timeless=True)
                    for a, b in pairs
                    if classes_agree(video, (a, b), relation)
                ),
                default=0.0,
            )
            first, second = first + (best < t), second + (best >= t)
    return (first / total, second / total) if total else (math.nan, math.nan)


def tube_recall(videos: list[Video], t: float) -> float:
    found, total = 0, 0
    for video in videos:
        for object_id, category in video.objects:
            if not (video.labels == object_id).any():
                continue
            total += 1
            best = 0.0
            for tube, (name, masks) in enumerate(video.tubes):
                both = sum(
                    int((video.true(object_id, f) & video.predicted(tube, f)).sum()) for f in range(video.frames)
                )
                area = sum(int(mask.sum()) for mask in masks.values()) + int((video.labels == object_id).sum())
                if name == category and area:
                    best = max(best, both / (area - both))
            found += best >= t
    return found / total if total else math.nan


def painted(video: Video) -> Dense:
    """Predicted tube + 1 of each pixel; the first tube that has it."""
    result = np.zeros(video.labels.shape, int)
    for tube in reversed(range(len(video.tubes))):
        for f in range(video.frames):
            result[f][video.predicted(tube, f)] = tube + 1
    return result


def vpq(videos: list[Video], window: int) -> float:
    tp: dict[str, float] = {}
    iou_sum: dict[str, float] = {}
    wrong: dict[str, float] = {}
    for video in videos:
        paint = painted(video)
        for start in range(video.frames - window + 1):
            true, found = video.labels[start : start + window], paint[start : start + window]
            void = ~np.isin(true, [object_id for object_id, _ in video.objects])
            matched_true, matched_found = set(), set()
            for (object_id, category), tube in itertools.product(video.objects, range(len(video.tubes))):
                a, b = true == object_id, (found == tube + 1) & ~void
                if video.tubes[tube][0] != category or not (a & b).any():
                    continue
                iou = (a & b).sum() / (a | b).sum()
                if iou > 0.5:
                    tp[category] = tp.get(category, 0) + 1
                    iou_sum[category] = iou_sum.get(category, 0) + iou
                    matched_true.add(object_id)
                    matched_found.add(tube)
            for object_id, category in video.objects:
                if (true == object_id).any() and object_id not in matched_true:
                    wrong[category] = wrong.get(category, 0) + 0.5
            for tube, (category, _) in enumerate(video.tubes):
                b = found == tube + 1
                if b.any() and tube not in matched_found and (b & void).sum() <= 0.5 * b.sum():
                    wrong[category] = wrong.get(category, 0) + 0.5
    classes = set(tp) | set(wrong)
    if not classes:
        return math.nan
    return sum(iou_sum.get(c, 0) / (tp.get(c, 0) + wrong.get(c, 0)) for c in classes) / len(classes)


def stq(videos: list[Video]) -> tuple[float, float]:
    """AQ and SQ."""
    tracks, gain = 0, 0.0
    classes = sorted({c for video in videos for _, c in [*video.objects, *((0, n) for n, _ in video.tubes)]})
    confusion = {c: [0, 0] for c in classes}
    for video in videos:
        known = np.isin(video.labels, [object_id for object_id, _ in video.objects])
        paint = np.where(known, painted(video), 0)
        for object_id, category in video.objects:
            a = video.labels == object_id
            if category in STUFF or not a.any():
                continue
            tracks += 1
            for tube, (name, _) in enumerate(video.tubes):
                b = paint == tube + 1
                tpa = int((a & b).sum())
                if name not in STUFF and tpa:
                    gain += tpa * (tpa / int((a | b).sum())) / int(a.sum())
        for category in classes:
            a = np.isin(video.labels, [object_id for object_id, name in video.objects if name == category]) & known
            b = np.isin(paint, [tube + 1 for tube, (name, _) in enumerate(video.tubes) if name == category])
            confusion[category][0] += int((a & b).sum())
            confusion[category][1] += int((a | b).sum())
    ious = [both / either for both, either in confusion.values() if either]
    return (gain / tracks if tracks else math.nan), (sum(ious) / len(ious) if ious else math.nan)


def stq_step(videos: list[Video]) -> tuple[float, float]:
    """AQ and SQ as the STEP authors' code counts: one confusion matrix with a row and a column for void, id maps.

    Classes are numbered, void is the last. Rows of void are left out of the matrix, its column is not.
    """
    names = sorted({c for video in videos for _, c in [*video.objects, *((0, n) for n, _ in video.tubes)]})
    void = len(names)
    matrix = np.zeros((void + 1, void + 1), np.int64)
    gain, tracks = 0.0, 0
    for video in videos:
        paint = painted(video)
        kind = {object_id: names.index(name) for object_id, name in video.objects}
        true = np.vectorize(lambda label, kind=kind: kind.get(int(label), void))(video.labels)
        made = np.array([void, *(names.index(name) for name, _ in video.tubes)])[paint]
        np.add.at(matrix, (true.ravel(), made.ravel()), 1)
        things = [k for k, name in enumerate(names) if name not in STUFF]
        left, right = np.isin(true, things), np.isin(made, things)
        sizes = {label: int((left & (video.labels == label)).sum()) for label in np.unique(video.labels[left])}
        claimed = {tube: int((right & (paint == tube)).sum()) for tube in np.unique(paint[right])}
        tracks += len(sizes)
        for label, size in sizes.items():
            for tube, area in claimed.items():
                tpa = int(((video.labels == label) & (paint == tube) & left & right).sum())
                gain += tpa * tpa / (size + area - tpa) / size
    matrix[void] = 0
    diagonal = matrix.diagonal()
    union = matrix.sum(axis=0) + matrix.sum(axis=1) - diagonal
    some = union > 0
    sq = float((diagonal[some] / union[some]).mean()) if some.any() else math.nan
    return (gain / tracks if tracks else math.nan), sq
