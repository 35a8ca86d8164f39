"""The benchmarks, one declarative entry each: where the data is, what scores it, under which terms."""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any

from bench_datasets.faults import BenchError
from bench_datasets.plugins import Plugin, PluginError, find_plugins, warn

PBENCH_LEVELS = ("level_0", "level_1", "level_2", "level_3", "level_4", "dense")
"""PBench's parts, in the order of the paper's table: the names of the source's splits and of the `level` column."""


@dataclass(frozen=True)
class Source:
    """Where a benchmark's data is by default.

    Attributes:
        repo: Hub dataset id.
        revision: Hub revision that is read, a branch or a commit.
        env: environment variable that names another root (a folder or any fsspec URL).
        rows: published number of rows by part; what a complete run must have scored to be comparable.
        licence: the data's licence, as the source states it.
    """

    repo: str
    revision: str
    env: str
    rows: dict[str, int] = field(default_factory=dict)
    licence: str = "not stated"


@dataclass(frozen=True)
class Benchmark:
    """One benchmark: its names, the modules that build and score it, its source and how to cite it.

    Attributes:
        name: as in `load_dataset(name)`, `bd.score(name, ...)` and on the command line.
        title: for people.
        builder: module with the `datasets` builder.
        metric: module with `PROTOCOLS`, `score_features`, `score_table` and `summarize_table`.
        protocols: names of the protocols, the default first.
        source: where the data is by default.
        headline: the metric key that stands for a protocol's result, by protocol.
        task_ids: the Hub leaderboard's task id on the source dataset, by protocol; absent where there is none.
        citation: BibTeX.
        about: what it is and what a row is, in two sentences, for cards; the title for an empty one.
        task_categories: the Hub's names of what it asks for, for cards.
        tags: further words that it is found by, for cards.
        columns: what a column of the truth means, by its name, for cards.
        modules: modules that stand elsewhere than this package keeps those of its own benchmarks, by their job, a key
            of `COMPANIONS`. A plug-in names its own here, or one of this package whose form it shares.
        counted: what the headline number's `n` counts, in the plural: rows, expressions, relations; empty where nobody
            said so.
        prediction_for: what one prediction is for, in the singular: row, expression, video; a row for an empty text.
    """

    name: str
    title: str
    builder: str
    metric: str
    protocols: tuple[str, ...]
    source: Source
    headline: dict[str, str]
    task_ids: dict[str, str] = field(default_factory=dict)
    citation: str = ""
    about: str = ""
    task_categories: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    counted: str = ""
    prediction_for: str = ""

    def metric_module(self) -> ModuleType:
        """The metric's module, imported when it is first needed; names of `DEFAULTS` that it lacks are added to it.

        Raises:
            BenchError: a plug-in's module can't be imported, or lacks what is needed.
        """
        module = self._import(self.metric)
        for name, value in DEFAULTS.items():
            if not hasattr(module, name):
                setattr(module, name, value)
        if wrong := _unfit(module):
            raise BenchError(f"{self.name}: {wrong}; docs/add-a-benchmark.md says what each is for")
        return module

    def headline_key(self, protocol: str, k: Sequence[int] | None = None) -> str | None:
        """The metric key that stands for a run: its protocol's, at the run's first K where that K is not among them.

        Args:
            protocol: its name.
            k: ranks of the run; `None` or none for benchmarks without.

        Example:
            >>> BENCHMARKS["pvsg"].headline_key("official", (5, 10)), BENCHMARKS["pvsg"].headline_key("official")
            ('R@5/0.5', 'R@20/0.5')
        """
        key = self.headline.get(protocol)
        ranked = _RANKED.fullmatch(key or "")
        if ranked is None or not k or int(ranked[2]) in k:
            return key
        return f"{ranked[1]}{int(k[0])}{ranked[3] or ''}"

    def companion(self, job: str) -> ModuleType:
        """The module that does a job for this benchmark, imported when it is first needed.

        Args:
            job: a key of `COMPANIONS`.

        Raises:
            BenchError: the benchmark has none.
        """
        name = self.modules.get(job)
        if name is None:
            name = COMPANIONS[job].format(self.name) if self.name in _OWN else GENERIC.get(job)
        if name is None:
            raise BenchError(f"{self.name}: the benchmark has no module for {job}; its package must name one")
        return self._import(name)

    def _import(self, module: str) -> ModuleType:
        try:
            return importlib.import_module(module)
        except ImportError as error:
            if self.name in _OWN:
                raise
            raise BenchError(f"{self.name}: its package's module {module} can't be imported: {error}") from error


_RANKED = re.compile(r"(.*@)(\d+)(/.*)?")

COMPANIONS = {
    "predictions": "bench_datasets.benchmarks.{}.predictions",
    "errors": "bench_datasets.benchmarks.{}.errors",
    "report": "bench_datasets.benchmarks.{}.report",
}
"""Further modules of a benchmark by their job, and where this package keeps those of its own."""

