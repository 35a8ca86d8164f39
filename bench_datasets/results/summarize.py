"""Summing up: a score table in, a `Result` out."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from importlib import metadata
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, IterableDataset

from bench_datasets import __version__
from bench_datasets.benchmark import Benchmark, get_benchmark
from bench_datasets.data.provenance import without_secrets
from bench_datasets.faults import FAULTS, BenchError
from bench_datasets.results.result import Result
from bench_datasets.scoring.hashes import content_hash
from bench_datasets.scoring.options import COUNT_AS_WRONG
from bench_datasets.scoring.prepare import sort_order
from bench_datasets.scoring.provenance import provenance_of

DEFAULT_K = (20, 50, 100)

EXAMPLES = 5
"""Keys that are named with each fault."""

PACKAGES = ("datasets", "numpy", "scipy", "pyarrow", "pycocotools")


def summarize(
    benchmark: str,
    scores: Dataset | IterableDataset | pa.Table,
    *,
    k: int | Sequence[int] = DEFAULT_K,
    thresholds: float | Sequence[float] | None = None,
    by: str | Sequence[str] = (),
    draws: int = 10_000,
    seed: int = 0,
    provenance: Mapping[str, Any] | None = None,
) -> Result:
    """Every number of a score table.

    Args:
        benchmark: its name.
        scores: what `score`, `map_score` or `Dataset.map(scorer(...))` gave; streaming or not.
        k: PVSG: ranks up to which triplets count, one or several; from 1.
        thresholds: one IoU threshold or several: of PBench's row score and of PVSG's recall in place of the protocol's
            (the result is then comparable to nothing published), of further InstanceBench numbers.
        by: a further column of the score table to slice by, or several.
        draws: bootstrap draws; 0 for no intervals.
        seed: of the draws.
        provenance: where the scores came from, for tables that lost it (through `Dataset.map` or Parquet).

    Returns:
        The result. Without provenance it is honest but comparable to nothing.

    Raises:
        BenchError: the table is no score table of this benchmark, mixes protocols, holds a key twice, or no row of it
            was scored.

    Example:
        >>> result = summarize("pbench", scores)                                             # doctest: +SKIP
        >>> result.metrics["macro_f1/level_0"].value                                         # doctest: +SKIP
        0.26666666666666666
    """
    k = (k,) if isinstance(k, int) else k
    thresholds = (thresholds,) if isinstance(thresholds, (int, float)) else thresholds
    by = (by,) if isinstance(by, str) else by
    entry, metric = get_benchmark(benchmark), get_benchmark(benchmark)
    if draws < 0:
        raise BenchError(f"draws: expected 0 or more, got {draws}")
    table = read_table(scores, metric)
    protocol = one_protocol(table)
    chosen = metric.protocol(protocol["name"])
    if chosen.version != protocol["version"]:
        raise BenchError(
            f"scores: made under {protocol['name']}@{protocol['version']}, this package has version {chosen.version};"
            " score again, or use the package version that made them"
        )
    ranked = "k" in metric.options
    if not ranked and tuple(k) != DEFAULT_K:
        raise BenchError(f"k: {benchmark} has no ranked triplets; leave it out")
    if not tuple(k) or min(k) < 1:
        raise BenchError(f"k: expected ranks from 1, got {list(k)}")
    origin = dict(provenance or provenance_of(scores) or {})
    skipped = table["skipped"].to_numpy()
    scored = table.filter(pa.array(~skipped))
    faults = faults_by_code(table, origin.get("faults", {}))
    if not len(scored):
        found = ", ".join(f"{code}: {entry['count']:,}" for code, entry in faults.items())
        raise BenchError(
            f"scores: none of the {len(table):,} rows was scored, so there is no number; every row has a fault"
            f" ({found}); correct the predictions or the ground truth (`check` lists what is wrong)"
        )
    settings = {
        "missing": None,
        "on_fault": None,
        **origin.get("settings", {}),
        "k": list(k) if ranked else None,
        "boundary": any(name.startswith("boundary_") for name in table.column_names),
        "thresholds": None if thresholds is None else [float(t) for t in thresholds],
    }
    if oracle := oracle_of(scored):
        settings["oracle"] = oracle
    metrics, slices = metric.summarize_table(
        scored,
        chosen.name,
        thresholds=thresholds,
        by=by,
        draws=draws,
        seed=seed,
        k=tuple(k) if ranked else None,
    )
    dataset = {"source": None, "split": None, "revision": None, **origin.get("dataset", {})}
    if isinstance(dataset["source"], str):
        dataset["source"] = without_secrets(dataset["source"])
    expected = dataset.pop("expected", None)
    clean = dataset["source"] is not None and not skipped.any() and not origin.get("faults")
    clean = clean and not _counted_as_wrong(scored, settings["on_fault"])
    count = len(set(scored["key"].to_pylist()))
    clean = clean and expected in (None, count)
    comparable = metric.comparable_to(chosen.name, scored, dataset, settings) if clean else None
    image = metric.unit == "row" and scored["cluster"].to_pylist() != scored["key"].to_pylist()
    hashes = dict(zip(table["key"].to_pylist(), table["row_sha256"].to_pylist(), strict=True))
    return Result(
        benchmark=benchmark,
        protocol={"name": chosen.name, "version": chosen.version, "comparable_to": comparable},
        dataset={
            **dataset,
            "rows": {"scored": count, "expected": expected},
            "content_sha256": content_hash(hashes.values()),
        },
        predictions={"sha256": None, "rows": None, "missing": None, **origin.get("predictions", {})},
        settings=settings,
        statistics={
            "seed": seed, "draws": draws, "unit": "image" if image else metric.unit,
            "clusters": len(set(scored["cluster"].to_pylist())),
        },
        metrics=metrics,
        slices=slices,
        faults=faults,
        packages={"bench_datasets": __version__, **{name: _version(name) for name in PACKAGES}},
        created=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        headline=entry.headline_key(chosen.name, settings["k"]),
    )  # fmt: skip


def read_table(scores: Dataset | IterableDataset | pa.Table, metric: Benchmark) -> pa.Table:
    """A score table as Arrow, sorted, its rows apart.

    Args:
        scores: what scoring gave, streaming or not.
        metric: the benchmark's benchmark.

    Raises:
        BenchError: it is no score table of this benchmark, holds no rows, or holds a row twice.
    """
    schema, columns = metric.score_features().arrow_schema, metric.sort_columns
    if isinstance(scores, pa.Table):
        table = scores
    elif isinstance(scores, IterableDataset):
        # As Python values: Arrow's types of a stream are guessed batch by batch, and differ where lists are empty.
        batches = [_from_python(batch, schema) for batch in scores.with_format(None).iter(batch_size=1000)]
        table = pa.concat_tables(batches, promote_options="permissive") if batches else schema.empty_table()
    elif isinstance(scores, Dataset):
        table = scores.with_format("arrow")[:]
    else:
        raise BenchError(f"scores: expected a Dataset, a streaming one or an Arrow table, got {type(scores).__name__}")
    absent = [name for name in schema.names if name not in table.column_names]
    if absent:
        raise BenchError(
            f"scores: expected a score table with the columns {', '.join(schema.names[:6])}, ..., found"
            f" {', '.join(table.column_names[:6])}; score the rows first (bd.score, bd.map_score)"
        )
    if not len(table):
        raise BenchError("scores: the table holds no rows; was the truth empty?")
    table = _typed(table, schema)
    keys = list(zip(*(map(str, table[name].to_pylist()) for name in columns), strict=True))
    if all(one < other for one, other in pairwise(keys)):  # sorted already, as scoring leaves it
        return pa.table(table.combine_chunks())
    order = sort_order(table, columns)
    for one, other in pairwise(keys[i] for i in order.tolist()):
        if one == other:
            raise BenchError(
                f"{' '.join(one)}: two score rows bear this key; rows that did not come through load_dataset(NAME)"
                " must have ids that differ within a level"
            )
    return pa.table(table.take(pa.array(order)).combine_chunks())


def _typed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns' own types, where another writer gave them others; names are never null.

    Raises:
        BenchError: a column holds something else.
    """
    for name in ("key", "cluster", "protocol", "row_sha256", "skipped"):
        if name in schema.names and table[name].null_count:
            raise BenchError(
                f"scores: column {name!r}: expected a value in every row, found null; score the rows again"
            )
    for field in schema:
        found = table.schema.field(field.name).type
        if found != field.type:
            try:
                column = table[field.name].cast(field.type)
            except pa.ArrowException:
                text = f"expected {field.type}, found {found}; score the rows again"
                raise BenchError(f"scores: column {field.name!r}: {text}") from None
            table = table.set_column(table.column_names.index(field.name), field.name, column)
    return table


