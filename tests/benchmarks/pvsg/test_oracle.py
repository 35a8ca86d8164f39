"""The truth in place of one stage: what is left to lose is the other stage's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_datasets.faults import BenchError

from ...support.dense_pvsg import Video, frame_overlap
from ...support.pvsg_rows import numbers, score, summed_up
from ...support.random_videos import random_video

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_with_the_truth_s_tubes_only_relations_are_lost(seed: int) -> None:
    video = random_video(np.random.default_rng(seed))
    found = numbers([video], options={"oracle": "tubes"})
    assert found["tube_recall@0.5"] == 1 or math.isnan(found["tube_recall@0.5"])
    assert found["vpq/1"] == 1 or math.isnan(found["vpq/1"])
    hidden = [item for item in video.relations if not frame_overlap(video, perfect(video, item), item)]
    if video.relations:
        assert found["loss/first_stage@20/0.5"] == pytest.approx(len(hidden) / len(video.relations))


def perfect(video: Video, relation: Any) -> Any:
    """A triplet whose tubes are the relation's objects: appended, with every frame as its span."""
    place = []
    for object_id in relation[:2]:
        masks = {f: video.true(object_id, f) for f in range(video.frames)}
        video.tubes.append(("", masks))
        place.append(len(video.tubes) - 1)
    return (*place, relation[2], 1.0, [[0, video.frames]])


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_with_the_truth_s_relations_only_tubes_are_lost(seed: int) -> None:
    video = random_video(np.random.default_rng(seed))
    found = numbers([video], options={"oracle": "relations"})
    plain = numbers([video])
    if video.relations:
        assert found["loss/second_stage@20/0.5"] == 0
        assert found["R@20/0.5"] == pytest.approx(1 - found["loss/first_stage@20/0.5"])
        assert found["R@20/0.5"] >= plain["R@20/0.5"]
    for key in ("vpq", "stq", "tube_recall@0.5"):
        assert found[key] == plain[key] or math.isnan(plain[key])


def test_oracle_numbers_computed_by_hand() -> None:
    labels = np.zeros((4, 1, 8), int)
    labels[..., 0:4], labels[..., 5:8] = 1, 2
    half, other = labels[0] == 1, labels[0] == 2
    half = half & (np.arange(8) < 1)  # a quarter of the adult, and called a child
    video = Video(
        labels, [(1, "adult"), (2, "table")], [(1, 2, "on", [[0, 3]])],
        [("child", dict.fromkeys(range(4), half)), ("table", dict.fromkeys(range(4), other))],
        [(0, 1, "on", 0.9, [[0, 3]])],
    )  # fmt: skip
    assert numbers([video])["R@20/0.5"] == 0
    assert numbers([video], options={"oracle": "tubes"})["R@20/0.5"] == 1
    assert numbers([video], options={"oracle": "relations"})["R@20/0.5"] == 0
    video.tubes[0] = ("adult", video.tubes[0][1])
    assert numbers([video], options={"oracle": "relations"})["loss/first_stage@20/0.5"] == 1
    video.tubes[0] = ("adult", dict.fromkeys(range(4), labels[0] == 1))
    video.triplets = []
    assert numbers([video], options={"oracle": "relations"})["R@20/0.5"] == 1
    assert numbers([video], options={"oracle": "tubes"})["R@20/0.5"] == 0


def test_rows_of_two_oracles_are_not_summed_up() -> None:
    video = random_video(np.random.default_rng(0))
    mixed = pa.concat_tables([score([video]), score([video], oracle="tubes")])
    with pytest.raises(BenchError, match="expected rows of one oracle"):
        summed_up(mixed)
