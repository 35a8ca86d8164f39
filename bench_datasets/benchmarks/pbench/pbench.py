"""PBench for `evaluate.load`: everything stands in the package, so that both give the same numbers."""

from bench_datasets.benchmarks.pbench.hf_evaluate import Pbench as Pbench
