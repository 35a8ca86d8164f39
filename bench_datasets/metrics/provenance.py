"""What a score table knows of where it came from: JSON in its Arrow schema, under a name of our own."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from datasets import Dataset, DatasetInfo, Features, IterableDataset
from datasets.arrow_writer import ArrowWriter

_NAME = "bench_datasets"
_DATASETS = b"huggingface"


def with_provenance(table: pa.Table, features: Features, provenance: dict[str, Any]) -> pa.Table:
    """The table with its features (as `datasets` stores them) and its provenance in the schema's metadata.

    `datasets` rewrites the metadata of every table but keeps what stands inside its own entry, so that is where the
    provenance goes; it survives `Dataset(...)`, `save_to_disk` and files that we write, not `Dataset.to_parquet`.
    """
    content = json.loads(ArrowWriter._build_metadata(DatasetInfo(features=features))["huggingface"])
    content[_NAME] = provenance
    return table.replace_schema_metadata({_DATASETS: json.dumps(content, sort_keys=True).encode()})


def provenance_of(scores: Dataset | IterableDataset | pa.Table) -> dict[str, Any] | None:
    """The provenance that a score table bears, or `None`."""
    if isinstance(scores, IterableDataset):
        return None
    schema = scores.data.schema if isinstance(scores, Dataset) else scores.schema
    metadata = schema.metadata or {}
    if _DATASETS not in metadata:
        return None
    found = json.loads(metadata[_DATASETS]).get(_NAME)
    return found if isinstance(found, dict) else None
