"""Cards of published datasets and metrics, rendered from the templates in `cards/`."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench_datasets.benchmark import BENCHMARKS, Benchmark, get_benchmark
from bench_datasets.faults import FAULTS
from bench_datasets.hub.dataset_form import Tally, size_category
from bench_datasets.hub.templates import TAG, bibtex, code, front_matter, render, to_yaml

HUB = "https://huggingface.co"
"""Where sources' pages are."""

_LICENCES = ("apache-2.0", "mit", "bsd-3-clause", "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0")
"""Licences that the Hub knows by these names."""


@dataclass(frozen=True)
class Config:
    """A config as the card speaks of it.

    Attributes:
        name: as `load_dataset` takes it.
        paths: patterns of its files by split.
        meaning: what a row is, in a few words.
        rows: by split.
        bytes: of the rows in memory, by split.
        size: of its files on disk, in bytes.
        features: as the card's metadata takes them; None where another config's are the same.
        columns: name, type and meaning of each; empty where another config's are the same.
        default: whether it is the one that is loaded when none is named.
    """

    name: str
    paths: Mapping[str, Sequence[str]]
    meaning: str
    rows: Mapping[str, int]
    bytes: Mapping[str, int]
    size: int
    features: list[Any] | None
    columns: Sequence[tuple[str, str, str]]
    default: bool = False

    def metadata(self) -> dict[str, Any]:
        """Its entry under `dataset_info`."""
        splits = [
            {"name": split, "num_bytes": self.bytes[split], "num_examples": rows} for split, rows in self.rows.items()
        ]
        found: dict[str, Any] = {"config_name": self.name}
        if self.features is not None:
            found["features"] = self.features
        return {**found, "splits": splits, "download_size": self.size, "dataset_size": sum(self.bytes.values())}

    def files(self) -> dict[str, Any]:
        """Its entry under `configs`."""
        found: dict[str, Any] = {"config_name": self.name}
        found["data_files"] = [
            {"split": split, "path": paths[0] if len(paths) == 1 else list(paths)}
            for split, paths in self.paths.items()
        ]
        return {**found, "default": True} if self.default else found


@dataclass(frozen=True)
class DatasetFacts:
    """All that a dataset's card says.

    Attributes:
        benchmark: its name.
        repo: the repo's name.
        source: where the rows are from.
        revision: the source's, or None.
        configs: in order, the main one first.
        tallies: tables of counts.
        hashes: `content_sha256` by split.
        faults: rows that bear each fault code, with a few keys.
        preview_rows: rows of the config `preview`.
        picture: whether there is a picture of some rows.
        over_images: whether the preview's masks are drawn over the images.
        with_images: whether the images are published.
        hashed_images: whether rows bear `image_sha256`.
    """

    benchmark: str
    repo: str
    source: str
    revision: str | None
    configs: Sequence[Config]
    tallies: Sequence[Tally]
    hashes: Mapping[str, str]
    faults: Mapping[str, Mapping[str, Any]]
    preview_rows: int
    picture: bool
    over_images: bool
    with_images: bool
    hashed_images: bool

    @property
    def is_sample(self) -> bool:
        """Whether it is the built-in sample."""
        return self.source == "sample"

    @property
    def own(self) -> bool:
        """Whether the benchmark is one of this package's."""
        return self.benchmark in BENCHMARKS.own

    @property
    def package(self) -> str:
        """The package that brings the benchmark."""
        return "bench_datasets" if self.own else BENCHMARKS.plugins[self.benchmark].package.split()[0]

    @property
    def title(self) -> str:
        """For people."""
        return get_benchmark(self.benchmark).title + (" (built-in sample)" if self.is_sample else "")

    @property
    def split(self) -> str:
        """The split that is scored."""
        splits = list(self.configs[0].rows)
        return "test" if "test" in splits else splits[0]


def dataset_card(facts: DatasetFacts) -> str:
    """A dataset's README.md: metadata for the Hub, and text without an empty section."""
    benchmark = get_benchmark(facts.benchmark)
    text = render(
        "dataset_card.md",
        facts=facts,
        benchmark=benchmark,
        about=about(benchmark),
        main=facts.configs[0],
        licence=_licence_text(facts, benchmark),
        source=_source_text(facts, benchmark),
        source_url=f"hf://datasets/{facts.repo}",
        protocols=protocol_rows(benchmark),
        tasks=tasks(benchmark),
        citation=bibtex(benchmark.citation),
        meanings={code: FAULTS[code].meaning for code in facts.faults},
    )
    return front_matter(_metadata(facts, benchmark)) + "\n" + text


def eval_yaml(facts: DatasetFacts) -> str:
    """A dataset's eval.yaml: the tasks that results are published under."""
    benchmark = get_benchmark(facts.benchmark)
    main = facts.configs[0].name
    return to_yaml(
        {
            "name": facts.title,
            "description": about(benchmark),
            "evaluation_framework": "bench-datasets",
            "tasks": [{"id": task, "config": main, "split": facts.split} for task in tasks(benchmark)],
        }
    )


