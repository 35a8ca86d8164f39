"""Suite `instancebench`: scoring against one pycocotools call a pair, intervals against a loop over draws, memory."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray
from pycocotools import mask as coco
from rich.console import Console
from rich.table import Table

import bench_datasets as bd
from bench import synthetic
from bench.clock import alternate, ratio, seconds
from bench.share import unhashed
from bench_datasets import masks
from bench_datasets.benchmarks.instancebench import BENCHMARK
from bench_datasets.benchmarks.instancebench.truth import truth_features
from bench_datasets.benchmarks.instancebench.vocabulary import FAMILY_OF, OPERATIONS, track_of
from bench_datasets.results.statistics import Statistic

SETS, EXPRESSIONS = 2918, 7370
"""As many as the paper's test set has."""

DRAWS = 10_000
DISTINCT = 300
"""Sets that are drawn; further ones repeat their masks under other names."""

Rle = dict[str, Any]


@dataclass(frozen=True)
class Sets:
    """The same sets twice: as Datasets, and as the Python values that the loop takes.

    Attributes:
        truth: a row a set.
        answers: a row an expression.
        plain: by set, its candidates' masks (the target first) and its answers, the core ones first.
    """

    truth: Dataset
    answers: Dataset
    plain: Sequence[tuple[Sequence[Rle], Sequence[Rle]]]


def make_sets(sets: int, expressions: int, megapixels: float, seed: int = 0) -> Sets:
    """Synthetic sets of 4 to 16 candidates, and a model's answers that mostly mean the target.

    Args:
        sets: how many.
        expressions: how many in all, two to three a set.
        megapixels: of the images.
        seed: of everything.
    """
    rng = np.random.default_rng(seed)
    size = synthetic.image_size(megapixels)
    drawn = [_draw(rng, size) for _ in range(min(sets, DISTINCT))]
    rows, answers, plain = [], [], []
    for i in range(sets):
        candidates, predicted = drawn[i % len(drawn)]
        roles = ("minimal", "variant", "paraphrase")[: 3 if i < expressions - 2 * sets else 2]
        asks = [_ask(f"s{i}-{k}", role, OPERATIONS[int(rng.integers(9))]) for k, role in enumerate(roles)]
        row = {
            "key": f"s{i}", "image_id": str(i), "source": ("coco", "openimages")[i % 2], "category": f"kind {i % 60}",
            "height": size[0], "width": size[1], "target": 0, "faults": [], "expressions": asks,
            "candidates": [
                {"instance_id": str(k), "mask": _text(mask), "iscrowd": False} for k, mask in enumerate(candidates)
            ],
        }  # fmt: skip
        rows.append(row)
        plain.append((candidates, predicted[: len(asks)]))
        for ask, mask in zip(asks, predicted, strict=False):
            answers.append({"expression_id": ask["expression_id"], "mask": _text(mask)})
    truth = Dataset.from_list(rows, features=truth_features(False))
    return Sets(truth, bd.read_predictions("instancebench", Dataset.from_list(answers)), plain)


def _draw(rng: np.random.Generator, size: tuple[int, int]) -> tuple[list[Rle], list[Rle]]:
    shapes = synthetic.sparse(rng, int(rng.integers(4, 17)), size)
    predicted = []
    for _ in range(3):
        blob = shapes[0 if rng.random() < 0.7 else int(rng.integers(len(shapes)))]
        off = blob.radius * 0.15
        predicted.append(blob.moved(rng.uniform(-off, off), rng.uniform(-off, off), float(rng.uniform(0.85, 1.15))))
    return synthetic.draw_all(shapes, size, "smooth"), synthetic.draw_all(predicted, size, "smooth")


def _ask(name: str, role: str, operation: str) -> dict[str, Any]:
    return {
        "expression_id": name, "text": f"the thing of {name}", "role": role, "operation": operation,
        "family": FAMILY_OF[operation], "track": track_of(role, operation), "tags": ["spatial_relation"],
        "donor_mask": None,
    }  # fmt: skip


