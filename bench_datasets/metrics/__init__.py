"""Metrics: scoring, summing up and what the benchmarks share."""