GENERIC = {"report": "bench_datasets.report.generic"}
"""Modules that do a job for every benchmark, in the place of one that a plug-in doesn't name."""


_OWN: dict[str, Benchmark] = {
    "pbench": Benchmark(
        name="pbench",
        title="PBench",
        builder="bench_datasets.benchmarks.pbench.build",
        metric="bench_datasets.benchmarks.pbench.metric",
        protocols=("released", "paper", "card"),
        source=Source(
            repo="tiiuae/PBench",
            revision="main",
            env="BENCH_DATASETS_PBENCH",
            rows=dict(zip(PBENCH_LEVELS, (1930, 1108, 969, 1089, 861, 381), strict=True)),
        ),
        headline={"released": "average", "paper": "average", "card": "accuracy"},
        task_ids={"released": "average"},
        counted="rows",
        citation=(
            "@misc{falconperception, title={Falcon Perception}, year={2026}, eprint={2603.27365},"
            " archivePrefix={arXiv}}"
        ),
        about=(
            "Referring expressions and the masks of everything they name, in five levels of difficulty and a dense part"
            " with very many instances. A row is one expression about one image."
        ),
        task_categories=("image-segmentation", "mask-generation"),
        tags=("referring-segmentation", "instance-segmentation", "open-vocabulary"),
    ),
    "instancebench": Benchmark(
        name="instancebench",
        title="InstanceBench",
        builder="bench_datasets.benchmarks.instancebench.build",
        metric="bench_datasets.benchmarks.instancebench.metric",
        protocols=("default",),
        source=Source(repo="", revision="", env="BENCH_DATASETS_INSTANCEBENCH", rows={"test": 2918}),
        headline={"default": "miou"},
        counted="expressions",
        prediction_for="expression",
        citation="@misc{instancebench, title={InstanceBench}, author={Li and others}, year={2026}}",
        about=(
            "Sets of expressions that all mean one instance, by different paths, among other instances of its class:"
            " does a model find the same thing however it is asked? A row is one set about one image."
        ),
        task_categories=("image-segmentation", "mask-generation"),
        tags=("referring-segmentation", "instance-segmentation", "visual-grounding"),
    ),
    "pvsg": Benchmark(
        name="pvsg",
        title="PVSG",
        builder="bench_datasets.benchmarks.pvsg.build",
        metric="bench_datasets.benchmarks.pvsg.metric",
        protocols=("official", "volume", "card", "weak_official", "step"),
        source=Source(
            repo="Jingkang/PVSG",
            revision="main",
            env="BENCH_DATASETS_PVSG",
            rows={"train": 338, "test": 62},
            licence="research use",
        ),
        headline={
            "official": "R@20/0.5",
            "volume": "R@20/0.5",
            "card": "R@20/0.5",
            "weak_official": "weak_official/R@20",
            "step": "R@20/0.5",
        },
        counted="relations",
        prediction_for="video",
        citation=(
            "@inproceedings{yang2023pvsg, title={Panoptic Video Scene Graph Generation}, author={Yang and others},"
            " booktitle={CVPR}, year={2023}, eprint={2311.17058}, archivePrefix={arXiv}}"
        ),
        about=(
            "Videos with a mask for every object in every frame, and the relations between the objects, each with its"
            " spans of frames. A row is one video."
        ),
        task_categories=("image-segmentation", "video-classification"),
        tags=("video", "panoptic-segmentation", "scene-graph"),
    ),
}
"""The benchmarks of this package."""


class Benchmarks(Mapping[str, Benchmark]):
    """Every benchmark that this installation knows, by name: this package's, then those of plug-ins that work.

    A plug-in is imported when it is asked for, or when all are gone through; one that doesn't work warns once and is
    not there. See `bench_datasets.plugins`.
    """

    def __init__(self, own: Mapping[str, Benchmark]) -> None:
        self._own = own
        self._lock = threading.RLock()
        self._found: dict[str, Plugin] | None = None
        self._loaded: dict[str, Benchmark] = {}
        self._broken: dict[str, PluginError] = {}

    @property
    def own(self) -> Mapping[str, Benchmark]:
        """The benchmarks of this package."""
        return self._own

    @property
    def plugins(self) -> Mapping[str, Plugin]:
        """The plug-ins that are installed, loaded or not."""
        with self._lock:
            if self._found is None:
                self._found = find_plugins(taken=self._own)
            return self._found

    @property
    def broken(self) -> Mapping[str, PluginError]:
        """What is wrong with plug-ins that were asked for and don't work, by name."""
        return self._broken

    def refresh(self) -> None:
        """Look for plug-ins again; for packages that are installed while this process runs."""
        with self._lock:
            self._found = None
            self._loaded.clear()
            self._broken.clear()

    def __getitem__(self, name: str) -> Benchmark:
        if name in self._own:
            return self._own[name]
        with self._lock:
            if name not in self._loaded and name not in self._broken and name in self.plugins:
                try:
                    self._loaded[name] = self.plugins[name].load(lambda value: _wrong(name, value))
                except PluginError as error:
                    self._broken[name] = error
                    warn(str(error))
            return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in list(self.plugins) if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Benchmarks({', '.join([*self._own, *self.plugins])})"


