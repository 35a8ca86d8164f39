"""The door to whatever does the arithmetic: a few grouped operations on sound columns, exact integers out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bench_datasets.masks.column import MaskColumn

Offsets = NDArray[np.int64]
Part = tuple[MaskColumn, NDArray[np.int64]]
"""A column and the group `(n,) int64` of each of its masks; -1 for a mask that is in none."""


class Engine(Protocol):
    """What an engine does.

    Groups are given as offsets `(g + 1,) int64` into a column: group k holds the masks `offsets[k]` to
    `offsets[k + 1]`, which are all of one size (the callers in `ops` see to it). Columns are validated. Every result
    is an exact integer, so that engines can be told apart by their speed alone.
    """

    name: str

    def pair_intersections(self, a: MaskColumn, b: MaskColumn) -> NDArray[np.int64]:
        """`(n,) int64`, pixels shared by the aligned masks a[i] and b[i]."""

    def group_intersections(
        self, a: MaskColumn, a_groups: Offsets, b: MaskColumn, b_groups: Offsets
    ) -> NDArray[np.int64]:
        """All pairs within each group, flat: group k's `(n_k, m_k)` matrix in row order behind that of group k - 1."""

    def group_nms(self, column: MaskColumn, groups: Offsets, threshold: float) -> NDArray[np.bool_]:
        """`(n,) bool`, which masks greedy non-maximum suppression keeps (see `ops.nms`)."""

    def union_areas(self, parts: Sequence[Part], count: int) -> NDArray[np.int64]:
        """`(count,) int64`, pixels of the union of each group's masks, over all parts together."""


def nms_order(areas: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices from the largest area to the smallest; of equal areas the later one first."""
    return np.argsort(areas, kind="stable")[::-1]


def get_engine() -> Engine:
    """The engine in use: pycocotools."""
    from bench_datasets.masks.engine_pycocotools import ENGINE

    return ENGINE
