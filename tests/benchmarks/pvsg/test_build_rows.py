"""A video's annotation and label maps become its row: exact masks, cut spans, and every fault noted."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import ClassLabel, Dataset
from pycocotools import mask as coco

from bench_datasets.benchmarks.pvsg.annotation import parse_entry, read_annotation
from bench_datasets.benchmarks.pvsg.truth import build_video_row, row_table, truth_features, truth_from_label_maps
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES, STUFF, THINGS
from bench_datasets.faults import FAULTS, BenchError

from ...support.pvsg_sources import STILL, annotation, label_map, video

ABSENT = label_map(1, 1, 0, 0, 0, 0)


def build(entry: dict[str, Any], maps: list[Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A row, and its faults' texts by code."""
    frames = [(frame, values) for frame, values in enumerate(maps) if values is not None]
    row, faults = build_video_row(parse_entry(entry), frames, "vidor")
    assert [fault.code for fault in faults] == row["faults"]
    assert {fault.key for fault in faults} <= {entry["video_id"]}
    assert all(FAULTS[code].where == "pvsg truth" for code in row["faults"])
    return row, {fault.code: fault.text for fault in faults}


def test_the_vocabularies_are_the_release_s(shared: Path) -> None:
    data = json.loads((shared / "data" / "pvsg_mini" / "pvsg.json").read_text())
    assert data["objects"] == {"thing": list(THINGS), "stuff": list(STUFF)}
    assert data["relations"] == list(PREDICATES)
    assert (len(THINGS), len(STUFF), len(PREDICATES), len(set(CATEGORIES))) == (115, 11, 57, 126)


def test_a_sound_video() -> None:
    moved = label_map(0, 1, 1, 2, 2, 2)
    row, faults = build(video("v"), [STILL, ABSENT, moved])
    assert faults == {}
    assert row["objects"] == [
        {"object_id": 1, "category": CATEGORIES.index("adult"), "is_thing": True},
        {"object_id": 2, "category": CATEGORIES.index("table"), "is_thing": True},
    ]
    assert [tube["frames"] for tube in row["tubes"]] == [[0, 1, 2], [0, 2]]
    assert row["relations"] == [
        {"subject_id": 1, "object_id": 2, "predicate": PREDICATES.index("on"), "spans": [[0, 2]]}
    ]
    assert (row["key"], row["source"], row["height"], row["width"], row["fps"]) == ("v", "vidor", 4, 6, 5.0)
    assert (row["num_frames"], row["frames_present"], row["video"]) == (3, 3, None)
    data = Dataset(row_table(row))
    assert data.features == truth_features()
    assert data[0] == row


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
def test_masks_are_those_of_pycocotools(dtype: Any) -> None:
    rng = np.random.default_rng(7)
    entry = video("v", frames=40)
    entry["objects"] = [{"object_id": k, "category": "cup", "is_thing": True} for k in range(1, 6)]
    maps = [rng.integers(0, 6, (4, 6)).astype(dtype) for _ in range(40)]
    row, _ = build(entry, maps)
    for item, tube in zip(row["objects"], row["tubes"], strict=True):
        expected = {
            frame: coco.encode(np.asfortranarray(values == item["object_id"], dtype=np.uint8))["counts"].decode()
            for frame, values in enumerate(maps)
            if (values == item["object_id"]).any()
        }
        assert dict(zip(tube["frames"], (mask["counts"] for mask in tube["masks"]), strict=True)) == expected
        assert all(mask["size"] == [4, 6] for mask in tube["masks"])


@pytest.mark.parametrize(
    ("span", "cut", "code"),
    [
        ([0, 2], [[0, 2]], None),
        ([2, 2], [[2, 2]], None),
        ([1, 3], [[1, 2]], "span_clipped"),
        ([2, 900], [[2, 2]], "span_clipped"),
        ([-2, 1], [[0, 1]], "span_clipped"),
        ([3, 5], [], "span_outside"),
        ([2, 1], [], "span_reversed"),
        ([900, 5], [], "span_reversed"),
    ],
)
def test_spans_are_cut_to_the_frames_that_have_masks(span: list[int], cut: Any, code: str | None) -> None:
    row, faults = build(video("v", [(1, 2, "on", [span])]), [STILL] * 3)
    assert [relation["spans"] for relation in row["relations"]] == [cut]
    assert list(faults) == ([code] if code else [])


def test_a_relation_whose_spans_lie_outside_still_counts() -> None:
    row, faults = build(video("v", [(1, 2, "on", [[0, 1], [3, 4]]), (2, 1, "in", [[7, 9]])]), [STILL] * 3)
    assert [relation["spans"] for relation in row["relations"]] == [[[0, 1]], []]
    assert list(faults) == ["span_outside"]
    assert "7 to 9" in faults["span_outside"]