def _from_python(batch: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    known = {field.name: field.type for field in schema}
    return pa.table({name: pa.array(values, known.get(name)) for name, values in batch.items()})


def oracle_of(table: pa.Table) -> str | None:
    """The part of the predictions that the ground truth replaced in a score table, or `None`."""
    found = table["oracle"].to_pylist() if "oracle" in table.column_names else ()
    return ", ".join(sorted({str(oracle) for oracle in found if oracle})) or None


def one_protocol(table: pa.Table) -> dict[str, str]:
    """Name and version of the one protocol that a score table was made under."""
    names = sorted(set(table["protocol"].to_pylist()))
    if len(names) != 1:
        raise BenchError(f"scores: expected rows of one protocol, found {', '.join(names)}; summarise them apart")
    name, _, version = names[0].partition("@")
    return {"name": name, "version": version}


def _counted_as_wrong(scored: pa.Table, on_fault: str | None) -> bool:
    """Whether a prediction with a fault that ends the scoring by default was counted as wrong."""
    if on_fault != COUNT_AS_WRONG:
        return False
    codes = {code for row in scored["faults"].to_pylist() for code in row or ()}
    return any(code not in FAULTS or FAULTS[code].default == "stop" for code in codes)


def faults_by_code(table: pa.Table, others: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Faults of the rows, then those that belong to no row; codes in order, a few keys each.

    A row of ground truth counts once per code, even if it was scored in several runs and conditions.
    """
    found: dict[str, dict[str, None]] = {}
    table = table.filter(pc.greater(pc.list_value_length(table["faults"]), 0))
    for key, codes in zip(table["key"].to_pylist(), table["faults"].to_pylist(), strict=True):
        for code in codes or ():
            found.setdefault(code, {})[key] = None
    result: dict[str, dict[str, Any]] = {
        code: {"count": len(keys), "examples": list(keys)[:EXAMPLES]} for code, keys in found.items()
    }
    for code, entry in others.items():
        old = result.get(code, {"count": 0, "examples": []})
        result[code] = {
            "count": old["count"] + entry["count"],
            "examples": list(dict.fromkeys([*old["examples"], *entry["examples"]]))[:EXAMPLES],
        }  # fmt: skip
    return dict(sorted(result.items()))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
