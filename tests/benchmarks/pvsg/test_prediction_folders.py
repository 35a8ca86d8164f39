"""Folders of videos: the research code's text, label maps, panoptic colours; against the arrays behind them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

from bench_datasets.faults import BenchError
from bench_datasets.predictions import read_predictions

from ...support.dense_masks import decode
from ...support.pvsg_folders import FRAMES, TRIPLET, annotations, colours, lines, one, png, put, research


def assert_tubes(row: dict[str, Any], *labels: int) -> None:
    """The row's tubes are the labels of FRAMES."""
    assert {tube["tube_id"] for tube in row["pred_tubes"]} == {str(label) for label in labels}
    for tube in row["pred_tubes"]:
        dense = np.equal(FRAMES, int(tube["tube_id"]))
        assert tube["frames"] == np.flatnonzero(dense.any(axis=(1, 2))).tolist()
        for frame, mask in zip(tube["frames"], tube["masks"], strict=True):
            np.testing.assert_array_equal(decode(mask), dense[frame])


def test_research(tmp_path: Path) -> None:
    # The commonest class of a track; of equals the one that came first, which is the last frame's here.
    root = research(tmp_path / "v", {3: 0, 9: [125, 7, 125, 7], 200: [44, 44, 44, 126]})
    row = one(root)
    assert (row["key"], row["pred_faults"]) == ("v", [])
    assert_tubes(row, 3, 9, 200)
    assert [tube["category"] for tube in row["pred_tubes"]] == ["adult", "bed", "door"]
    assert row["pred_triplets"] == [TRIPLET | {"subject_id": "3", "object_id": "9"}]
    research(tmp_path / "w", {3: 126})
    put(tmp_path / "logs/train.txt", "x")
    both = read_predictions("pvsg", tmp_path)
    assert both["key"][:] == ["v", "w"]
    assert both[0] == row
    assert both[1]["pred_tubes"][0]["category"] == "class 126"


@pytest.mark.parametrize(
    "line",
    [
        "1 2 3 6 7",
        "0 1 0 6 7 x",
        "1 1 0 6 7 x y",
        "a 1 0 6 7 x",
        "1 1 0 6 " + "9" * 30 + " x",
        "1.0 1 0 6 7 x",
        "--1 1 0 6 7 x",
    ],
)
def test_lines_that_are_wrong(tmp_path: Path, line: str) -> None:
    root = research(tmp_path / "v", {3: 0})
    put(root / "quantitive/masks.txt", f"{line}\n\n{lines({3: 0})}")
    row = one(root)
    assert_tubes(row, 3)
    (fault,) = row["pred_faults"]
    assert fault["code"] == "malformed_mask"
    assert "masks.txt:1: expected 'frame track class height width counts'" in fault["text"]


@pytest.mark.parametrize(
    "line", ["1 9 0 6 7 zz", "1 9 0 0 7 x", "1 9 0 99999999 99999999 x", "1 3 0 6 7 PPY1", "1 9 0 6 8 `1"]
)
def test_masks_that_are_wrong(tmp_path: Path, line: str) -> None:
    root = research(tmp_path / "v", {3: 0})
    put(root / "quantitive/masks.txt", f"{lines({3: 0})}{line}\r\n")
    row = one(root)
    assert [fault["code"] for fault in row["pred_faults"]] in (["malformed_mask"], ["size_mismatch"])
    assert ", frame 0: " in row["pred_faults"][0]["text"]


