"""Blocks of ordinary JSON Lines predictions of InstanceBench, parsed together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bench_datasets.benchmarks.instancebench.prediction_rows import RUN, SCHEMA, condition_of
from bench_datasets.benchmarks.instancebench.schema import ORIGINAL
from bench_datasets.benchmarks.instancebench.signature import SIGNATURE
from bench_datasets.faults import BenchError
from bench_datasets.predictions.foreign_fields import refuse_other_benchmark
from bench_datasets.predictions.mask_blocks import Rle, UsualLines, column_of

_TYPES: dict[str, Any] = {
    "expression_id": str | int,
    "mask": Rle | None,
    "segmentation": Rle | None,
    "box": list[float] | None,
    "candidate_id": str | int | None,
    "run": str | int | None,
    "condition": str | None,
}
"""Fields of an ordinary line, and their types."""

_CAREFUL = frozenset({"no_target", "pred_nt"})
"""Fields that say something about the mask: lines with them are parsed one by one."""


class BlockParser:
    """Parses blocks of lines whose fields have the usual form; leaves all others to the careful reader.

    Lines are usual if they have the fields of the file's first line, an `expression_id` among them, and nothing is
    wrong with them. The result is the one that the careful reader gives.

    Args:
        first: the fields of the file's first line.
        validate: whether to leave blocks with invalid masks to the careful reader. Without it, masks are not decoded.
    """

    def __init__(self, first: Mapping[str, Any], *, validate: bool) -> None:
        self._validate = validate
        self._lines = UsualLines(first, _TYPES) if _is_usual(first) else None
        self._mask = "mask" if "mask" in first else "segmentation"

    def parse(self, block: bytes) -> pa.RecordBatch | None:
        """A batch of the columns of `SCHEMA`; `None` if the careful reader must parse the lines of the block."""
        values = self._lines.decode(block, self._inside) if self._lines is not None else None
        if values is None:
            return None
        lines = len(values["expression_id"])
        nothing = [None] * lines
        names, named = (_words(values.get(name, nothing)) for name in ("expression_id", "candidate_id"))
        runs, conditions = _words(values.get("run", nothing), RUN), _words(values.get("condition", nothing), ORIGINAL)
        column, boxes = column_of(values.get(self._mask, nothing)), _boxes(values.get("box", nothing))
        if names is None or named is None or runs is None or conditions is None or column is None or boxes is None:
            return None
        if self._validate and column.decoded.status[column.present].any():
            return None
        known = {name: condition_of(name) for name in set(conditions)}
        begin = pa.array(np.zeros(lines + 1, np.int32))
        arrays = {
            "expression_id": names,
            "mask": column.to_arrow(),
            "box": boxes,
            "candidate_id": named,
            "run": runs,
            "condition": [known[name] for name in conditions],
            "pred_faults": pa.ListArray.from_arrays(begin, pa.array([], SCHEMA.field("pred_faults").type.value_type)),
        }
        return pa.RecordBatch.from_arrays(
            [
                values.cast(field.type) if isinstance(values, pa.Array) else pa.array(values, field.type)
                for field, values in zip(SCHEMA, arrays.values(), strict=True)
            ],
            schema=SCHEMA,
        )

    def _inside(self, values: Mapping[str, list[Any]]) -> tuple[int, int]:
        masks = sum(mask is not None for mask in values.get(self._mask, ()))
        return 2 * masks, masks


def _is_usual(first: Mapping[str, Any]) -> bool:
    """Whether lines with exactly these fields need no careful reading."""
    answers = [name for name in ("mask", "segmentation", "box", "candidate_id") if name in first]
    if "expression_id" not in first or not answers or {"mask", "segmentation"} <= set(answers) or _CAREFUL & set(first):
        return False
    try:
        refuse_other_benchmark(set(first), "", SIGNATURE)
    except BenchError:
        return False
    return True


def _words(values: Sequence[str | int | None], default: str | None = None) -> list[Any] | None:
    """Names as text; `None` if one is empty or no 64-bit integer."""
    if "" in values:
        return None
    if not any(isinstance(value, int) for value in values):
        return list(values) if default is None else [default if value is None else value for value in values]
    if any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in values):
        return None
    return [default if value is None else str(value) for value in values]


def _boxes(values: Sequence[list[float] | None]) -> pa.Array | None:
    """Boxes as a column; `None` if one is not four finite numbers without a negative side."""
    given = [box for box in values if box is not None]
    if any(len(box) != 4 for box in given):
        return None
    numbers = np.array(given, np.float64).reshape(-1, 4)
    if not np.isfinite(numbers).all() or (numbers[:, 2:] < 0).any():
        return None
    return pa.array(values, SCHEMA.field("box").type) if given else pa.nulls(len(values), SCHEMA.field("box").type)
