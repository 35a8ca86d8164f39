"""Outputs of popular tools: read as the same masks in JSON Lines are, or refused with what to do."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from bench_datasets import read_predictions
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.predictions.mask_lines import named_by_file

A, B = {"size": [2, 3], "counts": "15"}, {"size": [2, 3], "counts": "51"}
ROWS: dict[int, list[dict[str, Any]]] = {7: [A, B], 8: [], 9: [B]}


def write(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(json.dumps(content))


def det_inferencer(masks: list[Any], row: int) -> object:
    """What mmdet's DetInferencer writes per image."""
    return {
        "labels": [0] * len(masks),
        "scores": [0.5] * len(masks),
        "bboxes": [[0, 0, 1, 1]] * len(masks),
        "masks": masks,
    }


def sam(masks: list[Any], row: int) -> list[dict[str, Any]]:
    """What segment-anything's amg.py writes with --convert-to-rle."""
    return [{"segmentation": mask, "area": 1, "predicted_iou": 0.9, "stability_score": 0.9} for mask in masks]


def sa_1b(masks: list[Any], row: int) -> object:
    return {"image": {"image_id": row, "width": 3, "height": 2}, "annotations": sam(masks, row)}


def grounded_sam(masks: list[Any], row: int) -> object:
    found = [{"class_name": "cat", "segmentation": mask, "score": [0.5]} for mask in masks]
    return {"image_path": f"{row}.jpg", "annotations": found, "img_width": 3, "img_height": 2}


def glamm(masks: list[Any], row: int) -> object:
    return {"image_id": str(row), "caption": "", "phrases": [], "pred_masks": masks}


def sam_3_agent(masks: list[Any], row: int) -> object:
    counts = [mask["counts"] for mask in masks]
    return {"orig_img_h": 2, "orig_img_w": 3, "pred_boxes": [], "pred_scores": [0.5] * len(masks), "pred_masks": counts}


@pytest.mark.parametrize("tool", [det_inferencer, sam, sa_1b, grounded_sam, glamm, sam_3_agent])
@pytest.mark.parametrize("name", ["{}.json", "level_1__{}.json"])
def test_pbench_file_per_image_of_tool_equals_json_lines(tool: Any, name: str, tmp_path: Path) -> None:
    for row, masks in ROWS.items():
        write(tmp_path / "out" / name.format(row), tool(masks, row))
    read = read_predictions("pbench", tmp_path / "out")
    names = [row["id"] if row["id"] is not None else int(row["key"].removeprefix("level_1/")) for row in read]
    assert dict(zip(names, read["pred_masks"], strict=True)) == ROWS
    assert [found for found in read["pred_faults"] if found] == []
    scored = tool in (det_inferencer, grounded_sam, sam_3_agent)
    assert read["pred_scores"][0] == ([0.5, 0.5] if scored else None)


@pytest.mark.parametrize("field", ["instances", "predictions", "annotations"])
@pytest.mark.parametrize("name", ["id", "image_id"])
def test_pbench_lines_of_detections_equal_json_lines(field: str, name: str, tmp_path: Path) -> None:
    lines = [{name: row, field: [{"segmentation": m, "score": 0.5} for m in masks]} for row, masks in ROWS.items()]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    read = read_predictions("pbench", tmp_path / "p.jsonl")
    assert dict(zip(read["id"], read["pred_masks"], strict=True)) == ROWS
    assert (read["pred_faults"], read["pred_scores"][0]) == ([[], [], []], [0.5, 0.5])


def test_pbench_table_with_image_id_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"image_id": list(ROWS), "masks": list(ROWS.values())}), tmp_path / "p.parquet")
    read = read_predictions("pbench", tmp_path / "p.parquet")
    assert dict(zip(read["id"], read["pred_masks"], strict=True)) == ROWS


def test_named_by_file_level_file_by_order_keeps_no_name() -> None:
    assert named_by_file({"masks": []}, "level_0.jsonl") == {"masks": []}
    assert named_by_file({"masks": []}, "other__7.json") == {"masks": []}
    assert named_by_file({"masks": [], "id": 3}, "7.json") == {"masks": [], "id": 3}


