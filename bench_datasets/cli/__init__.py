"""The command line, `bench-datasets`: a command a file, over the same functions that Python code calls."""

from bench_datasets.cli.app import app, main

__all__ = ["app", "main"]
