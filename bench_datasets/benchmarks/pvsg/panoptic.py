"""Sums for VPQ and STQ, video by video: one label per pixel, without the ground truth's void.

Sources: VPQ from Kim and others, Video Panoptic Segmentation (CVPR 2020); STQ from Weber and others, STEP (NeurIPS 2021
Datasets and Benchmarks). Void is every pixel in no truth mask.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_datasets.benchmarks.pvsg.batch import Prediction, Truth
from bench_datasets.benchmarks.pvsg.protocol import STEP, VOID_IGNORED
from bench_datasets.benchmarks.pvsg.spans import cumulative
from bench_datasets.benchmarks.pvsg.tubes import Overlaps, Tubes, frame_overlaps
from bench_datasets.benchmarks.pvsg.vocabulary import THINGS
from bench_datasets.masks import Decoded, MaskColumn, union_overlaps
from bench_datasets.masks.ragged import parts as slices
from bench_datasets.masks.rle import Runs

Ints = NDArray[np.int64]

WINDOWS = (1, 2, 4, 6)
"""Frames in VPQ's windows; they move on frame by frame."""

CHUNK_RUNS = 1 << 19
"""Runs of masks that are told apart at a time."""


MOST_BOXES = 256
"""Masks of a frame whose boxes are compared pair by pair; more of them go without that."""


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
        track_area: `(n,) int64`, pixels of the predicted tube outside void; those on void too under `step`.
        category: `(c,) int64`, classes that occur outside void, index into `CATEGORIES`; -1 for void under `step`.
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
    """Assign one label to every pixel and measure the remaining masks.

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
    sides, lost = [], []
    for tubes, wanted, areas in ((left, np.ones(left.count, np.bool_), true), (right, known, predicted)):
        side = tubes.select((tubes.frames >= 0) & (tubes.frames < count) & wanted[tubes.tubes])
        part = lost_parts(side, count)
        areas[part.tubes, part.frames] -= part.masks.areas()
        sides.append(side)
        lost.append(part)
    # What is left of two masks shares what they share, less what the lost part of either shares with the other.
    found = [_labels(Overlaps(*(v[known[right.tubes[overlaps.right]]] for v in overlaps)), left, right, 1)]
    for a, b, sign in ((lost[0], sides[1], -1), (sides[0], lost[1], -1), (lost[0], lost[1], 1)):
        if len(a.frames) and len(b.frames):
            found.append(_labels(frame_overlaps(a, b, count), a, b, sign))
    frame, obj, tube, pixels = (np.concatenate(items) for items in zip(*found, strict=True))
    code, place = np.unique(obj * max(right.count, 1) + tube, return_inverse=True)
    shared = np.zeros((len(code), count), np.int64)
    np.add.at(shared, (place, frame), pixels)
    meet = shared.any(axis=1)
    shared, pairs = shared[meet], np.stack(np.divmod(code[meet], max(right.count, 1)), axis=1)
    covered = np.zeros_like(predicted)
    np.add.at(covered, pairs[:, 1], shared)
    return Frames(pairs, shared, true, predicted, covered)


def _labels(overlaps: Overlaps, left: Tubes, right: Tubes, sign: int) -> tuple[Ints, Ints, Ints, Ints]:
    return overlaps.frames, left.tubes[overlaps.left], right.tubes[overlaps.right], sign * overlaps.shared


def lost_parts(tubes: Tubes, count: int) -> Tubes:
    """The part of each mask that is lost when every pixel belongs to the first tube that covers it.

    Args:
        tubes: of a video, whose masks are of one size and within its frames.
        count: frames of the video.

    Example:
        >>> both = Tubes(MaskColumn.from_dense([[[1, 1, 0]], [[0, 1, 1]]]), np.array([0, 0]), np.array([0, 1]), 2)
        >>> part = lost_parts(both, 1)
        >>> part.tubes, part.masks.decode(0).astype(int)
        (array([1]), array([[0, 1, 0]]))
    """
    tubes = tubes.select(_meet_boxes(tubes))
    nothing = tubes.masks.part(0, 0), tubes.frames[:0]
    union = union_overlaps(count, (tubes.masks, tubes.frames), nothing)[1]
    total = np.zeros(count, np.int64)
    np.add.at(total, tubes.frames, tubes.masks.areas())
    tubes = tubes.select((total > union)[tubes.frames])
    first = np.searchsorted(tubes.frames, np.arange(count + 1))
    runs = np.concatenate([[0], np.cumsum(tubes.masks.decoded.ends.number)])[first]
    found: list[tuple[Ints, Ints, Ints]] = [(first[:0], first[:0], first[:0])]
    for begin, end in slices(np.diff(runs) / CHUNK_RUNS):
        a, b = int(first[begin]), int(first[end])
        part = tubes.masks.part(a, b)
        starts, ends, offsets = part.decoded.intervals
        own = np.repeat(np.arange(b - a), np.diff(offsets))
        base = tubes.frames[a:b] * part.pixels
        low, high, label = _lost(starts + base[own], ends + base[own], own)
        found.append((low - base[label], high - base[label], label + a))
    low, high, label = (np.concatenate(items) for items in zip(*found, strict=True))
    masks, place = np.unique(label, return_inverse=True)
    pixels = tubes.masks.pixels[masks]
    lengths = _runs(low, high, place, pixels)
    column = MaskColumn.from_runs(lengths, tubes.masks.heights[masks], tubes.masks.widths[masks])
    none = np.zeros(len(masks), np.int8)
    column.remember(Decoded(none, none.astype(np.bool_), given_runs=lengths))
    return Tubes(column, tubes.frames[masks], tubes.tubes[masks], tubes.count)


def _meet_boxes(tubes: Tubes) -> NDArray[np.bool_]:
    """`(m,) bool`, masks whose box meets that of another mask of their frame; all where frames hold very many masks."""
    frames, count = tubes.frames, len(tubes.frames)
    most = int(np.bincount(frames).max(initial=0)) if count else 0
    if most > MOST_BOXES:
        return np.ones(count, np.bool_)
    x, y, width, height = tubes.masks.boxes().T
    right, bottom = x + width, y + height
    found = np.zeros(count, np.bool_)
    for step in range(1, most):
        a, b = slice(0, count - step), slice(step, count)
        meet = (frames[a] == frames[b]) & (x[a] < right[b]) & (x[b] < right[a])
        meet &= (y[a] < bottom[b]) & (y[b] < bottom[a])
        found[a] |= meet
        found[b] |= meet
    return found


def _lost(starts: Ints, ends: Ints, own: Ints) -> tuple[Ints, Ints, Ints]:
    """Of intervals of masks `own`, by mask and then place: the pieces that a lower mask has too, in the same order."""
    order = np.argsort(starts, kind="stable")
    low, high = starts[order], ends[order]
    meets = np.zeros(len(order) + 1, np.bool_)
    meets[1:-1] = low[1:] < np.maximum.accumulate(high)[:-1]
    involved = np.zeros(len(order), np.bool_)
    involved[order] = meets[:-1]
    # An interval that meets a later one meets the next one too.
    involved[order[:-1]] |= high[:-1] > low[1:]
    starts, ends, own = starts[involved], ends[involved], own[involved]
    bounds = np.sort(np.concatenate([starts, ends]))
    low, high = np.searchsorted(bounds, starts, side="right") - 1, np.searchsorted(bounds, ends)
    sizes = high - low
    begin = np.concatenate([[0], np.cumsum(sizes)])
    piece = np.arange(int(begin[-1])) + np.repeat(low - begin[:-1], sizes)
    label = np.repeat(own, sizes)
    claim = np.full(len(bounds), np.iinfo(np.int64).max)
    np.minimum.at(claim, piece, label)
    gone = claim[piece] < label
    piece, label = piece[gone], label[gone]
    low, high = bounds[piece], bounds[piece + 1]
    some = low < high
    low, high, label = low[some], high[some], label[some]
    apart = np.ones(len(label) + 1, np.bool_)
    apart[1:-1] = (label[1:] != label[:-1]) | (low[1:] != high[:-1])
    return low[apart[:-1]], high[apart[1:]], label[apart[:-1]]


def _runs(low: Ints, high: Ints, label: Ints, pixels: Ints) -> Runs:
    """Runs, background first, of masks given by their foreground intervals, each with one at least."""
    count = np.bincount(label, minlength=len(pixels))
    begin = np.concatenate([[0], np.cumsum(count)])
    before = np.concatenate([[0], high])[:-1]
    before[begin[:-1]] = 0
    tail = pixels - high[begin[1:] - 1]
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


def quality(truth: Truth, prediction: Prediction, frames: Frames, convention: str = VOID_IGNORED) -> Quality:
    """Counts for STQ: tracks are countable tubes of any class, classes are pixels of any tube.

    Args:
        truth: of the video.
        prediction: of the video.
        frames: both sides with one label per pixel.
        convention: `void_ignored`, or `step`: a track's pixels on void count too, and void is a class where labelled
            pixels of the ground truth are predicted as void.
    """
    a, b = frames.pairs.T
    shared, area, true = frames.shared.sum(axis=1), frames.covered.sum(axis=1), frames.true.sum(axis=1)
    claimed = frames.predicted.sum(axis=1) if convention == STEP else area
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
    categories, counts = categories[some], [values[some] for values in sums]
    unlabelled = int(true.sum() - area.sum())  # labelled pixels of the truth that no predicted tube covers
    if convention == STEP and unlabelled > 0:
        categories = np.append(categories, -1)
        counts = [np.append(values, pixels) for values, pixels in zip(counts, (0, unlabelled, 0), strict=True)]
    return Quality(a[tracks], b[tracks], shared[tracks], claimed[b[tracks]], categories, *counts)
