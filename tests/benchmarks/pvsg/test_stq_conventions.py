"""STQ's two conventions: void ignored (ours), and void counted as the STEP authors' code counts it (`step`)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench_datasets.benchmarks.pvsg.protocol import PROTOCOLS, STEP, VOID_IGNORED, get_protocol

from ...support import dense_pvsg as dense
from ...support.dense_pvsg import Video
from ...support.pvsg_rows import numbers, score
from ...support.random_videos import random_video

THINGS_ON_VOID = pytest.approx(0.2236, abs=5e-5), pytest.approx(0.2), pytest.approx(0.25)
VOID_LEFT_OUT = pytest.approx(0.3536, abs=5e-5), pytest.approx(0.25), pytest.approx(0.5)


def one_frame() -> Video:
    """A thing in the left half, void in the right; half of it is found, and two columns of void are claimed."""
    labels = np.zeros((1, 4, 8), int)
    labels[:, :, :4] = 1
    found = np.zeros((4, 8), bool)
    found[:2, :6] = True
    return Video(labels, [(1, "adult")], [], [("adult", {0: found})], [])


@pytest.mark.parametrize(("protocol", "expected"), [("official", VOID_LEFT_OUT), ("step", THINGS_ON_VOID)])
def test_stq_of_one_frame_is_as_by_hand(protocol: str, expected: tuple[object, ...]) -> None:
    # AQ: 8 * 8 / 16 (or 8 * 8 / 20, with the 4 pixels on void) / 16; SQ: 8 / 16 alone, or with void's class of 0.
    found = numbers([one_frame()], protocol)
    assert (found["stq"], found["stq/aq"], found["stq/sq"]) == expected


@pytest.mark.parametrize("seed", range(12))
def test_stq_step_equals_a_confusion_matrix_with_void(seed: int) -> None:
    random = np.random.default_rng(seed)
    videos = [random_video(random, apart=bool(seed % 2)) for _ in range(3)]
    found = numbers(videos, "step")
    aq, sq = dense.stq_step(videos)
    assert found["stq/aq"] == pytest.approx(aq, abs=1e-12, nan_ok=True)
    assert found["stq/sq"] == pytest.approx(sq, abs=1e-12, nan_ok=True)
    assert found["stq"] == pytest.approx(math.sqrt(aq * sq), abs=1e-12, nan_ok=True)


def test_step_differs_from_official_in_stq_alone() -> None:
    random = np.random.default_rng(3)
    videos = [random_video(random) for _ in range(4)]
    ours, theirs = numbers(videos, "official"), numbers(videos, "step")
    assert ours.keys() == theirs.keys()
    differ = {key for key in ours if ours[key] != theirs[key] and not math.isnan(ours[key])}
    assert differ == {"stq", "stq/aq", "stq/sq"}
    assert all(theirs[key] < ours[key] for key in differ)


def test_step_without_void_equals_official() -> None:
    labels = np.ones((2, 3, 4), int)
    labels[:, :, 2:] = 2
    tubes = [("adult", {f: labels[f] == 1 for f in range(2)}), ("dog", {f: labels[f] == 2 for f in range(2)})]
    video = Video(labels, [(1, "adult"), (2, "table")], [], tubes, [])
    for key in ("stq", "stq/aq", "stq/sq"):
        assert numbers([video], "step")[key] == numbers([video], "official")[key]


def test_only_step_counts_void() -> None:
    assert {name: get_protocol(name).stq for name in PROTOCOLS} == {
        **dict.fromkeys(("official", "volume", "card", "weak_official"), VOID_IGNORED),
        "step": STEP,
    }
    (row,) = score([one_frame()], "step").to_pylist()
    assert (row["protocol"], row["track_area"]) == ("step@1", [12])
    assert dict(zip(row["class_category"], row["class_predicted"], strict=True)) == {"adult": 8, "void": 8}
    (row,) = score([one_frame()], "official").to_pylist()
    assert (row["track_area"], row["class_category"]) == ([8], ["adult"])
