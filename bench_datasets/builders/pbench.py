"""PBench: `load_dataset("pbench")`.

Configs: `default` (all levels, in the order of the paper's table), one a level, and `sample`, which is built in. The
one split is `test`. `images=False` reads the label columns alone, a few megabytes of the release's 18.7 GB.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import datasets
import pyarrow as pa
from datasets.builder import Key

from bench_datasets.benchmarks import PBENCH_LEVELS, get_benchmark
from bench_datasets.builders.base import SAMPLE, SourceBuilder, settle_images
from bench_datasets.builders.labels import LabelFile
from bench_datasets.builders.noted import Noted
from bench_datasets.builders.pbench_rows import LABELS, check_schema, row_ids, truth_features, truth_table
from bench_datasets.builders.provenance import describe
from bench_datasets.builders.sources import Access, Listing, SourceNotFoundError
from bench_datasets.faults import BenchError

_TEXT = "PBench: referring expressions and the masks of everything they name, in five levels and a dense part."

_VERSION = datasets.Version("1.0.0")


@dataclass
class PBenchConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """A config of PBench.

    Attributes:
        images: whether to read the images (and size-check the masks against them).
    """

    images: bool = True
    version: Any = _VERSION


class Shard(NamedTuple):
    """One source file to build.

    Attributes:
        level: its level.
        path: what is read: the file itself, or its copy in the download cache.
        name: what messages call it.
        earlier: paths of the level's files before it; their ids decide which ids here are repeats.
    """

    level: str
    path: str
    name: str
    earlier: tuple[str, ...]


class PBench(SourceBuilder):
    """Builder of PBench's truth rows; see `pbench_rows.truth_features` for the columns."""

    BENCHMARK = "pbench"
    PARTS = PBENCH_LEVELS
    BUILDER_CONFIG_CLASS = PBenchConfig
    BUILDER_CONFIGS: ClassVar[list[PBenchConfig]] = [
        PBenchConfig(name=name) for name in ("default", *PBENCH_LEVELS, SAMPLE)
    ]
    DEFAULT_CONFIG_NAME = "default"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        settle_images(kwargs)
        super().__init__(*args, **kwargs)

    def sample_dir(self) -> str:
        """The folder of the built-in sample."""
        from bench_datasets.samples import pbench_sample_dir

        return str(pbench_sample_dir())

    def _check_config(self, config_name: str, listing: Listing) -> None:
        if config_name in PBENCH_LEVELS and config_name not in listing.parts:
            raise SourceNotFoundError(
                f"{listing.source}: config {config_name!r} has no files there; found {', '.join(listing.parts)}"
            )

    def _info(self) -> datasets.DatasetInfo:
        benchmark = get_benchmark(self.BENCHMARK)
        return datasets.DatasetInfo(
            description=_TEXT,
            citation=benchmark.citation,
            homepage=f"https://huggingface.co/datasets/{benchmark.source.repo}",
            license=benchmark.source.licence,
            features=truth_features(self.config.images),
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        images, parts = self.config.images, self.listing.parts
        levels = [self.config.name] if self.config.name in PBENCH_LEVELS else list(parts)
        self._note_provenance(levels)
        shards: list[Shard] = []
        for level in levels:
            urls = [file.url for file in parts[level]]
            # The Hub's files go through its own cache; others are read where they are, once.
            fetch = images and all(url.startswith("hf://") for url in urls)
            paths = list(dl_manager.download(urls)) if fetch else urls
            shards += [
                Shard(level, path, url, tuple(paths[:i])) for i, (path, url) in enumerate(zip(paths, urls, strict=True))
            ]
        log_level = logging.INFO if dl_manager.is_streaming else logging.WARNING
        return [
            datasets.SplitGenerator(name=datasets.Split.TEST, gen_kwargs={"shards": shards, "log_level": log_level})
        ]

    def _note_provenance(self, levels: Sequence[str]) -> None:
        """Read every file's footer, check its columns, and write into `info` what the source is and holds.

        Args:
            levels: those that are to be read; the others are counted alone.
        """
        listed = [(level, file) for level, files in self.listing.parts.items() for file in files]
        access = self.access
        with ThreadPoolExecutor(min(16, len(listed))) as pool:
            opened = list(pool.map(lambda item: LabelFile(item[1].url, access), listed))
        rows: Counter[str] = Counter()
        for (level, file), labels in zip(listed, opened, strict=True):
            check_schema(labels.schema, file.url, images=self.config.images and level in levels)
            rows[level] += labels.num_rows
        if not any(rows[level] for level in levels):
            raise BenchError(f"{self.listing.source}: expected rows of {', '.join(levels)}, found files without any")
        self.info.download_checksums = {
            file.url: {"num_bytes": labels.size, "checksum": None}
            for (_, file), labels in zip(listed, opened, strict=True)
        }
        facts = {
            "benchmark": self.BENCHMARK,
            "source": self.listing.source,
            "revision": self.listing.revision,
            "config": self.config.name,
            "rows": dict(rows),
        }
        self.info.description = describe(_TEXT, facts)

    def _generate_tables(self, shards: Sequence[Shard], log_level: int) -> Iterator[tuple[Key, pa.Table]]:
        images, access = bool(self.config.images), self.access
        at: tuple[str, tuple[str, ...]] | None = None
        seen: Counter[int] = Counter()
        faults = Noted(self.BENCHMARK)
        for number, shard in enumerate(shards):
            if at != (shard.level, shard.earlier):
                seen = _ids_of(shard.earlier, access)
            file = LabelFile(shard.path, access, name=shard.name)
            batches = (
                file.batches(LABELS, streamed=("image",), batch_rows=16)
                if images
                else file.batches(LABELS, batch_rows=256)
            )
            first = 0
            for i, batch in enumerate(batches):
                table, found = truth_table(batch, shard.level, seen, file=shard.name, first=first, images=images)
                faults.add(found)
                first += len(batch)
                yield Key(number, i), table
            at = (shard.level, (*shard.earlier, shard.path))
        faults.log(log_level)


def _ids_of(paths: Sequence[str], access: Access) -> Counter[int]:
    """How often each id occurs in these files; their id columns alone are read."""
    counts: Counter[int] = Counter()
    for path in paths:
        first = 0
        for batch in LabelFile(path, access).batches(["id"]):
            counts.update(row_ids(batch, path, first))
            first += len(batch)
    return counts