def test_folders_that_lack_something(tmp_path: Path) -> None:
    put(tmp_path / "a/relations.json", [TRIPLET])
    put(tmp_path / "b/quantitative/masks.txt", lines({3: 0}))
    put(tmp_path / "c/masks.txt", lines({3: 0}))
    first, *others = read_predictions("pvsg", tmp_path)
    assert (first["key"], first["pred_faults"][0]["code"], len(first["pred_triplets"])) == ("a", "malformed_mask", 1)
    for row in others:
        assert_tubes(row, 3)
        assert (row["pred_triplets"], row["pred_faults"]) == ([], [])
    with pytest.raises(BenchError, match="give the folder"):
        read_predictions("pvsg", tmp_path / "c/masks.txt")
    with pytest.raises(BenchError, match="give the folder"):
        read_predictions("pvsg", tmp_path / "c/masks.txt", format="research")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "relations.json:1: column 2: expected JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("5", "expected {video_id, relations"),
        ('{"links": []}', "found 'links'"),
        ('{"relations": 5}', "expected {video_id, relations"),
        ("", "expected JSON"),
    ],
)
def test_relations_that_cannot_be_read(tmp_path: Path, content: str, told: str) -> None:
    root = research(tmp_path / "v", {3: 0})
    put(root / "relations.json", content)
    with pytest.raises(BenchError, match=r"relations\.json") as caught:
        one(root)
    assert told in str(caught.value)


def test_relations_of_another_video(tmp_path: Path) -> None:
    root = research(tmp_path / "v", {3: 0})
    put(root / "relations.json", {"video_id": "w", "relations": []})
    row = one(root)
    assert (row["key"], [fault["code"] for fault in row["pred_faults"]]) == (None, ["unknown_row"])


def test_a_pickle_is_not_passed_over(tmp_path: Path) -> None:
    root = research(tmp_path / "v", {3: 0})
    (root / "relations.json").unlink()
    put(root / "relations.pickle", "x")
    with pytest.raises(BenchError, match=r"convert_pvsg_relations\.py"):
        one(root)
    (tmp_path / "r.pickle").write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(BenchError, match=r"never read.*convert_pvsg_relations\.py"):
        read_predictions("pvsg", tmp_path / "r.pickle")


@pytest.mark.parametrize("mode", ["L", "P"])
def test_label_maps(tmp_path: Path, mode: str) -> None:
    for frame, labels in enumerate(FRAMES):
        png(tmp_path / f"v/{frame:05d}.png", labels, mode)
    put(
        tmp_path / "v/tubes.json",
        [{"tube_id": 9, "category": "dog"}, {"tube_id": "3", "category": "x"}, {"tube_id": 5}],
    )
    put(tmp_path / "v/relations.json", {"relations": [TRIPLET]})
    row = one(tmp_path)
    assert row["pred_faults"] == []
    assert_tubes(row, 3, 5, 9, 200)
    assert [(tube["tube_id"], tube["category"]) for tube in row["pred_tubes"]] == [
        *(("9", "dog"), ("3", "x"), ("5", None), ("200", None)),
    ]
    assert len(row["pred_triplets"]) == 1
    assert one(tmp_path / "v") == row


