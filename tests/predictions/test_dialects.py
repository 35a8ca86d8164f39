"""Ways of writing JSON predictions that people have: results of several processes, objects by id, RefCOCO's ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from bench_datasets import read_predictions
from bench_datasets.faults import BenchError

RLE = {"size": [2, 3], "counts": "15"}
RESULTS: list[dict[str, Any]] = [
    {"image_id": i, "category_id": 1, "score": 0.5, "segmentation": RLE} for i in (1, 2, 1)
]


def write(path: Path, content: object, indent: int | None = None) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=indent))
    return path


def test_coco_results_folder_of_rank_files_read_as_one(tmp_path: Path) -> None:
    write(tmp_path / "ranks" / "coco_predictions_segm_0.json", RESULTS[:2])
    write(tmp_path / "ranks" / "coco_predictions_segm_1.json", RESULTS[2:])
    read = read_predictions("pbench", tmp_path / "ranks")
    assert (read["id"], [len(masks) for masks in read["pred_masks"]]) == ([1, 2], [2, 1])


def test_coco_results_folder_boxes_beside_masks_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "out" / "results.segm.json", RESULTS)
    write(tmp_path / "out" / "results.bbox.json", [{"image_id": 1, "bbox": [0, 0, 1, 1], "score": 0.5}])
    read = read_predictions("pbench", tmp_path / "out")
    assert (read["id"], [len(masks) for masks in read["pred_masks"]]) == ([1, 2], [2, 1])
    assert read["pred_faults"] == [[], []]


def test_coco_results_as_json_lines_read(tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(item) + "\n" for item in RESULTS))
    assert read_predictions("pbench", tmp_path / "lines.jsonl")["id"] == [1, 2]


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench", "pvsg"])
@pytest.mark.parametrize("indent", [None, 2])
def test_coco_annotation_file_refused_by_name(benchmark: str, indent: int | None, tmp_path: Path) -> None:
    path = write(tmp_path / "d.json", {"images": [{"id": 1}], "annotations": RESULTS, "categories": []}, indent)
    with pytest.raises(BenchError, match=r"found a COCO annotation file \(images, annotations\); give the results"):
        read_predictions(benchmark, path)


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench", "pvsg"])
def test_folder_of_nested_json_named(benchmark: str, tmp_path: Path) -> None:
    write(tmp_path / "img-1.jpg" / "a.json", {"pred_boxes": []})
    with pytest.raises(BenchError, match=r"found them only in folders inside it \(img-1\.jpg/a\.json\)"):
        read_predictions(benchmark, tmp_path)


@pytest.mark.parametrize("indent", [None, 2])
def test_pbench_object_by_id_read(indent: int | None, tmp_path: Path) -> None:
    path = write(tmp_path / "p.json", {"7": [RLE], "level_1/8": {"masks": [RLE, RLE], "scores": [1, 2]}}, indent)
    read = read_predictions("pbench", path)
    assert (read["id"], read["key"]) == ([7, None], [None, "level_1/8"])
    assert read["pred_masks"] == [[RLE], [RLE, RLE]]


@pytest.mark.parametrize("indent", [None, 2])
def test_instancebench_object_by_expression_id_read(indent: int | None, tmp_path: Path) -> None:
    path = write(tmp_path / "p.json", {"a-0": RLE, "a-1": None, "a-2": {"mask": RLE, "run": 3}}, indent)
    read = read_predictions("instancebench", path)
    assert read["expression_id"] == ["a-0", "a-1", "a-2"]
    assert read["mask"] == [RLE, None, RLE]
    assert read["run"] == ["0", "0", "3"]


@pytest.mark.parametrize("indent", [None, 2])
def test_pvsg_object_by_video_id_read(indent: int | None, tmp_path: Path) -> None:
    tube = {"tube_id": 1, "category": "adult", "frames": [0], "masks": [RLE]}
    path = write(tmp_path / "p.json", {"v1": {"tubes": [tube], "triplets": []}, "v2": {"tubes": []}}, indent)
    read = read_predictions("pvsg", path)
    assert read["key"] == ["v1", "v2"]
    assert [len(tubes) for tubes in read["pred_tubes"]] == [1, 0]


def test_pbench_single_indented_object_read(tmp_path: Path) -> None:
    assert read_predictions("pbench", write(tmp_path / "p.json", {"id": 1, "masks": [RLE]}, 2))["id"] == [1]


@pytest.mark.parametrize("form", ["jsonl", "coco"])
def test_instancebench_ref_id_and_sent_id_read_as_converted(form: str, tmp_path: Path) -> None:
    path = write(tmp_path / "p.json", [{"ref_id": 12, "sent_id": 30, "segmentation": RLE}])
    read = read_predictions("instancebench", path, format=form)
    assert (read["expression_id"], read["mask"], read["pred_faults"]) == (["refcoco-12-30"], [RLE], [[]])


def test_instancebench_ref_id_and_sent_id_columns_read() -> None:
    table = Dataset.from_list([{"ref_id": 12, "sent_id": 30, "mask": RLE}])
    assert read_predictions("instancebench", table)["expression_id"] == ["refcoco-12-30"]


def test_instancebench_list_of_one_rle_refused_with_advice(tmp_path: Path) -> None:
    path = write(tmp_path / "p.json", [{"expression_id": "a", "mask": [RLE]}])
    (fault,) = read_predictions("instancebench", path)["pred_faults"][0]
    assert fault["text"] == "mask: expected one mask, found a list of 1; give the RLE {size, counts} itself"


def test_pbench_level_as_class_label_number_read(tmp_path: Path) -> None:
    rows = [{"id": 1, "level": 0, "masks": [RLE]}, {"id": 2, "level": 5, "masks": [RLE]}]
    path = write(tmp_path / "p.json", rows)
    assert read_predictions("pbench", path)["split"] == ["level_0", "dense"]
    assert read_predictions("pbench", Dataset.from_list(rows))["split"] == ["level_0", "dense"]


@pytest.mark.parametrize("level", [6, -1, [0]])
def test_pbench_level_of_no_name_noted_as_level(level: object, tmp_path: Path) -> None:
    path = write(tmp_path / "p.json", [{"id": 1, "level": level, "masks": [RLE]}])
    (fault,) = read_predictions("pbench", path)["pred_faults"][0]
    assert fault["code"] == "unknown_row"
    assert "level: expected" in fault["text"]
