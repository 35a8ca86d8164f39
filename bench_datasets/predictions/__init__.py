"""Predictions: what models wrote, in any of several formats, as one kind of table; pairing with the truth; a check."""

from bench_datasets._util.arrow import arrow_columns, lists_of
from bench_datasets.predictions.check import CheckReport, FaultGroup, check
from bench_datasets.predictions.pairing import Pairing, pair
from bench_datasets.predictions.read import read_predictions

__all__ = [
    "CheckReport",
    "FaultGroup",
    "Pairing",
    "arrow_columns",
    "check",
    "lists_of",
    "pair",
    "read_predictions",
]
