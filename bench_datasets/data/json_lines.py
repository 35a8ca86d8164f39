"""`JsonLinesBuilder`: ground truth rows from JSON Lines files, one file or more per part."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import datasets
import pyarrow as pa
from datasets import Features

from bench_datasets._compat import Key
from bench_datasets.benchmark import get_benchmark
from bench_datasets.data.builder import SAMPLE, SourceBuilder
from bench_datasets.data.sample_cache import built
from bench_datasets.faults import BenchError


@dataclass
class RowsConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """A config of a `JsonLinesBuilder`. The option `images` is accepted and changes nothing."""

    images: bool = True


class JsonLinesBuilder(SourceBuilder):
    """Build ground truth rows from `<part>.jsonl` files, one row per line.

    Attributes:
        BENCHMARK: the benchmark's name.
        PARTS: names of the parts, which become splits.
        FEATURES: columns of the rows.
        FIELDS: names that every line must have.
        VERSION: version of the rows; raise it whenever `row` changes them, so that nobody reads older builds.
    """

    FEATURES: ClassVar[Features]
    FIELDS: ClassVar[Sequence[str]] = ()
    VERSION: ClassVar[str] = "1.0.0"
    SUFFIX = ".jsonl"
    BUILDER_CONFIG_CLASS = RowsConfig
    DEFAULT_CONFIG_NAME = "default"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        version = datasets.Version(cls.VERSION)
        cls.BUILDER_CONFIGS = [RowsConfig(name=name, version=version) for name in ("default", SAMPLE)]

    @abstractmethod
    def row(self, line: dict[str, Any], part: str) -> dict[str, Any]:
        """The ground truth row of one line.

        Args:
            line: the line, which has all `FIELDS`.
            part: name of its part.

        Raises:
            BenchError: a field holds something else than expected; the file and line are added to the message.
        """

    @abstractmethod
    def sample_lines(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The lines of the built-in sample, by part."""

    def sample_dir(self) -> str:
        """The folder of the built-in sample, named after a hash of its lines."""
        texts = {
            f"{part}.jsonl": "".join(f"{json.dumps(line)}\n" for line in lines)
            for part, lines in self.sample_lines().items()
        }

        def write(folder: Path) -> None:
            for file, text in texts.items():
                (folder / file).write_text(text, encoding="utf-8")

        digest = hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:16]
        return str(built(f"{self.BENCHMARK}-{digest}", [f"{part}.jsonl" for part in self.PARTS], write))

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(description=get_benchmark(self.BENCHMARK).title, features=self.FEATURES)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        del dl_manager
        parts = {part: [file.url for file in files] for part, files in self.listing.parts.items()}
        rows = {part: sum(1 for _ in self._lines(urls)) for part, urls in parts.items()}
        self._describe(get_benchmark(self.BENCHMARK).title, rows)
        return [
            datasets.SplitGenerator(name=part, gen_kwargs={"urls": urls, "part": part}) for part, urls in parts.items()
        ]

    def _generate_tables(self, urls: list[str], part: str) -> Iterator[tuple[Key, pa.Table]]:
        rows = []
        for place, line in self._lines(urls):
            absent = [name for name in self.FIELDS if name not in line]
            if absent:
                raise BenchError(f"{place}: expected a field {absent[0]!r}, found {', '.join(line) or 'none'}")
            try:
                rows.append(self.row(line, part))
            except BenchError as error:
                raise BenchError(f"{place}: {error}") from error
        yield Key(0, 0), pa.Table.from_pylist(rows, schema=self.FEATURES.arrow_schema)

    def _lines(self, urls: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        for url in urls:
            fs, path = self.access.open(url)
            with fs.open(path, "r", encoding="utf-8") as file:
                for number, text in enumerate(file, 1):
                    if not text.strip():
                        continue
                    try:
                        line = json.loads(text)
                    except (ValueError, RecursionError) as error:
                        raise BenchError(
                            f"{url}:{number}: expected a line of JSON, found other text ({error})"
                        ) from None
                    if not isinstance(line, dict):
                        raise BenchError(f"{url}:{number}: expected an object, found {type(line).__name__}")
                    yield f"{url}:{number}", line
