"""InstanceBench for `evaluate.load`: everything stands in the package, so that both give the same numbers."""

from bench_datasets.benchmarks.instancebench.hf_evaluate import Instancebench as Instancebench
