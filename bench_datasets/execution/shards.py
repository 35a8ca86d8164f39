"""Parts of a scoring: which rows belong to which, and one file each that appears whole, with a manifest."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features

from bench_datasets import __version__
from bench_datasets._util.atomic import replacing
from bench_datasets._util.hashing import ContentHash
from bench_datasets._util.untrusted import load_json, open_regular
from bench_datasets._util.untrusted_tables import read_parquet
from bench_datasets.benchmark import get_benchmark
from bench_datasets.faults import BenchError, shorten
from bench_datasets.scoring.prepare import Plan, sort_order, table_features
from bench_datasets.scoring.provenance import with_provenance

_MANIFEST = b"bench_datasets.part"
MAX_MANIFEST = 1 << 20
"""Most bytes of a part's manifest."""

NAME = re.compile(r"part-(\d+)-of-(\d+)\.parquet")


@dataclass(frozen=True)
class Manifest:
    """The inputs that a part was made from; parts belong together if all but `index` and `content` agree.

    Attributes:
        benchmark: its name.
        index: number of the part, from 0.
        count: number of parts.
        inputs: SHA-256 over the truth, the predictions, the protocol and the choices.
        record: the provenance of the scores.
        rows: score rows of all parts together.
        version: of this package.
        content: SHA-256 over this part's score rows.
    """

    benchmark: str
    index: int
    count: int
    inputs: str
    record: dict[str, Any]
    rows: int
    version: str = __version__
    content: str = ""

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
    """The part that a ground truth row belongs to: by the hash of its key, in any order of rows.

    Example:
        >>> [part_of(f"level_0/{i}", 3) for i in range(6)]
        [0, 0, 0, 0, 2, 1]
    """
    return int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:8], "big") % count


def units_of(plan: Plan, count: int) -> list[list[int]]:
    """The units of each part of a plan."""
    keys = plan.labels["key"] if "key" in plan.labels.column_names else plan.units.names
    home = np.array([part_of(key, count) for key in keys], np.int64)[plan.units.truth]
    order = np.argsort(home, kind="stable")
    bounds = np.searchsorted(home[order], np.arange(count + 1))
    return [order[bounds[k] : bounds[k + 1]].tolist() for k in range(count)]


def write_part(table: pa.Table, manifest: Manifest, folder: Path) -> Path:
    """Write a part's score rows with its manifest; the file appears whole or not at all.

    The manifest stands in the file, so that they cannot part; a copy for people lies beside it.

    Args:
        table: the rows.
        manifest: of the part; its `content` is filled in.
        folder: is made where it is absent.

    Raises:
        OSError: it can't be written.
    """
    benchmark = get_benchmark(manifest.benchmark)
    features = features_of(manifest.benchmark, table)
    table = table.take(pa.array(sort_order(table, benchmark.sort_columns))).cast(features.arrow_schema)
    manifest = replace(manifest, content=content(table))
    table = with_provenance(table, features, manifest.record)
    table = table.replace_schema_metadata({**table.schema.metadata, _MANIFEST: manifest.to_json().encode()})
    target = folder / part_name(manifest.index, manifest.count)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(target, sync=True) as (partial,):
        pq.write_table(table, partial, compression="zstd")
    with replacing(target.with_suffix(".json"), sync=True) as (partial,):
        partial.write_text(manifest.to_json() + "\n", encoding="utf-8")
    return target


def read_part(path: Path) -> tuple[Manifest, pa.Table]:
    """A part's manifest and score rows.

    Raises:
        BenchError: the file is no part, is cut short, or was changed after it was written.
    """
    again = "delete it and score that part again"
    if not NAME.fullmatch(path.name):  # perhaps no part at all: never advise to delete it
        again = "give the folder that `score --shard` wrote"
    if path.exists() and not path.is_file():
        raise BenchError(f"{path}: expected a regular file, found a folder, pipe or device; {again}")
    try:
        with open_regular(path) as file:
            written = pq.read_schema(file).metadata or {}
            if _MANIFEST not in written:
                raise BenchError(f"{path}: expected a part with its manifest, found a Parquet file without; {again}")
            manifest = _manifest(written[_MANIFEST], path, again)
            table = read_parquet(file, str(path))
    except FileNotFoundError as error:
        raise BenchError(f"{path}: expected a part or a folder of parts, found no such file; check the path") from error
    except BenchError:
        raise
    except (OSError, pa.ArrowException, ValueError) as error:
        text = " ".join(str(error).split())[:200]
        raise BenchError(f"{path}: the part is cut short or no Parquet file ({text}); {again}") from error
    if content(table) != manifest.content:
        raise BenchError(f"{path}: the rows are not those that the part was written with; {again}")
    return manifest, table


def _manifest(written: bytes, path: Path, again: str) -> Manifest:
    """The manifest of a part's file, which other people may have written.

    Raises:
        BenchError: it is no JSON object of the fields of `Manifest`, or a value is of another type or out of range.
    """
    broken = f"{path}: the manifest is of another version of this package, or broken"
    try:
        fields: Any = load_json(written) if len(written) <= MAX_MANIFEST else {}
        manifest = Manifest(**fields)
    except (ValueError, TypeError, RecursionError) as error:
        raise BenchError(f"{broken}; {again}") from error
    kinds = {"benchmark": str, "index": int, "count": int, "inputs": str, "record": dict, "rows": int, "version": str}
    wrong = [name for name, kind in (kinds | {"content": str}).items() if type(getattr(manifest, name)) is not kind]
    if wrong:
        raise BenchError(f"{broken}: {wrong[0]}: found {shorten(getattr(manifest, wrong[0]))}; {again}")
    if not 0 <= manifest.index < manifest.count or manifest.rows < 0:
        found = f"part {shorten(manifest.index)} of {shorten(manifest.count)} with {shorten(manifest.rows)} rows"
        raise BenchError(f"{broken}: found {found}; {again}")
    get_benchmark(manifest.benchmark)
    return manifest


def done(folder: Path, manifest: Manifest) -> bool:
    """Whether a part is there already, of these inputs and this version of the package.

    Raises:
        BenchError: there is one that was made from other inputs, or is damaged.
    """
    path = folder / part_name(manifest.index, manifest.count)
    if not path.exists():
        return False
    found, _ = read_part(path)
    if found.version != manifest.version:
        raise BenchError(
            f"{path}: this part was made by version {found.version} of this package, not {manifest.version}; use"
            " another folder, or delete it"
        )
    if found.inputs != manifest.inputs:
        raise BenchError(
            f"{path}: this part was made from other inputs (truth, predictions, protocol or choices); use another"
            " folder, or delete it"
        )
    side = path.with_suffix(".json")
    if not side.exists():  # the run was stopped between the two
        with replacing(side, sync=True) as (partial,):
            partial.write_text(found.to_json() + "\n", encoding="utf-8")
    return True


def features_of(benchmark: str, table: pa.Table) -> Features:
    """The features of a score table, by its columns."""
    boundary = any(name.startswith("boundary_") for name in table.column_names)
    return table_features(benchmark, boundary=boundary)


def content(table: pa.Table) -> str:
    """SHA-256 over the rows of a table."""
    digest = ContentHash()
    digest.add(table)
    return digest.hexdigest()
