"""Scoring on a Ray cluster: truth and predictions as Parquet anywhere, the same score function, the same bytes.

The driver reads names alone (keys, ids, expressions) to pair rows; masks are read, validated and scored by tasks. Ray
comes with `pip install "bench-datasets[ray]"` and is imported when it is used. Truth rows are those of the builder
(`Dataset.to_parquet`, a published copy). Predictions for neighbouring truth rows should lie near each other: each task
reads the row groups of predictions that its rows are paired with.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from datasets import Dataset

from bench_datasets.benchmark import get_benchmark
from bench_datasets.execution.merge_shards import join
from bench_datasets.execution.remote_rows import Blocks, Index, locate_parquet, normalised, scored, told, verified
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.results.run_files import write_scores
from bench_datasets.scoring.batching import BATCH_ROWS, ArrowRows
from bench_datasets.scoring.hashes import content_hash
from bench_datasets.scoring.options import ScoreOptions
from bench_datasets.scoring.prepare import Plan, count_faults, record_of, table_features

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


HEAVY = ("pred_masks", "pred_scores", "pred_centers", "pred_sizes", "mask", "pred_tubes", "pred_triplets")
"""The predictions' columns that it does not need."""


def score_on_ray(
    benchmark: str,
    truth_url: str,
    predictions_url: str,
    out: str,
    address: str | None = None,
    protocol: str | None = None,
    *,
    dataset: Mapping[str, Any] | None = None,
    missing: str = "error",
    on_fault: str = "stop",
    boundary: bool = False,
    oracle: str | None = None,
    engine: str | None = None,
    write: bool = True,
) -> Dataset:
    """Score on Ray.

    Args:
        benchmark: its name.
        truth_url: Parquet of truth rows: a file, or a folder of them; any URL that fsspec opens on every node
            (`s3://`, `hf://`, a shared folder).
        predictions_url: Parquet of predictions, likewise; every row bears its name (key, id, expression_id).
        out: folder that every node can write, by path or URL, for parts meanwhile. One by path gets `scores.parquet`,
            too; for a URL, write what is returned.
        address: of a cluster; `None` for the one that is connected, else one on this machine.
        protocol: a protocol's name; the benchmark's default for `None`.
        dataset: where the truth is from, for the provenance: `source`, `split`, `revision`, `expected` rows.
        missing: as for `score`.
        on_fault: as for `score`.
        boundary: as for `score`.
        oracle: as for `score`.
        engine: as for `score`.
        write: whether a folder by path gets `scores.parquet`; else what is in it stays.

    Returns:
        The same score table, to the byte, as `scoring.score` gives.

    Raises:
        BenchError: Ray is not installed, or as `score`.
        FaultError: as `score`; every prediction is validated before the first one is scored.

    Example:
        >>> scores = score_on_ray("pbench", "s3://b/truth", "s3://b/preds", "s3://b/run")     # doctest: +SKIP
    """
    ray = _ray()
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    metric = get_benchmark(benchmark)
    options = ScoreOptions(
        metric.protocol(protocol).name, missing, on_fault, engine=engine, oracle=oracle, boundary=boundary
    )
    features = table_features(benchmark, boundary=boundary)
    fs, truth = locate_parquet(truth_url)
    labels = _names(fs, truth, metric.pairing_columns or metric.truth_columns)
    if not len(labels):
        raise BenchError(f"{truth_url}: expected rows, found none")
    with _connected(ray, address), _meanwhile(out) as (store, place), _plain_errors():
        arrow = _arrow(store)
        _map(ray, predictions_url, normalised(benchmark)).write_parquet(f"{place}/predictions", filesystem=arrow)
        answers = Blocks(store, sorted(store.glob(f"{place}/predictions/*.parquet")))
        named = answers.names([name for name in answers.schema.names if name not in HEAVY])
        units = metric.pair_units(labels, Dataset(named), options, True)
        others = count_faults(units, options)
        shared = ray.put(Index.of(benchmark, options, answers, labels["key"], units))
        hashes = _verified(ray, answers, shared)
        given = {"sha256": content_hash(hashes), "rows": len(named), "missing": units.missing}
        source = {"source": None, "split": None, "revision": None, "expected": None, **(dataset or {})}
        record = record_of(benchmark, options, source, given, others)
        columns = [name for name in metric.truth_columns if name in Blocks(fs, truth).schema.names]
        _map(ray, truth_url, scored(ray, shared), columns).write_parquet(f"{place}/scores", filesystem=arrow)
        tables = [Blocks(store, [file]).read() for file in sorted(store.glob(f"{place}/scores/*.parquet"))]
    table = join([table.cast(features.arrow_schema) for table in tables], benchmark)
    if len(table) != len(units):
        raise BenchError(f"ray: expected {len(units)} score rows, found {len(table)}; run it again")
    scores = Plan(benchmark, options, labels, ArrowRows(Dataset(named)), units, record).finish(table)
    if write and "://" not in out:
        write_scores(scores, Path(out))
    return scores


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise BenchError(f'ray: not installed ({error}); pip install "bench-datasets[ray]"') from error
    return ray


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Raise errors of the input as the task raised them."""
    try:
        yield
    except BenchError:
        raise
    except Exception as error:
        found: BaseException | None = error
        while found is not None:
            own = told(found)
            if own is not None:
                raise own from error
            found = found.__cause__
        raise


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """A cluster; one that was started for this ends with it."""
    if ray.is_initialized():
        yield
        return
    ray.init(address=address, log_to_driver=False, logging_level="warning")
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _meanwhile(out: str) -> Iterator[tuple[AbstractFileSystem, str]]:
    """A temporary folder below `out`, and its file system; after an error an `out` that was made for it goes, too.

    Raises:
        BenchError: `out` is named like a score file.
    """
    from fsspec.core import url_to_fs

    if out.rstrip("/").endswith(".parquet"):
        raise BenchError(f"out: expected a folder, got {out}; the scores are written into it as scores.parquet")
    fs, path = url_to_fs(out if "://" in out else os.path.abspath(out))
    new = not fs.exists(path)
    place = f"{path.rstrip('/')}/.ray-{uuid.uuid4().hex[:12]}"
    fs.makedirs(place, exist_ok=True)
    try:
        yield fs, place
    except BaseException:
        fs.rm(place, recursive=True)
        if new:
            with suppress(OSError, NotImplementedError):  # it holds something by now, or is no folder of its own
                fs.rmdir(path)
        raise
    fs.rm(place, recursive=True)


def _arrow(fs: AbstractFileSystem) -> Any:
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    return PyFileSystem(FSSpecHandler(fs))


def _names(fs: AbstractFileSystem, files: list[str], wanted: tuple[str, ...]) -> Dataset:
    blocks = Blocks(fs, files)
    if "key" not in blocks.schema.names:
        raise BenchError(
            f"{files[0]}: expected truth rows with a column key, as load_dataset gives them, found the columns"
            f" {', '.join(blocks.schema.names[:8])}; write them with load_dataset(NAME, ...).to_parquet(...)"
        )
    return Dataset(blocks.names([name for name in wanted if name in blocks.schema.names]))


def _map(ray: Any, url: str, function: Callable[[pa.Table], pa.Table], columns: list[str] | None = None) -> Any:
    """The rows of Parquet files, through a function, a batch at a time."""
    fs, files = locate_parquet(url)
    rows = ray.data.read_parquet(files, filesystem=_arrow(fs))
    if columns is not None:
        rows = rows.select_columns(columns)
    return rows.map_batches(function, batch_format="pyarrow", batch_size=BATCH_ROWS)


def _verified(ray: Any, answers: Blocks, shared: Any) -> list[str]:
    """Validate every prediction that is scored; the hashes of all.

    Raises:
        FaultError: one is faulty and the options say to stop.
    """
    lots = ray.data.range(len(answers.groups))
    found = lots.map_batches(verified(ray, shared), batch_format="pyarrow", batch_size=1)
    hashes: list[str] = []
    faults: list[tuple[int, list[str]]] = []
    for batch in found.iter_batches(batch_format="pyarrow", batch_size=None):
        for lot, own, fault in zip(*(batch[name].to_pylist() for name in ("lot", "hashes", "fault")), strict=True):
            hashes += own
            if fault:
                faults.append((lot, fault))
    if faults:
        raise FaultError(*min(faults)[1])
    return hashes
