"""Published runs: where a run's two files lie in a results repo, and reading them, whoever wrote them."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from datasets import Dataset

from bench_datasets._util.untrusted import read_regular
from bench_datasets.faults import BenchError
from bench_datasets.hub.repo import Head
from bench_datasets.results.reproduce import reproduce
from bench_datasets.results.result import Result
from bench_datasets.results.run_files import RESULT, SCORES, read_scores, scores_bytes
from bench_datasets.scoring.provenance import provenance_of, with_provenance

LARGEST = 8 << 20
"""Bytes of the largest result.json that is read."""

LARGEST_SCORES = 256 << 20
"""Bytes of the largest scores.parquet that is read."""

MOST_RUNS = 1_000
"""Runs of one repository or folder that are read."""

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
    """A run's scores file and its result, if the scores give the result's numbers.

    Args:
        folder: holds `scores.parquet` and `result.json`, as `score --out` leaves them.

    Raises:
        BenchError: one of them is missing or damaged, or the result says something else than its scores.
    """
    place = Path(folder)
    if not place.is_dir():
        raise BenchError(f"{place}: expected the folder of a run, as `bench-datasets score --out DIR` leaves it")
    result, scores = Result.load(place), read_scores(place)
    if "oracle" in scores.column_names and any(scores["oracle"]):
        raise BenchError(f"{place}: scored with an oracle, which is no result of a model; score without it")
    try:
        reproduce(result, scores)
    except BenchError as error:
        again = "score again into an empty folder"
        raise BenchError(f"{place}: {RESULT} is of other scores than {SCORES} ({error}); {again}") from error
    return place / SCORES, result


def without_source(scores: Path, result: Result) -> tuple[Path | bytes, Result]:
    """A run without the path or URL that its rows were read from, unless that is public.

    Args:
        scores: its score file.
        result: its result.

    Returns:
        The score file, or the bytes of another one where it holds something to leave out, and the result.
    """
    table = read_scores(scores)
    origin, source = provenance_of(table), source_in_public(result)
    known = None if origin is None else {name: origin[name] for name in _RECORDED if name in origin}
    if known is not None and "dataset" in known:
        known["dataset"] = {**known["dataset"], "source": source}
    clean = with_provenance(table.with_format("arrow")[:], table.features, known)
    named = replace(result, dataset={**result.dataset, "source": source})
    same = _metadata(clean) == _metadata(table.data)
    return scores if same else scores_bytes(Dataset(clean)), named


def _metadata(table: Any) -> dict[bytes, Any]:
    """A table's metadata, independent of the order of its JSON."""
    found = table.schema.metadata or {}
    return {name: json.loads(value) if name == b"huggingface" else value for name, value in found.items()}


_RECORDED = ("benchmark", "protocol", "dataset", "predictions", "settings", "faults")


def source_in_public(result: Result) -> str | None:
    """Public name of the rows' source: the id of a dataset on the Hub, else the benchmark's name.

    The rows' content hash, which stands beside it, says whether two copies are the same.
    """
    source = result.dataset["source"]
    if source is None or source == "sample" or HUB_ID.fullmatch(source):
        return None if source is None else str(source)
    return f"copy of {result.benchmark}"


