"""PVSG for `evaluate.load`: everything stands in the package, so that both give the same numbers."""

from bench_datasets.benchmarks.pvsg.hf_evaluate import Pvsg as Pvsg
