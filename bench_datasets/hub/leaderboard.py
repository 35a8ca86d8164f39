"""Runs side by side: from folders and results repos into tables that hold only what may be compared."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench_datasets.benchmark import BENCHMARKS
from bench_datasets.faults import BenchError
from bench_datasets.hub import client
from bench_datasets.hub.repo import look
from bench_datasets.hub.runs import HUB_ID, Run, local_runs, published_runs, same_numbers, source_of
from bench_datasets.results.result import Metric, Result
from bench_datasets.results.tables import few, many

NO_BAR = frozenset({"missing", "on_fault", "k", "boundary"})
"""Settings that leave the numbers of complete runs comparable; any other that is set makes a table of its own."""

MANY = 12
"""Parts of the headline number that a table shows."""

PLACES = (
    "Ranked by score only. If confidence intervals overlap, the order may be due to chance; test it with"
    " `bench-datasets compare`."
)

_URL = re.compile(r"(?:hf://datasets/|https?://[^/]+/datasets/)([^/]+/[^/@]+)/?")


@dataclass(frozen=True)
class Entry:
    """One run in a table.

    Attributes:
        place: from 1; equal numbers share one. `None` where the headline number is undefined.
        run: the run.
        metric: its headline number; NaN with n = 0 where there is none.
    """

    place: int | None
    run: Run
    metric: Metric


@dataclass(frozen=True)
class Group:
    """Runs that may be compared: one benchmark, one protocol version, the same rows, the same settings.

    Attributes:
        benchmark, protocol, version: what was scored, and how.
        content_sha256: of the rows that were scored.
        settings: those that make a difference.
        partial: fewer rows than the source holds; such runs stand apart.
        headline: the key of the number that the table is sorted by.
        parts: further keys that are shown, the headline's parts.
        entries: best first.
    """

    benchmark: str
    protocol: str
    version: str
    content_sha256: str
    settings: dict[str, Any]
    partial: bool
    headline: str
    parts: list[str]
    entries: list[Entry]

    @property
    def rows(self) -> int:
        """Number of scored rows."""
        return int(self.entries[0].run.result.dataset["rows"]["scored"])

    @property
    def sources(self) -> list[str]:
        """Where the rows came from, in words."""
        return sorted({source_of(entry.run.result) for entry in self.entries})

    @property
    def comparable_to(self) -> str | None:
        """The published numbers that all entries can be compared with."""
        found = {entry.run.result.comparable_to for entry in self.entries}
        return found.pop() if len(found) == 1 else None

    @property
    def title(self) -> str:
        """Title of the table: benchmark, protocol and the settings that set it apart."""
        known = BENCHMARKS.get(self.benchmark)
        text = f"{known.title if known else self.benchmark}, protocol {self.protocol} (version {self.version})"
        if self.settings:
            text += ", " + ", ".join(f"{name} {json.dumps(value)}" for name, value in self.settings.items())
        return f"{text}, partial runs" if self.partial else text

    @property
    def caption(self) -> str:
        """Caption: the scored rows, comparable published numbers, and warnings."""
        against = self.comparable_to
        compares = f"comparable to published numbers: {against}" if against else "not comparable to published numbers"
        if not against and any(entry.run.result.comparable_to for entry in self.entries):
            compares = "not all of these runs are comparable to published numbers"
        places = [_in_words(self.entries, source) for source in self.sources]
        many_runs = ("the same ", " in every run") if len(self.entries) > 1 else ("", "")
        rows = f"{many_runs[0]}{self.rows:,} rows{many_runs[1]} (content {self.content_sha256[:12]}), from "
        said = [f"{rows}{', '.join(places)}; {compares}.", *self.warnings]
        return " ".join([*said, *([PLACES] if len(self.entries) > 1 else [])])

    @property
    def units(self) -> list[str]:
        """The unit that each entry's intervals resample, in words; empty without intervals."""
        statistics = [entry.run.result.statistics for entry in self.entries]
        return [many(one.get("unit"), one.get("clusters")) if one.get("draws") else "" for one in statistics]

    @property
    def warnings(self) -> list[str]:
        """Warnings about the table: intervals of different kinds, and of too few units."""
        said = []
        kinds = {text for text in self.units if text}
        if len({entry.run.result.statistics.get("unit") for entry in self.entries}) > 1 or len(kinds) > 1:
            said.append(
                "The runs' intervals resample different units (see the column), so they can't be held against each"
                " other; bench-datasets compare uses one unit for all."
            )
        counts = [entry.run.result.statistics.get("clusters") for entry in self.entries]
        small = [int(count or 0) for count, text in zip(counts, self.units, strict=True) if text and few(count)]
        if small:
            said.append(f"Intervals from only {min(small)} resampled units mean little.")
        return said


def _in_words(entries: Sequence[Entry], source: str) -> str:
    """A source, and how many of the runs name it where they differ."""
    runs = sum(source_of(entry.run.result) == source for entry in entries)
    of = "" if runs == len(entries) else f" ({runs} of {len(entries)} runs)"
    known = {"an unknown source": "a place that was not recorded", "a copy of the rows": "files of the user's own"}
    return f"{known.get(source, source)}{of}"


