"""One row explained: the numbers of its score row, in words and as a picture."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from datasets import load_dataset
from PIL import Image

import bench_datasets as bd

from ...support.dense_pbench import Row, iou, measure
from ...support.pbench_rows import encode, line, truth_of


@pytest.mark.parametrize("protocol", ["released", "card"])
def test_real_rows(shared: Path, protocol: str) -> None:
    root = str(shared / "data" / "pbench_mini")
    truth = load_dataset("pbench", data_dir=root, split="test")
    predictions = bd.read_predictions("pbench", shared / "data" / "predictions_a" / "pbench.jsonl")
    by_id = {row["id"]: row for row in predictions}
    scores = {row["key"]: row for row in bd.score("pbench", truth, predictions, protocol)}
    by_key = bd.summarize("pbench", bd.score("pbench", truth, predictions, protocol), by=["key"], draws=0).slices
    expected = {part.value: part.metrics for part in by_key if part.by == "key"}
    headline = "accuracy" if protocol == "card" else "macro_f1"
    for row in truth:
        found = bd.explain("pbench", row, by_id[row["id"]], protocol)
        scored = scores[row["key"]]
        assert found.key == row["key"]
        assert found.facts["score"] == pytest.approx(expected[row["key"]][headline].value)
        assert found.facts["union_iou"] == pytest.approx(expected[row["key"]]["giou"].value)
        assert (found.facts["true"], found.facts["predicted"]) == (scored["true_count"], scored["raw_count"])
        assert found.facts["scored"] == scored["kept_count"]
        dropped = [p for p in found.facts["predictions"] if p["dropped_for"]]
        assert len(dropped) == scored["raw_count"] - scored["kept_count"]
        pairs = {p["prediction"]: p["truth"] for p in found.facts["predictions"] if p["truth"] is not None}
        assert pairs == dict(zip(scored["matched_prediction"], scored["matched_truth"], strict=True))
        assert len(found.facts["missed"]) == scored["true_count"] - len(pairs)
        assert found.picture.size == row["image"].size
        assert row["key"] in str(found)
        assert f"{found.facts['score']:.4f}" in str(found)
        assert "<img" in found._repr_html_()


def test_without_truth() -> None:
    row = truth_of([Row(3, "level_1", [])])[0]
    for masks in ([], [encode(line((0, 5)))]):
        assert bd.explain("pbench", row, masks).facts["score"] is None
        assert "left out" in str(bd.explain("pbench", row, masks))
        for protocol in ("paper", "card"):
            assert bd.explain("pbench", row, masks, protocol).facts["score"] == float(not masks)


def test_what_became_of_each_prediction() -> None:
    truth = [line((0, 30)), line((50, 60))]
    predicted = [line((0, 29)), line((0, 30)), line((90, 95)), line((0, 15), width=50)]
    found = bd.explain("pbench", truth_of([Row(1, "level_0", truth)])[0], list(map(encode, predicted)))
    fates = found.facts["predictions"]
    assert [fate["dropped_for"] and fate["dropped_for"][0] for fate in fates] == [3, 3, None, None]
    assert fates[0]["dropped_for"][1] == pytest.approx(iou(predicted[0], truth[0]))
    assert [fate["truth"] for fate in fates] == [None, None, None, 0]
    assert fates[3]["resized_from"] == [1, 50]
    assert found.facts["missed"] == [1]
    assert "prediction 2 (5 px): overlaps no ground truth mask" in str(found)
    assert fates[2]["nearest"] is None
    row = Row(1, "level_0", truth, predicted)
    assert found.facts["score"] == pytest.approx(measure(row, "released")["score"])


def test_on_the_dense_level_one_threshold_counts() -> None:
    row = truth_of([Row(1, "dense", [line((0, 100))])])[0]
    found = bd.explain("pbench", row, [encode(line((0, 90)))])
    assert found.facts["score"] == 1.0
    assert "up to threshold 0.50" in str(found)


def test_pictures_of_any_size_and_hostile_texts() -> None:
    row = {**truth_of([Row(1, "level_0", [np.ones((3000, 20), bool)])])[0], "key": "<script>alert(1)</script>"}
    found = bd.explain("pbench", row, [])
    assert max(found.picture.size) == 1024
    assert "<script>" not in found._repr_html_()
    data = io.BytesIO()
    Image.new("RGB", (37, 21)).save(data, "PNG")
    bare = {**truth_of([Row(1, "level_0", [])])[0], "image": {"bytes": data.getvalue(), "path": None}}
    assert bd.explain("pbench", bare, []).picture.size == (37, 21)


def test_a_faulty_row_says_so() -> None:
    row = truth_of([Row(1, "level_0", [line((0, 5))])])[0]
    with pytest.raises(bd.FaultError, match="level_0/1"):
        bd.explain("pbench", row, [{"size": [1, 100], "counts": "d0n0bQ"}])
    with pytest.raises(bd.FaultError, match="level_0/1"):
        bd.explain("pbench", row, None)


def test_another_rows_prediction_is_refused() -> None:
    row = {**truth_of([Row(1, "level_0", [line((0, 5))])])[0], "key": "level_0/1"}
    mask = encode(line((0, 5)))
    for own in ({"key": "level_0/1"}, {"id": 1}, {"id": 1, "key": None}, {}):
        assert bd.explain("pbench", row, {**own, "pred_masks": [mask]}).facts["score"] == 1
    with pytest.raises(bd.BenchError, match=r"row level_0/1, got the one for level_1/1"):
        bd.explain("pbench", row, {"key": "level_1/1", "pred_masks": [mask]})
    with pytest.raises(bd.BenchError, match=r"row 1, got the one for 2"):
        bd.explain("pbench", row, {"id": 2, "pred_masks": [mask]})


@pytest.mark.parametrize("benchmark", ["pbench", "pvsg"])
def test_a_rows_own_prediction_is_taken_of_all(benchmark: str, shared: Path) -> None:
    data, given = shared / "data", {"pbench": "predictions_a/pbench.jsonl", "pvsg": "pvsg_mini/predictions"}
    truth = load_dataset(benchmark, data_dir=str(data / f"{benchmark}_mini"), split="test")
    answers = bd.read_predictions(benchmark, data / given[benchmark])
    name = "id" if benchmark == "pbench" else "key"
    by_name = {row[name]: row for row in answers}
    for row in truth.select(range(min(len(truth), 3))):
        assert bd.explain(benchmark, row, answers).text == bd.explain(benchmark, row, by_name[row[name]]).text
    with pytest.raises(bd.FaultError, match=f"{truth[0]['key']}: none of the predictions is for this row"):
        bd.explain(benchmark, truth[0], answers.filter(lambda row: row[name] != truth[0][name]))


def test_a_prediction_whose_truth_went_to_another() -> None:
    row = truth_of([Row(1, "level_0", [line((0, 30)), line((50, 60))])])[0]
    found = bd.explain("pbench", row, list(map(encode, [line((0, 30)), line((20, 40))])))
    near = iou(line((20, 40)), line((0, 30)))
    assert found.facts["predictions"][1]["nearest"] == [0, pytest.approx(near)]
    assert (
        f"no ground truth left for it; ground truth 0, which it overlaps most (IoU {near:.4f}), went to another"
        " prediction\n"
        "  without a prediction: ground truth 1\n"
    ) in str(found)
