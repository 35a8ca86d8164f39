"""The benchmarks, one declarative entry each: where the data is, what scores it, under which terms."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from types import ModuleType

from bench_datasets.faults import BenchError

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

    def metric_module(self) -> ModuleType:
        """The metric's module, imported when it is first needed."""
        return importlib.import_module(self.metric)


BENCHMARKS: dict[str, Benchmark] = {
    "pbench": Benchmark(
        name="pbench",
        title="PBench",
        builder="bench_datasets.builders.pbench",
        metric="bench_datasets.metrics.pbench",
        protocols=("released", "paper", "card"),
        source=Source(
            repo="tiiuae/PBench",
            revision="main",
            env="BENCH_DATASETS_PBENCH",
            rows=dict(zip(PBENCH_LEVELS, (1930, 1108, 969, 1089, 861, 381), strict=True)),
        ),
        headline={"released": "average", "paper": "average", "card": "accuracy"},
        task_ids={"released": "average"},
        citation=(
            "@misc{falconperception, title={Falcon Perception}, year={2026}, eprint={2603.27365},"
            " archivePrefix={arXiv}}"
        ),
    ),
    "instancebench": Benchmark(
        name="instancebench",
        title="InstanceBench",
        builder="bench_datasets.builders.instancebench",
        metric="bench_datasets.metrics.instancebench",
        protocols=("default",),
        source=Source(repo="", revision="", env="BENCH_DATASETS_INSTANCEBENCH", rows={"test": 2918}),
        headline={"default": "miou"},
        citation="@misc{instancebench, title={InstanceBench}, author={Li and others}, year={2026}}",
    ),
    "pvsg": Benchmark(
        name="pvsg",
        title="PVSG",
        builder="bench_datasets.builders.pvsg",
        metric="bench_datasets.metrics.pvsg",
        protocols=("official", "volume", "card", "weak_official"),
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
        },
        citation=(
            "@inproceedings{yang2023pvsg, title={Panoptic Video Scene Graph Generation}, author={Yang and others},"
            " booktitle={CVPR}, year={2023}, eprint={2311.17058}, archivePrefix={arXiv}}"
        ),
    ),
}
"""Every benchmark that this installation knows, by name."""


def get_benchmark(name: str) -> Benchmark:
    """The entry of a benchmark.

    Raises:
        BenchError: there is no benchmark of that name; the message lists the names there are.

    Example:
        >>> get_benchmark("pbench").protocols
        ('released', 'paper', 'card')
    """
    try:
        return BENCHMARKS[name]
    except KeyError:
        raise BenchError(f"benchmark: expected one of {', '.join(BENCHMARKS)}, got {name!r}") from None
