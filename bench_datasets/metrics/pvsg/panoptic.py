"""What VPQ and STQ are made of, video by video: one label a pixel, the truth's void left out.

Sources: VPQ from Kim and others, Video Panoptic Segmentation (CVPR 2020); STQ from Weber and others, STEP (NeurIPS 2021
Datasets and Benchmarks). Void is every pixel in no truth mask.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_datasets.builders.pvsg_vocabulary import THINGS
from bench_datasets.masks import MaskColumn, union_overlaps
from bench_datasets.masks.varint import Runs
from bench_datasets.metrics.masklists import parts as slices
from bench_datasets.metrics.pvsg.rows import Prediction, Truth
from bench_datasets.metrics.pvsg.spans import cumulative
from bench_datasets.metrics.tubes import Overlaps, Tubes, frame_overlaps

Ints = NDArray[np.int64]

WINDOWS = (1, 2, 4, 6)
"""Frames in VPQ's windows; they move on frame by frame."""

CHUNK_INTERVALS = 1 << 20
"""Foreground intervals that are told apart at a time."""


class Windows(NamedTuple):
    """VPQ's counts, a line for each window length and class that occurs in it; each `(n,)`.

    Attributes:
        window: frames.
        category: index into `CATEGORIES`.
        iou: the true positives' IoUs, summed exactly and rounded once.
        tp: matched pairs.
        fp: predicted tubes without a match; those more than half void are left out.
        fn: truth tubes without a match.
    """

    window: Ints
    category: Ints
    iou: NDArray[np.float64]
    tp: Ints
    fp: Ints
    fn: Ints


class Quality(NamedTuple):
    """STQ's counts.

    Attributes:
        track_object: `(n,) int64`, pairs of countable tubes that meet: the truth object.
        track_tube: `(n,) int64`, the predicted tube.
        track_shared: `(n,) int64`, shared pixels.
        track_area: `(n,) int64`, pixels of the predicted tube outside void.
        category: `(c,) int64`, classes that occur outside void, index into `CATEGORIES`.
        shared: `(c,) int64`, pixels that bear the class in both.
        predicted: `(c,) int64`, pixels outside void that bear it in the prediction.
        true: `(c,) int64`, pixels that bear it in the truth.
    """

    track_object: Ints
    track_tube: Ints
    track_shared: Ints
    track_area: Ints
    category: Ints
    shared: Ints
    predicted: Ints
    true: Ints


class Frames(NamedTuple):
    """Both sides with one label a pixel.

    Attributes:
        pairs: `(u, 2) int64`, truth object and predicted tube that meet.
        shared: `(u, frames) int64`, pixels they share.
        true: `(o, frames) int64`, pixels of each object.
        predicted: `(p, frames) int64`, pixels of each tube, void included.
        covered: `(p, frames) int64`, pixels of each tube outside void.
    """

    pairs: Ints
    shared: Ints
    true: Ints
    predicted: Ints
    covered: Ints


def read_frames(truth: Truth, prediction: Prediction, overlaps: Overlaps) -> Frames:
    """Give every pixel one label and measure what is left.

    Where predicted tubes overlap, a pixel belongs to the first of them in the given order; tubes of an unknown category
    bear no label. (The truth comes from label maps and does not overlap; if it did, the same would hold.)

    Args:
        truth: of the video.
        prediction: of the video.
        overlaps: what truth tubes (left) and predicted ones (right) share.
    """
    left, right, count = truth.tubes, prediction.tubes, truth.frames
    known = prediction.categories >= 0
    true, predicted = left.areas_by_frame(count), right.areas_by_frame(count) * known[:, None]
    parts, kept = [], []
    for tubes, wanted, areas in ((left, np.ones(left.count, np.bool_), true), (right, known, predicted)):
        used = (tubes.frames >= 0) & (tubes.frames < count) & wanted[tubes.tubes]
        part, changed = take_apart(tubes.select(used), count)
        areas[part.tubes, part.frames] = part.masks.areas()
        used[used] = ~changed
        parts.append(part)
        kept.append(used)
    same = kept[0][overlaps.left] & kept[1][overlaps.right]
    found = [_labels(Overlaps(*(values[same] for values in overlaps)), left, right)]
    for a, b in ((left.select(kept[0]), parts[1]), (parts[0], right.select(kept[1])), parts):
        if len(a.frames) and len(b.frames):
            found.append(_labels(frame_overlaps(a, b, count), a, b))
    frame, obj, tube, pixels = (np.concatenate(items) for items in zip(*found, strict=True))
    code, place = np.unique(obj * max(right.count, 1) + tube, return_inverse=True)
    shared = np.zeros((len(code), count), np.int64)
    shared[place, frame] = pixels
    pairs = np.stack(np.divmod(code, max(right.count, 1)), axis=1)
    covered = np.zeros_like(predicted)
    np.add.at(covered, pairs[:, 1], shared)
    return Frames(pairs, shared, true, predicted, covered)


