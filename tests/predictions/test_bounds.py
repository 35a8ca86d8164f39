"""Small files that would take much time or memory, and results that are large for good reasons."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset

from bench_datasets import read_predictions
from bench_datasets.faults import BenchError
from bench_datasets.masks import MASK_TYPE, MaskColumn, column, encode_dense, parse, parse_masks
from bench_datasets.predictions import check, mask_rows
from bench_datasets.predictions import json_records as text
from bench_datasets.predictions.coerce import Name
from bench_datasets.predictions.formats import coco
from bench_datasets.predictions.pairing import unlike

RLE = {"size": [2, 3], "counts": "15"}


def faults(benchmark: str, path: Path) -> list[list[tuple[str, str]]]:
    """The faults of every row that is read, as code and text."""
    found = read_predictions(benchmark, path)["pred_faults"]
    return [[(fault["code"], fault["text"]) for fault in row] for row in found]


def test_records_gzip_of_large_ratio_refused(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl.gz").write_bytes(gzip.compress(b'{"id": 1, "masks": [' + b"[]," * (1 << 24) + b"[]]}"))
    with pytest.raises(BenchError, match=r"p\.jsonl\.gz: .*unpacks to at most 256 times its size"):
        read_predictions("pbench", tmp_path / "p.jsonl.gz")


@pytest.mark.parametrize("wrap", ["{}\n", "[{}]"])
def test_records_many_values_refused(wrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_WEIGHT", 1 << 24)
    line = '{"id": 1, "masks": [' + ",".join(["[]"] * 700_000) + "]}"  # 2.1 MB of text, 78 MB of values
    (tmp_path / "p.json").write_text(wrap.format(line))
    with pytest.raises(BenchError, match=r"p\.json:1: found a record of .* values, too many"):
        read_predictions("pbench", tmp_path / "p.json")


@pytest.mark.parametrize("form", ["jsonl", "falcon", "coco"])
def test_read_row_of_too_many_masks_noted_once(form: str, tmp_path: Path) -> None:
    n = 16_385
    content: Any = {"id": 1, "masks": [RLE] * n}
    if form == "falcon":
        content = {"id": 1, "instances": [{"mask_rle": RLE}] * n}
    elif form == "coco":
        content = [{"image_id": 1, "segmentation": RLE}] * n
    (tmp_path / "p.json").write_text(json.dumps(content))
    read = read_predictions("pbench", tmp_path / "p.json")
    assert read["pred_masks"][0] == []
    assert faults("pbench", tmp_path / "p.json") == [
        [("malformed_mask", "masks: expected at most 16,384 masks in one row, found 16,385; none of them is read")]
    ]


def test_read_row_of_many_unsound_masks_named_up_to_twenty(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(json.dumps({"id": 1, "masks": [None] * 1000}))
    found = faults("pbench", tmp_path / "p.jsonl")[0]
    assert [text for _, text in found[:20]] == [f"mask {i}: the mask is null" for i in range(20)]
    assert found[20:] == [("malformed_mask", "and 980 more masks of this row")]


def test_parse_masks_long_borders_refused_beyond_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    square = [[0, 0, 100, 0, 100, 100, 0, 100]]  # 4 sides of 100 pixels, 5 points each, and 4 corners: 2,004 steps
    monkeypatch.setattr(parse, "MAX_BORDERS", 5000)
    masks, wrong = parse_masks([square] * 4, height=100, width=100)
    assert sorted(wrong) == [2, 3]
    assert all("5,000 steps" in words for words in wrong.values())
    assert MaskColumn.from_arrow(masks.slice(0, 2)).areas().tolist() == [10_000, 10_000]


def test_mask_column_long_counts_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = encode_dense(np.arange(60).reshape(6, 10) % 3 == 0)
    length = len(mask["counts"])
    monkeypatch.setattr(column, "MAX_COUNTS", length)
    assert not MaskColumn.from_values([mask]).problems()
    monkeypatch.setattr(column, "MAX_COUNTS", length - 1)
    small = {"size": [2, 3], "counts": "15"}
    assert list(MaskColumn.from_values([small, mask, small]).problems()) == [1]


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench"])
@pytest.mark.parametrize("form", ["jsonl", "coco"])
def test_read_batches_of_bounded_bytes_same_rows(
    benchmark: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    masks = [encode_dense(np.arange(60).reshape(6, 10) % k == 0) for k in range(1, 8)]
    if form == "coco":
        content = [{"image_id": i, "segmentation": mask, "score": 0.5} for i, mask in enumerate(masks)]
    elif benchmark == "pbench":
        content = [{"id": i, "masks": [mask]} for i, mask in enumerate(masks)]
    else:
        content = [{"expression_id": str(i), "mask": mask} for i, mask in enumerate(masks)]
    (tmp_path / "p.json").write_text(json.dumps(content))
    whole = read_predictions(benchmark, tmp_path / "p.json", format=form)
    for module in (mask_rows, coco, *_instancebench()):
        monkeypatch.setattr(module, "BATCH", 1)
    parts = read_predictions(benchmark, tmp_path / "p.json", format=form)
    assert parts.to_list() == whole.to_list()
    assert len(parts.data.to_batches()) == 7


def _instancebench() -> list[Any]:
    from bench_datasets.benchmarks.instancebench import prediction_coco, prediction_rows

    return [prediction_rows, prediction_coco]


def test_coco_results_beyond_two_gib_grouped() -> None:
    n, parts = 12_500, 44  # 50 MB in memory, named 44 times: 2.2 GB
    chunk = pa.array([{"size": [480, 640], "counts": "x" * 4000}] * n, MASK_TYPE)
    ids = [pa.array(np.arange(n) * 4 % n + i * n) for i in range(parts)]

    def same(kind: pa.DataType) -> pa.ChunkedArray:
        return pa.chunked_array([pa.nulls(n, kind)] * parts)

    table = pa.table(
        {
            "row": pa.chunked_array(ids),
            "mask": pa.chunked_array([chunk] * parts),
            "problem": same(pa.string()),
            "dropped": same(pa.string()),
            "score": same(pa.float64()),
            "bad_score": same(pa.string()),
        }
    )
    counts = np.bincount(table["row"].to_numpy(), minlength=n * parts).tolist()
    batch = next(coco._grouped(table, [Name(id=i) for i in range(n * parts)], counts, {}))
    assert batch.column("id").to_pylist() == list(range(len(batch)))
    assert batch.num_rows == 4096
    assert batch.column("pred_masks").flatten().field("counts")[5].as_py() == "x" * 4000


def test_coco_results_scattered_over_chunks_keep_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coco, "_MASKS", 3)
    rng = np.random.default_rng(0)
    owner = rng.integers(0, 5, 40)
    items = [
        {"image_id": int(image), "score": i / 40, "segmentation": encode_dense(np.arange(12).reshape(3, 4) < i % 12)}
        for i, image in enumerate(owner)
    ]
    (tmp_path / "p.json").write_text(json.dumps(items))
    read = read_predictions("pbench", tmp_path / "p.json")
    assert read["id"] == list(dict.fromkeys(owner.tolist()))
    for row in read:
        mine = [item for item in items if item["image_id"] == row["id"]]
        assert row["pred_scores"] == [item["score"] for item in mine]
        assert row["pred_masks"] == [item["segmentation"] for item in mine]


def test_check_unknown_code_and_long_names_shown_shortened() -> None:
    row = {"id": 1, "key": "k" * 10**6, "pred_masks": [], "pred_faults": [{"code": "odd", "text": "t" * 10**6}]}
    report = check("pbench", Dataset.from_list([row]))
    (group,) = report.errors
    assert (group.code, group.count) == ("odd", 1)
    assert "does not know" in group.advice
    assert len(str(report)) < 5000


def test_unlike_names_that_occur_in_truth_no_hint() -> None:
    assert unlike("ids", [7], [7]) == ""
    assert "they look like 7, the truth's like 8" in unlike("ids", [7], [8])


@pytest.mark.parametrize("form", ["jsonl", "dataset"])
def test_read_video_of_too_many_tubes_noted_once(form: str, tmp_path: Path) -> None:
    tubes = [{"tube_id": str(i), "category": "adult", "frames": [0], "masks": [RLE]} for i in range(16_385)]
    row: dict[str, Any] = {"video_id": "v", "tubes": tubes}
    (tmp_path / "p.jsonl").write_text(json.dumps({**row, "triplets": []}))
    given: Any = Dataset.from_list([{"key": "v", "pred_tubes": tubes}]) if form == "dataset" else tmp_path / "p.jsonl"
    read = read_predictions("pvsg", given)
    assert read["pred_tubes"][0] == []
    texts = [fault["text"] for fault in read["pred_faults"][0]]
    assert texts == ["tubes: expected at most 16,384 tubes in one video, found 16,385; none of them is read"]


def test_read_video_of_too_many_triplets_noted_once(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(json.dumps({"video_id": "v", "tubes": [], "triplets": [0] * (2**20 + 1)}))
    read = read_predictions("pvsg", tmp_path / "p.jsonl")
    assert read["pred_triplets"][0] == []
    texts = [fault["text"] for fault in read["pred_faults"][0]]
    assert texts == [
        "triplets: expected at most 1,048,576 triplets in one video, found 1,048,577; none of them is read"
    ]


def test_read_video_of_too_many_masks_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_datasets.benchmarks.pvsg.prediction_rows.MAX_VIDEO_MASKS", 3)
    tubes = [{"tube_id": str(i), "category": "adult", "frames": [0, 1], "masks": [RLE] * 2} for i in range(2)]
    (tmp_path / "p.jsonl").write_text(json.dumps({"video_id": "v", "tubes": tubes, "triplets": []}))
    read = read_predictions("pvsg", tmp_path / "p.jsonl")
    assert [tube["masks"] for tube in read["pred_tubes"][0]] == [[], []]
    texts = [fault["text"] for fault in read["pred_faults"][0]]
    assert texts == ["tubes: expected at most 3 masks in one video, found 4; none of them is read"]
