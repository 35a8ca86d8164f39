"""File formats of predictions that several benchmarks read."""
