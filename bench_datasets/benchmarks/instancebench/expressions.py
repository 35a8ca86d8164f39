"""The expressions of a score table as columns, with the protocol's choices for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.benchmarks.instancebench.assignment import Identity, identify, similarity
from bench_datasets.benchmarks.instancebench.measure import NOT_ASKED
from bench_datasets.benchmarks.instancebench.protocol import InstanceBenchProtocol
from bench_datasets.benchmarks.instancebench.schema import BOUNDARY_COLUMNS
from bench_datasets.masks import list_offsets, list_values, quotient
from bench_datasets.results.statistics import Floats

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
Texts = NDArray[np.str_]


@dataclass(frozen=True)
class Expressions:
    """The m expressions of n score rows of one run and condition.

    Attributes:
        keys: `(n,)`, the rows' TCESs.
        sources: `(n,)`, the rows' sources.
        categories: `(n,)`, the rows' categories.
        rows: `(n,)`, their places in the whole table.
        eligible: `(n,) bool`, rows with at least two candidates.
        row: `(m,)`, the row of each expression.
        ids: `(m,)`, expression ids.
        role, operation, family, track: `(m,)` texts.
        spatial: `(m,)`, tagged as a spatial relation.
        words: `(m,)`, length of the text.
        answered: `(m,)`, whether there is an answer.
        shared, union: `(m,)`, pixels of prediction and target.
        q: `(m,) float64`, their IoU.
        right: `(m,)`, A = 1: assigned to the target.
        identity: of each prediction under the protocol.
        target: `(m,)`, position of the target.
        scores, offsets: similarities with every candidate, prediction by prediction, and where each's begin.
        areas: `(m,)`, predicted pixels.
        donor_iou: `(m,) float64`, IoU with the donor's target; NaN without a donor.
        chosen: `(m,)`, candidate named; `NOT_ASKED` where none was asked for.
        box_iou: `(m,) float64`, NaN where no box was given.
        has_masks, has_boxes, has_names: whether any answer was of that kind; where there was none at all, they are
            answers in masks.
        area_fraction: `(n,) float64`, the target's share of the image.
        same_class: `(n,)`, number of candidates.
        core_shared: `(n,)`, pixels that both core predictions share; -1 without both roles.
        outlines: `(m, 6)`, the columns of the option `boundary`, or `None` where they were not measured.
    """

    keys: Texts
    sources: Texts
    categories: Texts
    rows: Ints
    eligible: Flags
    row: Ints
    ids: Texts
    role: Texts
    operation: Texts
    family: Texts
    track: Texts
    spatial: Flags
    words: Ints
    answered: Flags
    shared: Ints
    union: Ints
    q: Floats
    right: Flags
    identity: Identity
    target: Ints
    scores: Floats
    offsets: Ints
    areas: Ints
    donor_iou: Floats
    chosen: Ints
    box_iou: Floats
    has_masks: bool
    has_boxes: bool
    has_names: bool
    area_fraction: Floats
    same_class: Ints
    core_shared: Ints
    outlines: Ints | None

    @property
    def core(self) -> Flags:
        """`(m,) bool`, the two roles that headline numbers are about."""
        return np.asarray((self.role == "minimal") | (self.role == "variant"), np.bool_)

    def first(self, which: Flags) -> Ints:
        """`(n,)`, the first expression of each row among `which` `(m,) bool`; -1 where there is none."""
        result = np.full(len(self.keys), -1)
        index = np.flatnonzero(which)[::-1]
        result[self.row[index]] = index
        return result


def read_expressions(table: pa.Table, rows: Ints, protocol: InstanceBenchProtocol) -> Expressions:
    """The expressions of the score rows at `rows` of a table."""
    part = table.take(pa.array(rows))
    lists = part["areas"].combine_chunks()
    groups = list_offsets(lists)
    row = np.repeat(np.arange(len(rows)), np.diff(groups))

    def flat(name: str) -> pa.Array:
        return list_values(part[name].combine_chunks())

    def texts(name: str) -> Texts:
        return np.array(flat(name).to_pylist(), dtype=np.str_)

    areas = flat("areas").to_numpy().astype(np.int64)
    per_expression = flat("intersections")
    offsets = list_offsets(per_expression)
    shared_all = list_values(per_expression).to_numpy().astype(np.int64)
    candidates = part["candidate_areas"].combine_chunks()
    candidate_groups = list_offsets(candidates)
    candidate_areas = list_values(candidates).to_numpy().astype(np.int64)
    of = np.repeat(np.arange(len(row)), np.diff(offsets))
    k = np.arange(len(of)) - offsets[:-1][of]
    target = part["target"].to_numpy().astype(np.int64)
    scores = similarity(shared_all, areas[of], candidate_areas[candidate_groups[:-1][row[of]] + k])
    identity = identify(scores, offsets, protocol.min_score, protocol.min_margin)
    target_area = candidate_areas[candidate_groups[:-1] + target]
    shared = shared_all[offsets[:-1] + target[row]]
    union = areas + target_area[row] - shared
    donor_area = flat("donor_area").to_numpy().astype(np.int64)
    donor_shared = flat("donor_intersection").to_numpy().astype(np.int64)
    donor = np.where(donor_area >= 0, quotient(donor_shared, areas + np.maximum(donor_area, 0) - donor_shared), np.nan)
    chosen = flat("chosen").to_numpy().astype(np.int64)
    box = flat("box_iou").to_numpy(zero_copy_only=False).astype(np.float64)
    has_boxes, has_names = bool(np.isfinite(box).any()), bool((chosen != NOT_ASKED).any())
    masked = bool(flat("masked").to_numpy(zero_copy_only=False).any())
    return Expressions(
        keys=np.array(part["key"].to_pylist(), dtype=np.str_),
        sources=np.array(part["source"].to_pylist(), dtype=np.str_),
        categories=np.array(part["category"].to_pylist(), dtype=np.str_),
        rows=rows,
        eligible=np.diff(candidate_groups) >= 2,
        row=row,
        ids=texts("expression_ids"),
        role=texts("roles"),
        operation=texts("operations"),
        family=texts("families"),
        track=texts("tracks"),
        spatial=flat("spatial").to_numpy(zero_copy_only=False),
        words=flat("words").to_numpy().astype(np.int64),
        answered=flat("answered").to_numpy(zero_copy_only=False),
        shared=shared,
        union=union,
        q=quotient(shared, union),
        right=identity.assigned == target[row],
        identity=identity,
        target=target[row],
        scores=scores,
        offsets=offsets,
        areas=areas,
        donor_iou=donor,
        chosen=chosen,
        box_iou=box,
        has_masks=masked or not (has_boxes or has_names),
        has_boxes=has_boxes,
        has_names=has_names,
        area_fraction=target_area / np.maximum(part["pixels"].to_numpy().astype(np.int64), 1),
        same_class=np.diff(candidate_groups),
        core_shared=part["core_intersection"].to_numpy().astype(np.int64),
        outlines=np.stack([flat(name).to_numpy().astype(np.int64) for name in BOUNDARY_COLUMNS], axis=1)
        if "boundary_union" in part.column_names
        else None,
    )  # fmt: skip
