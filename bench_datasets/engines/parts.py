"""Parts of a scoring: which rows belong to which, one file each that appears whole, and their merging."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset
from numpy.typing import NDArray

from bench_datasets import __version__
from bench_datasets.benchmarks import get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.metrics.hashes import canonical_json
from bench_datasets.metrics.planning import Plan, rows_at_a_time, sort_order, table_features
from bench_datasets.metrics.provenance import with_provenance

_MANIFEST = b"bench_datasets.part"
NAME = re.compile(r"part-(\d+)-of-(\d+)\.parquet")


@dataclass(frozen=True)
class Manifest:
    """What a part was made from; parts belong together if all but `index` and `content` agree.

    Attributes:
        benchmark: its name.
        index: number of the part, from 0.
        count: number of parts.
        inputs: SHA-256 over the truth, the predictions, the protocol and the choices.
        record: the provenance of the scores.
        version: of this package.
        rows: score rows of all parts together.
        content: SHA-256 over this part's score rows.
    """

    benchmark: str
    index: int
    count: int
    inputs: str
    record: dict[str, Any]
    version: str
    rows: int
    content: str

    def to_json(self) -> str:
        """As one line of JSON."""
        return json.dumps(self.__dict__, sort_keys=True, ensure_ascii=False)


def part_name(index: int, count: int) -> str:
    """The file of a part.

    Example:
        >>> part_name(3, 7)
        'part-3-of-7.parquet'
    """
    return f"part-{index}-of-{count}.parquet"


def part_of(key: str, count: int) -> int:
    """The part that a truth row belongs to: by the hash of its key, whatever order rows come in.

    Example:
        >>> [part_of(f"level_0/{i}", 3) for i in range(6)]
        [0, 0, 0, 0, 2, 1]
    """
    return int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:8], "big") % count


def units_of(plan: Plan, count: int) -> list[list[int]]:
    """The units of each part of a plan."""
    keys = plan.labels["key"] if "key" in plan.labels.column_names else plan.units.names
    home = np.array([part_of(key, count) for key in keys], np.int64)[plan.units.truth]
    return [np.flatnonzero(home == index).tolist() for index in range(count)]


def inputs_hash(plan: Plan) -> str:
    """SHA-256 over all that decides the scores: truth, predictions, pairing, protocol, choices."""
    digest = hashlib.sha256(canonical_json(plan.record))
    arrow = plan.labels.with_format("arrow")
    size = rows_at_a_time(plan.labels)
    for first in range(0, len(plan.labels), size):
        table = arrow[first : first + size]
        for name in table.column_names:
            digest.update(name.encode())
            _feed(digest, pa.concat_arrays(table[name].chunks))
    digest.update(plan.units.truth.astype("<i8").tobytes())
    choices = {name: getattr(plan.options, name) for name in ("level", "oracle", "boundary")}
    digest.update(canonical_json(choices))
    return digest.hexdigest()


def write_part(plan: Plan, table: pa.Table, index: int, count: int, inputs: str, folder: Path) -> Path:
    """Write a part's score rows with its manifest; the file appears whole or not at all.

    Raises:
        OSError: it can't be written.
    """
    table = table.take(pa.array(sort_order(table, plan.metric.SORT_COLUMNS))).cast(plan.features.arrow_schema)
    manifest = Manifest(
        plan.benchmark, index, count, inputs, plan.record, __version__, len(plan.units), _content(table)
    )
    table = with_provenance(table, plan.features, plan.record)
    table = table.replace_schema_metadata({**table.schema.metadata, _MANIFEST: manifest.to_json().encode()})
    target = folder / part_name(index, count)
    partial = folder / f".{target.name}.{os.getpid()}"
    try:
        pq.write_table(table, partial, compression="zstd")
        with open(partial, "rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    side = target.with_suffix(".json")
    partial = folder / f".{side.name}.{os.getpid()}"
    partial.write_text(manifest.to_json() + "\n", encoding="utf-8")
    os.replace(partial, side)
    return target


def read_part(path: Path) -> tuple[Manifest, pa.Table]:
    """A part's manifest and score rows.

    Raises:
        BenchError: the file is no part, is cut short, or was changed after it was written.
    """
    again = "delete it and score that part again"
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise BenchError(f"{path}: the part is cut short or no Parquet file ({error}); {again}") from error
    content = (table.schema.metadata or {}).get(_MANIFEST)
    if content is None:
        raise BenchError(f"{path}: expected a part with its manifest, found a Parquet file without; {again}")
    manifest = Manifest(**json.loads(content))
    if _content(table) != manifest.content:
        raise BenchError(f"{path}: the rows are not those that the part was written with; {again}")
    return manifest, table


def done(folder: Path, index: int, count: int, inputs: str) -> bool:
    """Whether a part is there already, for these inputs.

    Raises:
        BenchError: there is one that was made from other inputs, or is damaged.
    """
    path = folder / part_name(index, count)
    if not path.exists():
        return False
    manifest, _ = read_part(path)
    if manifest.inputs != inputs:
        raise BenchError(
            f"{path}: this part was made from other inputs (truth, predictions, protocol or choices); use another"
            " folder, or delete it"
        )
    return True


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
        raise BenchError(f"merge: expected files part-I-of-N.parquet in {', '.join(map(str, parts))}, found none")
    read = [(file, *read_part(file)) for file in files]
    first_file, first, _ = read[0]
    tables: dict[int, pa.Table] = {}
    for file, manifest, table in read:
        for name in ("benchmark", "count", "inputs", "version"):
            if getattr(manifest, name) != getattr(first, name):
                raise BenchError(
                    f"merge: {file} does not belong to {first_file}: its {name} is {getattr(manifest, name)!r},"
                    f" not {getattr(first, name)!r}"
                )
        if manifest.index in tables and _content(tables[manifest.index]) != manifest.content:
            raise BenchError(f"merge: part {manifest.index} is there twice, with different content ({file})")
        tables[manifest.index] = table
    missing = [index for index in range(first.count) if index not in tables]
    if missing:
        raise BenchError(
            f"merge: {len(missing)} of {first.count} parts are missing: {', '.join(map(str, missing[:20]))}"
        )
    metric = get_benchmark(first.benchmark).metric_module()
    boundary = any(name.startswith("boundary_") for name in next(iter(tables.values())).column_names)
    features = table_features(first.benchmark, boundary=boundary)
    whole = pa.concat_tables(table.replace_schema_metadata(None) for table in tables.values())
    if len(whole) != first.rows:
        raise BenchError(f"merge: expected {first.rows} rows in all, found {len(whole)}; score the parts again")
    whole = whole.take(pa.array(sort_order(whole, metric.SORT_COLUMNS))).combine_chunks()
    return Dataset(with_provenance(whole.cast(features.arrow_schema), features, first.record))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted((file for file in path.iterdir() if NAME.fullmatch(file.name)), key=lambda file: file.name)
    return [path]


def _content(table: pa.Table) -> str:
    digest = hashlib.sha256()
    for name in table.column_names:
        digest.update(name.encode())
        column = table[name]
        if column.num_chunks:
            _feed(digest, pa.concat_arrays(column.chunks))
    return digest.hexdigest()


def _feed(digest: Any, array: pa.Array) -> None:
    """Hash an array's content, however its buffers lie."""
    kind = array.type
    digest.update(np.int64(kind.id).tobytes())
    digest.update(np.int64(len(array)).tobytes())
    if array.null_count:
        digest.update(np.packbits(array.is_valid().to_numpy(zero_copy_only=False)).tobytes())
    if pa.types.is_struct(kind):
        for k in range(kind.num_fields):
            _feed(digest, array.field(k))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        digest.update(_lengths(array).tobytes())
        _feed(digest, array.flatten())
    elif pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        filled = array.fill_null("" if not pa.types.is_binary(kind) else b"")
        digest.update(np.asarray([len(value) for value in filled.to_pylist()], "<i8").tobytes())
        digest.update(
            b"".join(v if isinstance(v, bytes) else v.encode("utf-8", "surrogatepass") for v in filled.to_pylist())
        )
    elif not pa.types.is_null(kind):
        filled = array.fill_null(False if pa.types.is_boolean(kind) else 0) if array.null_count else array
        digest.update(np.ascontiguousarray(filled.to_numpy(zero_copy_only=False)).tobytes())


def _lengths(array: pa.Array) -> NDArray[np.int64]:
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False), np.int64)