def _text(rle: Rle) -> Rle:
    return {"size": rle["size"], "counts": rle["counts"].decode()}


def obvious(plain: Sequence[tuple[Sequence[Rle], Sequence[Rle]]]) -> tuple[float, float]:
    """MIoU and All-target-ID of the two core answers of each set, one pycocotools call a pair; nothing is validated."""
    quality, whole = [], []
    for candidates, answers in plain:
        right = []
        for k, answer in enumerate(answers):
            area, scores = int(coco.area(answer)), []
            for candidate in candidates:
                iou, other = float(coco.iou([answer], [candidate], [0])[0][0]), int(coco.area(candidate))
                if not scores and k < 2:
                    quality.append(iou)
                shared = iou * (area + other) / (1 + iou)
                scores.append(shared / math.sqrt(area * other) if area and other else 0.0)
            best, second = sorted(scores, reverse=True)[:2]
            sure = best >= 0.1 - 1e-12 and best - second >= 0.05 - 1e-12
            right.append(sure and scores[0] == best)
        whole.append(all(right[:2]))
    return sum(quality) / len(quality), sum(whole) / len(whole)


def run(console: Console, *, quick: bool, seed: int = 0) -> dict[str, Any]:
    """Time scoring and intervals, measure memory.

    Returns:
        `score` and `intervals` (`seconds` and `ratio` by name), and `memory`.

    Raises:
        ValueError: ours and the loops do not agree.
    """
    sets, expressions, megapixels = (300, 760, 0.3) if quick else (SETS, EXPRESSIONS, 1.0)
    made = make_sets(sets, expressions, megapixels, seed)
    found = {"score": _compare(made, 3), "intervals": _intervals(made, 200 if quick else DRAWS, 10 if quick else 40)}
    found["memory"] = _memory(made)
    _print(console, found)
    return found


def _compare(made: Sets, repetitions: int) -> dict[str, Any]:
    theirs = obvious(made.plain)
    contenders: dict[str, Any] = {"loop": lambda: obvious(made.plain)}
    for name in masks.available_engines():
        metrics = bd.summarize("instancebench", _score(made, name), draws=0).metrics
        ours = metrics["miou"].value, metrics["all_target_id"].value
        if any(abs(a - b) > 1e-9 for a, b in zip(ours, theirs, strict=True)):
            raise ValueError(f"the obvious loop gives mIoU and All-target-ID {theirs}, bd.score with {name} {ours}")
        contenders[name] = lambda name=name: _score(made, name)
        contenders[f"{name}, no row hash"] = lambda name=name: _without_hashes(made, name)
    times = alternate(contenders, repetitions)
    pairs = sum(len(candidates) * len(answers) for candidates, answers in made.plain)
    return {
        "sets": len(made.truth), "expressions": len(made.answers), "pairs": pairs, "miou": theirs[0],
        "bytes_per_mask": float(np.median([len(m["counts"]) for masks_, _ in made.plain[:DISTINCT] for m in masks_])),
        "seconds": times, "ratio": {name: times["loop"] / value for name, value in times.items()},
    }  # fmt: skip


def _score(made: Sets, engine: str) -> Dataset:
    return bd.score("instancebench", made.truth, made.answers, engine=engine)


def _without_hashes(made: Sets, engine: str) -> Dataset:
    """The same scoring with empty row hashes, to tell what they cost."""
    with unhashed():
        return _score(made, engine)


# ---------------------------------------------------------------------- intervals


