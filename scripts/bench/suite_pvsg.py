"""Suite `pvsg`: the real video against reading PNGs pair by pair; throughput, growth and memory on synthetic videos."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, load_dataset, load_from_disk
from datasets.utils import disable_progress_bars
from rich.console import Console
from rich.table import Table

import bench_datasets as bd

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import memory, obvious_pvsg, synthetic
from bench.clock import seconds
from bench_datasets.benchmarks.pvsg import BENCHMARK
from bench_datasets.benchmarks.pvsg.prediction_rows import FEATURES
from bench_datasets.benchmarks.pvsg.protocol import get_protocol
from bench_datasets.benchmarks.pvsg.relation_matching import Hits
from bench_datasets.benchmarks.pvsg.truth import truth_features
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.masks import available_engines, using_engine
from bench_datasets.scoring.options import ScoreOptions

MINI, VIDEO = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "pvsg_mini", "9001_0000000001"
SIZE = (480, 854)  # height, width
STILL = 8  # frames for which a mask stays as it is: drawing is most of a synthetic video's time
CLASSES = 12


def make_video(frames: int, tubes: int, triplets: int, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """A truth row and a prediction: blobs that hardly touch, a fair tracker's answer, and 16 relations."""
    rng = np.random.default_rng(seed)
    shapes = synthetic.sparse(rng, tubes, SIZE)
    kinds = rng.integers(0, CLASSES, tubes).tolist()

    def tube(blob: synthetic.Blob, shift: float) -> dict[str, Any]:
        drawn = []
        for _ in range(0, frames, STILL):
            rle = synthetic.draw(blob.moved(*rng.uniform(-shift, shift, 2)), SIZE, "ragged")
            drawn.append({"size": rle["size"], "counts": rle["counts"].decode()})
        return {"frames": list(range(frames)), "masks": [drawn[f // STILL] for f in range(frames)]}

    def span() -> list[list[int]]:
        first = int(rng.integers(0, frames))
        return [[first, min(frames - 1, first + frames // 3)]]

    truth = {
        "key": f"v{seed:04d}", "source": "vidor", "height": SIZE[0], "width": SIZE[1], "fps": 5.0,
        "num_frames": frames, "frames_present": frames,
        "objects": [{"object_id": i, "category": kind, "is_thing": True} for i, kind in enumerate(kinds)],
        "tubes": [tube(blob, 0.0) for blob in shapes],
        "relations": [
            {"subject_id": int(s), "object_id": int(o), "predicate": int(p), "spans": span()}
            for s, o, p in zip(*rng.integers(0, tubes, (2, 16)), rng.integers(0, 5, 16), strict=True)
        ],
        "relations_left_out": [], "captions": [], "qa_pairs": [], "summary": None, "video": None, "faults": [],
    }  # fmt: skip
    answer = {
        "key": truth["key"],
        "pred_tubes": [
            {"tube_id": str(i), "category": CATEGORIES[kind], **tube(blob, 0.1 * blob.radius)}
            for i, (blob, kind) in enumerate(zip(shapes, kinds, strict=True))
        ],
        "pred_triplets": [
            {"subject_id": str(s), "object_id": str(o), "predicate": PREDICATES[p], "score": score, "spans": span()}
            for s, o, p, score in zip(
                *rng.integers(0, tubes, (2, triplets)).tolist(), rng.integers(0, 5, triplets).tolist(),
                rng.random(triplets).tolist(), strict=True,
            )
        ],
        "pred_faults": [],
    }  # fmt: skip
    return truth, answer


def run(console: Console, *, quick: bool, seed: int = 0) -> dict[str, Any]:
    """Compare on the real video, where it is there; measure synthetic ones.

    Returns:
        `mini` (or None), `throughput`, `growth`, `memory`.

    Raises:
        ValueError: the loop over PNGs finds other overlaps.
    """
    result: dict[str, Any] = {"mini": None}
    if (MINI / "pvsg.json").is_file():
        result["mini"] = _mini(console, quick)
    else:
        console.print(f"the real video is absent (no folder {MINI.name} beside the project): not compared")
    videos, frames = (4, 95) if quick else (62, 380)
    result["throughput"] = _throughput(console, videos, frames, seed)
    result["growth"] = _growth(console, quick, seed)
    result["memory"] = _memory(console, (2, 8) if quick else (8, 62), frames, seed)
    return result


def _mini(console: Console, quick: bool) -> dict[str, Any]:
    """Once through the loop (with `quick` through every 20th pair of it), nine times through ours."""
    video = obvious_pvsg.read(MINI, VIDEO)
    every = obvious_pvsg.pairs(video)
    chosen = every[:: 20 if quick else 1]
    start = time.process_time()
    overlaps = {pair: obvious_pvsg.overlap(video, *pair) for pair in chosen}
    loop = (time.process_time() - start) * len(every) / len(chosen)
    truth = load_dataset("pvsg", split="test", data_dir=str(MINI))
    predictions = bd.read_predictions("pvsg", str(MINI / "predictions"))
    table = bd.score("pvsg", truth, predictions).with_format("arrow")[:]
    hits = Hits.read(table, get_protocol("official"))
    ours = {
        (int(r), int(t)): float(value)
        for r, t, value, same in zip(hits.relation, hits.triplet, hits.recall, hits.same, strict=True)
        if same
    }
    if set(ours) != set(every) or any(ours[pair] != value for pair, value in overlaps.items()):
        raise ValueError(f"{VIDEO}: the loop over PNGs and bd.score find other overlaps")
    shown = Table(title=f"official, {len(every)} pairs of a triplet and a relation, process time (same overlaps)")
    for name in ("", "time", "x the loop"):
        shown.add_column(name, justify="right" if name else "left")
    shown.add_row("a PNG a frame and pair" + (", every 20th pair, times 20" if quick else ""), seconds(loop), "1")
    found: dict[str, Any] = {"pairs": len(every), "loop": loop, "seconds": {}}
    for name in available_engines():
        with using_engine(name):
            times = [_timed(lambda: bd.score("pvsg", truth, predictions), time.process_time) for _ in range(9)]
        found["seconds"][name] = float(np.median(times))
        shown.add_row(f"bd.score, {name}", seconds(found["seconds"][name]), f"{loop / found['seconds'][name]:.0f}")
    console.print(shown)
    return found


def _throughput(console: Console, videos: int, frames: int, seed: int) -> dict[str, Any]:
    truth, answers = _datasets(videos, frames, seed)
    masks = sum(2 * len(row["tubes"]) * frames for row in truth)
    took = _timed(lambda: bd.score("pvsg", truth, answers))
    scores = bd.score("pvsg", truth, answers)
    summed = _timed(lambda: bd.summarize("pvsg", scores))
    console.print(
        f"{videos} videos of {frames} frames, {masks:,} masks: scored in {seconds(took)} ({masks / took:,.0f} masks and"
        f" {videos * frames / took:,.0f} frames a second), summed up with 10,000 draws in {seconds(summed)}"
    )
    return {"videos": videos, "frames": frames, "masks": masks, "seconds": took, "summarize": summed}


def _growth(console: Console, quick: bool, seed: int) -> list[dict[str, Any]]:
    """One video, one size changed at a time."""
    usual = (95, 10, 100) if quick else (380, 20, 100)
    sweeps = {
        "frames": [(usual[0] * k // 2, *usual[1:]) for k in (1, 2, 4)],
        "tubes": [(usual[0], usual[1] * k // 2, usual[2]) for k in (1, 2, 4)],
        "triplets": [(*usual[:2], usual[2] * k) for k in (1, 8, 64)],
    }
    shown = Table(title="growth: one video, seconds of process time (best of 3)")
    for name in ("swept", "frames", "tubes", "triplets", "time"):
        shown.add_column(name, justify="left" if name == "swept" else "right")
    found = []
    for name, sizes in sweeps.items():
        for size in sizes:
            truth, answer = make_video(*size, seed)
            batch = _joined(truth, answer)
            times = []
            for _ in range(3):
                start = time.process_time()
                BENCHMARK.score_table(batch, ScoreOptions("official"))
                times.append(time.process_time() - start)
            found.append({"swept": name, **dict(zip(sweeps, size, strict=True)), "seconds": min(times)})
            shown.add_row(name, *map(str, size), seconds(min(times)))
    console.print(shown)
    return found


def _joined(truth: dict[str, Any], answer: dict[str, Any]) -> pa.Table:
    table = pa.Table.from_pylist([truth], schema=truth_features().arrow_schema)
    answers = pa.Table.from_pylist([answer], schema=FEATURES.arrow_schema)
    for name in ("pred_tubes", "pred_triplets"):
        table = table.append_column(name, answers[name])
    return table


def _datasets(videos: int, frames: int, seed: int) -> tuple[Dataset, Dataset]:
    """Few videos are drawn; the others are theirs under other names."""
    drawn = [make_video(frames, 15, 100, seed + i) for i in range(min(videos, 4))]
    names = [f"v{i:04d}" for i in range(videos)]
    rows = [{**drawn[i % len(drawn)][0], "key": name} for i, name in enumerate(names)]
    answers = [{**drawn[i % len(drawn)][1], "key": name} for i, name in enumerate(names)]
    return (
        Dataset(pa.Table.from_pylist(rows, schema=truth_features().arrow_schema)),
        Dataset(pa.Table.from_pylist(answers, schema=FEATURES.arrow_schema)),
    )


def _memory(console: Console, counts: Sequence[int], frames: int, seed: int) -> list[dict[str, Any]]:
    """Peak memory of `bd.score` in a process of its own, over Datasets on disk, by number of videos."""
    shown = Table(title="memory of bd.score in a process of its own, above what it had before")
    for name in ("videos", "data on disk", "growth, mapped files aside"):
        shown.add_column(name, justify="right")
    found = []
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            for name, dataset in zip(("truth", "answers"), _datasets(count, frames, seed), strict=True):
                dataset.save_to_disk(f"{folder}/{name}")
            command = [sys.executable, __file__, folder]
            paths = os.pathsep.join(path for path in sys.path if path)
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": paths}
            )
        if done.returncode:
            raise RuntimeError(f"the child ended with {done.returncode}: {done.stderr.strip()[-800:]}")
        found.append({"videos": count, **json.loads(done.stdout.splitlines()[-1])})
        grown = found[-1]["anonymous_mb"]
        shown.add_row(str(count), f"{found[-1]['data_mb']:.0f} MB", "-" if grown is None else f"{grown:.0f} MB")
    console.print(shown)
    return found


def _measure(folder: Path) -> dict[str, Any]:
    """Score one video, so that everything is imported, then all of them."""
    disable_progress_bars()
    truth, answers = load_from_disk(str(folder / "truth")), load_from_disk(str(folder / "answers"))
    bd.score("pvsg", truth.select([0]), answers.select([0]))
    before = memory.status("RssAnon")
    watch = memory.Watch()
    watch.start()
    bd.score("pvsg", truth, answers)
    watch.done.set()
    watch.join()
    size = sum(file.stat().st_size for file in folder.rglob("*.arrow"))
    grown = None if before is None or watch.most is None else (watch.most - before) / memory.MB
    return {"data_mb": size / memory.MB, "anonymous_mb": grown}


def _timed(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


if __name__ == "__main__":
    print(json.dumps(_measure(Path(sys.argv[1]))))
