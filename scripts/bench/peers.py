"""Everything that answers the mask tasks: stock pycocotools, other libraries that are installed, and our engines.

A peer offers some of five tasks on the same inputs and gives exact integers, so that all can be held to one answer:
`pairs`, `matrix` and `tubes` give intersections in pixels, `nms` which masks stay, `outlines` what boundary IoU and
boundary F are made of.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pycocotools import mask as coco

from bench.outlines import outlines
from bench_datasets import masks
from bench_datasets.masks import MaskColumn
from bench_datasets.masks.rle import decode_counts

NMS_IOU = 0.5
BASELINE = "pycocotools loop"
SUM = "grouped + our check"
"""What can be had without numba: pycocotools called once an image or frame, and our numpy validator beside it."""

WITHOUT_NUMBA = "ours, pycocotools"

THREADED = ("numba",)
"""Our engines that have a notion of threads."""


@dataclass(frozen=True)
class Masks:
    """One list of masks as the peers take them: RLE dicts with bytes, and an Arrow array of mask structs.

    Attributes:
        rles: `{"size", "counts"}`.
        arrow: the same.
        areas: `(n,) int64`, pixels.
        groups: offsets `(g + 1,) int64` of the frames of tubes; one group elsewhere.
        tubes: `(n,) int64`, the tube of each mask, where there are tubes.
    """

    rles: list[dict[str, Any]]
    groups: NDArray[np.int64]
    tubes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    arrow: pa.StructArray = None
    areas: NDArray[np.int64] = None  # type: ignore[assignment]

    @classmethod
    def of(cls, rles: list[dict[str, Any]], groups: list[int] | None = None, tubes: list[int] | None = None) -> Masks:
        """Masks with their Arrow array and areas."""
        arrow = pa.array([{"size": r["size"], "counts": r["counts"].decode()} for r in rles], masks.MASK_TYPE)
        areas = np.array([coco.area(r) for r in rles], np.int64)
        offsets = np.array([0, len(rles)] if groups is None else groups, np.int64)
        return cls(rles, offsets, np.array(tubes or [], np.int64), arrow, areas)

    @property
    def median_bytes(self) -> float:
        """Bytes of counts of the middle mask."""
        return float(np.median([len(r["counts"]) for r in self.rles]))


@dataclass(frozen=True)
class Peer:
    """A name and the tasks it offers: `task(a, b)`, and `nms(a)`."""

    name: str
    tasks: dict[str, Callable[..., NDArray[Any]]]


def find_peers() -> tuple[list[Peer], list[str]]:
    """The peers that are here, the baseline first, and a word on each that is not."""
    found, absent = [_pycocotools_loop(), _pycocotools_grouped(), _pycocotools_single(), _checked()], []
    for name, module, wrap in (
        ("faster-coco-eval", "faster_coco_eval.core.mask", _coco_like),
        ("hotcoco", "hotcoco.mask", _coco_like),
        ("rlemasklib", "rlemasklib", _rlemasklib),
    ):
        try:
            found.append(wrap(name, importlib.import_module(module)))
        except ImportError as error:
            absent.append(f"{name}: left out, it is not installed ({error})")
    for name in THREADED:
        if name not in masks.available_engines():
            absent.append(f"our engine {name}: left out, {name} is not installed")
    found += _ours()
    return found, absent


# ---------------------------------------------------------------------- stock pycocotools


def _crowd(library: Any, a: Masks, i: slice, b: Masks, j: slice) -> NDArray[np.int64]:
    """Intersections out of one call: what is called crowd is divided by the area of a alone."""
    left, right = a.rles[i], b.rles[j]
    if not left or not right:
        return np.zeros((len(left), len(right)), np.int64)
    shares = np.asarray(library.iou(left, right, [1] * len(right)), np.float64).reshape(len(left), len(right))
    return np.rint(np.nan_to_num(shares) * a.areas[i][:, None]).astype(np.int64)


def _pairs_loop(library: Any, a: Masks, b: Masks) -> NDArray[np.int64]:
    iou = library.iou
    shares = np.array([iou([x], [y], [1])[0][0] for x, y in zip(a.rles, b.rles, strict=True)], np.float64)
    return np.rint(np.nan_to_num(shares) * a.areas).astype(np.int64)


def _pairs_grouped(a: Masks, b: Masks, size: int = 4) -> NDArray[np.int64]:
    """A few pairs a call, of which the diagonal is wanted: it saves calls and computes the rest in vain."""
    parts = [slice(k, k + size) for k in range(0, len(a.rles), size)]
    return np.concatenate([np.diagonal(_crowd(coco, a, part, b, part)) for part in parts])


def _matrix(library: Any, a: Masks, b: Masks) -> NDArray[np.int64]:
    return _crowd(library, a, slice(None), b, slice(None))


def _tubes_by_frame(library: Any, a: Masks, b: Masks) -> NDArray[np.int64]:
    result = np.zeros((int(a.tubes.max()) + 1, int(b.tubes.max()) + 1), np.int64)
    for f in range(len(a.groups) - 1):
        i, j = slice(int(a.groups[f]), int(a.groups[f + 1])), slice(int(b.groups[f]), int(b.groups[f + 1]))
        result[np.ix_(a.tubes[i], b.tubes[j])] += _crowd(library, a, i, b, j)
    return result


def _order(a: Masks) -> list[int]:
    return np.argsort(a.areas, kind="stable")[::-1].tolist()  # type: ignore[no-any-return]


def _nms_against_kept(library: Any, a: Masks) -> NDArray[np.bool_]:
    """Each mask, largest first, against all that were kept, in one call."""
    kept: list[int] = []
    for i in _order(a):
        if not kept or not (np.asarray(library.iou([a.rles[i]], [a.rles[k] for k in kept], [0] * len(kept)))
                            > NMS_IOU).any():  # fmt: skip
            kept.append(i)
    result = np.zeros(len(a.rles), np.bool_)
    result[kept] = True
    return result


def _nms_matrix(a: Masks) -> NDArray[np.bool_]:
    """All with all in one call, then the greedy choice."""
    order = np.array(_order(a))
    rles = [a.rles[i] for i in order]
    over = np.asarray(coco.iou(rles, rles, [0] * len(rles))) > NMS_IOU
    alive = np.ones(len(rles), np.bool_)
    for k in range(len(rles)):
        if alive[k]:
            alive[k + 1 :] &= ~over[k, k + 1 :]
    result = np.zeros(len(rles), np.bool_)
    result[order[alive]] = True
    return result


def _nms_single(a: Masks) -> NDArray[np.bool_]:
    kept: list[int] = []
    for i in _order(a):
        if not any(coco.iou([a.rles[i]], [a.rles[k]], [0])[0][0] > NMS_IOU for k in kept):
            kept.append(i)
    result = np.zeros(len(a.rles), np.bool_)
    result[kept] = True
    return result


def _matrix_single(a: Masks, b: Masks) -> NDArray[np.int64]:
    iou = coco.iou
    shares = np.array([[iou([x], [y], [1])[0][0] for y in b.rles] for x in a.rles], np.float64)
    return np.rint(np.nan_to_num(shares) * a.areas[:, None]).astype(np.int64)


def _pycocotools_loop() -> Peer:
    """A careful loop: a call a pair for pairs, one an image or frame for matrices, one against all for NMS."""
    tasks = {
        "pairs": _pairs_loop, "matrix": _matrix, "tubes": _tubes_by_frame, "nms": _nms_against_kept
    }  # fmt: skip
    return Peer(BASELINE, {**{name: partial(task, coco) for name, task in tasks.items()}, "outlines": _outlines_dense})


def _outlines_dense(a: Masks, b: Masks) -> NDArray[np.int64]:
    return outlines(a.rles, b.rles)


def _pycocotools_grouped() -> Peer:
    return Peer("pycocotools grouped", {"pairs": _pairs_grouped, "nms": _nms_matrix})


def _pycocotools_single() -> Peer:
    return Peer("pycocotools, a call a pair", {"matrix": _matrix_single, "nms": _nms_single})


def _checked() -> Peer:
    """The grouped calls, and every mask validated by numpy; the calls are given their own RLEs, which costs nothing."""
    tasks: dict[str, Callable[..., NDArray[Any]]] = {
        "pairs": partial(_pairs_loop, coco), "matrix": partial(_matrix, coco), "tubes": partial(_tubes_by_frame, coco),
        "nms": _nms_matrix,
    }  # fmt: skip

    def checked(task: Callable[..., NDArray[Any]]) -> Callable[..., NDArray[Any]]:
        def run(*sides: Masks) -> NDArray[Any]:
            for side in sides:
                column = _column(side)
                if decode_counts(column.data, column.offsets, column.pixels).status.any():
                    raise ValueError("an unsound mask")
            return task(*sides)

        return run

    return Peer(SUM, {name: checked(task) for name, task in tasks.items()})


# ---------------------------------------------------------------------- others


def _coco_like(name: str, library: Any) -> Peer:
    tasks = {"pairs": _pairs_loop, "matrix": _matrix, "tubes": _tubes_by_frame, "nms": _nms_against_kept}
    return Peer(name, {task: partial(function, library) for task, function in tasks.items()})


def _rlemasklib(name: str, library: Any) -> Peer:
    """It reads an RLE into an object first; that is part of its time, as reading is of everybody else's."""
    read = library.RLEMask.from_dict

    def invert(iou: Any, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        exact = np.nan_to_num(np.asarray(iou, np.float64))
        return np.rint(exact * sums / (1 + exact)).astype(np.int64)

    def pairs(a: Masks, b: Masks) -> NDArray[np.int64]:
        found = [read(x).iou(read(y)) for x, y in zip(a.rles, b.rles, strict=True)]
        return invert(found, a.areas + b.areas)

    def between(a: Masks, i: slice, b: Masks, j: slice) -> NDArray[np.int64]:
        iou = library.RLEMask.iou_matrix([read(x) for x in a.rles[i]], [read(y) for y in b.rles[j]])
        return invert(iou, a.areas[i][:, None] + b.areas[j])

    def matrix(a: Masks, b: Masks) -> NDArray[np.int64]:
        return between(a, slice(None), b, slice(None))

    def tubes(a: Masks, b: Masks) -> NDArray[np.int64]:
        result = np.zeros((int(a.tubes.max()) + 1, int(b.tubes.max()) + 1), np.int64)
        for f in range(len(a.groups) - 1):
            i, j = slice(int(a.groups[f]), int(a.groups[f + 1])), slice(int(b.groups[f]), int(b.groups[f + 1]))
            result[np.ix_(a.tubes[i], b.tubes[j])] += between(a, i, b, j)
        return result

    def nms(a: Masks) -> NDArray[np.bool_]:
        objects = [read(x) for x in a.rles]
        kept: list[int] = []
        for i in _order(a):
            if (
                not kept
                or not (
                    np.asarray(library.RLEMask.iou_matrix([objects[i]], [objects[k] for k in kept])) > NMS_IOU
                ).any()
            ):
                kept.append(i)
        result = np.zeros(len(objects), np.bool_)
        result[kept] = True
        return result

    return Peer(name, {"pairs": pairs, "matrix": matrix, "tubes": tubes, "nms": nms})


# ---------------------------------------------------------------------- ours


def _ours() -> list[Peer]:
    """Each of our engines that can be used here, on columns that are made, and validated, anew each time."""
    found = []
    for name in masks.available_engines():
        for threads in (1, 2) if name in THREADED else (1,):
            label = f"ours, {name}" + (f", {threads} thread{'s' * (threads > 1)}" if name in THREADED else "")
            tasks = {
                "pairs": _pairs, "matrix": _masks_matrix, "tubes": _tubes, "nms": _nms, "outlines": _outlines
            }  # fmt: skip
            found.append(Peer(label, {task: _with_engine(name, threads, function) for task, function in tasks.items()}))
    return found


def _with_engine(name: str, threads: int, task: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Masks) -> Any:
        with masks.using_engine(name, threads):
            return task(*arguments)

    return run


def _column(of: Masks) -> MaskColumn:
    return MaskColumn.from_arrow(of.arrow)


def _pairs(a: Masks, b: Masks) -> NDArray[np.int64]:
    return masks.pair_intersections(_column(a), _column(b))


def _masks_matrix(a: Masks, b: Masks) -> NDArray[np.int64]:
    return masks.intersections(_column(a), _column(b))


def _tubes(a: Masks, b: Masks) -> NDArray[np.int64]:
    return masks.tube_intersections(_column(a), a.groups, a.tubes, _column(b), b.groups, b.tubes)


def _nms(a: Masks) -> NDArray[np.bool_]:
    return masks.nms(_column(a), a.groups, NMS_IOU)


def _outlines(a: Masks, b: Masks) -> NDArray[np.int64]:
    return np.stack(masks.boundary_pairs(_column(a), _column(b)), axis=1)
