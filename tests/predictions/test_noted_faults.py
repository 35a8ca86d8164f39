"""Noted faults of predictions: they are counted in the results and warned of by `check`, and change no score."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bench_datasets as bd

from ..support.dense_pbench import Row
from ..support.pbench_rows import truth_of
from ..support.square_masks import MASK, PIXELS, SHORT, SIZE, SQUARE, instancebench_truth, write

CODE = "polygon_part_dropped"


def test_polygon_part_dropped_instancebench_is_counted_and_scores_as_without_it(tmp_path: Path) -> None:
    truth = instancebench_truth(tmp_path / "truth")
    lines = [{"expression_id": f"a-{k}", "mask": [SQUARE, SHORT], **SIZE} for k in (0, 1)]
    path = write(tmp_path / "p.jsonl", lines)
    report = bd.check("instancebench", str(path), truth)
    assert report.ok
    assert [(group.code, group.count) for group in report.warnings] == [(CODE, 2)]
    scores = bd.score("instancebench", truth, bd.read_predictions("instancebench", str(path)))
    assert scores["faults"][:] == [[CODE]]
    result = bd.summarize("instancebench", scores, draws=0)
    assert result.metrics["miou"].value == 1.0
    assert result.faults == {CODE: {"count": 1, "examples": ["a"]}}


@pytest.mark.parametrize("form", ["jsonl", "coco"])
def test_polygon_part_dropped_pbench_is_counted_and_scores_as_without_it(tmp_path: Path, form: str) -> None:
    truth = truth_of([Row(7, "level_0", [PIXELS], [])])
    if form == "jsonl":
        path = write(tmp_path / "p.jsonl", [{"key": "level_0/7", "masks": [[SQUARE, SHORT]], **SIZE}])
    else:
        path = tmp_path / "level_0.json"
        found = {"image_id": 7, "segmentation": [SQUARE, SHORT], "score": 0.5, **SIZE}
        path.write_text(json.dumps([found]), encoding="utf-8")
    report = bd.check("pbench", str(path), truth)
    assert report.ok
    assert [(group.code, group.count) for group in report.warnings] == [(CODE, 1)]
    scores = bd.score("pbench", truth, bd.read_predictions("pbench", str(path)))
    assert scores["faults"][:] == [[CODE]]
    result = bd.summarize("pbench", scores, draws=0)
    assert result.metrics["macro_f1/level_0"].value == 1.0
    assert result.faults[CODE]["count"] == 1


def test_polygon_part_dropped_pvsg_is_noted_in_the_video(tmp_path: Path) -> None:
    tube = {"tube_id": "1", "category": "dog", "frames": [0], "masks": [[SQUARE, SHORT]]}
    path = write(tmp_path / "p.jsonl", [{"video_id": "v", "tubes": [tube], "triplets": [], **SIZE}])
    row = bd.read_predictions("pvsg", str(path))[0]
    assert [fault["code"] for fault in row["pred_faults"]] == [CODE]
    assert "tube 1, frame 0" in row["pred_faults"][0]["text"]
    report = bd.check("pvsg", str(path))
    assert report.ok
    assert CODE in {group.code for group in report.warnings}


def test_saved_predictions_have_no_list_of_fixed_length_above_which_a_null_may_stand(tmp_path: Path) -> None:
    """Arrow before 26 cannot read such Parquet."""
    lines = [{"expression_id": "a", "mask": None}, {"expression_id": "b", "mask": MASK, "box": [1, 2, 3, 4]}]
    read = bd.read_predictions("instancebench", str(write(tmp_path / "p.jsonl", lines)))
    read.to_parquet(str(tmp_path / "saved.parquet"))
    schema = pq.read_schema(tmp_path / "saved.parquet")
    assert schema.field("mask").type.field("size").type == pa.list_(pa.int32())
    assert schema.field("box").type == pa.list_(pa.float64())
    again = bd.read_predictions("instancebench", str(tmp_path / "saved.parquet"))
    assert again.to_list() == read.to_list()
