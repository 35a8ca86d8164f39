"""Base class of the builders: finds the source's files once the config is known, and records their origin.

`load_dataset` asks the registry for a module before it knows the config; the registry answers with a `SourceRequest`,
and the builder resolves it, or leaves it alone where the config is built in.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from typing import Any

import datasets
from datasets import ArrowBasedBuilder
from datasets.data_files import DataFilesDict, DataFilesList
from datasets.exceptions import DatasetGenerationError

from bench_datasets._util.temporary import writable_cache
from bench_datasets.benchmark import get_benchmark
from bench_datasets.data.data_files import list_given
from bench_datasets.data.listing_cache import Memory, is_away
from bench_datasets.data.provenance import describe
from bench_datasets.data.source import PARQUET, Access, Listing, SourceUnreachableError, list_source
from bench_datasets.faults import BenchError

logger = logging.getLogger(__name__)

SAMPLE = "sample"
"""The config that is built in and needs no source."""


def settle_images(kwargs: dict[str, Any]) -> None:
    """Check a builder's option `images`, and leave the default unsaid: said or unsaid, it is one cache.

    Raises:
        BenchError: it is neither True nor False.
    """
    images = kwargs.get("images", True)
    if not isinstance(images, bool):
        raise BenchError(f"images: expected True or False, got {images!r}")
    if images:
        kwargs.pop("images", None)


class SourceRequest(DataFilesDict):  # type: ignore[misc]
    """The arguments of `load_dataset` before any file is looked for.

    Attributes:
        data_files: the argument of that name, or None.
        revision: likewise.
        token: of the download config.
        storage_options: of the download config.
    """

    def __init__(
        self,
        data_files: Any = None,
        revision: str | None = None,
        token: str | bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.data_files, self.revision = data_files, revision
        self.token, self.storage_options = token, storage_options


class SourceBuilder(ArrowBasedBuilder):  # type: ignore[misc]
    """A builder over the files of one source.

    Attributes:
        BENCHMARK: the benchmark's name.
        PARTS: the names that its files begin with, in order.
        SUFFIX: what their names end in.
        COPIES: the folder in which a published copy has its Parquet, where that is not the source's own layout.
        listing: the source and its files.
    """

    BENCHMARK: str
    PARTS: tuple[str, ...]
    SUFFIX: str = PARQUET
    COPIES: str | None = None
    listing: Listing

    def __init__(
        self,
        cache_dir: str | None = None,
        dataset_name: str | None = None,
        config_name: str | None = None,
        **kwargs: Any,
    ) -> None:
        config_name = config_name or self.DEFAULT_CONFIG_NAME
        if cache_dir is None:
            default = str(datasets.config.HF_DATASETS_CACHE)
            usable = writable_cache(default)
            cache_dir = None if usable == default else usable
        data_files, data_dir = kwargs.pop("data_files", None), kwargs.pop("data_dir", None)
        if config_name in self.builder_configs:  # else the base class says what there is
            request = data_files if isinstance(data_files, SourceRequest) else SourceRequest(data_files)
            token = kwargs.pop("token", None)
            kwargs["token"] = request.token if token is None else token
            kwargs["storage_options"] = {
                **(request.storage_options or {}),
                **(kwargs.pop("storage_options", None) or {}),
            }
            access = Access(kwargs["token"], kwargs["storage_options"])
            asked = (config_name, kwargs.get("images"), data_dir and str(data_dir), request.revision)
            self.listing = self._find_or_recall(cache_dir, asked, str(config_name), request, data_dir, access)
            self._check_config(str(config_name), self.listing)
            data_files = _data_files(self.listing)
        super().__init__(
            cache_dir=cache_dir, dataset_name=dataset_name, config_name=config_name, data_files=data_files, **kwargs
        )

    @property
    def access(self) -> Access:
        """How the source's files are opened."""
        return Access(self.token, self.storage_options)

    def _find_or_recall(self, cache_dir: Any, asked: tuple[object, ...], *search: Any) -> Listing:
        """The source's files; where the Hub can't be asked, those that it had last time, for builds in the cache."""
        cache = str(cache_dir or datasets.config.HF_DATASETS_CACHE)
        root = os.environ.get(get_benchmark(self.BENCHMARK).source.env)
        memory = None if "://" in cache else Memory(cache, self.BENCHMARK, root, *asked, repr(search[1].data_files))
        self._away: SourceUnreachableError | None = None
        try:
            listing = self._find(*search)
        except SourceUnreachableError as error:
            kept = memory.recall() if memory is not None and is_away(error) else None
            if kept is None:
                raise
            self._away = error
            logger.warning(
                "%s: %s; taking %s as it was when it was built, at commit %s",
                *(self.BENCHMARK, "the Hub can't be asked", kept.source, kept.revision),
            )
            return kept
        if memory is not None:
            memory.keep(listing)
        return listing

    def _download_and_prepare(self, *args: Any, **kwargs: Any) -> None:
        """As in `datasets`; called for rows that are not cached, so the source must exist."""
        self._demand_source()
        super()._download_and_prepare(*args, **kwargs)

    def as_streaming_dataset(self, split: Any = None, *args: Any, **kwargs: Any) -> Any:
        """As upstream; a stream is read from the source, which must be there."""
        self._demand_source()
        return super().as_streaming_dataset(split, *args, **kwargs)

    def _demand_source(self) -> None:
        if self._away is not None:
            raise SourceUnreachableError(f"{self._away} No build with these options is in the cache.") from self._away

    def sample_dir(self) -> str:
        """The folder of the built-in sample, in the source's own layout."""
        raise NotImplementedError

    def _check_config(self, config_name: str, listing: Listing) -> None:
        """Refuse a config that the source has no files for."""

    def _find(self, config_name: str, request: SourceRequest, data_dir: Any, access: Access) -> Listing:
        benchmark = get_benchmark(self.BENCHMARK)
        if config_name == SAMPLE:
            if data_dir or request.data_files is not None or request.revision:
                raise BenchError(
                    f"{benchmark.name}: config {SAMPLE!r} is built in; leave data_dir, data_files and revision out"
                )
            found = list_source(
                benchmark.name, benchmark.source, self.PARTS, suffix=self.SUFFIX, root=self.sample_dir()
            )
            return Listing(SAMPLE, None, found.parts)
        if request.data_files is not None:
            return self._list_given(request, data_dir, access)
        return list_source(
            benchmark.name,
            benchmark.source,
            self.PARTS,
            suffix=self.SUFFIX,
            copies=self.COPIES,
            root=data_dir or None,
            revision=request.revision,
            access=access,
        )

    def _list_given(self, request: SourceRequest, data_dir: Any, access: Access) -> Listing:
        """The files that a caller named with `data_files=`."""
        if request.revision:
            raise BenchError(
                "revision: with data_files, name it in the path: hf://datasets/<org>/<name>@<revision>/<file>"
            )
        base = None if not data_dir else str(data_dir)
        return list_given(self.BENCHMARK, request.data_files, self.PARTS, suffix=self.SUFFIX, base=base, access=access)

    def _describe(self, text: str, rows: Mapping[str, int]) -> None:
        """Write the source and the number of rows of its parts into `info`."""
        facts = {
            "benchmark": self.BENCHMARK,
            "source": self.listing.source,
            "revision": self.listing.revision,
            "config": self.config.name,
            "rows": dict(rows),
        }
        self.info.description = describe(text, facts)

    def _prepare_split_single(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """As upstream, but a mistake in the source is raised as it is, with its own message, from workers too."""
        try:
            yield from super()._prepare_split_single(*args, **kwargs)
        except DatasetGenerationError as error:
            if isinstance(error.__cause__, BenchError):
                raise error.__cause__ from None
            raise


def _data_files(listing: Listing) -> DataFilesDict:
    """The source's files as `datasets` keeps them: their versions are part of the name that the cache gives a build."""
    return DataFilesDict(
        {
            part: DataFilesList([file.url for file in files], [(file.version,) for file in files])
            for part, files in listing.parts.items()
        }
    )
