"""The engine that is always there: pycocotools once an image, numpy for what works on the runs alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco

from bench_datasets.masks.column import MaskColumn
from bench_datasets.masks.decoded import Decoded
from bench_datasets.masks.engine import Engine, Offsets, Part, nms_order
from bench_datasets.masks.varint import decode_counts

PAIR_BYTES = 1 << 19
"""Bytes of counts that are read at a time where aligned masks are compared."""

NMS_BLOCK = 256
"""Candidates compared in one call: bounds the memory of a suppression to a block times what is kept."""


class PycocotoolsEngine:
    """See `Engine`."""

    name = "pycocotools"

    def decode(self, column: MaskColumn) -> Decoded:
        """By numpy, a cache-full of strings at a time."""
        runs, status, irregular = decode_counts(column.data, column.offsets, column.readable())
        column.blame(status)
        return Decoded(status, irregular, given_runs=runs)

    def pair_overlaps(self, a: MaskColumn, b: MaskColumn) -> tuple[Offsets, Offsets, Offsets]:
        """One call a pair, since aligned masks are of different images; a bounded number of bytes at a time."""
        shared, left, right = (np.zeros(len(a), np.int64) for _ in range(3))
        size = (a.offsets - a.offsets[0]) + (b.offsets - b.offsets[0])
        first = 0
        while first < len(a):
            last = max(first + 1, int(np.searchsorted(size, size[first] + PAIR_BYTES, side="right")) - 1)
            some = slice(first, last)
            p, q = a.part(first, last), b.part(first, last)
            left[some], right[some] = p.areas(), q.areas()
            share = [coco.iou([x], [y], [1])[0, 0] for x, y in zip(p.rles(), q.rles(), strict=True)]
            shared[some] = np.rint(np.nan_to_num(np.array(share)) * left[some])
            first = last
        return shared, left, right

    def group_intersections(
        self, a: MaskColumn, a_groups: Offsets, b: MaskColumn, b_groups: Offsets
    ) -> NDArray[np.int64]:
        """All pairs within each group, one call of pycocotools a group."""
        areas = a.areas()
        left, right = a.rles(), b.rles()
        parts = []
        bounds = zip(a_groups[:-1], a_groups[1:], b_groups[:-1], b_groups[1:], strict=True)
        for a0, a1, b0, b1 in bounds:
            if a1 > a0 and b1 > b0:
                parts.append(_intersections(left[a0:a1], right[b0:b1], areas[a0:a1]).ravel())
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def group_nms(self, column: MaskColumn, groups: Offsets, threshold: float) -> NDArray[np.bool_]:
        """Greedy suppression, a block of candidates against what is kept so far, largest first."""
        areas, rles = column.areas(), column.rles()
        keep = np.zeros(len(column), np.bool_)
        for begin, end in pairwise(groups.tolist()):
            order = begin + nms_order(areas[begin:end])
            kept: list[int] = []
            for at in range(0, len(order), NMS_BLOCK):
                block = order[at : at + NMS_BLOCK]
                others = np.concatenate([np.array(kept, np.int64), block])
                masks = [rles[i] for i in block]
                shared = _intersections(masks, [rles[i] for i in others], areas[block])
                union = areas[block][:, None] + areas[others] - shared
                over = np.divide(shared, union, out=np.zeros(shared.shape), where=union > 0) > threshold
                old = len(kept)
                alive = ~over[:, :old].any(axis=1)
                for k, i in enumerate(block):
                    if alive[k]:
                        kept.append(int(i))
                        alive &= ~over[:, old + k] | (np.arange(len(block)) <= k)
            keep[kept] = True
        return keep

    def union_overlaps(self, count: int, a: Part, b: Part) -> tuple[Offsets, Offsets, Offsets]:
        """By inclusion and exclusion from three unions."""
        left, right = _union_areas(count, a), _union_areas(count, b)
        return left + right - _union_areas(count, a, b), left, right

    def tube_intersections(
        self,
        a: MaskColumn,
        a_frames: Offsets,
        a_tubes: NDArray[np.int64],
        b: MaskColumn,
        b_frames: Offsets,
        b_tubes: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """One call of pycocotools a frame, added up by tube."""
        total = np.zeros((int(a_tubes.max(initial=-1)) + 1, int(b_tubes.max(initial=-1)) + 1), np.int64)
        flat = self.group_intersections(a, a_frames, b, b_frames)
        columns = np.diff(b_frames)
        frame = np.repeat(np.arange(len(columns)), np.diff(a_frames))
        rows = np.repeat(np.arange(len(a)), columns[frame])
        start = np.concatenate([[0], np.cumsum(columns[frame])])[:-1]
        others = (
            np.arange(len(flat)) - np.repeat(start, columns[frame]) + np.repeat(b_frames[:-1][frame], columns[frame])
        )
        np.add.at(total, (a_tubes[rows], b_tubes[others]), flat)
        return total


def _union_areas(count: int, *parts: Part) -> NDArray[np.int64]:
    """All groups' intervals on one axis, sorted once; each adds what reaches beyond the furthest end before it."""
    reach = 1 + max((int(column.pixels.max()) for column, _ in parts if len(column)), default=0)
    gathered = [_on_axis(column, group * reach, group >= 0) for column, group in parts]
    starts, ends = (np.concatenate([part[k] for part in gathered]) for k in (0, 1))
    if not len(starts):
        return np.zeros(count, np.int64)
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    before = np.concatenate([[0], np.maximum.accumulate(ends)[:-1]])
    added: NDArray[np.int64] = np.concatenate([[0], np.cumsum(np.maximum(ends - np.maximum(starts, before), 0))])
    return np.diff(added[np.searchsorted(starts, np.arange(count + 1) * reach)])


def _intersections(
    a: list[dict[str, object]], b: list[dict[str, object]], areas: NDArray[np.int64]
) -> NDArray[np.int64]:
    """`(n, m) int64`: pycocotools divides by a's area where b is called crowd, so the product is the intersection."""
    share = np.asarray(coco.iou(a, b, [1] * len(b)), np.float64).reshape(len(a), len(b))
    return np.rint(np.nan_to_num(share) * areas[:, None]).astype(np.int64)


def _on_axis(
    column: MaskColumn, base: NDArray[np.int64], wanted: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The wanted masks' foreground intervals, moved by each mask's base, and the mask each belongs to."""
    starts, ends, offsets = column.decoded.intervals
    row = np.repeat(np.arange(len(column)), np.diff(offsets))
    if wanted is not None and not wanted.all():
        some = wanted[row]
        starts, ends, row = starts[some], ends[some], row[some]
    return starts + base[row], ends + base[row], row


def make_engine(threads: int) -> Engine:
    """The engine; threads would give pycocotools nothing."""
    del threads
    return PycocotoolsEngine()
