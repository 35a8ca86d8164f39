"""Rows of InstanceBench predictions: the columns, and from Python values to Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from datasets import Features, List, Value

from bench_datasets.benchmarks.instancebench.schema import CONDITIONS, ORIGINAL
from bench_datasets.masks import MASK_FEATURE, MASK_TYPE, parse_masks
from bench_datasets.predictions.coerce import Found
from bench_datasets.predictions.mask_rows import BATCH, faults_array, weight


def condition_of(name: str) -> str:
    """The condition of this name; case, spaces and hyphens do not tell known conditions apart.

    Example:
        >>> condition_of("Category-Only"), condition_of("my own")
        ('category_only', 'my own')
    """
    word = name.strip().casefold().replace(" ", "_").replace("-", "_")
    return word if word in CONDITIONS else name


PREDICTION_FEATURES = Features(
    {
        "pred_masks": List(MASK_FEATURE),
        "pred_boxes": List(List(Value("float64"))),
        "pred_candidate_ids": List(Value("string")),
    }
)
"""Columns that a model may add to a row, aligned with its expressions; null for no prediction."""

RUN = "0"
"""The run of a prediction that names none."""

FEATURES = Features(
    {
        "expression_id": Value("string"),
        "mask": MASK_FEATURE,
        "box": List(Value("float64")),
        "candidate_id": Value("string"),
        "run": Value("string"),
        "condition": Value("string"),
        "pred_faults": List({"code": Value("string"), "text": Value("string")}),
    }
)
"""Columns of InstanceBench predictions, one row an answer.

`expression_id`, `run` and `condition` name what is answered; the first is null where it could not be read. `mask` is
null where the model found nothing, where it answers by `box` or `candidate_id` alone, and where the mask was unsound.
`box` is x, y, width, height in pixels. `pred_faults` says what was wrong with the row.
"""

SCHEMA: pa.Schema = FEATURES.arrow_schema
"""The same as an Arrow schema."""

_ROWS = 2048


@dataclass
class Row:
    """One prediction as it was read; the mask is still an untrusted value."""

    expression_id: str | None = None
    run: str = RUN
    condition: str = ORIGINAL
    mask: Any = None
    height: int | None = None
    width: int | None = None
    box: list[float] | None = None
    candidate_id: str | None = None
    faults: Found = field(default_factory=list)
    score: float | None = None


def batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Validate the rows' masks and put them into record batches of bounded size."""
    pending: list[Row] = []
    held = 0
    for row in rows:
        pending.append(row)
        held += weight(row.mask)
        if len(pending) >= _ROWS or held >= BATCH:
            yield to_batch(pending)
            pending, held = [], 0
    if pending:
        yield to_batch(pending)


def to_batch(rows: Sequence[Row], masks: pa.Array | None = None) -> pa.RecordBatch:
    """One batch of `SCHEMA`.

    Args:
        rows: the rows.
        masks: their masks as an array of `MASK_TYPE` known to be sound, where they are not the rows' own.
    """
    if masks is None:
        masks = _parse(rows)
    columns = {
        "expression_id": [row.expression_id for row in rows],
        "mask": masks,
        "box": [row.box for row in rows],
        "candidate_id": [row.candidate_id for row in rows],
        "run": [row.run for row in rows],
        "condition": [row.condition for row in rows],
        "pred_faults": faults_array([row.faults for row in rows]),
    }
    arrays = [
        values if isinstance(values, pa.Array) else pa.array(values, SCHEMA.field(name).type)
        for name, values in columns.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _parse(rows: Sequence[Row]) -> pa.Array:
    """The rows' masks; a null one is an answer, an unsound one becomes null and a fault."""
    there = [i for i, row in enumerate(rows) if row.mask is not None]
    plain = [i for i in there if rows[i].height is None]
    found: dict[int, dict[str, Any]] = {}
    parsed, wrong = parse_masks([rows[i].mask for i in plain])
    if len(plain) == len(rows) and not wrong:
        return parsed
    for i, mask in zip(plain, parsed.to_pylist(), strict=True):
        found[i] = mask
    problems = {plain[at]: text for at, text in wrong.items()}
    for i in there:
        if rows[i].height is not None:  # polygons, drawn at the size that their own row states
            noted: dict[int, str] = {}
            single, wrong = parse_masks([rows[i].mask], height=rows[i].height, width=rows[i].width, noted=noted)
            rows[i].faults += [("polygon_part_dropped", f"mask: {text}") for text in noted.values()]
            found[i] = single[0].as_py()
            problems |= dict.fromkeys([i] * len(wrong), wrong.get(0, ""))
    for i, text in problems.items():
        rows[i].faults.append(("malformed_mask", f"mask: {text}"))
    return pa.array([found.get(i) for i in range(len(rows))], MASK_TYPE)
