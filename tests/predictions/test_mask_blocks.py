"""Blocks of JSON Lines parsed at once give what the careful reader gives line by line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bench_datasets import read_predictions
from bench_datasets.faults import BenchError
from bench_datasets.masks import using_engine
from bench_datasets.predictions import json_records, mask_blocks, mask_lines
from bench_datasets.predictions.files import locate
from bench_datasets.predictions.mask_lines import read_unvalidated

RLE = {"size": [2, 3], "counts": "15"}


def line(**fields: Any) -> str:
    return json.dumps({"id": 7, "masks": [RLE, RLE], **fields})


ORDINARY = [
    line(), line(id=-3), line(masks=[]), line(scores=[0.5, 1]), line(scores=None), line(masks=[], scores=[]),
    line(split="level_0"), line(key="level_1/5"), line(split=None),
]  # fmt: skip
ODD = [
    "", "   ", "[]", "{}", "null", '{"id": 7', line() + line(), line() + " ", " " + line(), line() + ",",
    '{"id": 1, "id": 2, "masks": []}', '{"id": 1, "masks": [{"size": [2, 3], "size": [3, 2], "counts": "15"}]}',
    '{"id": 1,\n"masks": []}', line(id="7"), line(id=7.0), line(id=None), line(id=True), line(id=2**63), line(id=1.5),
    line(masks=None), line(masks={}), line(masks=[None]), line(masks=[{"size": [2, 3], "counts": [1, 5]}]),
    line(masks=[{"size": [2, 3], "counts": "16"}]), line(masks=[{"size": [3, 2], "counts": "15"}]),
    line(masks=[{"size": [2, 3], "counts": ""}]), line(masks=[{"size": [2], "counts": "15"}]),
    line(masks=[{"size": [2, 3, 1], "counts": "15"}]), line(masks=[{"size": [2.0, 3], "counts": "15"}]),
    line(masks=[{"size": [0, 3], "counts": "15"}]), line(masks=[{"size": [2**31, 2**31], "counts": "15"}]),
    line(masks=[{"size": [2, 3], "counts": "1\u00e9"}]), line(masks=[{"size": [2, 3], "counts": "1\x005"}]),
    line(masks=[{"size": None, "counts": "15"}]), line(masks=[{"size": [2, 3], "counts": None}]),
    line(masks=[{"counts": "15"}]), line(masks=[{"size": [2, 3]}]), line(masks=[[1, 1, 2, 1, 2, 2]]),
    line(masks=[{**RLE, "area": 3}]), line(scores=[0.5]), line(scores=[0.5, None]), line(scores=[0.5, float("nan")]),
    line(scores=[1e300, 1]), line(scores="0.5"), line(scores=[True, 1]), line(key=""), line(key=7), line(split=""),
    line(split=3), line(level="level_2"), line(pred_masks=[]), line(expression="a dog"), line(note={"a": 1}),
    line(note=[[1]]), line(image_id=3), line(orig_img_h=2, orig_img_w=3), line(height=2, width=3),
    line(masks=[[1, 1, 2, 1, 2, 2]], height=2, width=3), line(pred_centers=[[0.1, 0.2], [0.3, 0.4]]),
    line(expression_id="a", mask=RLE), line(tubes=[]), line(count=2, expression="a"),
    '{"id": 7, "masks": [], "scores": [1e400]}', '{"id": 07, "masks": []}', '{"id": 7, "masks": [],}',
    '{"id": 7, "masks": "[]"}', '{"id": 7, "note": "\\ud800", "masks": []}', '{"7": []}', '{"level_0/7": [], "8": []}',
    '{"instances": [], "id": 7}', '{"id": 7, "masks": [], "note": ' + "[" * 3000 + "]" * 3000 + "}",
    '{"id": 7, "masks": ' + "[" * 100000 + "]" * 100000 + "}",
]  # fmt: skip


def outcome(path: Path) -> Any:
    try:
        return read_predictions("pbench", path).to_list()
    except BenchError as error:
        return str(error)


def careful(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(mask_blocks.BlockParser, "parse", lambda self, block: None)
        return outcome(path)


@pytest.mark.parametrize("odd", range(len(ODD)))
def test_block_with_unusual_line_equals_careful_reader(
    odd: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_records, "_BLOCK", 64)  # a block is a line or two
    for place, name in ((0, "p.jsonl"), (2, "p.jsonl"), (4, "p.jsonl"), (1, "level_0.jsonl"), (0, "dense.jsonl")):
        lines = [line(id=k) for k in range(4)]
        lines.insert(place, ODD[odd])
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        found, expected = outcome(path), careful(path, monkeypatch)
        assert found == expected


@pytest.mark.parametrize("seed", range(40))
def test_random_files_read_as_by_careful_reader(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(json_records, "_BLOCK", draw.choice([1, 100, 400, 1 << 20]))
    path = tmp_path / draw.choice(["p.jsonl", "level_0.jsonl", "7.json"])
    lines = [draw.choice(ODD if draw.random() < 0.1 else ORDINARY) for _ in range(draw.randrange(1, 30))]
    end = draw.choice(["", "\n", "\n\n", "\r\n"])
    content = draw.choice(["\n", "\n", "\r\n"]).join(lines).encode() + end.encode()
    path.write_bytes(content[: draw.choice([len(content), len(content), draw.randrange(len(content) + 1)])])
    assert outcome(path) == careful(path, monkeypatch)


def test_text_that_is_no_utf8_in_ignored_field_is_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(line(note="a").encode() + b"\n" + line(note="e").encode().replace(b'"e"', b'"\xff"') + b"\n")
    with pytest.raises(BenchError, match=r"p\.jsonl:2: expected UTF-8 text"):
        read_predictions("pbench", path)


def test_ordinary_lines_are_parsed_as_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(line(id=k, note="text", scores=[0.5, 1]) for k in range(5)))
    expected = careful(path, monkeypatch)
    monkeypatch.setattr(mask_lines, "to_row", lambda *args: pytest.fail("parsed line by line"))
    assert outcome(path) == expected
    assert len(expected) == 5


def test_unvalidated_blocks_keep_invalid_masks_and_decode_none(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    bad = {"size": [2, 3], "counts": "16"}
    path.write_text(line(id=1) + "\n" + line(id=2, masks=[RLE, bad]) + "\n")
    with using_engine("pycocotools"):
        (batch,) = read_unvalidated(locate(path))
    assert batch.column("pred_masks").to_pylist() == [[RLE, RLE], [RLE, bad]]
    assert batch.column("pred_faults").to_pylist() == [[], []]
    (fault,) = read_predictions("pbench", path)[1]["pred_faults"]
    assert fault["code"] == "malformed_mask"
