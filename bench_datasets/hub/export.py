"""A benchmark's truth as it is published: which configs and splits there are, and their rows with the way back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from datasets import Features, Value, load_dataset

from bench_datasets import __version__
from bench_datasets.benchmark import BENCHMARKS, get_benchmark
from bench_datasets.data import provenance
from bench_datasets.data.provenance import public_name
from bench_datasets.data.published_copy import ORIGIN
from bench_datasets.faults import BenchError
from bench_datasets.hub.dataset_form import Part

SAMPLE = "sample"
"""What the built-in sample is called, as `data` and as `source_dataset`."""


@dataclass(frozen=True)
class Truth:
    """A benchmark's truth that is about to be published.

    Attributes:
        benchmark: its name.
        data: what the caller named: a folder, a URL, `sample`, or None.
        source: what the rows' `source_dataset` says: a Hub dataset id, a URL, a folder's name, or `sample`.
        revision: the Hub's commit; for the sample the package's version; else None.
        parts: what is written, in order.
        read_images: whether the builder reads the images; it then gives their hashes.
        with_images: whether the pixels are published.
    """

    benchmark: str
    data: str | None
    source: str
    revision: str | None
    parts: tuple[Part, ...]
    read_images: bool
    with_images: bool

    @property
    def is_sample(self) -> bool:
        """Whether it is the built-in sample, whose pictures are our own."""
        return self.source == SAMPLE

    def open(self, config: str, *, images: bool, streaming: bool = True) -> Mapping[str, Any]:
        """The datasets of a builder's config, by split."""
        return _open(self.benchmark, *_place(self.benchmark, self.data, config), images=images, streaming=streaming)

    def read(self, part: Part) -> tuple[Features, Iterator[pa.Table]]:
        """A part's published columns, and its rows, some at a time."""
        # A config that is built into the cache goes on where a killed run was; the others are streamed, and images are
        # held for a moment and never kept.
        config, split = part.opened
        form = get_benchmark(self.benchmark).dataset_form()
        streaming = config not in form.built_configs
        data = self.open(config, images=self.read_images, streaming=streaming)[split]
        features = self.features(data.features)
        portion = form.rows_at_a_time
        if "image" in data.features:
            portion = max(16, portion // 4)
        tables = data.with_format("arrow").iter(batch_size=portion)
        return features, (self._shaped(pa.table(table), part, features) for table in tables)

    def features(self, features: Features) -> Features:
        """The published columns, from the builder's."""
        kept = {name: feature for name, feature in features.items() if name != "image" or self.with_images}
        if "image" in kept and "image_sha256" not in kept:
            kept["image_sha256"] = Value("string")
        return Features({**kept, **{name: Value("string") for name in ORIGIN}})

    def _shaped(self, table: pa.Table, part: Part, features: Features) -> pa.Table:
        n = len(table)
        if "image_sha256" in features and "image_sha256" not in table.column_names:
            hashes = [_sha256(image) for image in table["image"].to_pylist()]
            table = table.append_column("image_sha256", pa.array(hashes, pa.string()))
        if "video" in table.column_names:  # a path of this machine helps nobody: the place below the source's root
            videos = [
                None if video is None else f"{source}/videos/{key}.mp4"
                for video, source, key in zip(
                    *(table[name].to_pylist() for name in ("video", "source", "key")), strict=True
                )
            ]
            table = table.set_column(table.column_names.index("video"), "video", pa.array(videos, pa.string()))
        ids = table[next(name for name in ("id", "key", "video_id") if name in table.column_names)]
        for name, value in zip(ORIGIN[:3], (self.source, self.revision, part.source_split), strict=True):
            table = table.append_column(name, pa.array([value] * n, pa.string()))
        table = table.append_column("source_id", ids.cast(pa.string()))
        return table.select(list(features)).cast(features.arrow_schema)


def open_source(benchmark: str, data: str | None, *, with_images: bool, labels_only: bool = False) -> Truth:
    """Load a benchmark's source and list its configs and splits.

    Args:
        benchmark: its name.
        data: the truth's root, `sample`, or None for the environment's or the default.
        with_images: publish pixels: PBench and InstanceBench get the column `image`, PVSG the config `frames`.
        labels_only: read no image at all; PBench's and InstanceBench's rows then bear no `image_sha256`.

    Raises:
        BenchError: the source cannot be read, or both options are given.
    """
    if with_images and labels_only:
        raise BenchError("with_images and labels_only: expected one of them, got both; images must be read to be sent")
    facts = provenance(_open(benchmark, *_place(benchmark, data, None), images=False, streaming=True))
    if facts is None:
        raise BenchError(f"{benchmark}: expected a source, found {data!r}; name a folder or URL")
    source, revision = (SAMPLE, _maker(benchmark)) if data == SAMPLE else _named(facts)
    if benchmark in BENCHMARKS.own:
        parts = tuple(get_benchmark(benchmark).dataset_form().parts(list(facts["rows"]), with_images))
    else:
        opened = str(facts.get("config") or "default")
        parts = tuple(Part("default", s, f"default/{s}", None, s, (opened, s)) for s in facts["rows"])
    return Truth(benchmark, data, source, revision, parts, not labels_only, with_images)


def _open(benchmark: str, root: str | None, config: str | None, *, images: bool, streaming: bool) -> Mapping[str, Any]:
    single = root is not None and root.endswith((".parquet", ".jsonl"))
    found: Mapping[str, Any] = load_dataset(
        get_benchmark(benchmark).name,
        config,
        streaming=streaming,
        images=images,
        **{"data_files" if single else "data_dir": root},
    )
    return found


def _place(benchmark: str, data: str | None, config: str | None) -> tuple[str | None, str | None]:
    """Root and config to open; a sample of ours is opened as a source, another package's by the config of that name."""
    if data != SAMPLE:
        return data, config
    if benchmark not in BENCHMARKS.own:
        return None, SAMPLE
    return get_benchmark(benchmark).sample_dir(), config


def _maker(benchmark: str) -> str:
    """The package that made the sample, with its version."""
    if benchmark in BENCHMARKS.own:
        return f"bench_datasets {__version__}"
    return BENCHMARKS.plugins[benchmark].package


def _named(facts: Mapping[str, Any]) -> tuple[str, str | None]:
    """The public name of a source and its revision, without local paths and passwords."""
    source = str(facts["source"])
    return public_name(source), None if source.startswith("file://") else facts["revision"]


def _sha256(image: Mapping[str, Any] | None) -> str | None:
    data = None if image is None else image.get("bytes")
    return None if data is None else hashlib.sha256(data).hexdigest()