def test_label_maps_that_are_wrong(tmp_path: Path) -> None:
    png(tmp_path / "v/0.png", FRAMES[0])
    png(tmp_path / "v/00.png", FRAMES[1])
    png(tmp_path / "v/first.png", FRAMES[0])
    png(tmp_path / "v/2.png", np.zeros((6, 7, 3), np.uint8))
    png(tmp_path / "v/4.png", np.full((3, 3), 3, np.uint8))
    (tmp_path / "v/3.png").write_bytes(b"rubbish")
    put(tmp_path / "v/tubes.json", {"tubes": [{"tube_id": 3, "category": "dog"}, {"tube_id": 3}, 7]})
    row = one(tmp_path)
    codes = [fault["code"] for fault in row["pred_faults"]]
    assert sorted(set(codes)) == [
        "duplicate_prediction",
        "malformed_mask",
        "missing_frames",
        "size_mismatch",
        "unreadable_mask",
    ]
    told = "\n".join(fault["text"] for fault in row["pred_faults"])
    for text in ("first.png: expected the frame's number", "2.png", "3.png", "one PNG per frame", "tube_id '3' again"):
        assert text in told
    put(tmp_path / "v/tubes.json", "5")
    with pytest.raises(BenchError, match=r"expected \{tubes"):
        one(tmp_path)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_panoptic_colours(tmp_path: Path, whole: bool, named: bool) -> None:
    for frame, labels in enumerate(FRAMES):
        png(tmp_path / f"v/{frame:04d}.png", colours(labels))
    categories = {"categories": [{"id": 0, "name": "dog"}, {"id": 1, "name": "cat"}]} if named else {}
    if whole:
        put(
            tmp_path / "panoptic.json",
            {"annotations": [{"video_id": "v", "annotations": annotations("v/")}], **categories},
        )
    else:
        put(tmp_path / "v/panoptic.json", {"annotations": annotations(), **categories})
    put(tmp_path / "v/relations.json", {"relations": [TRIPLET]})
    row = one(tmp_path)
    assert (row["key"], row["pred_faults"], len(row["pred_triplets"])) == ("v", [], 1)
    for tube in row["pred_tubes"]:
        tube["tube_id"] = str(int(tube["tube_id"]) // 70_001)
    assert_tubes(row, 3, 9, 200)
    expected = ["dog", "category_id 125", "cat"] if named else ["adult", "water", "baby"]
    assert [tube["category"] for tube in row["pred_tubes"]] == expected


def test_panoptic_colours_that_are_wrong(tmp_path: Path) -> None:
    for frame in (0, 1, 7):
        png(tmp_path / f"v/{frame:04d}.png", colours(FRAMES[frame % 4]))
    found = annotations("../../x/")
    found[0]["segments_info"] = found[0]["segments_info"][:2]
    put(tmp_path / "v/panoptic.json", {"annotations": [*found, {"file_name": 7}, 7]})
    told = "\n".join(fault["text"] for fault in one(tmp_path)["pred_faults"])
    for text in (
        "0000.png: id 14000200: expected it in the frame's segments_info",
        "0007.png: expected its segments_info",
        "0002.png: expected this PNG, found none",
        "annotation 4: expected {file_name, segments_info}",
        "annotation 5",
    ):
        assert text in told
    put(tmp_path / "v/panoptic.json", {"images": []})
    with pytest.raises(BenchError, match=r"expected \{annotations"):
        one(tmp_path)
    put(tmp_path / "panoptic.json", {"annotations": [{"annotations": []}]})
    with pytest.raises(BenchError, match="annotation 0"):
        one(tmp_path)


def test_several_formats_in_one_folder(tmp_path: Path) -> None:
    research(tmp_path / "v", {3: 0})
    put(tmp_path / "w/tubes.json", [])
    with pytest.raises(BenchError, match="research and davis"):
        read_predictions("pvsg", tmp_path)
    assert read_predictions("pvsg", tmp_path, format="research")["key"][:] == ["v"]
    assert read_predictions("pvsg", tmp_path, format="davis")["key"][:] == ["v", "w"]


def test_other_file_systems(tmp_path: Path) -> None:
    root = research(tmp_path / "v", {3: 0})
    files = fsspec.filesystem("memory")
    for path in ("quantitive/masks.txt", "relations.json"):
        files.pipe(f"/videos/v/{path}", (root / path).read_bytes())
    assert one("memory://videos") == one(root)  # type: ignore[arg-type]


def test_the_mini_folder(shared: Path) -> None:
    root = shared / "data/pvsg_mini/predictions"
    row = one(root)
    rows = [line.split() for line in (root / row["key"] / "quantitive/masks.txt").read_text().splitlines()]
    assert row["pred_faults"] == []
    assert sum(len(tube["frames"]) for tube in row["pred_tubes"]) == len(rows)
    by_name = {tube["tube_id"]: tube for tube in row["pred_tubes"]}
    objects = json.loads((shared / "data/pvsg_mini/pvsg.json").read_text())["objects"]
    names = [*objects["thing"], *objects["stuff"]]
    for frame, track, kind, height, width, counts in rows[::50]:
        tube = by_name[track]
        assert tube["category"] == names[int(kind)]
        mask = tube["masks"][tube["frames"].index(int(frame) - 1)]
        np.testing.assert_array_equal(decode(mask), decode({"size": [int(height), int(width)], "counts": counts}))
    relations = json.loads((root / row["key"] / "relations.json").read_text())["relations"]
    assert [triplet["spans"] for triplet in row["pred_triplets"]] == [relation["spans"] for relation in relations]
    assert [triplet["score"] for triplet in row["pred_triplets"]] == [relation["score"] for relation in relations]
