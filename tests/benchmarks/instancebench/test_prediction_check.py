"""The check of InstanceBench predictions tells everything that is wrong, and what is odd."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset, load_dataset

import bench_datasets  # noqa: F401  (registers the builder)
from bench_datasets.faults import BenchError
from bench_datasets.predictions import CheckReport, check, read_predictions

from ...support.dense_masks import encode

MASK, SMALL = encode(np.eye(4, dtype=bool)), encode(np.eye(2, dtype=bool))
EMPTY = encode(np.zeros((4, 4), bool))


def truth(*sizes: tuple[str, int]) -> Dataset:
    rows = [
        {
            "key": name,
            "height": side,
            "width": 4,
            "candidates": [{"instance_id": "34"}, {"instance_id": "35"}],
            "expressions": [{"expression_id": f"{name}-{i}"} for i in range(2)],
        }
        for name, side in sizes
    ]
    return Dataset.from_list(rows)


def report(tmp_path: Path, *lines: dict[str, Any], against: Dataset | None = None) -> CheckReport:
    path = tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return check("instancebench", path, against)


def counts(groups: Any) -> dict[str, int]:
    return {group.code: group.count for group in groups}


def test_sound_predictions(tmp_path: Path) -> None:
    lines = [{"expression_id": f"a-{i}", "mask": MASK} for i in range(2)]
    found = report(tmp_path, *lines, against=truth(("a", 4)))
    assert (found.ok, found.rows, found.masks, found.errors, found.warnings) == (True, 2, 2, (), ())


def test_everything_at_once(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        {"expression_id": "a-0", "mask": MASK},
        {"expression_id": "a-0", "mask": MASK},
        {"expression_id": "a-1", "mask": SMALL},
        {"expression_id": "b-0", "mask": {"size": [4, 4], "counts": "zz"}},
        {"expression_id": "b-1", "mask": None},
        {"expression_id": "z-0", "mask": MASK},
        {"expression_id": None, "mask": MASK},
        {"expression_id": "c-0", "mask": EMPTY, "condition": "mine", "candidate_id": "99"},
        {"expression_id": "c-0", "box": [1, 1, 9, 1]},
        {"expression_id": "d-0", "box": [1, 1, -1, 1]},
        against=truth(("a", 4), ("b", 4), ("c", 4), ("d", 4)),
    )
    assert not found.ok
    assert counts(found.errors) == {
        "unknown_row": 2,
        "missing_prediction": 2,
        "duplicate_prediction": 1,
        "size_mismatch": 1,
        "malformed_mask": 1,
        "bad_box": 1,
    }
    assert counts(found.warnings) == {
        "empty_mask": 1,
        "mixed_answers": 1,
        "no_answer": 1,
        "outside_image": 1,
        "unknown_candidate": 1,
        "unknown_condition": 1,
    }
    assert found.masks == 7
    examples = {group.code: group.examples[0] for group in (*found.errors, *found.warnings)}
    assert examples["size_mismatch"].key == "a-1"
    assert examples["size_mismatch"].text == "expected a mask of 4 x 4, found 2 x 2"
    assert "'99'; the candidates are 34, 35" in examples["unknown_candidate"].text
    assert json.loads(found.to_json())["ok"] is False


def test_without_truth_only_what_the_file_says(tmp_path: Path) -> None:
    lines = [{"expression_id": "a", "mask": MASK}] * 2 + [{"expression_id": 1.5, "mask": None}]
    assert counts(report(tmp_path, *lines).errors) == {"duplicate_prediction": 1, "unknown_row": 1}


def test_boxes_that_are_fractions(tmp_path: Path) -> None:
    lines = [{"expression_id": f"a-{i}", "box": [0.1, 0.2, 0.3, 0.4]} for i in range(2)]
    found = report(tmp_path, *lines, against=truth(("a", 4)))
    assert found.ok
    assert counts(found.warnings) == {"small_box": 2}


def test_truth_one_row_an_expression(tmp_path: Path) -> None:
    rows = Dataset.from_dict({"expression_id": ["a-0", "a-1"], "height": [4, 3], "width": [4, 4]})
    lines = [{"expression_id": f"a-{i}", "mask": MASK} for i in range(2)]
    assert counts(report(tmp_path, *lines, against=rows).errors) == {"size_mismatch": 1}
    with pytest.raises(BenchError, match="expected a column expressions"):
        report(tmp_path, *lines, against=rows.rename_column("expression_id", "x"))


def test_truth_without_rows(tmp_path: Path) -> None:
    found = report(tmp_path, {"expression_id": "a", "mask": MASK}, against=truth(("a", 4)).select([]))
    assert counts(found.errors) == {"unknown_row": 1}


def test_the_mini_data(shared: Path) -> None:
    rows = load_dataset("instancebench", data_dir=str(shared / "data/instancebench_mini"), split="test")
    read = read_predictions("instancebench", shared / "data/predictions_a/instancebench.jsonl")
    found = check("instancebench", read, rows)
    assert (found.ok, found.rows, found.masks, counts(found.warnings)) == (True, 25, 25, {"empty_mask": 2})
    part = check("instancebench", read.select(range(1, 25)), rows)
    assert counts(part.errors) == {"missing_prediction": 1}
