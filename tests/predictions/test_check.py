"""The check tells everything that is wrong, and what is odd."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, Value, concatenate_datasets, load_dataset

import bench_datasets  # noqa: F401  (registers the builder)
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.faults import BenchError, Fault
from bench_datasets.predictions import CheckReport, FaultGroup, check, read_predictions
from bench_datasets.predictions.mask_rows import FEATURES

from ..support.dense_masks import encode

MASK = encode(np.eye(4, dtype=bool))
OTHER = encode(np.eye(4, dtype=bool)[::-1])
SMALL = encode(np.eye(2, dtype=bool))
EMPTY = encode(np.zeros((4, 4), bool))


def truth(*ids: int) -> Dataset:
    features = Features(
        {
            "key": Value("string"),
            "id": Value("int64"),
            "level": ClassLabel(names=list(PBENCH_LEVELS)),
            "masks": FEATURES["pred_masks"],
            "height": Value("int32"),
            "width": Value("int32"),
        }
    )
    rows = [
        {"key": f"level_1/{i}", "id": i, "level": 1, "masks": [MASK] if i else [], "height": 4 if i else None}
        | {"width": 4 if i else None}
        for i in ids
    ]
    return Dataset.from_list(rows, features=features)


def report(tmp_path: Path, *lines: dict[str, Any], against: Dataset | None = None) -> CheckReport:
    path = tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return check("pbench", path, against)


def counts(groups: Any) -> dict[str, int]:
    return {group.code: group.count for group in groups}


def test_sound_predictions(tmp_path: Path) -> None:
    found = report(
        tmp_path, {"id": 1, "masks": [MASK], "scores": [0.5]}, {"id": 2, "masks": [MASK]}, against=truth(1, 2)
    )
    assert (found.ok, found.rows, found.masks, found.errors, found.warnings) == (True, 2, 2, (), ())
    assert str(found) == "pbench: 2 predictions, 2 masks: ok"


def test_everything_at_once(tmp_path: Path) -> None:
    centre = {"xy": {"x": 0.5, "y": 0.5}, "hw": {"h": 0.5, "w": 0.5}}
    found = report(
        tmp_path,
        {"id": 1, "masks": [MASK, {"size": [4, 4], "counts": "zz"}, None], "scores": [0.5, 2.0, "x"]},
        {"id": 1, "masks": []},
        {"id": 9, "masks": [MASK]},
        {"id": "nine", "masks": [MASK]},
        {"id": 2, "masks": [SMALL, MASK, OTHER, MASK, EMPTY]},
        {"id": 3, "instances": [{**centre, "mask_rle": MASK}, {**centre, "mask_rle": OTHER}, {"mask_rle": MASK}]},
        {"id": 4, "instances": [{"xy": {"x": 1.5, "y": 0.5}, "hw": {"h": 1, "w": 1}, "mask_rle": MASK}]},
        {"id": 5, "masks": []},
        {"id": 0, "masks": [SMALL]},
        against=truth(0, 1, 2, 3, 4, 5, 6),
    )
    assert not found.ok
    assert counts(found.errors) == {
        "malformed_mask": 2,
        "bad_box": 2,
        "bad_score": 1,
        "duplicate_prediction": 1,
        "unknown_row": 2,
        "missing_prediction": 1,
    }
    assert counts(found.warnings) == {
        "no_masks": 2,
        "resized": 1,
        "mixed_sizes": 1,
        "empty_mask": 1,
        "repeated_mask": 2,
        "repeated_instance": 1,
        "outside_image": 1,
        "score_range": 1,
    }
    told = {group.code: group.examples for group in (*found.errors, *found.warnings)}
    assert [fault.key for fault in told["malformed_mask"]] == ["level_1/1", "level_1/1"]
    assert told["malformed_mask"][0].text.startswith("mask 1: ")
    assert told["missing_prediction"][0].key == "level_1/6"
    assert told["resized"][0].key == "level_1/2"
    assert told["resized"][0].text == "a mask of 2 x 2, the truth's are 4 x 4"
    assert told["repeated_mask"][0].text == "masks 1 and 3 are the same"
    assert told["repeated_instance"][0].text == "instances 0 and 1 have the same centre and size"
    assert told["empty_mask"][0].text == "mask 4: no pixel of 4 x 4"


def test_without_the_truth(tmp_path: Path) -> None:
    found = report(tmp_path, {"id": 1, "masks": [MASK]}, {"id": 1, "masks": [SMALL]}, {"id": "x", "masks": []})
    assert counts(found.errors) == {"duplicate_prediction": 1, "unknown_row": 1}
    assert counts(found.warnings) == {"no_masks": 1}


def test_far_too_many_masks(tmp_path: Path) -> None:
    masks = [encode(np.arange(900).reshape(30, 30) == i) for i in range(601)]
    lines = ({"id": 1, "masks": masks[:21]}, {"id": 2, "masks": masks}, {"id": 3, "masks": masks[:10]})
    assert counts(report(tmp_path, *lines, against=truth(1, 2, 3)).warnings)["many_masks"] == 2
    assert counts(report(tmp_path, *lines).warnings)["many_masks"] == 1


def test_examples_are_few_and_counts_are_all(tmp_path: Path) -> None:
    found = report(tmp_path, *({"id": i, "masks": [None, None]} for i in range(700)))
    (group,) = found.errors
    assert (group.code, group.count, len(group.examples)) == ("malformed_mask", 1400, 5)
    assert [fault.key for fault in group.examples] == ["0", "0", "1", "1", "2"]
    assert "and 1,395 more" in str(found)


def test_the_report_as_text_json_and_html(tmp_path: Path) -> None:
    found = report(tmp_path, {"key": "<b>", "masks": [None]}, {"id": 2, "masks": []})
    assert "error malformed_mask: 1" in str(found)
    assert "    <b>: mask 0: the mask is null" in str(found)
    data = json.loads(found.to_json())
    assert (data["ok"], data["rows"], data["masks"]) == (False, 2, 1)
    assert data["errors"][0]["examples"] == [{"key": "<b>", "text": "mask 0: the mask is null"}]
    assert data["warnings"][0]["code"] == "no_masks"
    page = found._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>:" not in page


def test_another_benchmark_is_an_error_in_the_report(tmp_path: Path) -> None:
    found = report(tmp_path, {"expression_id": "x", "mask": None})
    assert counts(found.errors) == {"wrong_benchmark": 1}
    assert not found.ok


def test_what_cannot_be_read_at_all(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="nothing there"):
        check("pbench", tmp_path / "nowhere")
    with pytest.raises(BenchError, match="expected columns id and masks"):
        report(tmp_path, {"id": 1, "masks": []}, against=Dataset.from_dict({"x": [1]}))


def test_a_dataset_is_validated_anew() -> None:
    row: dict[str, Any] = dict.fromkeys(FEATURES)
    row |= {"id": 1, "pred_masks": [{"size": [4, 4], "counts": "b'04'"}], "pred_faults": []}
    found = check("pbench", Dataset.from_list([row], features=FEATURES))
    assert counts(found.errors) == {"malformed_mask": 1}


def test_the_real_files(shared: Path) -> None:
    predictions = shared / "data/predictions_a/pbench.jsonl"
    folder = shared / "data/pbench_mini/data"
    parts = load_dataset("parquet", data_files={level: str(folder / f"{level}-*.parquet") for level in PBENCH_LEVELS})
    raw = check("pbench", predictions, parts["level_0"])
    assert counts(raw.errors) == {"unknown_row": 17 - len(parts["level_0"])}
    labelled = [
        part.select_columns(["id", "masks"]).add_column("level", [level] * len(part)) for level, part in parts.items()
    ]
    whole = concatenate_datasets(labelled)
    found = check("pbench", read_predictions("pbench", predictions), whole)
    assert found.ok
    assert (found.rows, found.masks) == (17, sum(map(len, read_predictions("pbench", predictions)["pred_masks"])))
    assert set(counts(found.warnings)) == {"no_masks", "empty_mask"}


def test_the_builders_truth(shared: Path) -> None:
    whole = load_dataset("pbench", split="test", data_dir=str(shared / "data/pbench_mini"))
    found = check("pbench", shared / "data/predictions_a/pbench.jsonl", whole)
    assert (found.ok, found.rows) == (True, len(whole))
    assert all(fault.key in whole["key"][:] for group in found.warnings for fault in group.examples)


def test_check_equal_messages_are_grouped() -> None:
    group = FaultGroup(
        "missing_prediction", 3, (Fault("m", "a", "none; write one"), Fault("m", "b", "no line; write one")), "advice"
    )
    assert group.lines() == [("a", "none"), ("b", "no line"), ("", "and 1 more"), ("", "write one")]
    alone = FaultGroup("m", 1, (Fault("m", "a", "none; write one"),), "advice")
    assert alone.lines() == [("a", "none; write one")]
    assert str(CheckReport("pbench", 1, 0, (group,))).count("write one") == 1


def test_rows_are_called_by_key_where_the_truth_is_known() -> None:
    wrong = Dataset.from_list([{"id": i, "masks": ["x"]} for i in (1, 2)])
    (group,) = check("pbench", wrong, truth(1, 2)).errors
    assert group.code == "malformed_mask"
    assert [fault.key for fault in group.examples] == ["level_1/1", "level_1/2"]
    assert check("pbench", wrong).errors[0].examples[0].key == "1"