def test_pbench_level_file_with_image_id_stays_in_order(tmp_path: Path) -> None:
    write(tmp_path / "level_0.jsonl", {"image_id": 900, "masks": [A]})
    read = read_predictions("pbench", tmp_path / "level_0.jsonl")
    assert (read["id"], read["position"]) == ([None], [0])


JSON_FILES = [
    ({"predictions": []}, "write the list 'predictions' alone"),
    ({"model": "m", "results": [1]}, "write the list 'results' alone"),
    ({"columns": [], "index": [], "data": []}, "found a pandas table"),
    ({"schema": {}, "data": []}, "found a pandas table"),
    ([{"box": {}, "confidence": 0.5, "class": 0, "name": "cat"}], "save_json=True"),
    ([{"x_min": 1, "y_min": 1, "x_max": 2, "y_max": 2}], "supervision"),
    ({"shapes": [], "imagePath": "7.jpg"}, "LabelMe"),
    ([{"id": 7, "segmentation": [[0, 1]], "segments_info": []}], "one mask per segment"),
    ({"version": "VERSION 1.0", "results": {}}, "VidVRD's results"),
    ([{"video_id": "v", "segmentations": [A], "score": 1}], "YouTube-VIS"),
    ({"sequences": []}, "BURST"),
]


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench", "pvsg"])
@pytest.mark.parametrize(("content", "text"), JSON_FILES)
def test_json_of_other_tool_refused_by_name(benchmark: str, content: object, text: str, tmp_path: Path) -> None:
    write(tmp_path / "p.json", content)
    with pytest.raises(BenchError, match=text):
        read_predictions(benchmark, tmp_path / "p.json")


@pytest.mark.parametrize(
    ("benchmark", "name", "field"),
    [("pbench", "id", "masks"), ("instancebench", "expression_id", "mask"), ("pvsg", "video_id", "tubes")],
)
def test_pandas_columns_as_json_refused_with_conversion(benchmark: str, name: str, field: str, tmp_path: Path) -> None:
    write(tmp_path / "p.json", {name: {"0": 7, "1": 8}, field: {"0": None, "1": None}})
    with pytest.raises(BenchError, match=r"found columns, as pandas.*orient='records', lines=True"):
        read_predictions(benchmark, tmp_path / "p.json")


def archive(packed: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=packed) as file:  # type: ignore[call-overload]
        file.addfile(tarfile.TarInfo("7.json"), io.BytesIO())
    return data.getvalue()


def torch_file() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("archive/data.pkl", b"")
    return data.getvalue()


