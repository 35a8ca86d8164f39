"""Blocks of PVSG's lines parsed at once give what the careful reader gives line by line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bench_datasets import read_predictions
from bench_datasets.benchmarks.pvsg import prediction_blocks, prediction_lines, prediction_rows
from bench_datasets.faults import BenchError
from bench_datasets.predictions import json_records
from bench_datasets.predictions.files import locate

RLE = {"size": [2, 3], "counts": "15"}
OTHER = {"size": [3, 2], "counts": "06"}
BAD = {"size": [2, 3], "counts": "16"}


def tube(*left_out: str, **fields: Any) -> dict[str, Any]:
    usual = {"tube_id": "1", "category": "adult", "frames": [0, 2], "masks": [RLE, RLE]}
    return {name: value for name, value in {**usual, **fields}.items() if name not in left_out}


def triplet(*left_out: str, **fields: Any) -> dict[str, Any]:
    usual = {"subject_id": "1", "object_id": "2", "predicate": "on", "score": 0.5, "spans": [[0, 4], [6, 6]]}
    return {name: value for name, value in {**usual, **fields}.items() if name not in left_out}


def line(*left_out: str, **fields: Any) -> str:
    usual = {"video_id": "v", "tubes": [tube(), tube(tube_id=2)], "triplets": [triplet(), triplet(score=1)]}
    return json.dumps({name: value for name, value in {**usual, **fields}.items() if name not in left_out})


ORDINARY = [
    line(), line(video_id=7), line(tubes=[]), line(triplets=[]), line(tubes=[], triplets=[]), line(video_id="ä"),
    line(tubes=[tube(category=None)]), line(tubes=[tube(category=3)]), line(tubes=[tube(category=999)]),
    line(tubes=[tube(category="")]), line(tubes=[tube(frames=[], masks=[])]), line(tubes=[tube(masks=[OTHER, OTHER])]),
    line(tubes=[tube(frames=[5, 2**31 - 1])]), line(triplets=[triplet(spans=[])]),
    line(triplets=[triplet(spans=[[3, 3]])]),
    line(triplets=[triplet(predicate=None)]), line(triplets=[triplet(predicate=4, subject_id=1, object_id=-2)]),
    line(triplets=[triplet(subject_id="", predicate="no such")]), line(triplets=[triplet(predicate=10**30)]),
]  # fmt: skip
ODD = [
    "", "   ", "[]", "{}", "null", '{"video_id": "a"', line() + line(), line() + " ", " " + line(), line() + ",",
    line("video_id"), line("tubes"), line("triplets"), line(key="v"), line("video_id", key="v"), line(video_id=""),
    line(video_id=None), line(video_id=True), line(video_id=2**63), line(video_id='a"b'), line(video_id="\ud800"),
    line(tubes=None), line(triplets=None), line(tubes={}), line(triplets={}), line(tubes=[None]), line(triplets=[None]),
    line("tubes", pred_tubes=[tube()]), line(pred_tubes=[]), line("triplets", relations=[triplet()]),
    line(relations=[triplet()]), line(height=2, width=3), line(size=[2, 3]), line(note="text"), line(note={"a": 1}),
    line(tubes=json.dumps([tube()])), line(tubes=[json.dumps(tube())]), line(objects=[], relations=[]),
    *[line(tubes=[tube(), tube(**fields)]) for fields in (
        {"tube_id": "1"}, {"tube_id": 1}, {"tube_id": None}, {"tube_id": ""}, {"tube_id": 2.0}, {"tube_id": True},
        {"tube_id": 2, "frames": [0]}, {"tube_id": 2, "frames": [2, 0]}, {"tube_id": 2, "frames": [0, 0]},
        {"tube_id": 2, "frames": [0, -1]}, {"tube_id": 2, "frames": [0, 2**31]}, {"tube_id": 2, "frames": [0, 2**70]},
        {"tube_id": 2, "frames": [0, 1.0]}, {"tube_id": 2, "frames": [0, "1"]}, {"tube_id": 2, "frames": [0, None]},
        {"tube_id": 2, "frames": None}, {"tube_id": 2, "masks": None}, {"tube_id": 2, "masks": [RLE, OTHER]},
        {"tube_id": 2, "masks": [RLE, BAD]}, {"tube_id": 2, "masks": [OTHER, OTHER]},
        {"tube_id": 2, "masks": [RLE, None]},
        {"tube_id": 2, "frames": [0, 0], "masks": [BAD, RLE]}, {"tube_id": 2, "frames": [0, 0], "masks": [RLE, BAD]},
        {"tube_id": 2, "masks": [RLE, {"size": [2, 3], "counts": "1\u00e9"}]}, {"tube_id": 2, "score": 0.5},
        {"tube_id": 2, "masks": [RLE, {"size": [2, 3], "counts": [1, 5]}]}, {"tube_id": 2, "category": True},
        {"tube_id": 2, "masks": [RLE, {"size": [6, 1], "counts": "15"}]}, {"tube_id": 2, "category": 'a"b'},
        {"tube_id": 2, "masks": [RLE, [[0, 0, 0, 2, 2, 2]]]}, {"tube_id": 2, "category": 3.0},
    )],
    line(tubes=[tube("masks")]), line(tubes=[tube("frames")]), line(tubes=[tube("tube_id")]),
    line(tubes=[tube("category")]),
    *[line(triplets=[triplet(), triplet(**fields)]) for fields in (
        {"score": None}, {"score": "1"}, {"score": float("nan")}, {"score": True}, {"score": 10**400}, {"note": 1},
        {"spans": None}, {"spans": [[0]]}, {"spans": [[4, 0]]}, {"spans": [[-1, 0]]}, {"spans": [[0, 2**31]]},
        {"spans": [[0, 1.0]]}, {"spans": [["0", 1]]}, {"spans": [[0, 1, 2]]}, {"spans": "x"}, {"subject_id": None},
        {"subject_id": 1.0}, {"object_id": []}, {"predicate": 1.5}, {"predicate": True}, {"predicate": 'a"b'},
        {"spans": json.dumps([[0, 1]])}, {"spans": {"a": 1}},
    )],
    line(triplets=[triplet("spans", duration=[[0, 1]])]), line(triplets=[triplet("score")]),
    line(triplets=[triplet("object_id")]), json.dumps({"v": json.loads(line()), "w": {"tubes": []}}),
    line().replace('"masks"', '"frames"', 1), line().replace('"score"', '"predicate"', 1),
    line().replace('"triplets"', '"tubes"', 1), line(note=None), line().replace("0.5", "1e400"),
    '{"video_id": "v", "tubes": ' + "[" * 100000 + "]" * 100000 + ', "triplets": []}',
]  # fmt: skip


def outcome(path: Path) -> Any:
    try:
        return read_predictions("pvsg", path).to_list()
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
    monkeypatch.setattr(json_records, "_BLOCK", 500)  # a block is a line or two
    path = tmp_path / "p.jsonl"
    for place in (0, 2):
        lines = [line(video_id=f"v{k}") for k in range(4)]
        lines.insert(place, ODD[odd])
        path.write_text("\n".join(lines) + "\n")
        assert outcome(path) == careful(path, monkeypatch)
    path.write_text("\n".join([ODD[odd]] * 3) + "\n")  # its own fields are the file's
    assert outcome(path) == careful(path, monkeypatch)


@pytest.mark.parametrize("seed", range(40))
def test_random_files_read_as_by_careful_reader(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(json_records, "_BLOCK", draw.choice([1, 400, 2000, 1 << 20]))
    folder = draw.random() < 0.3
    path = tmp_path / ("own" if folder else ".") / draw.choice(["p.jsonl", "7.json"])
    path.parent.mkdir(exist_ok=True)
    lines = [draw.choice(ODD if draw.random() < 0.1 else ORDINARY) for _ in range(draw.randrange(1, 20))]
    end = draw.choice(["", "\n", "\n\n", "\r\n"])
    content = draw.choice(["\n", "\n", "\r\n"]).join(lines).encode() + end.encode()
    path.write_bytes(content[: draw.choice([len(content), len(content), draw.randrange(len(content) + 1)])])
    where = path.parent if folder else path
    assert outcome(where) == careful(where, monkeypatch)


def test_ordinary_lines_are_parsed_as_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(ORDINARY))
    expected = careful(path, monkeypatch)
    monkeypatch.setattr(prediction_lines, "to_video", lambda *args: pytest.fail("parsed line by line"))
    assert outcome(path) == expected
    assert len(expected) == len(ORDINARY)


def test_video_with_too_much_is_left_to_careful_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(line() + "\n" + line(video_id="w") + "\n")
    first = json.loads(line())
    assert prediction_blocks.BlockParser(first, validate=False).parse(path.read_bytes()) is not None
    for name, most in (("MAX_TUBES", 1), ("MAX_TRIPLETS", 1), ("MAX_VIDEO_MASKS", 3)):
        with monkeypatch.context() as patch:
            patch.setattr(prediction_rows if name == "MAX_VIDEO_MASKS" else prediction_blocks, name, most)
            assert prediction_blocks.BlockParser(first, validate=False).parse(path.read_bytes()) is None


def test_unvalidated_blocks_keep_invalid_masks(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(line() + "\n" + line(tubes=[tube(masks=[RLE, BAD])]) + "\n")
    (batch,) = prediction_lines.read_unvalidated(locate(path))
    assert batch.column("pred_tubes").to_pylist()[1][0]["masks"] == [RLE, BAD]
    (fault,) = read_predictions("pvsg", path)[1]["pred_faults"]
    assert fault["code"] == "malformed_mask"