@dataclass(frozen=True)
class Board:
    """Every table, complete runs first, and what could not be read, in words."""

    groups: list[Group]
    left_out: list[str] = field(default_factory=list)


def leaderboard(targets: Iterable[str | os.PathLike[str]], *, token: str | None = None) -> Board:
    """The runs of folders and results repos, in tables of what may be compared.

    Args:
        targets: folders (of a run, or with runs anywhere below) and results repos on the Hub: `ORG/NAME`, or their URL.
        token: to read private repos with; by default the user's own.

    Returns:
        The tables; a run that is found twice stands once.

    Raises:
        BenchError: a target is neither, holds no run that can be read, or the Hub can't be reached.

    Example:
        >>> leaderboard(["demo"]).groups[0].entries[0].run.model                             # doctest: +SKIP
        'careful'
    """
    runs: list[Run] = []
    left_out: list[str] = []
    for target in targets:
        found, unread = _read(os.fspath(target), token)
        if not found:
            more = f": {unread[0]}" if unread else "; give folders that `score --out` wrote"
            raise BenchError(f"{target}: expected runs (result.json in it or below), found none that can be read{more}")
        runs += found
        left_out += unread
    return Board(group(runs), left_out)


def group(runs: Iterable[Run]) -> list[Group]:
    """Runs in tables of what may be compared; of runs that say the same under one name, the first stands.

    Args:
        runs: of any benchmarks and protocols.
    """
    tables: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        table = tables.setdefault(_bar(run.result), [])
        alike = (one for one in table if (one.model, one.name) == (run.model, run.name))
        if not any(same_numbers(one.result, run.result) for one in alike):
            table.append(run)
    groups = [_group(found) for found in tables.values()]
    return sorted(groups, key=_order)


def _bar(result: Result) -> tuple[Any, ...]:
    """The values that two results must share to be compared."""
    return (
        result.benchmark,
        result.protocol["name"],
        result.protocol["version"],
        result.dataset["content_sha256"],
        json.dumps(_settings(result), sort_keys=True),
        bool(result.partial),
        result.headline,
    )


def _settings(result: Result) -> dict[str, Any]:
    return {name: value for name, value in result.settings.items() if name not in NO_BAR and value is not None}


def _group(runs: Sequence[Run]) -> Group:
    first = runs[0].result
    headline = first.headline or ""
    nothing = Metric(math.nan, 0)
    metrics = [run.result.metrics.get(headline, nothing) for run in runs]
    sign = -1.0 if metrics[0].higher_is_better else 1.0

    def key(pair: tuple[Run, Metric]) -> tuple[bool, float, str, str]:
        run, metric = pair
        undefined = math.isnan(metric.value)
        return undefined, 0.0 if undefined else sign * metric.value, run.model, run.name

    entries: list[Entry] = []
    for number, (run, metric) in enumerate(sorted(zip(runs, metrics, strict=True), key=key), start=1):
        tied = bool(entries) and entries[-1].metric.value == metric.value
        place = None if math.isnan(metric.value) else entries[-1].place if tied else number
        entries.append(Entry(place, run, metric))
    return Group(
        first.benchmark,
        first.protocol["name"],
        first.protocol["version"],
        first.dataset["content_sha256"],
        _settings(first),
        bool(first.partial),
        headline,
        _parts(first, headline, entries),
        entries,
    )


def _parts(first: Result, headline: str, entries: Sequence[Entry]) -> list[str]:
    """The headline's parts, as far as any run has them."""
    known = BENCHMARKS.get(first.benchmark)
    family = known.headline_parts.get(first.protocol["name"], "") if known else ""
    if not family:
        return []
    keys = dict.fromkeys(key for entry in entries for key in entry.run.result.metrics if key.startswith(family))
    return [key for key in keys if key != headline][:MANY]


def _order(table: Group) -> tuple[Any, ...]:
    names = list(BENCHMARKS)
    known = BENCHMARKS.get(table.benchmark)
    protocols = list(known.protocols) if known else []
    return (
        table.partial,
        names.index(table.benchmark) if known else len(names),
        table.benchmark,
        protocols.index(table.protocol) if table.protocol in protocols else len(protocols),
        table.protocol,
        table.version,
        -len(table.entries),
        table.content_sha256,
        json.dumps(table.settings, sort_keys=True),
    )


def _read(target: str, token: str | None) -> tuple[list[Run], list[str]]:
    if Path(target).exists():
        return local_runs(target)
    match = _URL.fullmatch(target)
    repo = match[1] if match else target
    if not HUB_ID.fullmatch(repo):
        raise BenchError(f"{target}: expected a folder or a results repo as ORG/NAME, found neither")
    head = look(repo, token=token)
    return client.trying(lambda: published_runs(head), repo, "dataset", client.connect(token))
