"""Blocks of InstanceBench's lines parsed at once give what the careful reader gives line by line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bench_datasets import read_predictions
from bench_datasets.benchmarks.instancebench import prediction_blocks, prediction_lines
from bench_datasets.faults import BenchError
from bench_datasets.predictions import json_records
from bench_datasets.predictions.files import locate

RLE = {"size": [2, 3], "counts": "15"}


def line(*left_out: str, **fields: Any) -> str:
    usual = {"expression_id": "a-0", "mask": RLE, "run": "0", "condition": "original"}
    return json.dumps({name: value for name, value in {**usual, **fields}.items() if name not in left_out})


ORDINARY = [
    line(), line(mask=None), line(run=None), line(run=3), line(run=-3), line(condition=None), line(expression_id=5),
    line(condition="Category-Only"), line(condition="my own"), line(condition="text swap"), line(expression_id="ä"),
    line(condition=" original"), line(mask={"size": [3, 2], "counts": "06"}),
]  # fmt: skip
ODD = [
    "", "   ", "[]", "{}", "null", '{"expression_id": "a"', line() + line(), line() + " ", " " + line(), line() + ",",
    '{"expression_id": "a", "expression_id": "b", "mask": null, "run": "0", "condition": "original"}',
    '{"expression_id": "a", "mask": {"size": [2, 3], "size": [3, 2], "counts": "15"}, "run": "0", "condition": "x"}',
    line(expression_id=""), line(expression_id=None), line(expression_id=True), line(expression_id=7.0),
    line(expression_id=2**63), line(expression_id=2**70), line(expression_id="\ud800"), line(run=""), line(run=2**63),
    line(run=1.0), line(run=1.5), line(run=True), line(run=[]), line(condition=""), line(condition=3), line(run='a"b'),
    line(expression_id='a"b'), line(mask=[]), line(mask=[None]), line(mask="x"), line(mask={}),
    line(mask=json.dumps(RLE)),
    line(mask={"size": [2, 3], "counts": [1, 5]}), line(mask={"size": [2, 3], "counts": "16"}),
    line(mask={"size": [2, 3], "counts": ""}), line(mask={"size": [2], "counts": "15"}),
    line(mask={"size": [2.0, 3], "counts": "15"}), line(mask={"size": [0, 3], "counts": "15"}),
    line(mask={"size": [2**31, 2**31], "counts": "15"}), line(mask={"size": [2, 3], "counts": "1\u00e9"}),
    line(mask={"size": [2, 3], "counts": None}), line(mask={"counts": "15"}), line(mask={**RLE, "area": 3}),
    line(mask=[[0, 0, 0, 2, 2, 2]], height=2, width=3), line(mask=[[0, 0, 0, 2, 2, 2]], size=[2, 3]),
    line("mask"), line("mask", no_target=True), line(no_target=True), line(pred_nt=False),
    line(mask=None, no_target=True),
    line("mask", segmentation=RLE), line(segmentation=RLE), line("mask", "expression_id", segmentation=RLE, image_id=4),
    line(box=[0, 0, 1, 1]), line(box=[0, 0, 1]), line(box=[0, 0, -1, 1]), line(box=[0, 0, 1, None]), line(box="[1]"),
    line(box={"x": 1}), line(box=[0, 0, 1, 1e300]), line("mask", box=[1, 2, 3, 4]), line("mask", candidate_id="3"),
    line(candidate_id=3), line(candidate_id=""), line(candidate_id=1.5), line("run"), line("run", "condition"),
    line("expression_id", ref_id=3, sent_id=4), line("expression_id"), line(note="a dog"), line(note={"a": 1}),
    line(note=[1]), line(image_id=3), line(height=2, width=3), line(masks=[RLE]), line(tubes=[]), line(score=0.5),
    line("mask", bbox=[0, 0, 1, 1]), line(candidates=[], expressions=[]), line(video_id="v"), line(key="a"),
    '{"a-0": null, "a-1": {"size": [2, 3], "counts": "15"}}', '{"expression_id": "a", "mask": null,}',
    '{"expression_id": 01, "mask": null}', '{"expression_id": "a", "mask": null, "box": [0, 0, 1, 1e400]}',
    '{"expression_id": "a", "mask": ' + "[" * 100000 + "]" * 100000 + "}",
    '{"expression_id": "a", "mask": null, "note": ' + "[" * 3000 + "]" * 3000 + "}",
]  # fmt: skip


def outcome(path: Path) -> Any:
    try:
        return read_predictions("instancebench", path).to_list()
    except BenchError as error:
        return str(error)


def careful(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(prediction_blocks.BlockParser, "parse", lambda self, block: None)
        return outcome(path)


@pytest.mark.parametrize("odd", range(len(ODD)))
def test_block_with_unusual_line_equals_careful_reader(
    odd: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_records, "_BLOCK", 80)  # a block is a line or two
    path = tmp_path / "p.jsonl"
    for place in (0, 2, 4):
        lines = [line(expression_id=f"b-{k}") for k in range(4)]
        lines.insert(place, ODD[odd])
        path.write_text("\n".join(lines) + "\n")
        assert outcome(path) == careful(path, monkeypatch)
    path.write_text("\n".join([ODD[odd]] * 3) + "\n")  # its own fields are the file's
    assert outcome(path) == careful(path, monkeypatch)


@pytest.mark.parametrize("seed", range(40))
def test_random_files_read_as_by_careful_reader(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(json_records, "_BLOCK", draw.choice([1, 100, 400, 1 << 20]))
    folder = draw.random() < 0.3
    path = tmp_path / ("own" if folder else ".") / draw.choice(["p.jsonl", "7.json"])
    path.parent.mkdir(exist_ok=True)
    lines = [draw.choice(ODD if draw.random() < 0.1 else ORDINARY) for _ in range(draw.randrange(1, 30))]
    end = draw.choice(["", "\n", "\n\n", "\r\n"])
    content = draw.choice(["\n", "\n", "\r\n"]).join(lines).encode() + end.encode()
    path.write_bytes(content[: draw.choice([len(content), len(content), draw.randrange(len(content) + 1)])])
    where = path.parent if folder else path
    assert outcome(where) == careful(where, monkeypatch)


def test_ordinary_lines_are_parsed_as_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(ORDINARY))
    expected = careful(path, monkeypatch)
    monkeypatch.setattr(prediction_lines, "to_row", lambda *args: pytest.fail("parsed line by line"))
    assert outcome(path) == expected
    assert len(expected) == len(ORDINARY)


def test_unvalidated_blocks_keep_invalid_masks(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    bad = {"size": [2, 3], "counts": "16"}
    path.write_text(line() + "\n" + line(expression_id="a-1", mask=bad) + "\n")
    (batch,) = prediction_lines.read_unvalidated(locate(path))
    assert batch.column("mask").to_pylist() == [RLE, bad]
    (fault,) = read_predictions("instancebench", path)[1]["pred_faults"]
    assert fault["code"] == "malformed_mask"
