"""The PVSG suite: its loop finds what the package finds, and its videos are what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from bench import obvious_pvsg, suite_pvsg
from datasets import load_dataset
from PIL import Image
from pycocotools import mask as coco

import bench_datasets as bd
from bench_datasets.benchmarks.pvsg import BENCHMARK
from bench_datasets.scoring.options import ScoreOptions


def rle(mask: Any) -> dict[str, Any]:
    return coco.encode(np.asfortranarray(np.asarray(mask, np.uint8)))


def test_the_loop_by_hand(tmp_path: Path) -> None:
    """Frames 0 to 3 of 4: the subject is hidden in frame 3, and half a mask in frame 2 is just enough."""
    labels = np.array([[1, 1, 0, 2, 2]], np.uint8)
    for frame in range(4):
        Image.fromarray(np.where(labels == 1, 0, labels) if frame == 3 else labels).save(tmp_path / f"{frame:04d}.png")
    whole, half, other = rle(labels == 1), rle([[1, 0, 0, 0, 0]]), rle(labels == 2)
    tubes = {
        7: ("adult", {0: whole, 1: whole, 2: half, 3: whole}),
        8: ("table", dict.fromkeys(range(4), other)),
    }
    triplet = {"subject_id": 7, "object_id": 8, "predicate": "on", "score": 1.0, "spans": [[1, 9]]}
    video = obvious_pvsg.Video(
        tmp_path, {1: "adult", 2: "table"}, [[1, 2, "on", [[0, 9]]], [2, 1, "on", [[0, 9]]]], tubes, [triplet]
    )
    assert obvious_pvsg.pairs(video) == [(0, 0)]
    assert obvious_pvsg.overlap(video, 0, 0) == 2 / 3


def test_the_loop_finds_what_the_package_finds(shared: Path) -> None:
    root = shared / "data" / "pvsg_mini"
    video = obvious_pvsg.read(root, "9001_0000000001")
    truth = load_dataset("pvsg", split="test", data_dir=str(root))
    row = bd.score("pvsg", truth, bd.read_predictions("pvsg", str(root / "predictions")))[0]
    ours = {
        (r, t): hit / row["relation_visible"][r]
        for r, t, hit, same in zip(
            row["pair_relation"], row["pair_rank"], row["pair_frames"], row["pair_same_predicate"], strict=True
        )
        if same
    }
    assert sorted(ours) == obvious_pvsg.pairs(video)
    assert obvious_pvsg.overlap(video, 7, 7) == ours[7, 7]


def test_synthetic_videos() -> None:
    truth, answer = suite_pvsg.make_video(12, 5, 40)
    batch = suite_pvsg._joined(truth, answer)
    assert batch.num_rows == 1
    table = BENCHMARK.score_table(batch, ScoreOptions("official"))
    row = table.to_pylist()[0]
    assert (row["frames"], row["triplets"], len(row["tube_area"]), len(row["object_area"])) == (12, 40, 5, 5)
    found, _ = BENCHMARK.summarize_table(table, "official", thresholds=None, by=(), draws=0, seed=0)
    assert found["tube_recall@0.5"].value == 1
    assert found["vpq/1"].value > 0.8
    first, second = suite_pvsg._datasets(6, 12, 0)
    assert first["key"] == second["key"]
    assert len(set(first["key"])) == 6


def test_memory_is_measured_in_a_process_of_its_own() -> None:
    from rich.console import Console

    (found,) = suite_pvsg._memory(Console(quiet=True), [2], 10, 0)
    assert found["videos"] == 2
    assert found["data_mb"] > 0
