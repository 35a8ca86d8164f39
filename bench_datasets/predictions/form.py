"""`PredictionForm`: how a benchmark's predictions are written, read and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from datasets import Features

from bench_datasets.predictions.files import Location
from bench_datasets.predictions.signature import Signature

if TYPE_CHECKING:
    from bench_datasets.predictions.check import CheckReport


@dataclass(frozen=True)
class PredictionForm:
    """How a benchmark's predictions are written, read and checked.

    Attributes:
        features: columns of `read_predictions`.
        readers: a reader per format name; each yields batches with the columns of `features`.
        read_dataset: reads predictions that are Python objects: a Dataset, a list of dictionaries, a DataFrame, ...
        signature: the fields, files and words by which these predictions are told from others.
        check: checks predictions of a benchmark, by its name, with or without ground truth.
        unvalidated_readers: readers, by format name, that may leave invalid masks in the rows; for scoring, which
            validates every mask and so need not decode them twice.
        read_again: whether a file with invalid masks is then read again with validation, as its reader says of them
            what scoring does not.
    """

    features: Features
    readers: Mapping[str, Callable[[Location], Iterator[pa.RecordBatch]]]
    read_dataset: Callable[[Any], Iterator[pa.RecordBatch]]
    signature: Signature
    check: Callable[[str, Any, Any], CheckReport]
    unvalidated_readers: Mapping[str, Callable[[Location], Iterator[pa.RecordBatch]]] = field(default_factory=dict)
    read_again: bool = False
