"""The parts of `scripts/benchmark.py`: synthetic masks, a clock that alternates, and one module a suite."""
