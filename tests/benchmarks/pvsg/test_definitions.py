"""What the definitions say, in videos small enough to count by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ...support.dense_pvsg import Video
from ...support.pvsg_rows import numbers, score, summed_up


def still(frames: int = 100, spans: list[list[int]] | None = None, shift: int = 0, width: int = 16) -> Video:
    """A subject of 8 pixels and an object of 4, one frame after the other; the predicted subject is `shift` off."""
    labels = np.zeros((frames, 1, width), int)
    labels[:, :, 0:8], labels[:, :, 12:16] = 1, 2
    subject = np.zeros((1, width), bool)
    subject[:, shift : 8 + shift] = True
    masks = dict.fromkeys(range(frames), subject)
    other = {f: labels[f] == 2 for f in range(frames)}
    return Video(
        labels, [(1, "adult"), (2, "table")], [(1, 2, "on", [[0, 9]])], [("adult", masks), ("table", other)],
        [(0, 1, "on", 0.9, [[0, frames - 1]] if spans is None else spans)],
    )  # fmt: skip


def overlap(video: Video) -> float:
    row = score([video]).to_pylist()[0]
    return row["pair_frames"][0] / row["relation_visible"][0]


@pytest.mark.parametrize(
    ("video", "expected"),
    [
        (still(), 1.0),  # a span over all frames
        (still(spans=[[0, 4]]), 0.5),
        (still(spans=[]), 0.0),
        (still(shift=0, width=16), 1.0),
    ],
    ids=["everywhere", "half of it", "no span", "perfect"],
)
def test_official_values(video: Video, expected: float) -> None:
    assert overlap(video) == expected


def cut(pixels: int, extra: int) -> Video:
    """The predicted subject keeps `pixels` of 8 and adds `extra` of void."""
    video = still()
    mask = np.zeros((1, 16), bool)
    mask[:, :pixels] = True
    mask[:, 8 : 8 + extra] = True
    video.tubes[0] = ("adult", dict.fromkeys(range(100), mask))
    return video


def test_iou_of_exactly_one_half_is_a_hit() -> None:
    assert overlap(cut(4, 0)) == 1.0  # 4 / 8
    assert overlap(cut(6, 4)) == 1.0  # 6 / 12
    assert overlap(cut(3, 0)) == 0.0  # .375
    assert overlap(cut(5, 3)) == 0.0  # 5 / 11


@pytest.mark.parametrize(
    ("spans", "expected"),
    [([[9, 20]], 1), ([[10, 20]], 0), ([[0, 0]], 1), ([[3, 5], [5, 6]], 4), ([[9, 9], [0, 1]], 3)],
)
def test_both_ends_are_in_and_a_frame_counts_once(spans: list[list[int]], expected: int) -> None:
    row = score([still(spans=spans)]).to_pylist()[0]
    assert row["relation_visible"] == [10]
    assert row["pair_frames"] == [expected]
    assert row["pair_subject_shared"] == [8 * expected]


def test_equal_scores_keep_the_given_order() -> None:
    video = still()
    video.triplets = [(0, 1, "beside", 0.5, [[0, 9]]), (0, 1, "on", 0.5, [[0, 9]]), (0, 1, "over", 0.7, [[0, 9]])]
    found = numbers([video], k=(1, 2, 3))
    assert [found[f"R@{k}/0.5"] for k in (1, 2, 3)] == [0, 0, 1]
    assert [found[f"pair_recall@{k}/0.5"] for k in (1, 2, 3)] == [1, 1, 1]


def test_a_triplet_that_cannot_hit_keeps_its_rank() -> None:
    video = still()
    video.tubes.append(("adlut", video.tubes[0][1]))
    video.triplets = [(2, 1, "on", 0.9, [[0, 9]]), (0, 1, "no such word", 0.8, [[0, 9]]), (0, 1, "on", 0.7, [[0, 9]])]
    table = score([video])
    assert table["faults"].to_pylist() == [["unknown_category", "unknown_predicate"]]
    assert table["triplets"].to_pylist() == [3]
    found = {key: metric.value for key, metric in summed_up(table, k=(2, 3))[0].items()}
    assert (found["R@2/0.5"], found["R@3/0.5"]) == (0, 1)


def test_two_of_one_kind_are_hit_by_one_triplet_only_where_it_may() -> None:
    video = still()
    video.relations = [(1, 2, "on", [[0, 9]]), (1, 2, "on", [[0, 7]])]
    video.triplets = [(0, 1, "on", 0.9, [[0, 9]])]
    assert numbers([video], "official")["R@20/0.5"] == 1
    assert numbers([video], "volume")["R@20/0.5"] == 0.5
    video.triplets *= 2
    assert numbers([video], "volume")["R@20/0.5"] == 1
    assert numbers([video], "volume", (1,))["R@1/0.5"] == 0.5


def test_of_equal_relations_the_first_is_taken() -> None:
    video = still()
    video.relations = [(1, 2, "on", [[0, 9]]), (1, 2, "on", [[0, 9]])]
    video.triplets = [(0, 1, "on", 0.9, [[0, 9]])]
    _, slices = summed_up(score([video], "volume"), "volume")
    assert next(part for part in slices if part.by == "predicate").metrics["R@20/0.5"].value == 0.5


def test_weak_official_can_exceed_everything() -> None:
    video = still()
    video.triplets = [(0, 1, "on", 1 - i / 100, [[0, 2]]) for i in range(30)]
    found = numbers([video], "weak_official")
    assert found["weak_official/R@20"] == 20
    assert found["weak_official/mR@50"] == 30


def test_predicted_masks_past_the_end_count_in_the_volume_alone() -> None:
    video = still(frames=10)
    extra = dict.fromkeys(range(10, 30), video.tubes[0][1][0])
    video.tubes[0] = ("adult", {**video.tubes[0][1], **extra})
    inside, beyond = [[0, 9]], [[0, 29]]
    for spans, official, volume in ((inside, 1.0, 1.0), (beyond, 1.0, 10 / 30)):
        video.triplets = [(0, 1, "on", 0.9, spans)]
        row = score([video]).to_pylist()[0]
        assert row["pair_frames"][0] / 10 == official
        assert row["pair_subject_shared"][0] / row["pair_subject_area"][0] == pytest.approx(volume)
    found = numbers([video])
    assert found["tube_recall@0.5"] == 0.5  # 80 of 240 pixels
    assert found["vpq/1"] == 1


def test_a_self_relation_and_one_without_frames_stay_in_the_denominator() -> None:
    video = still(frames=10)
    video.relations = [(1, 1, "on", [[0, 9]]), (1, 2, "on", [[40, 50]]), (1, 2, "on", [])]
    video.triplets = [(0, 0, "on", 0.9, [[0, 9]]), (0, 1, "on", 0.9, [[0, 60]])]
    for protocol in ("official", "volume"):
        found, _ = summed_up(score([video], protocol), protocol)
        assert (found["R@20/0.5"].value, found["R@20/0.5"].n) == (pytest.approx(1 / 3), 3)


def test_a_video_without_masks_counts_its_relations() -> None:
    video = still(frames=10)
    video.labels[:] = 0
    found, slices = summed_up(score([video]))
    assert (found["R@20/0.5"].value, found["loss/first_stage@20/0.5"].value) == (0, 1)
    assert math.isnan(found["tube_recall@0.5"].value)
    assert found["tube_recall@0.5"].n == 0
    assert [part.value for part in slices if part.by == "size"] == ["never visible"]


@pytest.mark.parametrize(("void", "expected"), [(2, 1 / 3), (3, 1 / 2)])
def test_a_tube_more_than_half_void_is_no_false_positive(void: int, expected: float) -> None:
    """The adult is found, the table is not, and a bag of `void` pixels of void and 2 of the table counts, or not."""
    video = still(frames=6)
    bag = np.zeros((1, 16), bool)
    bag[:, 12 - void : 14] = True
    video.tubes[1] = ("bag", dict.fromkeys(range(6), bag))
    video.triplets = []
    assert numbers([video])["vpq"] == pytest.approx(expected)


def test_where_tubes_overlap_the_first_has_the_pixel() -> None:
    video = still(frames=6)
    spill = np.zeros((1, 16), bool)
    spill[:, 0:14] = True
    perfect = list(video.tubes)
    video.tubes = [*perfect, ("bag", dict.fromkeys(range(6), spill))]
    assert numbers([video])["vpq"] == 1.0  # only void is left to the bag
    video.tubes = [perfect[0], ("bag", dict.fromkeys(range(6), spill)), perfect[1]]
    # The table keeps 2 of its 4 pixels, which is no match; the bag has 4 of void and 2 of the table.
    assert numbers([video])["vpq"] == pytest.approx(1 / 2)


def test_windows_longer_than_the_video_are_undefined() -> None:
    found, _ = summed_up(score([still(frames=3)]))
    assert found["vpq/2"].value == 1
    assert math.isnan(found["vpq/4"].value)
    assert found["vpq/4"].n == 0
    assert math.isnan(found["vpq"].value)
    assert found["vpq"].n == 0


def test_stuff_is_no_track() -> None:
    video = still(frames=6)
    video.objects = [(1, "floor"), (2, "table")]
    video.tubes = [("floor", video.tubes[0][1]), ("adult", video.tubes[1][1])]
    found, _ = summed_up(score([video]))
    assert (found["stq/aq"].value, found["stq/aq"].n) == (1, 1)  # whatever its class, the track is the table's
    assert (found["stq/sq"].value, found["stq/sq"].n) == (pytest.approx(1 / 3), 3)
    assert found["stq"].value == pytest.approx(math.sqrt(1 / 3))
