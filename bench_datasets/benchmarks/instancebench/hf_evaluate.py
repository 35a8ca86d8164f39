"""InstanceBench's `evaluate` module: a list of masks a TCES in, every number out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from datasets import Features, Value

from bench_datasets._util.untrusted import load_text
from bench_datasets.benchmarks.instancebench import BENCHMARK
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.hf_evaluate.row_metric import RowMetric, check_aligned, is_list
from bench_datasets.masks import parse_masks
from bench_datasets.results.result import Result
from bench_datasets.results.summarize import summarize
from bench_datasets.scoring.score import scorer

_INPUTS = """
Args:
    predictions: for each TCES a list of masks aligned with its expressions; a mask of None is a prediction without a
        mask. A mask is a COCO RLE `{"size": [height, width], "counts": str, bytes or runs}`.
    references: for each TCES a row with `target`, `candidates` and `expressions`, as `load_dataset("instancebench")`
        gives them.
    ids: what errors call each row; its position where not given.
    missing: `empty` counts a prediction of None as an empty prediction; `error`, the default, refuses it.
    on_fault: `skip-and-report` leaves a faulty row out; `count-as-wrong` counts a faulty or missing prediction as
        wrong; `stop`, the default, refuses it. For rows that are added before, give it to `add` or `add_batch`, too.

Returns:
    Values by metric key, such as `miou` and `all_target_id`; fractions, NaN where undefined.
"""

_COLUMNS = ("image_id", "source", "category", "height", "width", "target", "candidates", "expressions", "faults")


_TEXT = Value("string")


class Instancebench(RowMetric):
    """InstanceBench's metrics over `compute`, `add_batch`, `add` and `combine`.

    Rows are validated when they are added, and kept as JSON: Arrow's types would not hold what differs between rows.
    """

    BENCHMARK = "instancebench"
    DESCRIPTION = "InstanceBench: expression sets of one target each, their masks and identities."
    INPUTS = _INPUTS
    FEATURES = Features(predictions=_TEXT, references=_TEXT, ids=_TEXT)
    OPTIONS = ("protocol", "missing", "on_fault")

    def _validated(
        self, predictions: Any, references: Any, ids: Any, *, strict: bool = True, **columns: Any
    ) -> dict[str, list[Any]]:
        n = check_aligned(predictions, references, ids, "an item per TCES")
        names = [None] * n if ids is None else [str(item) for item in ids]
        called = [f"row {k}" if name is None else name for k, name in enumerate(names)]
        rows, answers = [], []
        for given, reference, who in zip(predictions, references, called, strict=True):
            row = _row(reference, who, strict)
            rows.append(row)
            masks = load_text(given)
            aligned = masks is None or (is_list(masks) and len(masks) == len(row["expressions"]))
            if strict and not aligned:
                found = len(masks) if is_list(masks) else type(masks).__name__
                expected = f"a list of masks, one per expression ({len(row['expressions'])})"
                raise FaultError("unaligned_prediction", who, f"predictions: expected {expected}, found {found}")
            if masks is not None:
                items = masks if is_list(masks) else [None] * (len(row["expressions"]) + 1)
                masks = _sound([load_text(mask) for mask in items], who, "predictions", strict)
            answers.append(json.dumps(masks))
        return {"predictions": answers, "references": [json.dumps(row) for row in rows], "ids": names}

    def _result(
        self,
        predictions: list[str],
        references: list[str],
        protocol: str | None = None,
        missing: str = "error",
        on_fault: str = "stop",
        **given: Any,
    ) -> Result:
        rows = [json.loads(text) for text in references]
        batch: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in _COLUMNS}
        batch["key"] = [name or f"row {k}" for k, name in enumerate(self.data["ids"][:])]
        batch["pred_masks"] = [json.loads(text) for text in predictions]
        options = scorer("instancebench", protocol, missing=missing, on_fault=on_fault).options
        return summarize("instancebench", BENCHMARK.score_table(batch, options), draws=0)


def _row(row: Any, who: str, strict: bool) -> dict[str, Any]:
    """A truth row of plain values with sound masks."""
    absent = [
        name for name in ("target", "candidates", "expressions") if not isinstance(row, Mapping) or name not in row
    ]
    if absent:
        raise BenchError(
            f"{who}: references: expected a row with target, candidates and expressions; lacks {absent[0]}"
        )
    result = {name: row.get(name) for name in _COLUMNS}
    if isinstance(result["target"], np.integer):
        result["target"] = int(result["target"])
    candidates = _records(row, "candidates", who)
    # The scoring leaves candidates without a valid mask out, and refuses a target without one.
    masks = _sound([c.get("mask") for c in candidates], who, "candidates", strict=False)
    for item, mask in zip(candidates, masks, strict=True):
        item["mask"] = mask
    expressions = _records(row, "expressions", who)
    donors = _sound([x.get("donor_mask") for x in expressions], who, "donor_mask", strict)
    for item, mask in zip(expressions, donors, strict=True):
        item["donor_mask"] = mask
    return {**result, "candidates": candidates, "expressions": expressions}


def _records(row: Mapping[str, Any], name: str, who: str) -> list[dict[str, Any]]:
    """A list of records of a row, as plain dicts."""
    items = row[name]
    if not is_list(items):
        raise BenchError(f"{who}: references: {name}: expected a list of records, found {type(items).__name__}")
    for item in items:
        if not isinstance(item, Mapping):
            raise BenchError(f"{who}: references: {name}: expected records, found {type(item).__name__} among them")
    return [dict(item) for item in items]


def _sound(masks: list[Any], who: str, column: str, strict: bool) -> list[Any]:
    """The masks, `None` where they were.

    An invalid mask is an error; where it is not strict, it stays as it is, and the scoring finds it invalid.
    """
    found, wrong = parse_masks(masks)
    result: list[Any] = found.to_pylist()
    for k, text in wrong.items():
        if masks[k] is None:
            continue
        if strict:
            raise FaultError(
                "malformed_mask", who, f"{column}, mask {k}: {text}; expected a COCO RLE of the row's image"
            )
        try:
            json.dumps(masks[k])
            result[k] = masks[k]
        except (TypeError, ValueError):  # arrays and other values, of which the scoring sees the reason
            result[k] = text
    return result
