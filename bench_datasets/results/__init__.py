"""Results: statistics with confidence intervals, summaries and comparisons of score tables."""

from bench_datasets.results.result import Metric, Result, Slice

__all__ = ["Metric", "Result", "Slice"]
