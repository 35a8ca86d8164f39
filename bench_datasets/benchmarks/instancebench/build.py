"""InstanceBench: `load_dataset("instancebench", data_dir=...)`.

No public release of its files is known, so the source is a folder or URL with a manifest of ours: `<split>.jsonl` or
`<split>-*.jsonl`, one set of expressions a line, with the images beside it; or a copy that `publish dataset` wrote, on
the Hub or downloaded. Configs: `default` (a row a set),
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

from bench_datasets._compat import Key
from bench_datasets.benchmark import get_benchmark
from bench_datasets.benchmarks.instancebench.images import Images
from bench_datasets.benchmarks.instancebench.index import Index, index_split
from bench_datasets.benchmarks.instancebench.manifest import Tces, read_manifest
from bench_datasets.benchmarks.instancebench.published_copy import LABELS, copy_tables
from bench_datasets.benchmarks.instancebench.truth import truth_features, truth_table
from bench_datasets.data.builder import SAMPLE, SourceBuilder, settle_images
from bench_datasets.data.fault_log import Noted
from bench_datasets.data.published_copy import Beside, beside, check_columns, declared_rows, shards_of, survey
from bench_datasets.data.source import PARQUET
from bench_datasets.faults import BenchError, Fault

_TEXT = "InstanceBench: sets of expressions that mean one instance by different paths, among others of its class."

_VERSION = datasets.Version("1.0.0")
"""Version of the rows, in the cache's folder names; raise it whenever a change of the code changes rows."""
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
    COPIES = "default"
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
        listed = [file.url for files in self.listing.parts.values() for file in files]
        copies = [url for url in listed if url.split("::", 1)[0].endswith(PARQUET)]
        if copies and len(copies) < len(listed):
            raise BenchError("data_files: expected manifests or Parquet of a copy, got some of each")
        make = self._of_copy if copies else self._of_manifests
        rows, kwargs = make(dl_manager)
        self._describe(_TEXT, rows)
        return [
            datasets.SplitGenerator(name=part, gen_kwargs={**given, "log_level": log_level})
            for part, given in kwargs.items()
        ]

    def _of_manifests(self, dl_manager: Any) -> tuple[dict[str, int], dict[str, dict[str, Any]]]:
        """Rows by split, and what `_generate_tables` is given for each."""
        rows: dict[str, int] = {}
        kwargs: dict[str, dict[str, Any]] = {}
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
            kwargs[part] = {"shards": shards, "index": index._asdict(), "reads": None}
        return rows, kwargs

    def _of_copy(self, dl_manager: Any) -> tuple[dict[str, int], dict[str, dict[str, Any]]]:
        """Generate the rows of a published copy; a stream from the Hub takes the number of rows from the card."""
        parts = self.listing.parts
        found = survey(
            parts,
            self.access,
            lambda schema, file, _: check_columns(schema, LABELS, file),
            stands=list(parts.values())[-1][0],
            declared=declared_rows(self.listing, self.COPIES) if dl_manager.is_streaming else None,
        )
        reads = beside(found.schema, self.listing.source, images=self.config.images)
        self.info.features = reads.features(truth_features(reads.image, by_expression=self._by_expression))
        return found.rows, {
            part: {"shards": shards_of(files, dl_manager, whole=reads.image), "index": None, "reads": tuple(reads)}
            for part, files in parts.items()
        }

    def _generate_tables(
        self, shards: Sequence[Any], index: dict[str, Any] | None, reads: tuple[bool, bool] | None, log_level: int
    ) -> Iterator[tuple[Key, pa.Table]]:
        noted = Noted(self.BENCHMARK)
        if index is None or reads is not None:
            tables = copy_tables(shards, Beside(*(reads or ())), self.access, by_expression=self._by_expression)
        else:
            tables = self._manifest_tables(shards, Index(**index))
        for i, (number, table, found) in enumerate(tables):
            noted.add(found)
            yield Key(number, i), table
        noted.log(log_level)

    def _manifest_tables(self, shards: Sequence[Shard], known: Index) -> Iterator[tuple[int, pa.Table, list[Fault]]]:
        images, size = bool(self.config.images), _BATCH // 4 if self.config.images else _BATCH
        for number, shard in enumerate(shards):
            sets = read_manifest(shard.path, self.access, name=shard.url)
            picture = Images(shard.url, self.access).read if images else None
            for batch in _batches(sets, size):
                yield number, *truth_table(batch, known, picture=picture, by_expression=self._by_expression)


def _batches(sets: Iterator[Tces], size: int) -> Iterator[list[Tces]]:
    while batch := list(islice(sets, size)):
        yield batch