def published_runs(head: Head) -> tuple[list[Run], list[str]]:
    """Every run in a results repo whose numbers its scores give, by path, and why others are left out, in words."""
    found: dict[str, tuple[str, str]] = {}
    left_out: list[str] = []
    for path, (size, _, _) in sorted(head.files.items()):
        if match := _RESULTS.fullmatch(path):
            place = f"{head.repo_id}: {path}"
            scores = files_of(match[1], match[2])[0]
            if not (HUB_ID.fullmatch(match[1]) and _NAME.fullmatch(match[2])):
                left_out.append(f"{place}: expected results/ORG/NAME/RUN/{RESULT}")
            elif size > LARGEST:
                left_out.append(f"{place}: expected at most {LARGEST:,} bytes, found {size:,}")
            elif scores not in head.files:
                left_out.append(f"{place}: expected its scores as {scores}, found none; its numbers cannot be checked")
            elif head.files[scores][0] > LARGEST_SCORES:
                text = f"expected at most {LARGEST_SCORES:,} bytes, found {head.files[scores][0]:,}"
                left_out.append(f"{place}: its scores: {text}")
            elif len(found) == MOST_RUNS:
                left_out.append(f"{place}: more than {MOST_RUNS:,} runs in one repository; the others are not read")
                break
            else:
                found[path] = (match[1], match[2])
    runs: list[Run] = []
    for path, outcome in _reproduced(head, {path: files_of(*names)[0] for path, names in found.items()}).items():
        place = f"{head.repo_id}: {path}"
        if isinstance(outcome, Result):
            runs.append(Run(*found[path], outcome, place))
        else:
            left_out.append(_left_out(outcome, place))
    return runs, left_out


_KNOWN: dict[tuple[str, str], Result | str] = {}
"""Results that were checked, or what is wrong with them, by the content of their two files: a commit that is planned
anew asks for all of them again."""

_CHECKING = threading.Lock()
"""Held while results are checked, so that several publishers in one process check each of them once."""


def _reproduced(head: Head, scores: dict[str, str]) -> dict[str, Result | str]:
    """The results of a repo that their scores give, and for others the reason.

    Args:
        head: the repo.
        scores: the path of the scores by that of the result.
    """
    with _CHECKING:
        return _check_new(head, scores)


def _check_new(head: Head, scores: dict[str, str]) -> dict[str, Result | str]:
    keys = {path: (head.files[path][1], head.files[table][1]) for path, table in scores.items()}
    new = [path for path in scores if keys[path] not in _KNOWN]
    contents, tables = head.read_all(new), head.download_all(scores[path] for path in new)
    if len(_KNOWN) + len(new) > 4 * MOST_RUNS:
        _KNOWN.clear()
    checked = {keys[path]: _checked(contents[path], path, tables[scores[path]]) for path in new if path in contents}
    _KNOWN.update(checked)
    return {path: checked.get(key) or _KNOWN.get(key, "it can't be read") for path, key in keys.items()}


def _checked(content: bytes, path: str, scores: Path) -> Result | str:
    """The result in a file's bytes, if the scores give its numbers; else the reason."""
    try:
        return reproduce(Result.loads(content, path), read_scores(scores, limit=LARGEST_SCORES), slices=False)
    except BenchError as error:
        return str(error).replace(str(scores), SCORES).removeprefix(f"{path}: ")


def _left_out(reason: str, place: str) -> str:
    """Why a run is left out, in one line that names its file once."""
    text = " ".join(reason.split())
    return text if text.startswith(place) else f"{place}: {text}"


def local_runs(root: str | os.PathLike[str]) -> tuple[list[Run], list[str]]:
    """The run in a folder, or every run below it, and why others are left out, in words.

    A run's scores lie in its folder, or where a results repo has them.
    """
    base = Path(root)
    runs: list[Run] = []
    left_out: list[str] = []
    for number, path in enumerate(_result_files(base)):
        if number == MOST_RUNS:
            left_out.append(f"{base}: more than {MOST_RUNS:,} runs in one folder; the others are not read")
            break
        inside = path.relative_to(base).as_posix()
        match = _RESULTS.fullmatch(inside)
        names = (match[1], match[2]) if match else (_folder_name(path, base), "")
        scores = base / files_of(*names)[0] if match and not (path.parent / SCORES).exists() else path.parent / SCORES
        try:
            result = Result.loads(read_regular(path, LARGEST), path)
            if not scores.exists():
                raise BenchError(f"expected its scores as {scores}, found none; its numbers cannot be checked")
            runs.append(Run(*names, reproduce(result, read_scores(scores), slices=False), str(path)))
        except (BenchError, OSError) as error:
            reason = str(error) if isinstance(error, BenchError) else f"can't be read ({error.strerror})"
            left_out.append(_left_out(reason, str(path)))
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