def _labels(overlaps: Overlaps, left: Tubes, right: Tubes) -> tuple[Ints, Ints, Ints, Ints]:
    return overlaps.frames, left.tubes[overlaps.left], right.tubes[overlaps.right], overlaps.shared


def take_apart(tubes: Tubes, count: int) -> tuple[Tubes, NDArray[np.bool_]]:
    """What is left of the masks that overlap an earlier tube's, when each pixel is left to the first tube that has it.

    Args:
        tubes: of a video, whose masks are of one size and within its frames.
        count: frames of the video.

    Returns:
        The masks that changed, and which ones of `tubes` these are, `(m,) bool`.

    Example:
        >>> both = Tubes(MaskColumn.from_dense([[[1, 1, 0]], [[0, 1, 1]]]), np.array([0, 0]), np.array([0, 1]), 2)
        >>> part, changed = take_apart(both, 1)
        >>> part.masks.areas(), changed
        (array([1]), array([False,  True]))
    """
    changed, involved = np.zeros(len(tubes.frames), np.bool_), np.zeros(len(tubes.frames), np.bool_)
    if _any_overlap(tubes, count):
        pairs = frame_overlaps(tubes, tubes, count)
        later = pairs.left < pairs.right
        changed[pairs.right[later]] = True
        involved[pairs.left[later]] = True
    involved |= changed
    group = tubes.select(involved)
    masks = group.masks
    starts, ends, offsets = masks.decoded.intervals
    first = np.searchsorted(group.frames, np.arange(count + 1))
    found: list[tuple[Ints, Ints, Ints]] = [(offsets[:0], offsets[:0], offsets[:0])]
    for begin, end in slices(np.diff(offsets[first]) / CHUNK_INTERVALS):
        a, b = int(first[begin]), int(first[end])
        own = np.repeat(np.arange(a, b), np.diff(offsets[a : b + 1]))
        base = group.frames[own] * (masks.pixels[own] + 1)  # a pixel between frames keeps their intervals apart
        part = slice(int(offsets[a]), int(offsets[b]))
        low, high, label = _first_claims(starts[part] + base, ends[part] + base, own)
        away = group.frames[label] * (masks.pixels[label] + 1)
        found.append((low - away, high - away, label))
    low, high, label = (np.concatenate(items) for items in zip(*found, strict=True))
    column = MaskColumn.from_runs(_runs(low, high, label, masks.pixels), masks.heights, masks.widths)
    return Tubes(column, group.frames, group.tubes, group.count).select(changed[involved]), changed


def _any_overlap(tubes: Tubes, count: int) -> bool:
    """Whether two masks of a frame share a pixel: whether their union is smaller than their sum."""
    nothing = tubes.masks.part(0, 0), tubes.frames[:0]
    union = union_overlaps(count, (tubes.masks, tubes.frames), nothing)[1]
    return bool(union.sum() < tubes.masks.areas().sum())


def _first_claims(starts: Ints, ends: Ints, own: Ints) -> tuple[Ints, Ints, Ints]:
    """Intervals of masks `own` cut so that each place is left to the lowest mask that has it; by mask, then place."""
    bounds = np.sort(np.concatenate([starts, ends]))
    bounds = bounds[np.concatenate([[True], bounds[1:] != bounds[:-1]])] if len(bounds) else bounds
    low, high = np.searchsorted(bounds, starts), np.searchsorted(bounds, ends)
    sizes = high - low
    begin = np.concatenate([[0], np.cumsum(sizes)])
    piece = np.arange(int(begin[-1])) + np.repeat(low - begin[:-1], sizes)
    nobody = np.iinfo(np.int64).max
    claim = np.full(len(bounds), nobody)
    np.minimum.at(claim, piece, np.repeat(own, sizes))
    kept = np.flatnonzero(claim != nobody)
    order = kept[np.argsort(claim[kept], kind="stable")]
    label, low, high = claim[order], bounds[order], bounds[order + 1]
    apart = np.ones(len(order) + 1, np.bool_)
    apart[1:-1] = (label[1:] != label[:-1]) | (low[1:] != high[:-1])
    first, last = np.flatnonzero(apart[:-1]), np.flatnonzero(apart[1:])
    return low[first], high[last], label[first]


