"""Metrics for `evaluate.load`."""
