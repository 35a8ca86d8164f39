"""Blocks of COCO results parsed at once give what the careful reader gives result by result."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bench_datasets import read_predictions
from bench_datasets.faults import BenchError
from bench_datasets.predictions import json_records
from bench_datasets.predictions.formats import coco

RLE = {"size": [2, 3], "counts": "15"}


def result(**fields: Any) -> str:
    return json.dumps({"image_id": 7, "category_id": 1, "segmentation": RLE, "score": 0.5, **fields})


ORDINARY = [
    result(), result(image_id=-3), result(image_id=8), result(score=1), result(image_id=9), result(score=1e-9),
]  # fmt: skip
ODD = [
    result(image_id="7"), result(image_id=None), result(image_id=7.0), result(image_id=2**63), result(id=5),
    result(score=None), result(score=float("nan")), result(score="0.5"), result(segmentation=None),
    result(segmentation=[[1, 1, 2, 1, 2, 2]]), result(segmentation={"size": [2, 3], "counts": [1, 5]}),
    result(segmentation={"size": [2, 3], "counts": "16"}), result(segmentation={"size": [0, 3], "counts": "15"}),
    result(segmentation={**RLE, "x": 1}), result(segmentation={"size": [2, 3], "counts": "1}, {5"}),
    result(note="}, {"), result(note="}{"), result(note='say "no"'), result(points=[{"x": 1}, {"x": 2}]),
    result(bbox=[0, 0, 1, 1]), result(split="level_0"), result(split=""), result(key="level_0/7"), result(key=""),
    result(level="level_1"), result(image={"image_id": 4}), result(category_id="dog"),
    '{"image_id": 1, "image_id": 2, "category_id": 1, "segmentation": {"size": [2, 3], "counts": "15"}, "score": 1}',
    '{"image_id": 1, "category_id": 1, "segmentation": {"size": [2, 3], "size": [3, 2], "counts": "15"}, "score": 1}',
    '{"category_id": 1, "segmentation": {"size": [2, 3], "counts": "15"}, "score": 1}', "{}", "3", "[]", "null",
    '{"image_id": 7, "category_id": 1, "segmentation": {"size": [2, 3], "counts": "15"}, "score": 1,}',
    '{"image_id": 7, "category_id": 1, "score": 0.5}', '{"image_id": 7, "bbox": [0, 0, 1, 1], "score": 0.5}',
    '{"image_id": 7, "note": ' + "[" * 3000 + "]" * 3000 + "}",
]  # fmt: skip
FORMS = {
    "array": lambda items: "[" + ", ".join(items) + "]",
    "tight": lambda items: " [" + ",".join(items) + "]\n",
    "lines in array": lambda items: "[\n" + ",\n".join(items) + "\n]\n",
    "indented": lambda items: "[\n  " + ",\n  ".join(item.replace(", ", ",\n    ") for item in items) + "\n]",
    "lines": lambda items: "\n".join(items) + "\n",
    "cut": lambda items: "[" + ", ".join(items),
    "rest": lambda items: "[" + ", ".join(items) + "] x",
    "comma": lambda items: "[" + ", ".join(items) + ",]",
}


def outcome(path: Path) -> Any:
    try:
        return read_predictions("pbench", path, format="coco").to_list()
    except BenchError as error:
        return str(error)


def careful(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(coco._Blocks, "read", lambda self, file: (0, False))
        return outcome(path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("odd", range(len(ODD)))
def test_block_with_unusual_result_equals_careful_reader(
    odd: int, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_records, "_BLOCK", 150)  # a block is a result or two
    for place in (0, 3, 5):
        items = [result(image_id=k % 3) for k in range(5)]
        items.insert(place, ODD[odd])
        path = tmp_path / "results.json"
        path.write_text(FORMS[form](items))
        assert outcome(path) == careful(path, monkeypatch)


@pytest.mark.parametrize("seed", range(30))
def test_random_results_read_as_by_careful_reader(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(json_records, "_BLOCK", draw.choice([1, 200, 1000, 1 << 20]))
    items = [draw.choice(ODD if draw.random() < 0.05 else ORDINARY) for _ in range(draw.randrange(1, 60))]
    text = FORMS[draw.choice(list(FORMS))](items)
    path = tmp_path / draw.choice(["results.json", "level_0.json"])
    path.write_text(text[: draw.choice([len(text), len(text), draw.randrange(len(text) + 1)])])
    assert outcome(path) == careful(path, monkeypatch)


def test_ordinary_results_are_parsed_as_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results.json"
    path.write_text(FORMS["array"]([result(image_id=k % 4, note="text") for k in range(40)]))
    expected = careful(path, monkeypatch)
    monkeypatch.setattr(coco, "_item", lambda *args: pytest.fail("parsed one by one"))
    assert outcome(path) == expected
    assert [len(row["pred_masks"]) for row in expected] == [10] * 4