def metric_card(name: str, repo: str) -> str:
    """A metric Space's README.md."""
    from bench_datasets import __version__

    benchmark = get_benchmark(name)
    metadata = {
        "title": f"{benchmark.title} metric",
        "emoji": "🎯",
        "colorFrom": "blue",
        "colorTo": "yellow",
        "sdk": "static",
        "app_file": "index.html",
        "pinned": False,
        "license": "apache-2.0",
        "short_description": f"{benchmark.title}'s numbers for evaluate.load",
        "tags": ["evaluate", "metric", TAG, *benchmark.tags],
    }
    text = render(
        "metric_card.md",
        benchmark=benchmark,
        about=about(benchmark),
        repo=repo,
        version=__version__,
        protocols=protocol_rows(benchmark),
        inputs=_inputs(benchmark),
        citation=bibtex(benchmark.citation),
    )
    return front_matter(metadata) + "\n" + text


def tasks(benchmark: Benchmark) -> list[str]:
    """Task ids of a benchmark on a user's own dataset: `<protocol>/<headline key>`."""
    return [f"{protocol}/{key}" for protocol, key in benchmark.headline.items()]


def protocol_rows(benchmark: Benchmark) -> list[dict[str, str]]:
    """Each protocol in words: name, version, meaning, settings, headline, whose numbers it compares with."""
    found = []
    for name, protocol in benchmark.protocols.items():
        told = ("name", "version", "meaning", "comparable_to")
        settings = {k: v for k, v in dataclasses.asdict(protocol).items() if k not in told}
        found.append(
            {
                "name": name,
                "version": protocol.version,
                "meaning": protocol.meaning,
                "settings": ", ".join(f"`{key}` {_value(value)}" for key, value in settings.items()),
                "headline": benchmark.headline[name],
                "comparable_to": protocol.comparable_to or "nothing published",
            }
        )
    return found


def about(benchmark: Benchmark) -> str:
    """A benchmark in two sentences."""
    return benchmark.about or f"{benchmark.title}, a benchmark."


def _metadata(facts: DatasetFacts, benchmark: Benchmark) -> dict[str, Any]:
    shown = [config for config in facts.configs if config.name != "preview"]
    rows = sum(sum(config.rows.values()) for config in shown if config.features is not None)
    found: dict[str, Any] = {
        "pretty_name": facts.title,
        **_licence(facts, benchmark),
        "language": ["en"],
        "task_categories": list(benchmark.task_categories),
        "size_categories": [size_category(rows)],
        "annotations_creators": ["machine-generated" if facts.is_sample else "found"],
        "tags": [TAG, "benchmark", *benchmark.tags],
    }
    if not found["task_categories"]:
        del found["task_categories"]
    if "/" in facts.source and "://" not in facts.source:
        found["source_datasets"] = [facts.source]
    return {
        **found,
        "dataset_info": [config.metadata() for config in facts.configs],
        "configs": [config.files() for config in facts.configs],
    }


def _licence(facts: DatasetFacts, benchmark: Benchmark) -> dict[str, str]:
    """The licence as the Hub's metadata has it."""
    if facts.is_sample and facts.own:
        return {"license": "apache-2.0"}
    name = benchmark.source.licence.lower().replace(" ", "-")
    if name in _LICENCES:
        return {"license": name}
    if not benchmark.source.repo:
        return {"license": "unknown"}
    link = f"{HUB}/datasets/{benchmark.source.repo}"
    return {"license": "other", "license_name": name, "license_link": link}


def _licence_text(facts: DatasetFacts, benchmark: Benchmark) -> str:
    if facts.is_sample and facts.own:
        return "The drawings, masks and texts are made by `bench_datasets` itself and are Apache-2.0."
    stated = benchmark.source.licence
    text = (
        "The source does not state a licence for its data" if stated == "not stated" else f"The source says: {stated}"
    )
    return f"{text}; this copy adds no terms of its own, and whoever uses it is bound by the source's."


def _source_text(facts: DatasetFacts, benchmark: Benchmark) -> str:
    if facts.is_sample:
        return f"the sample that is built into `{facts.package}`"
    if "/" in facts.source and "://" not in facts.source:
        return f"[{facts.source}]({HUB}/datasets/{facts.source})"
    return f"{code(facts.source)}, a copy of {benchmark.title}"


def _inputs(benchmark: Benchmark) -> str:
    """The inputs of the metric's `compute`, from its own documentation."""
    import evaluate

    from bench_datasets.hf_evaluate.loading import metric_path

    module = evaluate.load(metric_path(benchmark.name))
    items: list[str] = []
    for line in module.inputs_description.strip().splitlines():
        # What is deeper than an item goes on with it; "Args:" and "Returns:" stand at the edge.
        goes_on = items and items[-1].startswith("    ") and line.startswith("     ")
        items = [*items[:-1], f"{items[-1]} {line.strip()}"] if goes_on else [*items, line]
    lines = [part for item in items for part in textwrap.wrap(item, 92, subsequent_indent=" " * 8) or [""]]
    return "\n".join(lines)


def _value(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return " ".join(_value(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else str(value).replace("_", " ")
