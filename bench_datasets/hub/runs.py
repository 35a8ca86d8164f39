"""Published runs: where a run's two files lie in a results repo, and reading them, whoever wrote them."""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_datasets.benchmarks import get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.hub.heads import Head
from bench_datasets.metrics.files import RESULT, SCORES, read_scores
from bench_datasets.metrics.hashes import content_hash
from bench_datasets.metrics.summarizing import one_protocol, read_table
from bench_datasets.results import Metric, Result

LARGEST = 32 << 20
"""Bytes of the largest result.json that is read."""

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?")
_RESULTS = re.compile(rf"results/([^/]+/[^/]+)/([^/]+)/{re.escape(RESULT)}")


@dataclass(frozen=True)
class Run:
    """One model's run.

    Attributes:
        model: `ORG/NAME`, or what its folder is called.
        name: of the run; empty for a folder that names none.
        result: its numbers.
        place: where it was read.
    """

    model: str
    name: str
    result: Result
    place: str


def run_name(result: Result, given: str | None = None) -> str:
    """A run's name in a results repo: the one given, or benchmark and protocol.

    Raises:
        BenchError: the given one cannot be one.
    """
    name = f"{result.benchmark}-{result.protocol['name']}" if given is None else given
    if not _NAME.fullmatch(name) or "--" in name or ".." in name:
        raise BenchError(
            f"--run: expected letters, digits and single . _ - between them, 96 at most, got {name!r}; try {'run-1'!r}"
        )
    return name


def files_of(model: str, run: str) -> tuple[str, str]:
    """Paths of a run's scores and result in a results repo.

    Example:
        >>> files_of("acme/net", "pbench-released")[0]
        'data/acme/net/pbench-released/scores.parquet'
    """
    return f"data/{model}/{run}/{SCORES}", f"results/{model}/{run}/{RESULT}"


def config_of(model: str, run: str) -> str:
    """The name of a run's config: no part of it may hold two dashes, so that no two runs share one.

    Example:
        >>> config_of("acme/net", "pbench-released")
        'acme--net--pbench-released'
    """
    return f"{model.replace('/', '--')}--{run}"


def split_of(result: Result) -> str:
    """The name of a run's split, as `datasets` takes it."""
    split = str(result.dataset["split"] or "test").partition("[")[0]
    return split if re.fullmatch(r"\w+(\.\w+)*", split) else "test"


def source_of(result: Result) -> str:
    """Where the rows came from, without the paths of anybody's machine."""
    source = result.dataset["source"]
    if source is None:
        return "an unknown source"
    return source if source == "sample" or HUB_ID.fullmatch(source) else "a copy of the rows"


def same_numbers(one: Result, other: Result) -> bool:
    """Whether two results say the same, when and with which versions they were made aside."""

    def said(result: Result) -> dict[str, Any]:
        return {name: value for name, value in result.to_dict().items() if name not in ("created", "packages")}

    return said(one) == said(other)


def open_run(folder: str | os.PathLike[str]) -> tuple[Path, Result]:
    """A run's scores file and its result, if they belong together.

    Args:
        folder: holds `scores.parquet` and `result.json`, as `score --out` leaves them.

    Raises:
        BenchError: one of them is missing or damaged, or the result is of other scores.
    """
    place = Path(folder)
    if not place.is_dir():
        raise BenchError(f"{place}: expected the folder of a run, as `bench-datasets score --out DIR` leaves it")
    result = sound(Result.load(place), place / RESULT)
    table = read_table(read_scores(place), get_benchmark(result.benchmark).metric_module())
    protocol = one_protocol(table)
    hashes = dict(zip(table["key"].to_pylist(), table["row_sha256"].to_pylist(), strict=True))
    found = (protocol["name"], protocol["version"], content_hash(hashes.values()))
    said = (result.protocol["name"], result.protocol["version"], result.dataset["content_sha256"])
    if found != said:
        raise BenchError(f"{place}: {RESULT} is of other scores than {SCORES}; score again into an empty folder")
    if "oracle" in table.column_names and any(table["oracle"].to_pylist()):
        raise BenchError(f"{place}: scored with an oracle, which is no result of a model; score without it")
    return place / SCORES, result


