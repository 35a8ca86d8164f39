"""A benchmark in another package: RefCOCO's task, on a few rows of our own. This entry is all that is declared."""

from __future__ import annotations

from bench_datasets.benchmark import Benchmark, Source

BENCHMARK = Benchmark(
    name="refcoco_toy",
    title="RefCOCO (toy)",
    builder="bench_refcoco.builder",
    metric="bench_refcoco.metric",
    protocols=("default",),
    source=Source(repo="", revision="", env="BENCH_REFCOCO", rows={"val": 3, "test": 4}, licence="Apache-2.0"),
    headline={"default": "miou"},
    counted="rows",
    citation="@misc{refcocotoy, title={RefCOCO (toy)}, year={2026}}",
    about="Squares, and expressions that say which one. A row is an expression with the one mask that it means.",
    task_categories=("image-segmentation",),
    tags=("referring-segmentation",),
    columns={"masks": "The mask of the one square that is meant, as COCO compressed RLE."},
    modules={"predictions": "bench_datasets.benchmarks.pbench.predictions"},
)