def _intervals(made: Sets, draws: int, few: int) -> dict[str, Any]:
    """The intervals of every number: ours with all draws, and the loop with a few, from which its time follows."""
    scores = _score(made, masks.available_engines()[0])
    table = scores.with_format("arrow")[:]
    numbers = [item for items in BENCHMARK.statistics(table, "default").values() for item in items.values() if item.n]
    theirs = gather_rows(numbers, len(table), few, 0)
    ours = bd.summarize("instancebench", scores, draws=few, seed=0).metrics["miou"].ci95
    of_miou = np.quantile(theirs[0], [0.025, 0.975])
    if ours is None or not np.allclose(ours, of_miou, atol=1e-9):
        raise ValueError(f"the loop over draws gives the interval {of_miou.tolist()} of mIoU, bd.summarize {ours}")
    times = alternate(
        {
            "loop": lambda: gather_rows(numbers, len(table), few, 0),
            "value alone": lambda: bd.summarize("instancebench", scores, draws=0),
            "bd.summarize": lambda: bd.summarize("instancebench", scores, draws=draws),
        },
        3,
    )
    times["loop"] *= draws / few
    return {
        "draws": draws, "timed_draws_of_the_loop": few, "numbers": len(numbers), "seconds": times,
        "ratio": {"bd.summarize": times["loop"] / times["bd.summarize"]},
    }  # fmt: skip


def gather_rows(numbers: Sequence[Statistic], rows: int, draws: int, seed: int) -> list[NDArray[np.float64]]:
    """Every number of each draw, from the rows that the draw took, one draw after the other."""
    spread = []
    for item in numbers:
        columns = np.zeros((rows, item.columns.shape[1]))
        np.add.at(columns, item.rows, item.columns)
        spread.append(columns)
    generator = np.random.default_rng(seed)
    result: list[list[float]] = [[] for _ in numbers]
    for _ in range(draws):
        drawn = generator.integers(0, rows, size=rows)
        for k, (item, columns) in enumerate(zip(numbers, spread, strict=True)):
            with np.errstate(invalid="ignore", divide="ignore"):
                result[k].append(float(item.of(columns[drawn].sum(axis=0))))
    return [np.array(values) for values in result]


# ---------------------------------------------------------------------- memory


def _memory(made: Sets) -> dict[str, Any]:
    """Peak memory of scoring and summing up in a process of its own, over Datasets on disk."""
    with tempfile.TemporaryDirectory() as folder:
        made.truth.save_to_disk(f"{folder}/truth")
        made.answers.save_to_disk(f"{folder}/answers")
        child = Path(__file__).with_name("memory.py")
        command = [sys.executable, str(child), folder, "instancebench", "sum-up"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{child.name} ended with {done.returncode}: {done.stderr.strip()[-800:]}")
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result


def _print(console: Console, found: Mapping[str, Any]) -> None:
    score, intervals, memory = found["score"], found["intervals"], found["memory"]
    console.print(
        f"{score['sets']:,} sets, {score['expressions']:,} expressions, {score['pairs']:,} pairs,"
        f" {score['bytes_per_mask']:.0f} bytes a mask; the loop makes one pycocotools call a pair"
    )
    table = Table(title="bd.score, everything validated")
    for name in ("", "time", "x the loop"):
        table.add_column(name, justify="right" if name else "left")
    for name, value in score["seconds"].items():
        table.add_row(name, seconds(value), ratio(score["ratio"][name]))
    console.print(table)
    times = intervals["seconds"]
    ours, values, loop = (seconds(times[name]) for name in ("bd.summarize", "value alone", "loop"))
    console.print(f"{intervals['draws']:,} draws of {intervals['numbers']:,} numbers: {ours}, of which values {values}")
    longer = ratio(intervals["ratio"]["bd.summarize"])
    console.print(
        f"a loop that gathers the rows of each draw: {loop} (from {intervals['timed_draws_of_the_loop']} draws),"
        f" {longer} times as long"
    )
    anonymous = "-" if memory["anonymous_mb"] is None else f"{memory['anonymous_mb']:.0f} MB"
    console.print(
        f"memory of both over {memory['data_mb']:.0f} MB on disk: {anonymous},"
        f" with mapped files {memory['all_mb']:.0f} MB"
    )
