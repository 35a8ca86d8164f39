"""PBench: `load_dataset("pbench")`.

Configs: `default` (all levels, in the order of the paper's table), one a level, and `sample`, which is built in. The
one split is `test`. `images=False` reads the label columns alone, a few megabytes of the release's 18.7 GB.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import datasets
import pyarrow as pa

from bench_datasets._compat import Key
from bench_datasets.benchmark import get_benchmark
from bench_datasets.benchmarks.pbench.schema import LEVELS
from bench_datasets.benchmarks.pbench.truth import LABELS, check_schema, row_ids, truth_features, truth_table
from bench_datasets.data.builder import SAMPLE, SourceBuilder, settle_images
from bench_datasets.data.fault_log import Noted
from bench_datasets.data.parquet import LabelFile
from bench_datasets.data.published_copy import HASH, Beside, beside, declared_rows, is_copy, survey, with_hashes
from bench_datasets.data.source import Access, Listing, SourceNotFoundError
from bench_datasets.faults import BenchError

_TEXT = "PBench: referring expressions and the masks of everything they name, in five levels and a dense part."

_VERSION = datasets.Version("1.0.0")
"""Version of the rows, in the cache's folder names; raise it whenever a change of the code changes rows."""


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
    PARTS = LEVELS
    BUILDER_CONFIG_CLASS = PBenchConfig
    BUILDER_CONFIGS: ClassVar[list[PBenchConfig]] = [PBenchConfig(name=name) for name in ("default", *LEVELS, SAMPLE)]
    DEFAULT_CONFIG_NAME = "default"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        settle_images(kwargs)
        super().__init__(*args, **kwargs)

    def sample_dir(self) -> str:
        """The folder of the built-in sample."""
        from bench_datasets.samples import pbench_sample_dir

        return str(pbench_sample_dir())

    def _check_config(self, config_name: str, listing: Listing) -> None:
        if config_name in LEVELS and config_name not in listing.parts:
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
        parts = self.listing.parts
        levels = [self.config.name] if self.config.name in LEVELS else list(parts)
        reads = self._survey(levels, streaming=bool(dl_manager.is_streaming))
        shards: list[Shard] = []
        for level in levels:
            urls = [file.url for file in parts[level]]
            # The Hub's files go through its own cache; others are read where they are, once.
            fetch = reads.image and all(url.startswith("hf://") for url in urls)
            paths = list(dl_manager.download(urls)) if fetch else urls
            shards += [
                Shard(level, path, url, tuple(paths[:i])) for i, (path, url) in enumerate(zip(paths, urls, strict=True))
            ]
        log_level = logging.INFO if dl_manager.is_streaming else logging.WARNING
        kwargs = {"shards": shards, "reads": tuple(reads), "log_level": log_level}
        return [datasets.SplitGenerator(name=datasets.Split.TEST, gen_kwargs=kwargs)]

    def _survey(self, levels: Sequence[str], *, streaming: bool) -> Beside:
        """Read the files' footers, check their columns, and write origin and row counts into `info`.

        Args:
            levels: those that are to be read; the others are counted alone.
            streaming: take the rows' number from the Hub's card where it is there, and read one footer.

        Returns:
            What there is to read beside the labels.
        """
        images = bool(self.config.images)

        def check(schema: pa.Schema, file: str, level: str) -> None:
            without = is_copy(schema) and "image" not in schema.names
            check_schema(schema, file, images=images and level in levels and not without)

        found = survey(
            self.listing.parts,
            self.access,
            check,
            stands=self.listing.parts[levels[0]][0],
            declared=declared_rows(self.listing, "default") if streaming else None,
        )
        if not any(found.rows[level] for level in levels):
            raise BenchError(f"{self.listing.source}: expected rows of {', '.join(levels)}, found files without any")
        self.info.download_checksums = {url: {"num_bytes": size, "checksum": None} for url, size in found.sizes.items()}
        self._describe(_TEXT, found.rows)
        if not is_copy(found.schema):
            return Beside(images, hashes=False)
        reads = beside(found.schema, self.listing.source, images=images)
        self.info.features = reads.features(truth_features(reads.image))
        return reads

    def _generate_tables(
        self, shards: Sequence[Shard], reads: tuple[bool, bool], log_level: int
    ) -> Iterator[tuple[Key, pa.Table]]:
        (images, hashes), access = reads, self.access
        at: tuple[str, tuple[str, ...]] | None = None
        seen: Counter[int] = Counter()
        faults = Noted(self.BENCHMARK)
        for number, shard in enumerate(shards):
            if at != (shard.level, shard.earlier):
                seen = _ids_of(shard.earlier, access)
            file = LabelFile(shard.path, access, name=shard.name)
            check_schema(file.schema, shard.name, images=images)
            columns = [*LABELS, HASH] if hashes else LABELS
            batches = (
                file.batches(columns, streamed=("image",), batch_rows=16)
                if images
                else file.batches(columns, batch_rows=256)
            )
            first = 0
            for i, batch in enumerate(batches):
                table, found = truth_table(batch, shard.level, seen, file=shard.name, first=first, images=images)
                faults.add(found)
                first += len(batch)
                yield Key(number, i), with_hashes(table, batch.column(HASH).to_pylist()) if hashes else table
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
