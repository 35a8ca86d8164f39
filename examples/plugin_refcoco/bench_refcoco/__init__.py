"""A benchmark in another package: RefCOCO's task, on a few rows of our own. This entry is all that is declared."""

from __future__ import annotations

from bench_datasets.benchmarks import Benchmark, Source

BENCHMARK = Benchmark(
    name="refcoco_toy",
    title="RefCOCO (toy)",
    builder="bench_refcoco.builder",
    metric="bench_refcoco.metric",
    protocols=("default",),
    source=Source(repo="", revision="", env="BENCH_REFCOCO", rows={"val": 3, "test": 4}, licence="Apache-2.0"),
    headline={"default": "miou"},
    citation="@misc{refcocotoy, title={RefCOCO (toy)}, year={2026}}",
    modules={"predictions": "bench_datasets.predictions.pbench"},  # masks by key or id, in any of PBench's formats
)