def test_an_unknown_predicate_is_left_out_as_text_with_its_spans() -> None:
    row, faults = build(video("v", [(1, 2, "squeezing", [[0, 9]]), (1, 2, "on", [[0, 1]])]), [STILL] * 3)
    assert row["relations_left_out"] == [
        {
            "subject_id": 1,
            "object_id": 2,
            "predicate": "squeezing",
            "spans": [[0, 9]],
            "reason": "unknown_predicate",
        }
    ]
    assert len(row["relations"]) == 1
    assert faults == {"unknown_predicate": "1 squeezing 2"}


def test_self_relations_and_unknown_objects_are_noted_and_kept() -> None:
    row, faults = build(video("v", [(1, 1, "touching", [[0, 1]]), (1, 9, "on", [[0, 1]])]), [STILL] * 3)
    assert [(relation["subject_id"], relation["object_id"]) for relation in row["relations"]] == [(1, 1), (1, 9)]
    assert list(faults) == ["self_relation", "unknown_object"]
    assert "no object 9" in faults["unknown_object"]


def test_frames_that_are_wanting() -> None:
    row, faults = build(video("v", frames=5), [STILL, None, STILL])
    assert row["frames_present"] == 2
    assert faults == {"frames_short": "3 frames of 5", "mask_missing": "no masks of frame 1"}
    row, faults = build(video("v"), [])
    assert faults == {"mask_missing": "no masks at all of 3 frames"}
    assert row["tubes"] == [{"frames": [], "masks": []}] * 2
    assert row["relations"][0]["spans"] == [[0, 2]]
    assert row["frames_present"] == 0


def test_ids_that_masks_and_annotation_do_not_share() -> None:
    stranger = label_map(1, 1, 7, 7, 0, 9)
    row, faults = build(video("v"), [ABSENT, stranger, stranger])
    assert faults["unknown_mask_id"] == "in the masks and not in the annotation: 7 (2 frames), 9 (2 frames)"
    assert faults["object_never_visible"] == "in no mask: 2"
    assert [tube["frames"] for tube in row["tubes"]] == [[0, 1, 2], []]
    assert [item["object_id"] for item in row["objects"]] == [1, 2]


def test_masks_of_another_size_are_kept_and_noted() -> None:
    row, faults = build(video("v"), [STILL, STILL.T, STILL])
    assert faults == {"mask_size": "frame 1: expected 4 x 6 (height x width, as `meta` says), found 6 x 4"}
    assert FAULTS["mask_size"].default == "stop"
    assert (row["height"], row["width"]) == (4, 6)
    assert [mask["size"] for mask in row["tubes"][0]["masks"]] == [[4, 6], [6, 4], [4, 6]]


def test_masks_past_the_declared_end_are_left_out() -> None:
    sound, _ = build(video("v", [(1, 2, "on", [[0, 9]])]), [STILL] * 3)
    row, faults = build(video("v", [(1, 2, "on", [[0, 9]])]), [STILL] * 3 + [None] * 6 + [STILL])
    assert list(faults) == ["span_clipped", "frames_beyond"]
    assert faults["frames_beyond"] == "masks of frame 9 of 3 frames (from 0)"
    assert {name: value for name, value in row.items() if name != "faults"} == {
        name: value for name, value in sound.items() if name != "faults"
    }
    assert row["relations"][0]["spans"] == [[0, 2]]


@pytest.mark.parametrize("maps", [[None, STILL, STILL, STILL], [None, STILL, None, STILL]])
def test_masks_numbered_from_one_stop(maps: list[Any]) -> None:
    _, faults = build(video("v", [(1, 2, "on", [[1, 1]])]), maps)
    assert list(faults) == ["frames_from_one"]
    assert "count from 0; rename them" in faults["frames_from_one"]
    assert FAULTS["frames_from_one"].default == "stop"
    assert "frames_from_one" not in build(video("v", frames=4), maps)[1]  # the declared end says they count from 0


def test_relation_without_a_span_is_noted() -> None:
    row, faults = build(video("v", [(1, 2, "on", [])]), [STILL] * 3)
    assert (row["relations"][0]["spans"], faults) == ([], {"span_missing": "1 on 2"})


def test_frames_out_of_order_are_refused() -> None:
    with pytest.raises(BenchError, match="ascending order, found 0 after 1"):
        build_video_row(parse_entry(video("v")), [(1, STILL), (0, STILL)], "vidor")


def test_small_cases(shared: Path) -> None:
    cases = json.loads((shared / "data" / "small_cases.json").read_text())
    truths = [truth for case in cases if case["benchmark"] == "pvsg" for truth in case["truth"]]
    assert truths
    for truth in truths:
        row = truth_from_label_maps(truth)
        assert row["frames_present"] == len(truth["label_maps"])
        maps = np.array(truth["label_maps"])
        for item, tube in zip(row["objects"], row["tubes"], strict=True):
            areas = (maps == item["object_id"]).sum(axis=1)
            assert tube["frames"] == np.flatnonzero(areas).tolist()
            assert [int(coco.area({**mask, "counts": mask["counts"].encode()})) for mask in tube["masks"]] == areas[
                tube["frames"]
            ].tolist()
        row_table(row)
    with pytest.raises(BenchError, match="found 3"):
        truth_from_label_maps({**truths[0], "label_maps": [[0, 1, 1]]})


