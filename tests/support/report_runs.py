"""Runs to report on: those of the built-in samples, and of ground truth whose texts are hostile."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.data import open_truth
from bench_datasets.masks import encode_dense
from bench_datasets.report import write_report
from bench_datasets.results.run_files import write_run

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "<script>document.title='broken'</script>",
    "\"><svg onload=alert(2)>'`${alert(3)}`",
    "{{ 7 * 7 }} {% raw %} &lt;b&gt; &amp;",
    "عربي: الكرة الحمراء على اليسار",
    "emoji 👩‍👩‍👧 🐈 \u202eright to left\u202c \u2028 line \u2029 paragraph \x7f",
    "x" * 2000,
    "<!--<script>",
]
"""Expressions that try to be more than text."""


class Runs:
    """Runs of a benchmark's sample.

    Attributes:
        places: each model's folder.
        predictions: each model's predictions.
    """

    def __init__(self, benchmark: str, folder: Path, models: list[str], protocol: str | None = None) -> None:
        truth = open_truth(benchmark, "sample")
        self.benchmark = benchmark
        self.predictions = {m: getattr(samples, f"{benchmark}_sample_predictions")(m) for m in models}
        self.places = {model: folder / model for model in models}
        self.scores = {}
        for model, place in self.places.items():
            scores = bd.score(benchmark, truth, bd.read_predictions(benchmark, self.predictions[model]), protocol)
            write_run(scores, bd.summarize(benchmark, scores, draws=100), place)
            self.scores[model] = scores

    def report(self, out: Path, **options: Any) -> Path:
        return write_report(
            list(self.places.values()), out, data="sample", predictions=list(self.predictions.values()), draws=200,
            **options,
        )  # fmt: skip


class Hostile:
    """A PBench of a row a text, with images, and a run of it whose name is hostile too."""

    name = '<b>"model"</b></title><script>alert(4)</script>'

    def __init__(self, folder: Path, texts: list[str], rows: int | None = None) -> None:
        self.data, self.texts = folder / "data-root", texts
        rng = np.random.default_rng(0)
        lines = []
        per_level: dict[str, list[dict[str, Any]]] = {level: [] for level in PBENCH_LEVELS}
        for i in range(rows or max(len(texts), len(PBENCH_LEVELS))):
            true, given = np.zeros((2, 48, 64), bool)
            x, shift = int(rng.integers(0, 40)), int(rng.integers(0, 12))
            true[10:30, x : x + 20] = True
            given[10:30, x + shift : x + shift + 20] = True
            per_level[PBENCH_LEVELS[i % len(PBENCH_LEVELS)]].append({
                "image": {"bytes": _png(rng, i) if rows is None else _png(rng, i % 40), "path": f"{i}.png"},
                "expression": texts[i % len(texts)], "masks": [encode_dense(true)], "count": 1, "id": i,
            })  # fmt: skip
            lines.append({"id": i, "masks": [encode_dense(given)]})
        mask = pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())])
        schema = pa.schema([
            ("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])), ("expression", pa.string()),
            ("masks", pa.list_(mask)), ("count", pa.int32()), ("id", pa.int64()),
        ])  # fmt: skip
        (self.data / "data").mkdir(parents=True)
        for level, found in per_level.items():
            file = self.data / "data" / f"{level}-00000-of-00001.parquet"
            pq.write_table(pa.Table.from_pylist(found, schema=schema), file)
        self.predictions = folder / "predictions.jsonl"
        self.predictions.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        self.place = folder / "run"
        truth = open_truth("pbench", str(self.data))
        self.scores = bd.score("pbench", truth, bd.read_predictions("pbench", self.predictions))
        write_run(self.scores, bd.summarize("pbench", self.scores, draws=50), self.place)

    def report(self, out: Path, **options: Any) -> Path:
        return write_report([self.place], out, names=[self.name], data=str(self.data),
                            predictions=[str(self.predictions)], **options)  # fmt: skip


def _png(rng: np.random.Generator, seed: int) -> bytes:
    del rng
    picture = np.random.default_rng(seed).integers(0, 255, (6, 8, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(picture).resize((64, 48)).save(buffer, "PNG")
    return buffer.getvalue()