def published_runs(head: Head) -> tuple[list[Run], list[str]]:
    """Every run in a results repo, by path, and what is there and can't be read, in words."""
    found: dict[str, tuple[str, str]] = {}
    left_out: list[str] = []
    for path, (size, _, _) in sorted(head.files.items()):
        if match := _RESULTS.fullmatch(path):
            if not (HUB_ID.fullmatch(match[1]) and _NAME.fullmatch(match[2])):
                left_out.append(f"{head.repo_id}: {path}: expected results/ORG/NAME/RUN/{RESULT}")
            elif size > LARGEST:
                left_out.append(f"{head.repo_id}: {path}: {size:,} bytes, {LARGEST:,} are read")
            else:
                found[path] = (match[1], match[2])
    runs: list[Run] = []
    for path, data in head.read_all(found).items():
        place = f"{head.repo_id}: {path}"
        try:
            runs.append(Run(*found[path], _parsed(data, place), place))
        except BenchError as error:
            left_out.append(str(error))
    return runs, left_out


@functools.lru_cache(512)
def _parsed(data: bytes, place: str) -> Result:
    """A result file's content; a commit that is planned anew reads it again and again."""
    return sound(Result.loads(data, place), place)


def local_runs(root: str | os.PathLike[str]) -> tuple[list[Run], list[str]]:
    """The run in a folder, or every run below it, and what can't be read, in words."""
    base = Path(root)
    runs: list[Run] = []
    left_out: list[str] = []
    for path in _result_files(base):
        try:
            if path.stat().st_size > LARGEST:
                raise BenchError(f"{path}: {path.stat().st_size:,} bytes, {LARGEST:,} are read")
            result = sound(Result.load(path), path)
        except BenchError as error:
            left_out.append(str(error))
            continue
        inside = path.relative_to(base).as_posix()
        match = _RESULTS.fullmatch(inside)
        names = (match[1], match[2]) if match else (_folder_name(path, base), "")
        runs.append(Run(*names, result, str(path)))
    return runs, left_out


def _result_files(base: Path) -> Iterator[Path]:
    if base.is_file():
        yield base
        return
    for folder, names, files in os.walk(base):  # links to folders are not followed
        names.sort()
        if RESULT in files:
            yield Path(folder) / RESULT


def _folder_name(path: Path, base: Path) -> str:
    inside = path.parent.relative_to(base if base.is_dir() else base.parent).as_posix()
    return inside if inside != "." else path.parent.resolve().name


def sound(result: Result, place: object) -> Result:
    """A result from elsewhere, if every part of it that is shown is of its kind.

    Raises:
        BenchError: it is not; the message says which part.
    """

    def demand(holds: bool, what: str) -> None:
        if not holds:
            raise BenchError(f"{place}: expected a result file, found {what}")

    rows: Any = result.dataset.get("rows")
    demand(isinstance(rows, dict), "dataset.rows that is no object")
    demand(_count(rows.get("scored")), "dataset.rows.scored that is no number of rows")
    demand(rows.get("expected") is None or _count(rows["expected"]), "dataset.rows.expected that is no number of rows")
    texts = {
        "benchmark": result.benchmark,
        "created": result.created,
        "protocol.name": result.protocol.get("name"),
        "protocol.version": result.protocol.get("version"),
        "dataset.content_sha256": result.dataset.get("content_sha256"),
    }
    maybe = {f"dataset.{name}": result.dataset.get(name) for name in ("source", "split", "revision")}
    maybe["protocol.comparable_to"] = result.comparable_to
    for name, value in (*texts.items(), *maybe.items()):
        demand(isinstance(value, str) or (value is None and name in maybe), f"{name} that is no text")
    for key, metric in result.metrics.items():
        demand(_metric(metric), f"{key} that is no number with its interval and n")
    return result


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _metric(metric: Metric) -> bool:
    bounds: Any = metric.ci95
    whole = bounds is None or (len(bounds) == 2 and all(type(b) in (int, float) and abs(b) < math.inf for b in bounds))
    return whole and not math.isinf(metric.value) and _count(metric.n) and type(metric.higher_is_better) is bool