def test_features() -> None:
    features = truth_features()
    assert list(features) == [
        *("key", "source", "height", "width", "fps", "num_frames", "frames_present", "objects", "tubes", "relations"),
        *("relations_left_out", "captions", "qa_pairs", "summary", "video", "faults"),
    ]
    assert features["relations"].feature["predicate"] == ClassLabel(names=list(PREDICATES))
    assert features["objects"].feature["category"] == ClassLabel(names=list(CATEGORIES))


def test_splits_and_sources_come_from_the_file() -> None:
    videos = {"ego4d/val": [video("b")], "vidor/val": [video("a"), video("c")], "vidor/train": [video("P01_01")]}
    found = read_annotation(json.dumps(annotation(videos)).encode(), "pvsg.json")
    assert {split: [(v.source, v.entry.video_id) for v in vs] for split, vs in found.splits.items()} == {
        "train": [("vidor", "P01_01")],
        "test": [("vidor", "a"), ("vidor", "c"), ("ego4d", "b")],
    }
    data = annotation(videos)
    data["split"]["vidor"]["val"].append("gone")
    data["data"].append(video("stray"))
    found = read_annotation(json.dumps(data).encode(), "pvsg.json")
    assert (found.without_data, found.without_split) == (("gone",), ("stray",))


def _broken() -> dict[str, tuple[Any, str]]:
    def changed(*path: Any, to: Any) -> dict[str, Any]:
        data = copy.deepcopy(annotation({"vidor/val": [video("v")]}))
        place: Any = data
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to
        return data

    entry = ("data", 0)
    return {
        "no json": ("{", "expected PVSG's annotation as JSON"),
        "deep": ("[" * 100_000, "nested too deeply|is none"),
        "pointer": ("version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        "list": ([], "expected a field 'split'"),
        "no data": ({"split": {}}, "expected a field 'data'"),
        "source": (changed("split", "youtube", to={}), "expected the sources vidor"),
        "part": (changed("split", "vidor", "dev", to=["v"]), "expected train and val, found 'dev'"),
        "two places": (
            changed("split", "ego4d", "train", to=["v"]),
            "expected 'v' once, found it in vidor/test and ego4d",
        ),
        "twice": (changed("data", to=[video("v"), video("v")]), "found two of 'v'"),
        "none": (changed("data", to=[]), "expected videos in `split` that have entries"),
        "leaves its folder": (changed(*entry, "video_id", to="../v"), "expected the name of a folder, found '../v'"),
        "dots": (changed("split", "vidor", "val", to=[".."]), "expected the name of a folder"),
        "height": (changed(*entry, "meta", "height", to=0), r"v: meta.height: expected an integer from 1 to"),
        "huge": (changed(*entry, "meta", "width", to=10**9), r"v: meta.width: expected an integer"),
        "text": (changed(*entry, "meta", "num_frames", to="3"), "v: meta.num_frames: .* found '3'"),
        "fps": (changed(*entry, "meta", "fps", to=float("nan")), "v: meta.fps: expected a positive number"),
        "category": (changed(*entry, "objects", 0, "category", to="unicorn"), "one of PVSG's 126, found 'unicorn'"),
        "void": (changed(*entry, "objects", 0, "object_id", to=0), r"v: objects\[0\].object_id"),
        "same id": (changed(*entry, "objects", 1, "object_id", to=1), "expected each object once, found 1 again"),
        "bool": (changed(*entry, "objects", 1, "object_id", to=True), "expected an integer"),
        "relation": (changed(*entry, "relations", to=[[1, 2, "on"]]), r"v: relations\[0\]: expected \[subject_id"),
        "span": (
            changed(*entry, "relations", to=[[1, 2, "on", [[0]]]]),
            r"expected spans \[first, last\], found \[0\]",
        ),
        "float": (changed(*entry, "relations", to=[[1, 2, "on", [[0, 1.5]]]]), "a span's end: expected an integer"),
        "predicate": (changed(*entry, "relations", to=[[1, 2, None, []]]), "predicate: expected text"),
        "summary": (changed(*entry, "summary", to=["x"]), "v: summary: expected text"),
    }


@pytest.mark.parametrize("kind", list(_broken()))
def test_broken_annotations_are_named(kind: str) -> None:
    data, words = _broken()[kind]
    content = data if isinstance(data, str) else json.dumps(data)
    with pytest.raises(BenchError, match=words):
        read_annotation(content.encode(), "pvsg.json")
