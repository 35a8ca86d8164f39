"""Frames and ids that a folder loses: what is not read is named, what cannot be meant stops."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

import bench_datasets as bd
from bench_datasets.faults import FAULTS, BenchError
from bench_datasets.predictions import read_predictions

from ...support.dense_masks import encode
from ...support.pvsg_folders import FRAMES, annotations, colours, lines, one, png, put, research

TUBES = [{"tube_id": label, "category": "dog"} for label in (3, 9, 200)]


def davis(root: Path, names: list[str], tubes: Any = TUBES) -> Path:
    for name, labels in zip(names, FRAMES, strict=False):
        if name.endswith(".png"):
            png(root / name, labels)
        else:
            put(root / name, "an image of another kind")
    put(root / "tubes.json", tubes)
    return root


def faults(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(fault["code"], fault["text"]) for fault in row["pred_faults"]]


def truth_of_frames(key: str = "v") -> Dataset:
    """A ground truth whose one object, 3, is where FRAMES has it."""
    seen = [frame for frame in range(4) if (FRAMES[frame] == 3).any()]
    row = {
        "key": key, "source": "vidor", "height": 6, "width": 7, "fps": 5.0, "num_frames": 4, "frames_present": 4,
        "objects": [{"object_id": 3, "category": "dog", "is_thing": True}],
        "tubes": [{"frames": seen, "masks": [encode(FRAMES[frame] == 3) for frame in seen]}],
        "relations": [{"subject_id": 3, "object_id": 3, "predicate": "on", "spans": [[0, 3]]}],
        "relations_left_out": [], "faults": [],
    }  # fmt: skip
    return Dataset.from_list([row])


@pytest.mark.parametrize("names", [[f"masks/{i:04d}.png" for i in range(4)], [f"{i:04d}.jpg" for i in range(4)]])
def test_davis_images_elsewhere_stop(tmp_path: Path, names: list[str]) -> None:
    ((code, text),) = faults(one(davis(tmp_path / "v", names)))
    assert (code, FAULTS[code].default) == ("unreadable_mask", "stop")
    assert "expected <frame>.png directly in the folder, found 4 other images, such as " + names[0] in text


def test_davis_other_images_beside_frames_are_noted(tmp_path: Path) -> None:
    root = davis(tmp_path / "v", ["0.png", "1.png", "2.png", "3.png"])
    put(root / "drawn/0.jpg", "an image")
    ((code, text),) = faults(one(root))
    assert (code, FAULTS[code].default) == ("ignored_file", "noted")
    assert "1 images are not read, such as drawn/0.jpg" in text


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["0.png", "2.png", "4.png", "6.png"], "no PNG for 3 of the frames 0 to 6: 1, 3, 5"),
        (["1.png", "2.png", "3.png", "4.png"], "no PNG for 1 of the frames 0 to 4: 0"),
        (["5.png", "7.png"], "no PNG for 6 of the frames 0 to 7: 0, 1, 2, ..."),
        (["0.png", "2000000000.png"], "no PNG for 1999999999 of the frames 0 to 2000000000: 1, 2, 3, ..."),
        ([], "expected <frame>.png, found none"),
    ],
)
def test_davis_frames_without_png_are_noted(tmp_path: Path, names: list[str], told: str) -> None:
    ((code, text),) = faults(one(davis(tmp_path / "v", names)))
    assert (code, FAULTS[code].default) == ("missing_frames", "noted")
    assert told in text


@pytest.mark.parametrize("names", [["0.png", "0000.png"], ["0.png", "0.PNG"]])
def test_davis_two_pngs_of_one_frame_stop(tmp_path: Path, names: list[str]) -> None:
    found = faults(one(davis(tmp_path / "v", [names[0]])))
    assert found == []
    shutil.copy(tmp_path / "v" / names[0], tmp_path / "v" / names[1])
    ((code, text),) = faults(one(tmp_path / "v"))
    assert code == "malformed_mask"
    assert "expected one PNG per frame, found" in text


@pytest.mark.parametrize("tube_id", [0, "0", -1, "a", "007"])
def test_davis_tube_that_cannot_be_drawn_stops(tmp_path: Path, tube_id: Any) -> None:
    tubes = [{"tube_id": tube_id, "category": "dog"}, *TUBES]
    row = one(davis(tmp_path / "v", ["0.png"], tubes))
    ((code, text),) = faults(row)
    assert (code, FAULTS[code].default) == ("malformed_mask", "stop")
    assert "tube number 0: expected a pixel value of the label maps, an integer from 1 on (0 is void)" in text
    assert [tube["tube_id"] for tube in row["pred_tubes"]] == ["3", "9", "200"]


def panoptic(root: Path, found: list[dict[str, Any]], **more: Any) -> Path:
    for frame, labels in enumerate(FRAMES):
        png(root / f"{frame:04d}.png", colours(labels))
    put(root / "panoptic.json", {"annotations": found, **more})
    return root


def test_panoptic_id_twice_in_a_frame_stops_and_the_first_counts(tmp_path: Path) -> None:
    found = annotations()
    for item in found:
        item["segments_info"].append(item["segments_info"][0] | {"category_id": 77})
    row = one(panoptic(tmp_path / "v", found))
    assert [code for code, _ in faults(row)] == ["duplicate_prediction"] * 4
    assert "frame 0000: expected every id once, found id 210003 again" in faults(row)[0][1]
    assert row["pred_tubes"][0]["category"] == "adult"
    assert FAULTS["duplicate_prediction"].default == "stop"


def test_panoptic_frame_annotated_twice_stops_and_the_first_counts(tmp_path: Path) -> None:
    found = annotations()
    row = one(panoptic(tmp_path / "v", [*found, {"file_name": "0000.png", "segments_info": []}]))
    ((code, text),) = faults(row)
    assert code == "duplicate_prediction"
    assert "annotation 4: expected every frame once, found '0000' again" in text
    assert row["pred_tubes"] == one(panoptic(tmp_path / "v", found))["pred_tubes"]


@pytest.mark.parametrize("segment", [{"id": 0, "category_id": 1}, {"id": -3, "category_id": 1}, {"id": None}, 7])
def test_panoptic_segment_without_an_id_stops(tmp_path: Path, segment: Any) -> None:
    found = annotations()
    found[0]["segments_info"].append(segment)
    ((code, text),) = faults(one(panoptic(tmp_path / "v", found)))
    assert code == "malformed_mask"
    assert "segment 3: expected {id, category_id} with an id from 1 on (0 is void)" in text


def test_panoptic_category_id_of_two_names_is_refused(tmp_path: Path) -> None:
    categories = [{"id": 1, "name": "dog"}, {"id": 1, "name": "cat"}]
    with pytest.raises(BenchError, match="expected one name per id, found 'dog' and 'cat' for id 1"):
        one(panoptic(tmp_path / "v", annotations(), categories=categories))


def test_vipseg_submission_reads_as_panoptic_does(tmp_path: Path) -> None:
    wanted = one(panoptic(tmp_path / "a/v", annotations()))
    for frame, labels in enumerate(FRAMES):
        png(tmp_path / f"b/pan_pred/v/{frame:04d}.png", colours(labels))
    put(tmp_path / "b/pred.json", {"annotations": [{"video_id": "v", "annotations": annotations()}]})
    assert wanted["pred_faults"] == []
    assert one(tmp_path / "b") == wanted
    assert one(tmp_path / "b", format="panoptic") == wanted


def test_masks_txt_last_line_cut_says_so(tmp_path: Path) -> None:
    text = lines({3: 0, 9: 1})
    for cut in (3, 12):  # within the counts, within the five integers
        root = tmp_path / str(cut)
        put(root / "v/quantitive/masks.txt", text[: text.rstrip("\n").rindex("\n") + cut] if cut == 3 else text[:-4])
        put(root / "v/relations.json", [])
        ((code, told),) = faults(one(root / "v"))
        assert code == "malformed_mask"
        assert "(the last line has no end: was the file cut short?)" in told
    whole = research(tmp_path / "w", {3: 0})
    put(whole / "quantitive/masks.txt", lines({3: 0}).rstrip("\n"))
    assert faults(one(whole)) == []


def test_second_file_of_one_kind_is_noted(tmp_path: Path) -> None:
    root = research(tmp_path / "v", {3: 0})
    put(root / "masks.txt", "")
    put(root / "quantitive/relations.json", [])
    found = faults(one(root))
    assert [code for code, _ in found] == ["ignored_file", "ignored_file"]
    assert "masks.txt: quantitive/masks.txt is read in its place" in found[0][1]


@pytest.mark.parametrize("made", ["davis", "research"])
def test_frames_lost_at_the_end_are_in_check_and_score(tmp_path: Path, made: str) -> None:
    root = tmp_path / "runs/v"
    if made == "davis":
        davis(root, ["0.png", "1.png"], [{"tube_id": 3, "category": "dog"}])
        put(root / "relations.json", [])
    else:
        research(root, {3: 0})
        kept = [line for line in lines({3: 43}).splitlines() if int(line.split()[0]) <= 2]
        put(root / "quantitive/masks.txt", "\n".join(kept) + "\n")
        put(root / "relations.json", [])
    truth = truth_of_frames()
    lost = sum(bool((FRAMES[frame] == 3).any()) for frame in (2, 3))
    assert lost > 0
    warned = {group.code: group.examples[0].text for group in bd.check("pvsg", tmp_path / "runs", truth).warnings}
    assert f"no mask in {lost} of the {lost + 2} frames" in warned["missing_frames"]
    read = read_predictions("pvsg", tmp_path / "runs")
    (row,) = list(bd.score("pvsg", truth, read))
    assert (row["skipped"], "missing_frames" in row["faults"]) == (False, True)
    result = bd.summarize("pvsg", bd.score("pvsg", truth, read), draws=0)
    assert "missing_frames" in {fault["code"] if isinstance(fault, dict) else fault for fault in result.faults}


def test_frames_that_are_all_there_are_not_noted(tmp_path: Path) -> None:
    davis(tmp_path / "v", [f"{i}.png" for i in range(4)], TUBES)
    put(tmp_path / "v/relations.json", [])
    report = bd.check("pvsg", tmp_path, truth_of_frames())
    assert {group.code for group in (*report.errors, *report.warnings)} == {"no_triplets"}
    assert np.concatenate([tube["frames"] for tube in one(tmp_path)["pred_tubes"]]).max() == 3