def _runs(low: Ints, high: Ints, label: Ints, pixels: Ints) -> Runs:
    """Runs, background first, of masks given by their foreground intervals."""
    count = np.bincount(label, minlength=len(pixels))
    begin = np.concatenate([[0], np.cumsum(count)])
    before = np.concatenate([[0], high])[:-1]
    before[begin[:-1][count > 0]] = 0
    tail = pixels.copy()
    tail[count > 0] -= high[begin[1:][count > 0] - 1]
    sizes = 2 * count + (tail > 0)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    lengths = np.empty(int(offsets[-1]), np.int64)
    place = np.repeat(offsets[:-1] - 2 * begin[:-1], count) + 2 * np.arange(len(low))
    lengths[place], lengths[place + 1] = low - before, high - low
    lengths[offsets[1:][tail > 0] - 1] = tail[tail > 0]
    return Runs(lengths, offsets)


def windows(truth: Truth, prediction: Prediction, frames: Frames) -> Windows:
    """VPQ's counts in every window of `WINDOWS` frames that lies within the video."""
    same = truth.categories[frames.pairs[:, 0]] == prediction.categories[frames.pairs[:, 1]]
    a, b = frames.pairs[same].T
    of = truth.categories[a]
    sums = [cumulative(values) for values in (frames.shared[same], frames.true, frames.predicted, frames.covered)]
    lines: list[tuple[int, int, float, int, int, int]] = []
    for length in WINDOWS:
        if length > truth.frames:
            continue
        shared, true, predicted, covered = (values[:, length:] - values[:, :-length] for values in sums)
        union = true[a] + covered[b] - shared
        pair, window = np.nonzero(2 * shared > union)
        found, used = np.zeros(true.shape, np.bool_), np.zeros(predicted.shape, np.bool_)
        found[a[pair], window], used[b[pair], window] = True, True
        fn = ((true > 0) & ~found).sum(axis=1)
        fp = ((predicted > 0) & ~used & (2 * covered >= predicted)).sum(axis=1)
        iou = shared[pair, window] / union[pair, window]
        for category in np.unique(np.concatenate([truth.categories, prediction.categories])).tolist():
            hit = iou[of[pair] == category]
            counts = int(fp[prediction.categories == category].sum()), int(fn[truth.categories == category].sum())
            if category >= 0 and (len(hit) or any(counts)):
                lines.append((length, category, math.fsum(hit.tolist()), len(hit), *counts))
    table = np.array(lines, np.float64).reshape(-1, len(Windows._fields)).T
    whole = table.astype(np.int64)
    return Windows(whole[0], whole[1], table[2], whole[3], whole[4], whole[5])


def quality(truth: Truth, prediction: Prediction, frames: Frames) -> Quality:
    """STQ's counts: tracks are countable tubes whatever their classes, classes are pixels whatever their tubes."""
    a, b = frames.pairs.T
    shared, area, true = frames.shared.sum(axis=1), frames.covered.sum(axis=1), frames.true.sum(axis=1)
    tracks = truth.things[a] & (prediction.categories[b] < len(THINGS))
    same = truth.categories[a] == prediction.categories[b]
    categories = np.unique(np.concatenate([truth.categories, prediction.categories]))
    categories = categories[categories >= 0]
    sums = [
        np.array([values[of == category].sum() for category in categories], np.int64)
        for values, of in (
            (shared[same], truth.categories[a[same]]),
            (area, prediction.categories),
            (true, truth.categories),
        )
    ]
    some = (sums[1] > 0) | (sums[2] > 0)
    return Quality(
        a[tracks], b[tracks], shared[tracks], area[b[tracks]], categories[some], *(values[some] for values in sums)
    )
