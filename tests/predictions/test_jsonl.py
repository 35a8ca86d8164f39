"""JSON Lines and Falcon Perception's lines: every way to write a row gives the same masks."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_datasets.faults import BenchError, FaultError
from bench_datasets.predictions import read_predictions
from bench_datasets.predictions.mask_rows import FEATURES

from ..support.dense_masks import Dense, assert_masks, decode, encode, runs


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


def read_lines(tmp_path: Path, *lines: Any) -> list[dict[str, Any]]:
    return list(read_predictions("pbench", write(tmp_path / "out.jsonl", *lines)))


@pytest.mark.parametrize("way", ["compressed", "runs", "text", "pred_", "array", "pretty array"])
def test_every_way_to_write_masks(tmp_path: Path, rows: dict[int, Dense], way: str) -> None:
    def mask(dense: Any) -> Any:
        if way == "runs":
            return {"size": list(dense.shape), "counts": runs(dense)}
        return json.dumps(encode(dense)) if way == "text" else encode(dense)

    prefix = "pred_" if way == "pred_" else ""
    records = [
        {"id": name, f"{prefix}masks": [mask(dense) for dense in masks], f"{prefix}scores": [0.5] * len(masks)}
        for name, masks in rows.items()
    ]
    path = tmp_path / "out.jsonl"
    if "array" in way:
        path.write_text(json.dumps(records, indent=2 if way == "pretty array" else None))
    else:
        write(path, *records)
    read = read_predictions("pbench", path)
    assert read.features == FEATURES
    assert read["id"][:] == list(rows)
    for row, masks in zip(read, rows.values(), strict=True):
        assert_masks(row["pred_masks"], masks)
        assert row["pred_scores"] == [0.5] * len(masks)
        assert row["pred_centers"] is None
        assert row["pred_faults"] == []


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_small_masks_come_back(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    bits = st.lists(st.booleans(), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    masks = [np.array(data.draw(bits)).reshape(shape) for _ in range(data.draw(st.integers(0, 3)))]
    compressed = data.draw(st.lists(st.booleans(), min_size=len(masks), max_size=len(masks)))
    line = {
        "id": data.draw(st.integers(-(2**63), 2**63 - 1)),
        "masks": [
            encode(mask) if packed else {"size": list(shape), "counts": runs(mask)}
            for mask, packed in zip(masks, compressed, strict=True)
        ],
    }
    (row,) = read_lines(tmp_path_factory.mktemp("any"), line)
    assert row["id"] == line["id"]
    assert row["pred_faults"] == []
    assert_masks(row["pred_masks"], masks)


@pytest.mark.parametrize("size", [{"size": [6, 9]}, {"height": 6, "width": 9}])
def test_polygons_take_the_size_of_the_line(tmp_path: Path, size: dict[str, Any]) -> None:
    square = np.zeros((6, 9), bool)
    square[1:4, 2:7] = True
    other = np.eye(5, dtype=bool)
    polygons = {"id": 1, "masks": [[[2, 1, 7, 1, 7, 4, 2, 4]]], **size}
    first, second, third = read_lines(
        tmp_path, {"id": 0, "masks": [encode(other)]}, polygons, {"id": 2, "masks": [encode(other)]}
    )
    assert_masks(second["pred_masks"], [square])
    assert_masks(first["pred_masks"] + third["pred_masks"], [other, other])


def test_polygons_without_a_size_are_a_fault(tmp_path: Path) -> None:
    (row,) = read_lines(tmp_path, {"id": 1, "masks": [[[2, 1, 7, 1, 7, 4, 2, 4]]]})
    assert row["pred_masks"] == [None]
    assert row["pred_faults"][0]["code"] == "malformed_mask"
    assert row["pred_faults"][0]["text"].startswith("mask 0:")
    assert "height and width" in row["pred_faults"][0]["text"]


@pytest.mark.parametrize(("given_id", "expected"), [(7, 7), ("7", 7), (7.0, 7), ("-3", -3), ("007", 7)])
def test_ids(tmp_path: Path, given_id: Any, expected: int) -> None:
    assert read_lines(tmp_path, {"id": given_id, "masks": []})[0]["id"] == expected


@pytest.mark.parametrize("given_id", ["seven", 7.5, True, [7], 2**63, "9" * 30, "७"])
def test_an_id_that_is_none_is_told_and_the_rest_is_read(tmp_path: Path, given_id: Any) -> None:
    first, second = read_lines(tmp_path, {"id": given_id, "masks": []}, {"id": 8, "masks": []})
    assert (first["id"], first["key"]) == (None, None)
    assert first["pred_faults"][0]["code"] == "unknown_row"
    assert "out.jsonl:1" in first["pred_faults"][0]["text"]
    assert second["id"] == 8


def test_key_and_split(tmp_path: Path) -> None:
    first, second = read_lines(
        tmp_path, {"key": "level_0/7#2", "masks": []}, {"split": "dense", "id": 4, "masks": [], "scores": None}
    )
    assert (first["key"], first["id"], first["split"]) == ("level_0/7#2", None, None)
    assert (second["key"], second["id"], second["split"]) == (None, 4, "dense")


def test_bom_blank_lines_and_crlf(tmp_path: Path, rows: dict[int, Dense]) -> None:
    lines = [json.dumps({"id": name, "masks": [encode(mask) for mask in masks]}) for name, masks in rows.items()]
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"\xef\xbb\xbf\r\n\r\n" + "\r\n \r\n".join(lines).encode())
    assert read_predictions("pbench", path)["id"][:] == list(rows)


def test_gzip(tmp_path: Path, rows: dict[int, Dense]) -> None:
    text = "\ufeff" + "".join(json.dumps({"id": name, "masks": []}) + "\n" for name in rows)
    path = tmp_path / "out.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert read_predictions("pbench", path)["id"][:] == list(rows)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(BenchError, match="whole gzip stream"):
        read_predictions("pbench", path)


def test_a_url(rows: dict[int, Dense]) -> None:
    with fsspec.open("memory://jsonl/out.jsonl", "w") as file:
        file.write("".join(json.dumps({"id": name, "masks": []}) + "\n" for name in rows))
    assert read_predictions("pbench", "memory://jsonl/out.jsonl")["id"][:] == list(rows)


def test_long_arrays_are_read_in_pieces(tmp_path: Path) -> None:
    records = [{"id": i, "masks": [], "note": '[{é\\"' * (300_000 if i == 1 else 3)} for i in range(2000)]
    path = tmp_path / "out.json"
    path.write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
    assert read_predictions("pbench", path)["id"][:] == list(range(2000))


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ("[0.5]", "expected one per mask (2), found 1"),
        ("[0.5, NaN]", "score 1"),
        ("[Infinity, 0.5]", "score 0"),
        ('["0.5", 0.5]', "score 0"),
        ("[true, 0.5]", "score 0"),
        ("[0.5, null]", "score 1"),
        ("[1e999, 0.5]", "score 0"),
        (f"[1{'0' * 400}, 0.5]", "score 0"),
        ("0.5", "expected a list of numbers"),
        ('{"0": 0.5}', "expected a list of numbers"),
    ],
)
def test_bad_scores(tmp_path: Path, scores: str, told: str) -> None:
    mask = json.dumps(encode(np.eye(3, dtype=bool)))
    (row,) = read_lines(tmp_path, f'{{"id": 1, "masks": [{mask}, {mask}], "scores": {scores}}}\n')
    assert [fault["code"] for fault in row["pred_faults"]] == ["bad_score"]
    assert told in row["pred_faults"][0]["text"]
    assert_masks(row["pred_masks"], [np.eye(3, dtype=bool)] * 2)


@pytest.mark.parametrize("masks", [None, "x", 3, {"size": [1, 1], "counts": "01"}])
def test_masks_that_are_no_list(tmp_path: Path, masks: Any) -> None:
    first, second = read_lines(tmp_path, {"id": 1, "masks": masks}, {"id": 2})
    for row in (first, second):
        assert row["pred_masks"] == []
        expected = "missing_prediction" if masks is None and row is first else "malformed_mask"
        assert [fault["code"] for fault in row["pred_faults"]] == [expected]


def test_one_bad_mask_does_not_stop_the_others(tmp_path: Path) -> None:
    good = encode(np.eye(4, dtype=bool))
    bad = [{"size": [4, 4], "counts": "b'd0'"}, None, 5, "text", {}, [], [[]], {"size": [4, 4], "counts": [10**400]}]
    first, second = read_lines(tmp_path, {"id": 1, "masks": [good, *bad, good]}, {"id": 2, "masks": [good]})
    assert first["pred_masks"] == [good, *[None] * len(bad), good]
    assert [fault["text"].split(":")[0] for fault in first["pred_faults"]] == [f"mask {i + 1}" for i in range(len(bad))]
    assert second["pred_masks"] == [good]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"id": 1, "masks": []}\n{"id": 2, "masks": [}\n', r"out\.jsonl:2: column 21"),
        ('{"id": 1, "masks": []}\n{"id": 2, "mas', r"out\.jsonl:2: .*cut short"),
        ('{"id": 1, "masks": []}\n7\n', r"out\.jsonl:2: expected a JSON object"),
        (
            '{"id": 1,\n "masks": []}\n{"id": 2,\n "masks": []}\n',
            r"out\.jsonl:1: .*objects on several lines, the second from line 3",
        ),
        ('[{"id": 1, "masks": []},\n {"id": 2, "masks": [}]', r"out\.jsonl:2: column 22"),
        ('[{"id": 1, "masks": []},\n {"id": 2, "ma', r"out\.jsonl:2: column"),
        ('[{"id": 1, "masks": []}\n', r"out\.jsonl:2: column 1: expected ',' or ']'"),
        ('[{"id": 1, "masks": []}] x', r"out\.jsonl:1: column 26: expected the end"),
        ("[1, 2]", "expected a JSON object"),
        ("[]", "an empty list"),
        ("\n  \n", "a file of blanks"),
        ("", "an empty file"),
        ('{"id": ' + "[" * 100_000, r"out\.jsonl:1: .*nested too deeply"),
        ('{"id": ' + "9" * 5000 + ', "masks": []}', r"out\.jsonl:1: "),
        ('{"masks": []}\n', r"out\.jsonl:1: expected a key"),
        ("id,masks\n1,2\n", "begins with"),
    ],
)
def test_what_is_no_json_lines(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BenchError, match=told):
        read_lines(tmp_path, text)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(b'{"id": 1, "masks": []}\n{"id": 2, "masks": [], "note": "\xff"}\n')
    with pytest.raises(BenchError, match=r"out\.jsonl:2: .*0xff at column 33"):
        read_predictions("pbench", path)
    path.write_bytes('{"id": 1, "masks": []}\n'.encode("utf-16"))
    with pytest.raises(BenchError, match="UTF-16"):
        read_predictions("pbench", path)


def test_halves_of_characters(tmp_path: Path) -> None:
    masks = '[{"size": [1, 1], "counts": "\\ud800"}, {"\\udfff": "\\ud800"}]'
    (row,) = read_lines(tmp_path, f'{{"id": 1, "key": "\\ud800", "masks": {masks}}}\n')
    assert row["pred_masks"] == [None, None]
    assert [fault["code"] for fault in row["pred_faults"]] == ["unknown_row", "malformed_mask", "malformed_mask"]


def test_a_folder_of_levels_pairs_by_order(tmp_path: Path) -> None:
    write(tmp_path / "level_0.jsonl", {"masks": []}, {"masks": []})
    write(tmp_path / "dense.jsonl", {"masks": []})
    read = read_predictions("pbench", tmp_path)
    named = zip(read["split"], read["position"], read["id"], strict=True)
    assert sorted(named) == [("dense", 0, None), ("level_0", 0, None), ("level_0", 1, None)]


def test_a_folder_of_levels_with_ids(tmp_path: Path) -> None:
    write(tmp_path / "level_0.jsonl", {"id": 5, "masks": []})
    write(tmp_path / "level_1.jsonl", {"id": 5, "masks": []})
    read = read_predictions("pbench", tmp_path)
    assert list(zip(read["split"], read["id"], read["position"], strict=True)) == [
        ("level_0", 5, None),
        ("level_1", 5, None),
    ]


def test_a_file_names_all_rows_or_none(tmp_path: Path) -> None:
    path = write(tmp_path / "level_0.jsonl", {"masks": []}, {"id": 5, "masks": []})
    with pytest.raises(BenchError, match=r"level_0\.jsonl:2: found a key or id"):
        read_predictions("pbench", path)


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ({"expression_id": "x-0", "mask": None}, "instancebench"),
        ({"video_id": "v", "tubes": [], "triplets": []}, "pvsg"),
    ],
)
def test_another_benchmark(tmp_path: Path, line: dict[str, Any], other: str) -> None:
    with pytest.raises(FaultError, match=rf"out\.jsonl:1: wrong benchmark.*{other}") as caught:
        read_lines(tmp_path, line)
    assert caught.value.code == "wrong_benchmark"


def test_the_truth_itself_is_no_prediction(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="truth's own fields"):
        read_lines(tmp_path, {"id": 1, "expression": "dog", "masks": [], "count": 0})


def test_falcon(tmp_path: Path, rows: dict[int, Dense]) -> None:
    def instance(i: int, mask: Any) -> dict[str, Any]:
        return {"xy": {"x": 0.1 * i, "y": 0.5}, "hw": {"h": 0.25, "w": 0.01 * i}, "mask_rle": encode(mask)}

    lines = [{"id": name, "instances": [instance(i, m) for i, m in enumerate(masks)]} for name, masks in rows.items()]
    for format in (None, "falcon"):
        read = read_predictions("pbench", write(tmp_path / "out.jsonl", *lines), format=format)
        for row, masks in zip(read, rows.values(), strict=True):
            assert_masks(row["pred_masks"], masks)
            assert row["pred_centers"] == [[0.1 * i, 0.5] for i in range(len(masks))]
            assert row["pred_sizes"] == [[0.25, 0.01 * i] for i in range(len(masks))]
            assert row["pred_scores"] is None
            assert row["pred_faults"] == []


def test_falcon_faults(tmp_path: Path) -> None:
    good = encode(np.eye(3, dtype=bool))
    sound = {"xy": {"x": 0.5, "y": 0.5}, "hw": {"h": 0.2, "w": 0.1}}
    (row,) = read_lines(
        tmp_path,
        {
            "id": 1,
            "predictions": [
                {**sound, "mask_rle": good},
                {**sound, "mask_rle": None},
                {"hw": {"h": 0.2, "w": 0.1}, "mask_rle": good},
                {**sound, "xy": {"x": float("nan"), "y": 0.5}, "mask_rle": good},
                "instance",
            ],
        },
    )
    assert row["pred_masks"] == [good, None, good, good, None]
    assert row["pred_centers"] == [[0.5, 0.5], [0.5, 0.5], None, None, None]
    told = [(fault["code"], fault["text"].split(":")[0]) for fault in row["pred_faults"]]
    assert ("malformed_mask", "mask 1") in told
    assert ("malformed_mask", "mask 4") in told
    assert [text for code, text in told if code == "bad_box"] == ["mask 2", "mask 3", "mask 4", "mask 4"]


def test_falcon_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "out.jsonl", {"id": 1, "masks": []})
    with pytest.raises(BenchError, match="expected a line with instances"):
        read_predictions("pbench", path, format="falcon")


def test_the_real_predictions(shared: Path) -> None:
    path = shared / "data/predictions_a/pbench.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    read = read_predictions("pbench", path)
    assert read["id"][:] == [line["id"] for line in lines]
    assert read["pred_scores"][:] == [line["scores"] for line in lines]
    for row, line in zip(read, lines, strict=True):
        assert_masks(row["pred_masks"], [decode(mask) for mask in line["masks"]])
