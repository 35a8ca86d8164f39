"""A benchmark in another package: RefCOCO's task, on a few rows of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from datasets import Value

from bench_datasets.benchmark import COMMON_SCORE_COLUMNS, Benchmark, Protocol, Source
from bench_datasets.masks import quotient, union_overlaps
from bench_datasets.results.estimates import Gathered, by_column
from bench_datasets.results.statistics import Statistic, mean, ratio
from bench_datasets.scoring.mask_batch import MaskBatch
from bench_datasets.scoring.options import ScoreOptions

PIXELS = ("intersection", "predicted", "true")


class RefCOCOToy(Benchmark):
    """One image, one expression and one mask per row."""

    name = "refcoco_toy"
    title = "RefCOCO (toy)"
    builder = "bench_refcoco.builder"
    source = Source(repo="", revision="", env="BENCH_REFCOCO", rows={"val": 3, "test": 4}, licence="Apache-2.0")
    protocols = {"default": Protocol(name="default", version="1", meaning="IoU of the union of the predicted masks.")}
    headline = {"default": "miou"}
    headline_parts = {"default": "p@"}
    truth_columns = ("key", "id", "split", "expression", "masks", "faults")
    score_columns = {
        **COMMON_SCORE_COLUMNS,
        "split": (Value("string"), "the row's split"),
        "intersection": (Value("int64"), "pixels shared by the union of the predictions and the ground truth"),
        "predicted": (Value("int64"), "pixels of the union of the predictions"),
        "true": (Value("int64"), "pixels of the ground truth"),
    }
    counted = "rows"
    citation = "@misc{refcocotoy, title={RefCOCO (toy)}, year={2026}}"
    about = "Squares, and expressions that say which one. A row is an expression with the one mask that it means."
    task_categories = ("image-segmentation",)
    tags = ("referring-segmentation",)
    columns = {"masks": "The mask of the one square that is meant, as COCO compressed RLE."}

    def measure(self, rows: MaskBatch, protocol: Protocol, options: ScoreOptions) -> Mapping[str, Any]:
        """Pixels of the union of the predicted masks, of the ground truth, and of both."""
        predicted, true = rows.predicted, rows.true
        pixels = union_overlaps(len(rows), (predicted.masks, predicted.row_of), (true.masks, true.row_of))
        return dict(zip(PIXELS, pixels, strict=True))

    def statistics(
        self, table: pa.Table, protocol: str, *, k: Sequence[int] | None = None,
        thresholds: Sequence[float] | None = None, by: Sequence[str] = (),
    ) -> Gathered:  # fmt: skip
        """Mean IoU, overall IoU and precision at thresholds."""
        shared, predicted, true = (table[name].to_numpy() for name in PIXELS)
        union = predicted + true - shared
        iou = quotient(shared, union)

        def numbers(rows: Any) -> dict[str, Statistic]:
            precision = {f"p@{t:g}": mean(iou >= t, rows) for t in thresholds or (0.5, 0.7, 0.9)}
            return {"miou": mean(iou, rows), "oiou": ratio(shared, union, rows), **precision}

        return by_column(table, by, numbers)


BENCHMARK = RefCOCOToy()
