"""Suite `pbench`: `bd.score` end to end against the obvious loop, and its memory as rows grow."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from datasets import ClassLabel, Dataset, Features, List, Value, concatenate_datasets
from rich.console import Console
from rich.table import Table

import bench_datasets as bd
from bench import obvious, synthetic
from bench.clock import alternate, ratio, seconds
from bench.share import CALLS, kernels, unhashed, watched
from bench_datasets import masks
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS

TRUTH = Features(
    {
        "key": Value("string"),
        "id": Value("int64"),
        "level": ClassLabel(names=list(PBENCH_LEVELS)),
        "expression": Value("string"),
        "masks": List(masks.MASK_FEATURE),
    }
)
ANSWERS = Features({"key": Value("string"), "pred_masks": List(masks.MASK_FEATURE)})


@dataclass(frozen=True)
class Rows:
    """The same rows twice: as Datasets, and as the Python values that the loop takes."""

    truth: Dataset
    answers: Dataset
    rows: Sequence[Mapping[str, Any]]
    predicted: Sequence[Sequence[dict[str, Any]]]


def make_rows(
    rows: int, instances: int, megapixels: float, levels: Sequence[str], seed: int = 0, kind: str = "smooth"
) -> Rows:
    """Synthetic rows: blobs that hardly touch, and a fair model's answers to them."""
    rng = np.random.default_rng(seed)
    size = synthetic.image_size(megapixels)
    truth, answers = [], []
    for i in range(rows):
        shapes = synthetic.sparse(rng, instances, size)
        level = levels[i % len(levels)]
        truth.append({"key": f"{level}/{i}", "id": i, "level": level, "masks": synthetic.draw_all(shapes, size, kind)})
        answers.append(synthetic.draw_all(synthetic.predicted(rng, shapes), size, kind))
    tables = {
        "key": [row["key"] for row in truth],
        "id": [row["id"] for row in truth],
        "level": [PBENCH_LEVELS.index(row["level"]) for row in truth],
        "expression": [f"things of row {row['id']}" for row in truth],
        "masks": [_text(row["masks"]) for row in truth],
    }
    answered = {"key": tables["key"], "pred_masks": [_text(found) for found in answers]}
    return Rows(
        Dataset.from_dict(tables, features=TRUTH),
        bd.read_predictions("pbench", Dataset.from_dict(answered, features=ANSWERS)),
        truth,
        answers,
    )


def run(console: Console, *, quick: bool, seed: int = 0) -> dict[str, Any]:
    """Time both on rows of a few masks and on rows of hundreds; measure memory.

    Returns:
        `cases` (sizes, `seconds`, `ratio`, Macro-F1), `shares` of the kernels, and `memory`.

    Raises:
        ValueError: the two do not agree.
    """
    few, many, crowd = (100, 2, 100) if quick else (2000, 20, 300)
    cases = [
        ("rows of 5 masks, 0.3 MP", make_rows(few, 5, 0.3, PBENCH_LEVELS[:5], seed), 2 if quick else 9),
        (f"rows of {crowd} masks, 4 MP", make_rows(many, crowd, 4, ("dense",), seed), 2 if quick else 3),
    ]
    found = []
    for title, rows, repetitions in cases:
        found.append(_compare(f"{len(rows.rows):,} {title}", rows, repetitions))
    _print(console, found)
    shares = _shares(quick, seed)
    _print_shares(console, shares)
    heavy = make_rows(200, 5, 0.3, PBENCH_LEVELS[:5], seed, kind="speckled")  # 40 KB a row
    memory = _memory(heavy, (300, 600) if quick else (2000, 8000))
    _print_memory(console, memory)
    return {"cases": found, "shares": shares, "memory": memory}


def _compare(title: str, rows: Rows, repetitions: int) -> dict[str, Any]:
    theirs = obvious.macro_f1(rows.rows, rows.predicted)
    contenders: dict[str, Any] = {"loop": lambda: obvious.macro_f1(rows.rows, rows.predicted)}
    for name in masks.available_engines():
        ours = _summed_up(_score(rows, name))
        if any(abs(ours[level] - value) > 1e-12 for level, value in theirs.items()):
            raise ValueError(f"{title}: the obvious loop gives Macro-F1 {theirs}, bd.score with {name} {ours}")
        contenders[name] = lambda name=name: _score(rows, name)
        contenders[f"{name}, no row hash"] = lambda name=name: _without_hashes(rows, name)
    times = alternate(contenders, repetitions)
    return {
        "case": title,
        "rows": len(rows.rows),
        "masks": sum(len(row["masks"]) for row in rows.rows) + sum(map(len, rows.predicted)),
        "bytes_per_mask": float(np.median([len(m["counts"]) for row in rows.rows for m in row["masks"]])),
        "macro_f1": theirs,
        "seconds": times,
        "ratio": {name: times["loop"] / value for name, value in times.items()},
    }


def _score(rows: Rows, engine: str) -> Dataset:
    with masks.using_engine(engine):
        return bd.score("pbench", rows.truth, rows.answers)


def _kernels(rows: Rows, engine: str) -> None:
    with masks.using_engine(engine):
        kernels(rows.truth, rows.answers)


def _summed_up(scores: Dataset) -> dict[str, float]:
    result = bd.summarize("pbench", scores, draws=0)
    return {
        key.partition("/")[2]: metric.value for key, metric in result.metrics.items() if key.startswith("macro_f1/")
    }


def _without_hashes(rows: Rows, engine: str) -> Dataset:
    """The same scoring with empty row hashes, to tell what they cost."""
    with unhashed():
        return _score(rows, engine)


