"""PVSG for `evaluate.load`: everything stands in the package, so that both give the same numbers."""

from bench_datasets.metrics.pvsg.evaluating import Pvsg as Pvsg
