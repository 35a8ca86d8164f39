"""InstanceBench: `load_dataset("instancebench", data_dir=...)`.

No public release of its files is known, so the source is a folder or URL with a manifest of ours: `<split>.jsonl` or
`<split>-*.jsonl`, one set of expressions a line, with the images beside it. Configs: `default` (a row a set),
`expressions` (a row an expression) and `sample`, which is built in. `images=False` reads the manifest alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import datasets
import pyarrow as pa
from datasets.builder import Key

from bench_datasets.benchmarks import get_benchmark
from bench_datasets.builders.base import SAMPLE, SourceBuilder, settle_images
from bench_datasets.builders.instancebench_images import Images
from bench_datasets.builders.instancebench_index import Index, index_split
from bench_datasets.builders.instancebench_lines import Tces, read_manifest
from bench_datasets.builders.instancebench_rows import truth_features, truth_table
from bench_datasets.builders.noted import Noted
from bench_datasets.builders.provenance import describe
from bench_datasets.faults import BenchError

_TEXT = "InstanceBench: sets of expressions that mean one instance by different paths, among others of its class."

_VERSION = datasets.Version("1.0.0")
_BATCH = 64  # sets in a table; with images a quarter of that


@dataclass
class InstanceBenchConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """A config of InstanceBench.

    Attributes:
        images: whether to read the images (and size-check the rows against them).
    """

    images: bool = True
    version: Any = _VERSION


class Shard(NamedTuple):
    """One manifest file to build.

    Attributes:
        path: what is read: the file itself, or its copy in the download cache.
        url: where it is; what messages call it, and whose folder holds the images.
    """

    path: str
    url: str


class InstanceBench(SourceBuilder):
    """Builder of InstanceBench's truth rows; see `instancebench_rows.truth_features` for the columns."""

    BENCHMARK = "instancebench"
    PARTS = ("train", "validation", "test")
    SUFFIX = ".jsonl"
    BUILDER_CONFIG_CLASS = InstanceBenchConfig
    BUILDER_CONFIGS: ClassVar[list[InstanceBenchConfig]] = [
        InstanceBenchConfig(name=name) for name in ("default", "expressions", SAMPLE)
    ]
    DEFAULT_CONFIG_NAME = "default"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        settle_images(kwargs)
        super().__init__(*args, **kwargs)

    def sample_dir(self) -> str:
        """The folder of the built-in sample."""
        from bench_datasets.samples import instancebench_sample_dir

        return str(instancebench_sample_dir())

    @property
    def _by_expression(self) -> bool:
        return bool(self.config.name == "expressions")

    def _info(self) -> datasets.DatasetInfo:
        benchmark = get_benchmark(self.BENCHMARK)
        return datasets.DatasetInfo(
            description=_TEXT,
            citation=benchmark.citation,
            license=benchmark.source.licence,
            features=truth_features(self.config.images, by_expression=self._by_expression),
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        log_level = logging.INFO if dl_manager.is_streaming else logging.WARNING
        generators: list[datasets.SplitGenerator] = []
        rows: dict[str, int] = {}
        for part, files in self.listing.parts.items():
            urls = [file.url for file in files]
            # The Hub's files go through its own cache; others are read where they are.
            fetch = all(url.startswith("hf://") for url in urls)
            shards = [
                Shard(path, url) for path, url in zip(dl_manager.download(urls) if fetch else urls, urls, strict=True)
            ]
            index = index_split([(shard.path, shard.url) for shard in shards], self.access)
            if not index.rows:
                raise BenchError(f"{urls[0]}: expected one set of expressions a line, found no line")
            rows[part] = index.rows
            kwargs = {"shards": shards, "index": index._asdict(), "log_level": log_level}
            generators.append(datasets.SplitGenerator(name=part, gen_kwargs=kwargs))
        facts = {
            "benchmark": self.BENCHMARK,
            "source": self.listing.source,
            "revision": self.listing.revision,
            "config": self.config.name,
            "rows": rows,
        }
        self.info.description = describe(_TEXT, facts)
        return generators

    def _generate_tables(
        self, shards: Sequence[Shard], index: dict[str, Any], log_level: int
    ) -> Iterator[tuple[Key, pa.Table]]:
        known, access = Index(**index), self.access
        images, size = bool(self.config.images), _BATCH // 4 if self.config.images else _BATCH
        noted = Noted(self.BENCHMARK)
        for number, shard in enumerate(shards):
            sets = read_manifest(shard.path, access, name=shard.url)
            picture = Images(shard.url, access).read if images else None
            for i, batch in enumerate(_batches(sets, size)):
                table, found = truth_table(batch, known, picture=picture, by_expression=self._by_expression)
                noted.add(found)
                yield Key(number, i), table
        noted.log(log_level)


def _batches(sets: Iterator[Tces], size: int) -> Iterator[list[Tces]]:
    while batch := list(islice(sets, size)):
        yield batch
