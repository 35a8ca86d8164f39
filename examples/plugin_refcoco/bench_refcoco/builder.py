"""`load_dataset("refcoco_toy")`: JSON Lines, one expression a line, into truth rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import datasets
import numpy as np
import pyarrow as pa
from datasets import Features, List, Value
from datasets.builder import Key

from bench_datasets.benchmark import get_benchmark
from bench_datasets.data.builder import SAMPLE, SourceBuilder
from bench_datasets.data.provenance import describe
from bench_datasets.faults import BenchError
from bench_datasets.masks import MASK_FEATURE, encode_dense, parse_mask
from bench_datasets.samples.cache import built

FEATURES = Features(
    key=Value("string"), id=Value("int64"), split=Value("string"), expression=Value("string"),
    masks=List(MASK_FEATURE), height=Value("int32"), width=Value("int32"), faults=List(Value("string")),
)  # fmt: skip

VERSION = datasets.Version("1.0.0")
SQUARES = {"left": (5, 5), "right": (5, 35), "upper": (2, 20), "lower": (22, 20)}


@dataclass
class Config(datasets.BuilderConfig):
    """A config; there are no images, whatever is asked for."""

    images: bool = True
    version: Any = VERSION


class RefCOCOToy(SourceBuilder):
    """Builder of the truth rows."""

    BENCHMARK = "refcoco_toy"
    PARTS = ("val", "test")
    SUFFIX = ".jsonl"
    BUILDER_CONFIG_CLASS = Config
    BUILDER_CONFIGS: ClassVar[list[Config]] = [Config(name="default"), Config(name=SAMPLE)]
    DEFAULT_CONFIG_NAME = "default"

    def sample_dir(self) -> str:
        """The folder of the built-in sample."""
        return str(built("refcoco_toy", ["val.jsonl", "test.jsonl"], _draw))

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(description="RefCOCO (toy).", features=FEATURES)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        parts = {part: [file.url for file in files] for part, files in self.listing.parts.items()}
        rows = {part: sum(1 for _ in self._lines(urls)) for part, urls in parts.items()}
        facts = {"benchmark": self.BENCHMARK, "source": self.listing.source, "revision": self.listing.revision}
        self.info.description = describe("RefCOCO (toy).", {**facts, "config": self.config.name, "rows": rows})
        return [
            datasets.SplitGenerator(name=part, gen_kwargs={"urls": urls, "split": part}) for part, urls in parts.items()
        ]

    def _lines(self, urls: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        for url in urls:
            fs, path = self.access.open(url)
            with fs.open(path, "r", encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    yield f"{url}:{number}", json.loads(line)

    def _generate_tables(self, urls: list[str], split: str) -> Iterator[tuple[Key, pa.Table]]:
        rows = [_row(where, line, split) for where, line in self._lines(urls)]
        yield Key(0, 0), pa.Table.from_pylist(rows, schema=FEATURES.arrow_schema)


def _row(where: str, line: dict[str, Any], split: str) -> dict[str, Any]:
    absent = [name for name in ("id", "expression", "height", "width", "segmentation") if name not in line]
    if absent:
        raise BenchError(f"{where}: expected a field {absent[0]!r}, found {', '.join(line)}")
    try:
        mask = parse_mask(line["segmentation"], height=line["height"], width=line["width"])
    except BenchError as error:
        raise BenchError(f"{where}: segmentation: {error}") from error
    names = {name: line[name] for name in ("id", "expression", "height", "width")}
    return {**names, "key": f"{split}/{line['id']}", "split": split, "masks": [mask], "faults": []}


def _draw(folder: Path) -> None:
    """The sample: squares on an empty ground."""
    for split in RefCOCOToy.PARTS:
        lines = []
        for number, (word, (y, x)) in enumerate(
            list(SQUARES.items())[: get_benchmark("refcoco_toy").source.rows[split]]
        ):
            mask = np.zeros((40, 60), bool)
            mask[y : y + 15, x : x + 15] = True
            line = {"id": number, "expression": f"the {word} square", "height": 40, "width": 60}
            lines.append(json.dumps({**line, "segmentation": encode_dense(mask)}))
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
