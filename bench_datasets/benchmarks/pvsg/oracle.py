"""Oracles: the ground truth replaces one of the two stages, to show the loss of the other one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench_datasets.benchmarks.pvsg.batch import Prediction, Truth
from bench_datasets.benchmarks.pvsg.overlaps import Twins
from bench_datasets.benchmarks.pvsg.tubes import Overlaps, frame_overlaps


def with_oracle(
    oracle: str | None, truth: Truth, prediction: Prediction, overlaps: Overlaps
) -> tuple[Prediction, Overlaps]:
    """The prediction as it is to be scored, and what truth tubes share with its tubes.

    Args:
        oracle: `tubes`: the truth's tubes with the predicted relations; a triplet's tubes become the truth objects
            they share the most pixels with, of whatever class (of equals the first; one that meets none is not there).
            `relations`: the predicted tubes with the truth's relations; each gives a triplet of its predicate and
            spans, of equal score, between the tubes of the right classes that hit both masks in the most visible frames
            (of equals the first; a relation that no such pair hits gives none). `None`: the prediction itself.
        truth: of the video.
        prediction: of the video.
        overlaps: what truth tubes (left) and predicted ones (right) share.
    """
    if oracle == "tubes":
        return _truth_tubes(truth, prediction, overlaps), frame_overlaps(truth.tubes, truth.tubes, truth.frames)
    if oracle == "relations":
        return _truth_relations(truth, prediction, Twins(truth, prediction, overlaps)), overlaps
    return prediction, overlaps


def _truth_tubes(truth: Truth, prediction: Prediction, overlaps: Overlaps) -> Prediction:
    shared = np.zeros((truth.tubes.count + 1, prediction.tubes.count), np.int64)
    pair = truth.tubes.tubes[overlaps.left], prediction.tubes.tubes[overlaps.right]
    np.add.at(shared, pair, overlaps.shared)
    best = np.where(shared.any(axis=0), shared.argmax(axis=0), -1)
    best = np.append(best, -1)
    return replace(
        prediction,
        tubes=truth.tubes,
        categories=truth.categories,
        subjects=best[prediction.subjects],
        objects=best[prediction.objects],
    )


def _truth_relations(truth: Truth, prediction: Prediction, twins: Twins) -> Prediction:
    visible = truth.tubes.areas_by_frame(truth.frames) > 0
    chosen: list[tuple[int, int, int]] = []
    for r, (s, o) in enumerate(zip(truth.subjects.tolist(), truth.objects.tolist(), strict=True)):
        frames = visible[s] & visible[o] & truth.spans.mask(r, truth.frames) if min(s, o) >= 0 else np.zeros(0, bool)
        if not frames.any():
            continue
        left, right = (twins.good[twins.row[x]][:, frames].astype(np.float32) for x in (s, o))
        joint = left @ right.T
        if joint.max(initial=0) > 0:
            a, b = np.unravel_index(int(joint.argmax()), joint.shape)
            chosen.append((r, int(a), int(b)))
    relation, subject, tube = np.array(chosen, np.int64).reshape(-1, 3).T
    return replace(
        prediction,
        subjects=subject,
        objects=tube,
        predicates=truth.predicates[relation],
        spans=truth.spans.take(relation),
        scores=np.ones(len(relation)),
        given=np.arange(len(relation)),
    )
