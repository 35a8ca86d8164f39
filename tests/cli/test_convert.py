"""`convert refcoco`: what it writes is scored, under the name that it was given."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SQUARE = [[1.0, 1.0, 6.0, 1.0, 6.0, 6.0, 1.0, 6.0]]


@pytest.mark.parametrize(
    ("name", "split"),
    [("test", None), ("validation", "validation"), ("validation", "val"), ("val", "val"), ("val", "validation"),
     ("train", "train")],
)  # fmt: skip
def test_what_is_written_is_scored(run: Callable[..., Any], tmp_path: Path, name: str, split: str | None) -> None:
    coco = {
        "images": [{"id": 1, "file_name": "1.jpg", "height": 10, "width": 20}],
        "categories": [{"id": 3, "name": "car"}],
        "annotations": [{"id": 11, "image_id": 1, "category_id": 3, "segmentation": SQUARE, "iscrowd": 0}],
    }
    said = [{"sent_id": 70 + k, "sent": text, "raw": text} for k, text in enumerate(("left car", "the red car"))]
    refs = [{"ref_id": 7, "ann_id": 11, "image_id": 1, "category_id": 3, "split": "val", "sentences": said}]
    for file, content in (("instances.json", coco), ("refs.json", refs)):
        (tmp_path / file).write_text(json.dumps(content))
    made = tmp_path / "data" / "deep" / f"{name}.jsonl"
    where = ["--instances", tmp_path / "instances.json", "--refs", tmp_path / "refs.json", "--out", made]
    assert run("convert", "refcoco", *where, "--split", "val").exit_code == 0
    answers = tmp_path / "answers.jsonl"
    answers.write_text("\n".join(json.dumps({"expression_id": f"refcoco-7-{k}", "mask": None}) for k in (70, 71)))
    given = ["--data", made.parent, "--predictions", answers, *(["--split", split] if split else []), "--draws", 0]
    done = run("score", "instancebench", *given, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["dataset"]["rows"]["scored"] == 1


def test_a_split_that_is_none(run: Callable[..., Any], tmp_path: Path) -> None:
    done = run("score", "instancebench", "--predictions", tmp_path / "p.jsonl", "--split", "tset")
    assert done.exit_code == 2
    said = " ".join(done.stderr.replace("│", " ").split())
    assert "'tset' is none of test, train, validation, val." in said
