"""The parts of a scoring as one score table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa
from datasets import Dataset

from bench_datasets.benchmark import get_benchmark
from bench_datasets.execution.shards import NAME, content, features_of, part_name, read_part
from bench_datasets.faults import BenchError, shorten
from bench_datasets.scoring.prepare import sort_order
from bench_datasets.scoring.provenance import with_provenance

SHOWN = 20
"""Missing parts that are named."""


def join(tables: Sequence[pa.Table], benchmark: str) -> pa.Table:
    """Score rows of several parts as one sorted table, without metadata."""
    whole = pa.concat_tables(table.replace_schema_metadata(None) for table in tables)
    order = sort_order(whole, get_benchmark(benchmark).sort_columns)
    return whole.take(pa.array(order)).combine_chunks()


def merge(parts: Sequence[str | os.PathLike[str]]) -> Dataset:
    """One score table out of parts.

    Args:
        parts: files of parts, or folders of them.

    Returns:
        The same score table, to the byte, as one process gives.

    Raises:
        BenchError: a part is missing, damaged, there twice with different content, or made from other inputs.
    """
    files = [file for path in parts for file in _files(Path(path))]
    if not files:
        raise BenchError(
            f"merge: expected files part-I-of-N.parquet in {', '.join(map(str, parts))}, found none; give the folder"
            " that `score --shard` wrote"
        )
    read = [(file, *read_part(file)) for file in files]
    first_file, first, _ = read[0]
    tables: dict[int, pa.Table] = {}
    for file, manifest, table in read:
        for name in ("benchmark", "count", "inputs", "version"):
            if getattr(manifest, name) != getattr(first, name):
                own, other = (shorten(getattr(part, name)) for part in (manifest, first))
                found = f"its {name} is {own}, not {other}"
                if name == "inputs":
                    found = "it was scored from other predictions, other ground truth or with other options"
                raise BenchError(f"merge: {file} does not belong to {first_file}: {found}")
        if manifest.index in tables and content(tables[manifest.index]) != manifest.content:
            raise BenchError(f"merge: part {manifest.index} is there twice, with different content ({file})")
        tables[manifest.index] = table
    missing = first.count - len(tables)
    if missing:
        absent = (index for index in range(first.count) if index not in tables)
        named = ", ".join(part_name(index, first.count) for index in islice(absent, SHOWN))
        more = f" and {missing - SHOWN} more" if missing > SHOWN else ""
        raise BenchError(
            f"merge: {missing} of {first.count} parts are missing: {named}{more}; score them"
            f" (--shard I/{first.count}), then merge again"
        )
    whole = join(list(tables.values()), first.benchmark)
    if len(whole) != first.rows:
        raise BenchError(f"merge: expected {first.rows} rows in all, found {len(whole)}; score the parts again")
    features = features_of(first.benchmark, whole)
    return Dataset(with_provenance(whole.cast(features.arrow_schema), features, first.record))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted((file for file in path.iterdir() if NAME.fullmatch(file.name)), key=lambda file: file.name)
    return [path]