FILES = [
    ("x.tar", archive("w:"), "a tar archive"),
    ("x.tar.gz", archive("w:gz"), "a tar archive"),
    ("x.bz2", b"BZh91AY", "bunzip2"),
    ("x.xz", b"\xfd7zXZ\x00", "unxz"),
    ("x.zst", b"\x28\xb5\x2f\xfd", "unzstd"),
    ("x.h5", b"\x89HDF\r\n", "h5py"),
    ("x.mat", b"MATLAB 5.0", "loadmat"),
    ("x.jpg", b"\xff\xd8\xff\xe0", "save masks as PNG"),
    ("x.csv", b"id,masks\n", "orient='records', lines=True"),
    ("x.safetensors", b"\x08\0\0\0\0\0\0\0{}", "safetensors"),
    ("x.pt", torch_file(), "a torch file, which holds a pickle and is never read"),
    ("x.pkl", pickle.dumps([1], protocol=0), "a pickle, which is never read"),
    ("x.pkl.gz", gzip.compress(pickle.dumps([1])), "a pickle, which is never read"),
]


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench", "pvsg"])
@pytest.mark.parametrize(("name", "content", "text"), FILES, ids=[name for name, _, _ in FILES])
def test_file_of_other_kind_refused_with_what_to_do(
    benchmark: str, name: str, content: bytes, text: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BenchError, match=text):
        read_predictions(benchmark, tmp_path / name)


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench", "pvsg"])
@pytest.mark.parametrize(("name", "text"), [("7.pt", "torch"), ("7.pkl", "pickle"), ("0.tar", "tar -xf")])
def test_folder_of_other_kind_refused_with_what_to_do(benchmark: str, name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(BenchError, match=text):
        read_predictions(benchmark, tmp_path)


@pytest.mark.parametrize("size", [{}, {"height": 10, "width": 10}])
def test_starts_and_lengths_of_runs_named_and_not_drawn(size: dict[str, int], tmp_path: Path) -> None:
    write(tmp_path / "p.json", [{"id": 7, "masks": [[12, 3, 90, 2]], **size}])
    faults = read_predictions("pbench", tmp_path / "p.json")[0]["pred_faults"]
    assert [fault["code"] for fault in faults] == ["malformed_mask"]
    assert "starts and lengths of runs" in faults[0]["text"]


# ---------------------------------------------------------------------- InstanceBench


def test_instancebench_file_per_expression_read(tmp_path: Path) -> None:
    write(tmp_path / "out" / "a-0.json", {"mask": A})
    write(tmp_path / "out" / "a-1.json", {"mask": None})
    read = read_predictions("instancebench", tmp_path / "out")
    assert (read["expression_id"], read["mask"]) == (["a-0", "a-1"], [A, None])


@pytest.mark.parametrize("field", ["no_target", "pred_nt"])
@pytest.mark.parametrize("table", [False, True])
def test_instancebench_no_target_flag_read_as_no_mask(field: str, table: bool, tmp_path: Path) -> None:
    rows = [
        {"expression_id": "a-0", field: True, "mask": None},
        {"expression_id": "a-1", field: False, "mask": A},
        {"expression_id": "a-2", field: True, "mask": A},
    ]
    path = tmp_path / ("p.parquet" if table else "p.json")
    pq.write_table(pa.Table.from_pylist(rows), path) if table else write(
        path, [*rows, {"expression_id": "b", field: True}]
    )
    read = read_predictions("instancebench", path)
    assert read["mask"][:2] == [None, A]
    assert [[fault["code"] for fault in row] for row in read["pred_faults"][:3]][:2] == [[], []]
    if not table:
        assert (read["mask"][3], read["pred_faults"][3]) == (None, [])
    assert f"expected null where {field} is true" in read["pred_faults"][2][0]["text"]


# ---------------------------------------------------------------------- PVSG

TUBE = {"tube_id": "1", "category": "dog", "frames": [0], "masks": [A]}
TRIPLET = {"subject_id": "1", "object_id": "1", "predicate": "on", "score": 0.5, "spans": [[0, 0]]}


@pytest.mark.parametrize("table", [False, True])
def test_pvsg_relations_read_as_triplets(table: bool, tmp_path: Path) -> None:
    row = {"video_id": "v", "tubes": [TUBE], "relations": [TRIPLET]}
    path = tmp_path / ("p.parquet" if table else "p.json")
    pq.write_table(pa.Table.from_pylist([row]), path) if table else write(path, row)
    assert read_predictions("pvsg", path)[0]["pred_triplets"] == [TRIPLET]


def test_pvsg_spans_of_another_name_stop(tmp_path: Path) -> None:
    triplet = {**{name: value for name, value in TRIPLET.items() if name != "spans"}, "duration": [0, 1]}
    write(tmp_path / "p.json", [{"video_id": "v", "tubes": [TUBE], "triplets": [triplet]}])
    faults = read_predictions("pvsg", tmp_path / "p.json")[0]["pred_faults"]
    assert [fault["code"] for fault in faults] == ["bad_span"]
    assert "found duration" in faults[0]["text"]


def test_pvsg_file_per_video_read(tmp_path: Path) -> None:
    write(tmp_path / "out" / "v.json", {"tubes": [TUBE], "triplets": [TRIPLET]})
    assert read_predictions("pvsg", tmp_path / "out")["key"] == ["v"]


def test_pvsg_png_folder_without_tubes_json_named(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    Image.fromarray(np.zeros((2, 3), np.uint8)).save(tmp_path / "v" / "0000.png")
    with pytest.raises(BenchError, match=r"write tubes\.json"):
        read_predictions("pvsg", tmp_path)


def test_instancebench_folder_of_pbench_lines_still_stops(tmp_path: Path) -> None:
    write(tmp_path / "out" / "p.jsonl", {"id": 7, "masks": [A]})
    with pytest.raises(FaultError, match="wrong benchmark"):
        read_predictions("instancebench", tmp_path / "out")