def _wrong(name: str, value: Any) -> str | None:
    """What is wrong with a plug-in's value, or None."""
    if not isinstance(value, Benchmark):
        return f"expected a bench_datasets.benchmark.Benchmark, found {type(value).__name__}"
    if value.name != name:
        return f"the entry point is called {name!r}, the benchmark {value.name!r}; they must agree"
    for field_name in ("title", "builder", "metric"):
        text: object = getattr(value, field_name)
        if not isinstance(text, str) or not text:
            return f"{field_name}: expected a text, found {text!r}"
    if not value.protocols or not all(isinstance(protocol, str) for protocol in value.protocols):
        return f"protocols: expected names, the default first, found {value.protocols!r}"
    absent = [protocol for protocol in value.protocols if protocol not in value.headline]
    if absent:
        return f"headline: expected a metric key for every protocol, found none for {', '.join(absent)}"
    source: object = value.source
    if not isinstance(source, Source) or not source.env:
        return f"source: expected a Source with the name of an environment variable, found {source!r}"
    unknown = set(value.modules) - set(COMPANIONS)
    if unknown:
        return f"modules: expected {', '.join(COMPANIONS)}, found {', '.join(sorted(unknown))}"
    return None


SURFACE: Mapping[str, type | None] = {
    **dict.fromkeys(("LABEL_COLUMNS", "ANSWER_COLUMNS", "SCORE_COLUMNS", "SORT_COLUMNS", "UNIT", "PROTOCOLS"), object),
    **dict.fromkeys(("FAMILY", "OWN_PARTS", "OWN_METRICS", "LOWER_IS_BETTER"), object),
    **dict.fromkeys(("features", "get_protocol", "pair_units", "attach", "read_answers", "score_table"), None),
    **dict.fromkeys(("gather", "summarize_table", "paired_rows", "comparable_to"), None),
}
"""What a metric module holds, by name; `None` for a function."""


def _all_rows(table: Any) -> Any:
    """The score rows over which runs are compared: all."""
    return table


def _nobody(*_: Any, **__: Any) -> None:
    """Return None: a run of a plug-in is not comparable to published numbers by default."""


DEFAULTS: Mapping[str, Any] = {
    "UNIT": "row",
    "SORT_COLUMNS": ("key",),
    "FAMILY": MappingProxyType({}),
    **dict.fromkeys(("OWN_PARTS", "OWN_METRICS", "LOWER_IS_BETTER"), frozenset()),
    "paired_rows": _all_rows,
    "comparable_to": _nobody,
}
"""Defaults for the names that a metric module may leave out."""


def _unfit(metric: ModuleType) -> str | None:
    """Name the members that a metric module lacks; None if it is complete."""
    absent = [name for name in SURFACE if not hasattr(metric, name) and name not in DEFAULTS]
    if absent:
        return f"its metric module {metric.__name__} lacks {', '.join(absent)}"
    still = [name for name, kind in SURFACE.items() if kind is None and not callable(getattr(metric, name, len))]
    return f"{metric.__name__}: expected functions, found something else as {', '.join(still)}" if still else None


def lacking(value: Benchmark) -> str | None:
    """What a benchmark's modules lack of what is asked of them, in words, or None; imports them.

    Example:
        >>> lacking(BENCHMARKS["pbench"]) is None
        True
    """
    try:
        value.metric_module()
        importlib.import_module(value.builder)
    except BenchError as error:
        return str(error).removeprefix(f"{value.name}: ")
    except Exception as error:  # whatever somebody else's module does when it is imported
        return f"its modules can't be imported: {type(error).__name__}: {error}"
    return None


BENCHMARKS = Benchmarks(_OWN)
"""Every benchmark that this installation knows, by name."""


def get_benchmark(name: str) -> Benchmark:
    """The entry of a benchmark.

    Raises:
        BenchError: there is no benchmark of that name; the message lists the names there are. `PluginError`, if it is a
            plug-in's that doesn't work.

    Example:
        >>> get_benchmark("pbench").protocols
        ('released', 'paper', 'card')
    """
    try:
        return BENCHMARKS[name]
    except KeyError:
        if name in BENCHMARKS.broken:
            raise BENCHMARKS.broken[name] from None
        raise BenchError(f"benchmark: expected one of {', '.join(BENCHMARKS)}, got {name!r}") from None
