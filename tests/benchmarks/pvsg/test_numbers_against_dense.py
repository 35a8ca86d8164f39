"""Every number of random videos against plain loops over dense arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_datasets.benchmarks.pvsg import panoptic
from bench_datasets.benchmarks.pvsg.tubes import Tubes
from bench_datasets.masks import MaskColumn

from ...support import dense_pvsg as dense
from ...support.pvsg_rows import numbers
from ...support.random_videos import random_video

K = (1, 3, 20)
T = (0.5, 0.1, 1 / 3)
seeds = st.integers(0, 2**32 - 1)


def videos_of(seed: int, count: int = 2) -> list[dense.Video]:
    random = np.random.default_rng(seed)
    return [random_video(random) for _ in range(count)]


def close(value: float, expected: float) -> bool:
    return (math.isnan(value) and math.isnan(expected)) or value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("protocol", ["official", "volume", "card"])
@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_recalls(protocol: str, seed: int) -> None:
    videos = videos_of(seed)
    found = numbers(videos, protocol, K, thresholds=T)
    for k in K:
        for t in T:
            key = f"@{k}/{t:g}"
            r, mr = dense.recall(videos, protocol, k, t)
            assert close(found[f"R{key}"], r), key
            assert close(found[f"mR{key}"], mr), key
            assert close(found[f"pair_recall{key}"], dense.recall(videos, protocol, k, t, predicates=False)[0]), key
            first, second = dense.losses(videos, protocol, k, t)
            assert close(found[f"loss/first_stage{key}"], first), key
            assert close(found[f"loss/second_stage{key}"], second), key
            how = "card" if protocol == "card" else "official"
            assert close(found[f"timeless_recall{key}"], dense.recall(videos, how, k, t, timeless=True)[0]), key


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_weak_recalls(seed: int) -> None:
    videos = videos_of(seed)
    found = numbers(videos, "weak_official", K)
    for k in K:
        r, mr = dense.recall(videos, "weak_official", k, 0.1)
        assert close(found[f"weak_official/R@{k}"], r)
        assert close(found[f"weak_official/mR@{k}"], mr)
    assert not any(key.startswith(("R@", "mR@")) for key in found)


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_tubes_and_panoptic_quality(seed: int) -> None:
    videos = videos_of(seed)
    found = numbers(videos, thresholds=T)
    for t in T:
        assert close(found[f"tube_recall@{t:g}"], dense.tube_recall(videos, t))
    windows = [dense.vpq(videos, window) for window in (1, 2, 4, 6)]
    for window, value in zip((1, 2, 4, 6), windows, strict=True):
        assert close(found[f"vpq/{window}"], value), window
    assert close(found["vpq"], sum(windows) / 4)
    aq, sq = dense.stq(videos)
    assert close(found["stq/aq"], aq)
    assert close(found["stq/sq"], sq)
    assert close(found["stq"], math.sqrt(aq * sq) if not math.isnan(aq) else math.nan)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, most=st.sampled_from([0, 1, 2]))
def test_lost_parts_without_comparing_boxes_are_the_same(seed: int, most: int) -> None:
    random = np.random.default_rng(seed)
    masks = MaskColumn.from_dense([random.random((4, 5)) < random.choice([0.0, 0.1, 0.5]) for _ in range(12)])
    tubes = Tubes(masks, np.sort(random.integers(0, 4, 12)), np.arange(12), 12)
    found = panoptic.lost_parts(tubes, 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panoptic, "MOST_BOXES", most)
        expected = panoptic.lost_parts(tubes, 4)
    assert found.tubes.tolist() == expected.tubes.tolist()
    assert found.frames.tolist() == expected.frames.tolist()
    assert found.masks.to_pylist() == expected.masks.to_pylist()
    taken = np.zeros((4, 4, 5), np.bool_)
    lost = {int(tube): found.masks.decode(k) for k, tube in enumerate(found.tubes)}
    for k in range(12):
        frame = int(tubes.frames[k])
        assert (lost.get(k, np.zeros((4, 5), np.bool_)) == (masks.decode(k) & taken[frame])).all()
        taken[frame] |= masks.decode(k)


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_stages_and_hits_add_up(seed: int) -> None:
    """Hit, lost by the tubes, lost by the relations: one of the three for every relation."""
    videos = videos_of(seed)
    for protocol in ("official", "volume", "card"):
        found = numbers(videos, protocol, (2,))
        for t in ("0.5", "0.1"):
            total = found[f"R@2/{t}"] + found[f"loss/first_stage@2/{t}"] + found[f"loss/second_stage@2/{t}"]
            assert math.isnan(total) or total == pytest.approx(1)


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_more_triplets_count_more(seed: int) -> None:
    videos = videos_of(seed)
    found = numbers(videos, "official", (1, 2, 4, 8))
    for name in ("R", "pair_recall", "timeless_recall"):
        values = [found[f"{name}@{k}/0.1"] for k in (1, 2, 4, 8)]
        assert math.isnan(values[0]) or values == sorted(values)
    assert math.isnan(found["R@8/0.5"]) or found["R@8/0.5"] <= found["R@8/0.1"]
