"""A benchmark in another package: RefCOCO's task, on a few rows of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from datasets import List, Value

from bench_datasets.benchmark import Benchmark, Protocol, Source
from bench_datasets.masks import Decoded
from bench_datasets.results.estimates import Gathered
from bench_datasets.scoring.options import ScoreOptions


class RefCOCOToy(Benchmark):
    """One image, one expression and one mask per row."""

    name = "refcoco_toy"
    title = "RefCOCO (toy)"
    builder = "bench_refcoco.builder"
    source = Source(repo="", revision="", env="BENCH_REFCOCO", rows={"val": 3, "test": 4}, licence="Apache-2.0")
    protocols = {
        "default": Protocol(
            name="default", version="1", meaning="IoU of the union of the predicted masks with the one true mask."
        )
    }
    headline = {"default": "miou"}
    headline_parts = {"default": "p@"}
    truth_columns = ("key", "id", "split", "expression", "masks", "faults")
    score_columns = {
        "key": (Value("string"), "the truth row's key, `<split>/<id>`"),
        "cluster": (Value("string"), "what the row is resampled with: its key"),
        "protocol": (Value("string"), "protocol and version"),
        "row_sha256": (Value("string"), "hash of the truth row"),
        "split": (Value("string"), "the row's split"),
        "faults": (List(Value("string")), "fault codes"),
        "skipped": (Value("bool"), "whether a fault kept the row from being scored"),
        "intersection": (Value("int64"), "pixels shared by the union of the predictions and the truth"),
        "predicted": (Value("int64"), "pixels of the union of the predictions"),
        "true": (Value("int64"), "pixels of the truth"),
    }
    counted = "rows"
    citation = "@misc{refcocotoy, title={RefCOCO (toy)}, year={2026}}"
    about = "Squares, and expressions that say which one. A row is an expression with the one mask that it means."
    task_categories = ("image-segmentation",)
    tags = ("referring-segmentation",)
    columns = {"masks": "The mask of the one square that is meant, as COCO compressed RLE."}

    def score_table(
        self, batch: pa.Table | Mapping[str, Any], options: ScoreOptions, decoded: Decoded | None = None
    ) -> pa.Table:
        """A score row for each row of the batch."""
        from bench_refcoco.metric import score_table

        return score_table(self, batch, options)

    def statistics(
        self,
        table: pa.Table,
        protocol: str,
        *,
        k: Sequence[int] | None = None,
        thresholds: Sequence[float] | None = None,
        by: Sequence[str] = (),
    ) -> Gathered:
        """Mean IoU, overall IoU and precision at thresholds."""
        from bench_refcoco.metric import statistics

        return statistics(table, thresholds=thresholds, by=by)


BENCHMARK = RefCOCOToy()
