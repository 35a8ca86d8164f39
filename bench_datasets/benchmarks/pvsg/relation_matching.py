"""Which relations triplets hit, and at what rank: from the integers of score rows, at any threshold and any K."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.benchmarks.pvsg.protocol import WEAK_COUNTS, WEAK_ENDS, PVSGProtocol
from bench_datasets.masks import joined, list_offsets, list_values, quotient

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NEVER = np.iinfo(np.int64).max
"""The rank of a relation that nothing hits."""


def flat(table: pa.Table, name: str) -> NDArray[np.int64]:
    """The items of a list column of numbers, one row behind the other."""
    return list_values(joined(table[name])).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def texts(table: pa.Table, name: str) -> NDArray[np.object_]:
    """The items of a list column of texts, one row behind the other."""
    return np.array([item for row in table[name].to_pylist() for item in row], dtype=object)


def offsets(table: pa.Table, name: str) -> Ints:
    """`(n + 1,) int64`, where each row's items of a list column begin."""
    return list_offsets(joined(table[name]))


def row_of(table: pa.Table, name: str) -> Ints:
    """The row of each item of a list column."""
    return np.repeat(np.arange(len(table)), np.diff(offsets(table, name)))


@dataclass(frozen=True)
class Hits:
    """The pairs of triplets and relations of all rows; relations are counted over all rows, R in number.

    Attributes:
        relations: R.
        relation: `(n,) int64`, the relation of each pair.
        row: `(n,) int64`, its score row.
        triplet: `(n,) int64`, the triplet's rank in its video.
        rank: `(n,) int64`, what K is held against.
        same: `(n,) bool`, whether the predicates agree.
        recall: `(n,) float64`, hit frames over visible frames within the triplet's spans.
        timeless: `(n,) float64`, the same whatever the spans.
        volume: `(n,) float64`, the smaller IoU of the two volumes.
        best: `(R,) float64`, the best timeless overlap that tubes of the right classes reach.
        protocol: how overlaps become hits.
    """

    relations: int
    relation: Ints
    row: Ints
    triplet: Ints
    rank: Ints
    same: NDArray[np.bool_]
    recall: Floats
    timeless: Floats
    volume: Floats
    best: Floats
    protocol: PVSGProtocol

    @classmethod
    def read(cls, table: pa.Table, protocol: PVSGProtocol) -> Hits:
        """Those of a score table."""
        begin = offsets(table, "relation_visible")
        row = row_of(table, "pair_relation")
        relation = flat(table, "pair_relation") + begin[:-1][row]
        visible = flat(table, "relation_visible")
        iou = []
        for name in ("subject", "object"):
            shared = flat(table, f"pair_{name}_shared")
            both = flat(table, f"pair_{name}_area") + flat(table, f"relation_{name}_area")[relation]
            iou.append(quotient(shared, both - shared))
        return cls(
            int(begin[-1]), relation, row, flat(table, "pair_rank"),
            flat(table, "pair_class_rank" if protocol.rank == "subject_class" else "pair_rank"),
            flat(table, "pair_same_predicate").astype(np.bool_),
            quotient(flat(table, "pair_frames"), visible[relation]),
            quotient(flat(table, "pair_timeless"), visible[relation]),
            np.minimum(*iou), quotient(flat(table, "relation_best"), visible), protocol,
        )  # fmt: skip

    def first(self, threshold: float, *, predicates: bool = True) -> Ints:
        """`(R,) int64`, the rank of the triplet that hits each relation; `NEVER` where none does.

        A relation is hit within the first K if its rank is below K.

        Args:
            threshold: overlap from which a triplet hits.
            predicates: whether the predicates must agree.
        """
        overlap = self.volume if self.protocol.overlap == "volume" else self.recall
        able = (overlap >= threshold) & (self.same if predicates else True)
        return self._taken(overlap, able) if self.protocol.once else self._earliest(able)

    def first_timeless(self, threshold: float) -> Ints:
        """The same with the frames' overlap and the triplets' spans taken as everything; a triplet may hit several."""
        return self._earliest((self.timeless >= threshold) & self.same)

    def weak(self) -> NDArray[np.bool_]:
        """`(n,) bool`, the pairs that `weak_official` counts: from overlap .1 on, until one has reached .5."""
        order = np.lexsort((self.rank, self.relation))
        able = (self.same & (self.recall >= WEAK_COUNTS))[order]
        ends = (self.same & (self.recall >= WEAK_ENDS))[order]
        relation = self.relation[order]
        ended = np.concatenate([[0], np.cumsum(ends)])[:-1]
        ended = ended - ended[np.searchsorted(relation, relation)]
        result = np.zeros(len(order), np.bool_)
        result[order] = able & (ended == 0)
        return result

    def _earliest(self, able: NDArray[np.bool_]) -> Ints:
        result = np.full(self.relations, NEVER)
        np.minimum.at(result, self.relation[able], self.rank[able])
        return result

    def _taken(self, overlap: Floats, able: NDArray[np.bool_]) -> Ints:
        """In rank order, each triplet takes its best relation that is still free; of equals the first."""
        pairs = np.flatnonzero(able)
        order = pairs[np.lexsort((self.relation[pairs], -overlap[pairs], self.triplet[pairs], self.row[pairs]))]
        result = np.full(self.relations, NEVER)
        used: set[tuple[int, int]] = set()
        for i in order.tolist():
            triplet = int(self.row[i]), int(self.triplet[i])
            if triplet not in used and result[self.relation[i]] == NEVER:
                used.add(triplet)
                result[self.relation[i]] = self.rank[i]
        return result
