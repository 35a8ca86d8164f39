"""COCO results: a flat list becomes rows."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench_datasets.faults import BenchError
from bench_datasets.predictions import read_predictions

from ..support.dense_masks import Dense, assert_masks, encode


def write(path: Path, results: Any) -> Path:
    path.write_text(json.dumps(results))
    return path


@pytest.mark.parametrize("field", ["image_id", "id"])
def test_rows_come_together_in_the_files_order(tmp_path: Path, rows: dict[int, Dense], field: str) -> None:
    results = [
        {field: name, "category_id": 1, "segmentation": encode(mask), "score": round(0.01 * i, 2), "bbox": [0, 0, 1, 1]}
        for name, masks in rows.items()
        for i, mask in enumerate(masks)
    ]
    mixed = list(range(len(results)))
    random.Random(3).shuffle(mixed)
    for order in (range(len(results)), mixed):
        expected: dict[int, list[dict[str, Any]]] = {}
        for i in order:
            expected.setdefault(results[i][field], []).append(results[i])
        read = read_predictions("pbench", write(tmp_path / "results.json", [results[i] for i in order]))
        assert read["id"][:] == list(expected)
        for row, items in zip(read, expected.values(), strict=True):
            assert row["pred_masks"] == [item["segmentation"] for item in items]
            assert row["pred_scores"] == [item["score"] for item in items]
            assert row["pred_faults"] == []


def test_more_masks_than_a_batch_holds(tmp_path: Path) -> None:
    mask = encode(np.eye(3, dtype=bool))
    results = [{"image_id": i % 700, "segmentation": mask, "score": i / 10_000} for i in range(10_000)]
    read = read_predictions("pbench", write(tmp_path / "results.json", results))
    assert read["id"][:] == list(range(700))
    assert all(
        scores == [i / 10_000 for i in range(row, 10_000, 700)] for row, scores in enumerate(read["pred_scores"])
    )


def test_image_id_counts_before_id(tmp_path: Path) -> None:
    results = [{"id": 100 + i, "image_id": 7, "segmentation": encode(np.eye(2, dtype=bool))} for i in range(2)]
    read = read_predictions("pbench", write(tmp_path / "results.json", results))
    assert read["id"][:] == [7]
    assert len(read[0]["pred_masks"]) == 2
    assert read[0]["pred_scores"] is None


def test_polygons_with_a_size(tmp_path: Path) -> None:
    square = np.zeros((6, 9), bool)
    square[1:4, 2:7] = True
    eye = np.eye(4, dtype=bool)
    results = [
        {"image_id": 1, "segmentation": encode(eye)},
        {"image_id": 1, "segmentation": [[2, 1, 7, 1, 7, 4, 2, 4]], "height": 6, "width": 9},
        {"image_id": 1, "segmentation": encode(eye)},
    ]
    read = read_predictions("pbench", write(tmp_path / "results.json", results))
    assert_masks(read[0]["pred_masks"], [eye, square, eye])


def test_faults_name_the_mask_within_its_row(tmp_path: Path) -> None:
    good = encode(np.eye(2, dtype=bool))
    results = [
        {"image_id": 1, "segmentation": good, "score": 0.5},
        {"image_id": 2, "bbox": [0, 0, 1, 1], "score": 0.5},
        {"image_id": 1, "segmentation": {"size": [2, 2], "counts": "11"}, "score": "high"},
        {"image_id": 1, "segmentation": good, "score": 0.5},
        {"image_id": 3, "segmentation": good},
        {"image_id": 3, "segmentation": good, "score": 0.5},
        {"image_id": "three", "segmentation": good},
    ]
    read = read_predictions("pbench", write(tmp_path / "results.json", results))
    assert read["id"][:] == [1, 2, 3, None]
    assert read["pred_masks"][:] == [[good, None, good], [None], [good, good], [good]]
    told = [[(fault["code"], fault["text"].split(":")[0]) for fault in faults] for faults in read["pred_faults"]]
    assert told[:3] == [
        [("malformed_mask", "mask 1"), ("bad_score", "score 1")],
        [("malformed_mask", "mask 0")],
        [("bad_score", "scores")],
    ]
    assert read[3]["pred_faults"][0]["code"] == "unknown_row"
    assert "results.json:1" in read[3]["pred_faults"][0]["text"]
    assert read["pred_scores"][:] == [[0.5, None, 0.5], [0.5], None, None]


@pytest.mark.parametrize(
    ("results", "told"),
    [
        ([{"segmentation": {"size": [1, 1], "counts": "1"}, "score": 1}], "expected image_id"),
        ({"images": [], "annotations": [], "categories": []}, "annotation file"),
        ([], "an empty list"),
    ],
)
def test_other_files(tmp_path: Path, results: Any, told: str) -> None:
    path = write(tmp_path / "results.json", results)
    with pytest.raises(BenchError, match=told if isinstance(results, list) else ""):
        read_predictions("pbench", path)
    if results:
        with pytest.raises(BenchError, match=told):
            read_predictions("pbench", path, format="coco")


@pytest.mark.parametrize("usual", [True, False])
def test_coco_files_that_repeat_a_rows_masks_are_a_duplicate_prediction(usual: bool, tmp_path: Path) -> None:
    """Rank files of a padded sampler, or a merged file beside its parts; a row's other masks may stand in any file."""
    masks = [encode(np.eye(4, dtype=bool)), encode(~np.eye(4, dtype=bool)), encode(np.ones((4, 4), bool))]

    def result(row: int, mask: int) -> dict[str, Any]:
        return {"image_id": row, "segmentation": masks[mask], "score": 0.5} | ({} if usual else {"score": None})

    (tmp_path / "rank0.json").write_text(json.dumps([result(0, 0), result(1, 1), result(2, 2), result(2, 2)]))
    (tmp_path / "rank1.json").write_text(json.dumps([result(0, 0), result(1, 2)]))
    rows = {row["id"]: row for row in read_predictions("pbench", tmp_path)}
    assert [len(rows[i]["pred_masks"]) for i in range(3)] == [2, 2, 2]
    codes = {
        i: [fault["code"] for fault in row["pred_faults"] if fault["code"] != "bad_score"] for i, row in rows.items()
    }
    assert codes == {0: ["duplicate_prediction"], 1: [], 2: []}
    (text,) = [fault["text"] for fault in rows[0]["pred_faults"] if fault["code"] == "duplicate_prediction"]
    assert "1 masks stand twice among the results of" in text
    assert "rank0.json and" in text


def test_coco_results_as_python_values_are_read_like_the_file(tmp_path: Path) -> None:
    masks = [encode(np.eye(4, dtype=bool)), encode(~np.eye(4, dtype=bool))]
    results = [{"image_id": i // 2, "segmentation": masks[i % 2], "score": 0.5 + i / 10} for i in range(5)]
    (tmp_path / "out.json").write_text(json.dumps(results))
    expected = read_predictions("pbench", tmp_path / "out.json").to_list()
    assert [len(row["pred_masks"]) for row in expected] == [2, 2, 1]
    for given in (results, pd.DataFrame(results)):
        assert read_predictions("pbench", given).to_list() == expected
