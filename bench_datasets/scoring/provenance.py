"""Provenance of a score table: JSON in its Arrow schema, under a name of this package."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from datasets import Dataset, Features, IterableDataset

from bench_datasets._compat import features_entry
from bench_datasets.faults import BenchError
from bench_datasets.scoring.record_schema import validate_provenance

_NAME = "bench_datasets"
_DATASETS = b"huggingface"


def with_provenance(table: pa.Table, features: Features, provenance: dict[str, Any] | None) -> pa.Table:
    """The table with its features (as `datasets` stores them) and its provenance in the schema's metadata.

    Other metadata is left out; so is the provenance for `None`.

    `datasets` rewrites the metadata of every table but keeps what stands inside its own entry, so that is where the
    provenance goes; it survives `Dataset(...)`, `save_to_disk` and files that we write, not `Dataset.to_parquet`.
    """
    content = features_entry(features)
    if provenance is not None:
        content[_NAME] = provenance
    return table.replace_schema_metadata({_DATASETS: json.dumps(content, sort_keys=True).encode()})


def provenance_of(scores: Dataset | IterableDataset | pa.Table) -> dict[str, Any] | None:
    """The provenance that a score table holds, or `None`.

    Raises:
        BenchError: what stands there is no provenance.
    """
    if isinstance(scores, IterableDataset):
        return None
    schema = scores.data.schema if isinstance(scores, Dataset) else scores.schema
    metadata = schema.metadata or {}
    if _DATASETS not in metadata:
        return None
    try:
        content = json.loads(metadata[_DATASETS])
        found = content.get(_NAME) if isinstance(content, dict) else None
        if found is None:
            return None
        validate_provenance(found)
    except (ValueError, RecursionError) as error:
        reason = f"({str(error)[:200]})"
        raise BenchError(f"scores: expected their provenance in the metadata, found something else {reason}") from None
    return dict(found)