# ---------------------------------------------------------------------- memory


def _memory(rows: Rows, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Peak memory of `bd.score` in a process of its own, over Datasets on disk, by number of rows."""
    found = []
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            _grown(rows.truth, n).save_to_disk(f"{folder}/truth")
            _grown(rows.answers, n).save_to_disk(f"{folder}/answers")
            child = Path(__file__).with_name("memory.py")
            done = subprocess.run([sys.executable, str(child), folder], capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{child.name} ended with {done.returncode}: {done.stderr.strip()[-800:]}")
            found.append({"rows": n, **json.loads(done.stdout.splitlines()[-1])})
    return found


def _grown(dataset: Dataset, n: int) -> Dataset:
    """`n` rows: the dataset's, again and again under other keys."""
    parts = []
    for copy in range(-(-n // len(dataset))):
        part = dataset.select(range(min(len(dataset), n - copy * len(dataset))))
        keys = [f"{key}{copy:03d}" for key in part["key"]]
        names = {"key": keys}
        if "masks" in part.column_names:
            names["id"] = [int(key.split("/")[1]) for key in keys]
        part = part.remove_columns(list(names))
        for name, values in names.items():
            part = part.add_column(name, values)
        parts.append(part)
    return concatenate_datasets(parts)


def _text(rles: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"size": rle["size"], "counts": rle["counts"].decode()} for rle in rles]


# ---------------------------------------------------------------------- print


def _print(console: Console, cases: list[dict[str, Any]]) -> None:
    table = Table(title="bd.score (everything validated and hashed) against the obvious loop (medians; same Macro-F1)")
    for name in ("rows", "masks", "B/mask", "obvious loop", "", "bd.score", "x the loop"):
        table.add_column(name, justify="left" if name in ("rows", "") else "right")
    for case in cases:
        loop = seconds(case["seconds"]["loop"])
        head = [case["case"], f"{case['masks']:,}", f"{case['bytes_per_mask']:,.0f}", loop]
        for name in case["seconds"]:
            if name != "loop":
                table.add_row(*head, name, seconds(case["seconds"][name]), ratio(case["ratio"][name]))
                head = [""] * 4
    console.print(table)


def _shares(quick: bool, seed: int) -> list[dict[str, Any]]:
    """How much of the bare kernels' speed is left, and where the rest goes; by case and engine."""
    levels, dense = PBENCH_LEVELS[:5], ("dense",)
    shapes = [(2000, 5, 0.3, levels), (1000, 10, 1.0, levels), (100, 100, 2.0, dense), (60, 300, 4.0, dense)]
    if quick:
        shapes = [(1000, 5, 0.3, levels), (50, 100, 2.0, dense)]
    found = []
    for count, instances, megapixels, names in shapes:
        rows = make_rows(count // 10 if quick else count, instances, megapixels, names, seed)
        if quick:  # the same few rows again and again: drawing them would take longer than all the rest
            rows = replace(rows, truth=_grown(rows.truth, count), answers=_grown(rows.answers, count))
        for engine in masks.available_engines():
            _without_hashes(rows, engine)
            times = alternate(
                {
                    "kernels": lambda rows=rows, engine=engine: _kernels(rows, engine),
                    "bd.score": lambda rows=rows, engine=engine: _without_hashes(rows, engine),
                },
                9,
                budget=1 if quick else float("inf"),
            )
            with watched(masks.get_engine(engine)) as spent:
                _without_hashes(rows, engine)
            title = f"{count:,} rows of {instances} masks, {megapixels:g} MP"
            found.append({"case": title, "engine": engine, "seconds": times, "spent": spent})
    return found


def _print_shares(console: Console, found: list[dict[str, Any]]) -> None:
    parts = [name for name in (*CALLS, "assignment") if any(name in case["spent"] for case in found)]
    table = Table(title="bd.score, row hashes left out: what it keeps of the kernels' speed, and where its time goes")
    for name in ("rows", "engine", "kernels", "bd.score", "kept", *parts, "Arrow and Python"):
        table.add_column(name, justify="left" if name in ("rows", "engine") else "right")
    for case in found:
        times, spent = case["seconds"], case["spent"]
        shares = [spent.get(name, 0.0) / spent["all"] for name in parts]
        shares = [times["kernels"] / times["bd.score"], *shares, 1 - sum(shares)]
        table.add_row(
            case["case"], case["engine"], *(seconds(times[name]) for name in ("kernels", "bd.score")),
            *(f"{share:.0%}" for share in shares),
        )  # fmt: skip
    console.print(table)


def _print_memory(console: Console, memory: list[dict[str, Any]]) -> None:
    table = Table(title="memory of bd.score in a process of its own, above what it had before")
    for name in ("rows", "data on disk", "growth, mapped files aside", "growth, all"):
        table.add_column(name, justify="right")
    for found in memory:
        table.add_row(
            f"{found['rows']:,}",
            f"{found['data_mb']:.0f} MB",
            "-" if found["anonymous_mb"] is None else f"{found['anonymous_mb']:.0f} MB",
            f"{found['all_mb']:.0f} MB",
        )
    console.print(table)
    first, last = memory[0], memory[-1]
    if first["anonymous_mb"] is not None and last["rows"] > first["rows"]:
        more = (last["anonymous_mb"] - first["anonymous_mb"]) * 1024 / (last["rows"] - first["rows"])
        size = last["data_mb"] * 1024 / last["rows"]
        console.print(f"mapped files aside, a further row of {size:.0f} KB takes {more:.1f} KB")
