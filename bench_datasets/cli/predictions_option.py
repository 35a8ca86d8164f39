"""Predictions that a command was given: read, or refused in the command line's own words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench_datasets.benchmark import get_benchmark
from bench_datasets.cli.console import working
from bench_datasets.faults import BenchError

if TYPE_CHECKING:
    from datasets import Dataset


def read_answers(
    benchmark: str, predictions: str, kind: str | None, data: str | None, *, validate: bool = True
) -> Dataset:
    """Predictions of a benchmark.

    Args:
        benchmark: its name.
        predictions: where they are.
        kind: their format, or None for one that is to be recognised.
        data: where the truth is.
        validate: whether to validate the masks here; scoring does it itself.

    Raises:
        BenchError: they can't be read; where they are absent and the truth is the sample, the message names some.
    """
    from bench_datasets.predictions.files import NothingThereError
    from bench_datasets.predictions.read import read_for_scoring, read_predictions

    read = read_predictions if validate else read_for_scoring
    try:
        with working("reading the predictions"):
            return read(benchmark, predictions, format=kind)
    except NothingThereError as error:
        some = _some(benchmark) if data == "sample" else None
        if some is None:
            raise
        raise BenchError(f"{error}; a model's answers to the sample are in {some}") from None


def _some(benchmark: str) -> str | None:
    """A file of predictions for the built-in sample: the demo's if it exists, else one made now."""
    from bench_datasets import samples

    model = next(iter(samples.SAMPLE_MODELS))
    near = Path("demo") / benchmark / f"{model}.jsonl"
    return str(near) if near.is_file() else get_benchmark(benchmark).sample_predictions(model)
