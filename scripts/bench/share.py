"""How much of `bd.score` is mask arithmetic: its time beside that of the bare kernels over the same masks."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from datasets import Dataset

from bench_datasets import masks
from bench_datasets.masks.ragged import CHUNK_BYTES, parts, read_mask_lists
from bench_datasets.scoring import hashes, matching

CALLS = ("decode", "words", "pair_overlaps", "group_hits", "group_nms", "union_overlaps")
"""An engine's calls."""


def kernels(truth: Dataset, answers: Dataset) -> None:
    """What PBench's scoring asks of the engine, and no more: each mask read once, one call an operation and chunk."""
    true = read_mask_lists(truth.with_format("arrow")[:]["masks"])
    predicted = read_mask_lists(answers.with_format("arrow")[:]["pred_masks"])
    for start, stop in parts((true.bytes_a_row() + predicted.bytes_a_row()) / CHUNK_BYTES):
        a, b = predicted.slice(start, stop), true.slice(start, stop)
        keep = masks.nms(a.masks, a.groups, 0.5)
        masks.group_hits(a.masks, a.groups, b.masks, b.groups)
        masks.union_overlaps(stop - start, (a.masks, np.where(keep, a.row_of, -1)), (b.masks, b.row_of))


@contextmanager
def unhashed() -> Iterator[None]:
    """Leave the row hashes empty while the block runs, to tell what they cost."""
    saved = hashes.row_hashes
    hashes.row_hashes = lambda labels, *_: [""] * len(labels)
    try:
        yield
    finally:
        hashes.row_hashes = saved


@contextmanager
def watched(engine: object) -> Iterator[dict[str, float]]:
    """Seconds spent in an engine's calls and in the assignment's solver while the block runs, by name."""
    spent: dict[str, float] = {}
    depth = [0]
    kind: Any = type(engine)
    saved = {name: getattr(kind, name) for name in CALLS}
    solver = matching.linear_sum_assignment

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def inner(*args: Any, **kwargs: Any) -> Any:
            depth[0] += 1
            begin = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                depth[0] -= 1
                if not depth[0]:  # a call within a call is the outer one's
                    spent[name] = spent.get(name, 0.0) + time.perf_counter() - begin

        return inner

    for name, call in saved.items():
        setattr(kind, name, timed(name, call))
    matching.linear_sum_assignment = timed("assignment", solver)
    begin = time.perf_counter()
    try:
        yield spent
    finally:
        spent["all"] = time.perf_counter() - begin
        matching.linear_sum_assignment = solver
        for name, call in saved.items():
            setattr(kind, name, call)
