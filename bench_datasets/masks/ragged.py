"""A column of lists of masks, in any of the forms in which rows come to a metric, as one `MaskColumn` and groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets._util.untrusted import load_text
from bench_datasets.masks import MASK_TYPE, MaskColumn, joined, list_offsets, list_values, parse_masks

CHUNK_BYTES = 1 << 22
"""Bytes of counts that are decoded at a time."""


_NO_LIST = "expected a list of masks"
"""Begin of the text about a row whose masks are no list."""


class MaskLists(NamedTuple):
    """The masks of n rows.

    Attributes:
        masks: all rows' masks, one row behind the other; unsound ones may be among them.
        groups: `(n + 1,) int64`, where each row's masks begin.
        present: `(n,) bool`, false where the row's list is null.
        wrong: what is wrong by mask, where it could be told only before the masks became Arrow.
    """

    masks: MaskColumn
    groups: NDArray[np.int64]
    present: NDArray[np.bool_]
    wrong: dict[int, str]

    def slice(self, start: int, stop: int) -> MaskLists:
        """The rows from `start` to `stop`, over the same buffers."""
        first, last = int(self.groups[start]), int(self.groups[stop])
        wrong = {i - first: text for i, text in self.wrong.items() if first <= i < last}
        groups = self.groups[start : stop + 1] - first
        return MaskLists(self.masks.part(first, last), groups, self.present[start:stop], wrong)

    def take(self, rows: NDArray[np.int64]) -> MaskLists:
        """The chosen rows."""
        sizes = np.diff(self.groups)[rows]
        groups = np.concatenate([[0], np.cumsum(sizes)])
        index = np.arange(int(groups[-1])) + np.repeat(self.groups[:-1][rows] - groups[:-1], sizes)
        return MaskLists(self.masks.take(index), groups, self.present[rows], {})

    def emptied(self, rows: Sequence[int]) -> MaskLists:
        """The same rows, of which some have no masks, be they sound or not."""
        kept = np.ones(len(self.present), np.bool_)
        kept[list(rows)] = False
        index = np.flatnonzero(kept[self.row_of])
        groups = np.concatenate([[0], np.cumsum(np.diff(self.groups) * kept)]).astype(np.int64)
        place = {int(i): k for k, i in enumerate(index)} if self.wrong else {}
        wrong = {place[i]: text for i, text in self.wrong.items() if i in place}
        return MaskLists(self.masks.take(index), groups, self.present, wrong)

    def bytes_a_row(self) -> NDArray[np.int64]:
        """`(n,) int64`, bytes of counts."""
        if not len(self.masks):
            return np.zeros(len(self.present), np.int64)
        return np.diff(self.masks.offsets[self.groups])

    @property
    def row_of(self) -> NDArray[np.int64]:
        """`(masks,) int64`, the row of each mask."""
        return np.repeat(np.arange(len(self.present)), np.diff(self.groups))

    def is_list(self, row: int) -> bool:
        """Whether a row has a list of masks: neither null nor something else."""
        return bool(self.present[row]) and not self.wrong.get(int(self.groups[row]), "").startswith(_NO_LIST)

    def problems(self) -> dict[int, list[str]]:
        """Reasons why masks are invalid, by row; each text names the mask's position in its row."""
        found = {**self.masks.problems(), **self.wrong}
        result: dict[int, list[str]] = {}
        for i in sorted(found):
            row = int(np.searchsorted(self.groups, i, side="right")) - 1
            result.setdefault(row, []).append(f"mask {i - int(self.groups[row])}: {found[i]}")
        return result


def parts(cost: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Cut rows into parts that cost 1 at most, or are one row.

    Example:
        >>> list(parts(np.array([0.5, 0.5, 3.0, 0.1])))
        [(0, 2), (2, 3), (3, 4)]
    """
    total = np.concatenate([[0.0], np.cumsum(cost)])
    start = 0
    while start < len(cost):
        stop = max(start + 1, int(np.searchsorted(total, total[start] + 1, side="right")) - 1)
        yield start, stop
        start = stop


def read_mask_lists(column: pa.Array | pa.ChunkedArray | Sequence[Any]) -> MaskLists:
    """The masks of a column.

    Args:
        column: an Arrow array of lists of mask structs (read in place), of lists of JSON texts or of JSON
            texts of lists (older exports of PBench), or any sequence of Python lists of masks; a row may be null.
    """
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        array = joined(column)
        if _is_mask_lists(array.type):
            present = array.is_valid().to_numpy(zero_copy_only=False)
            return MaskLists(MaskColumn.from_arrow(list_values(array)), list_offsets(array), present, {})
        column = array.to_pylist()
    return _from_python(column)


def _is_mask_lists(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        return False
    fields = {field.name: field.type for field in kind.value_type}
    if set(fields) != {"size", "counts"}:
        return False
    counts, size = fields["counts"], fields["size"]
    text = pa.types.is_string(counts) or pa.types.is_large_string(counts)
    binary = pa.types.is_binary(counts) or pa.types.is_large_binary(counts)
    lists = pa.types.is_list(size) or pa.types.is_large_list(size) or pa.types.is_fixed_size_list(size)
    return bool((text or binary) and lists and pa.types.is_integer(size.value_type))


def _from_python(rows: Sequence[Any]) -> MaskLists:
    flat: list[Any] = []
    sizes, present, wrong = [], [], {}
    for row in rows:
        items = row = load_text(row)
        if row is not None and (isinstance(row, (str, bytes, dict)) or not hasattr(row, "__len__")):
            items = [None]
            wrong[len(flat)] = f"{_NO_LIST}, found {type(row).__name__}"
        items = [] if items is None else list(items)
        sizes.append(len(items))
        present.append(row is not None)
        flat.extend(load_text(item) for item in items)
    masks, unsound = parse_masks(flat)
    groups = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    column = MaskColumn.from_arrow(masks if len(masks) else pa.array([], MASK_TYPE))
    return MaskLists(column, groups, np.array(present, np.bool_), {**unsound, **wrong})
