"""What the truth rows hold: faults, sizes, and masks of every representation."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Image
from pycocotools import mask as coco

from bench_datasets.benchmarks.pbench.truth import sound_masks
from bench_datasets.faults import BenchError

from ...support.small_sources import MASK, jpeg, load, table

Write = Callable[..., Path]


def test_faults_of_rows(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    short, other = {"size": [10, 10], "counts": "d0n0"}, {"size": [5, 20], "counts": "d0n0b1"}
    rows: list[dict[str, Any]] = [
        {"id": 0},
        {"id": 1, "count": 3},
        {"id": 2, "masks": [MASK, short, None]},
        {"id": 3, "masks": []},
        {"id": 4, "masks": None, "count": 0},
        {"id": 5, "image": None},
        {"id": 6, "image": {"bytes": b"no image", "path": None}},
        {"id": 7, "image": {"bytes": None, "path": "/etc/hostname"}},
        {"id": 8, "image": {"bytes": jpeg(20, 30), "path": None}},
        {"id": 9, "image": {"bytes": None, "path": None}, "masks": [MASK, other]},
        {"id": 10, "image": None, "masks": [], "count": None},
        {"id": 11, "image": None, "masks": [short]},
    ]
    root = write({"level_2": rows})
    with caplog.at_level(logging.WARNING, logger="bench_datasets"):
        data = load(root)
    assert data["faults"][:] == [
        [],
        ["count_mismatch"],
        ["malformed_mask"],
        ["no_truth"],
        ["no_truth"],
        ["image_missing"],
        ["image_missing"],
        ["image_missing"],
        ["image_size_mismatch"],
        ["image_missing", "image_size_mismatch"],
        ["count_mismatch", "image_missing", "no_truth"],
        ["malformed_mask", "image_missing"],
    ]
    assert data["masks"][2] == [MASK, None, None]
    sizes = [(10, 10)] * 8 + [(20, 30), (10, 10), (None, None), (None, None)]
    assert list(zip(data["height"][:], data["width"][:], strict=True)) == sizes
    assert [row["image"] is None for row in data] == [i in (5, 6, 7, 9, 10, 11) for i in range(12)]
    assert [sha is None for sha in data["image_sha256"][:]] == [i in (5, 6, 7, 9, 10, 11) for i in range(12)]
    (record,) = [record for record in caplog.records if record.name.startswith("bench_datasets")]
    text = record.getMessage()
    assert "malformed_mask: 2 rows, e.g. level_2/2 (mask 1: the runs do not sum" in text
    assert "image_missing: 6 rows" in text
    labels = load(root, images=False)
    assert labels["faults"][8] == []
    assert labels["faults"][9] == ["image_size_mismatch"]
    assert labels["height"][3] is None


@pytest.mark.parametrize(("orientation", "size"), [(1, (20, 30)), (6, (30, 20))])
def test_an_image_is_as_large_as_datasets_shows_it(write: Write, orientation: int, size: tuple[int, int]) -> None:
    image = {"bytes": jpeg(20, 30, exif=orientation), "path": None}
    (row,) = load(write({"dense": [{"id": 1, "image": image, "masks": []}]}))
    assert (row["height"], row["width"]) == size
    assert row["image"].size == size[::-1]


def _representable(cases: list[dict[str, Any]], kind: str) -> tuple[list[dict[str, Any]], pa.Array]:
    """The cases that a column of this kind can hold, and the column."""
    if kind == "json":
        chosen = [case for case in cases if "counts" in case]
        texts = [json.dumps({"size": case["size"], "counts": case["counts"]}) for case in chosen]
        return chosen, pa.array(texts, pa.string())
    raw = [
        case
        for case in cases
        if isinstance(case.get("counts", ""), str | None) and (case["size"] is None or isinstance(case["size"][0], int))
    ]
    as_bytes = [
        {
            "size": case["size"],
            "counts": base64.b64decode(case["counts_base64"])
            if "counts_base64" in case
            else None
            if case["counts"] is None
            else case["counts"].encode(),
        }
        for case in raw
    ]
    if kind == "string":
        keep = [i for i, case in enumerate(raw) if "counts_base64" not in case]
        raw, as_bytes = [raw[i] for i in keep], [as_bytes[i] for i in keep]
    item = pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.binary() if kind == "binary" else pa.string())])
    return raw, pa.array(as_bytes, item)


@pytest.mark.parametrize("kind", ["string", "binary", "json"])
def test_malformed_masks_of_every_representation(shared: Path, write: Write, kind: str) -> None:
    cases = json.loads((shared / "data" / "malformed_masks.json").read_text())
    chosen, masks = _representable(cases, kind)
    assert len(chosen) > 15
    source = table([{"id": i} for i in range(len(chosen))])
    lists = pa.ListArray.from_arrays(pa.array(range(len(chosen) + 1), pa.int32()), masks)
    source = source.set_column(source.schema.get_field_index("masks"), "masks", lists)
    data = load(write({"level_0": source}, group=4), images=False)
    for case, row in zip(chosen, data, strict=True):
        (mask,) = row["masks"]
        assert (mask is None) == (case["expect"] == "error"), case["name"]
        assert ("malformed_mask" in row["faults"]) == (case["expect"] == "error"), case["name"]
        if mask is not None and case["name"] != "zero-length runs inside":
            assert int(coco.area(mask)) == case["area"]


def test_masks_as_json_text_or_bytes_give_the_same_rows(mini: str, write: Write) -> None:
    source = pq.read_table(f"{mini}/data/dense-00000-of-00001.parquet")
    at = source.schema.get_field_index("masks")
    rows = source["masks"].to_pylist()
    texts = pa.array([[json.dumps(mask) for mask in masks] for masks in rows], pa.large_list(pa.large_string()))
    item = pa.struct([("size", pa.list_(pa.int32(), 2)), ("counts", pa.large_binary())])
    raw = pa.array([[{**m, "counts": m["counts"].encode()} for m in masks] for masks in rows], pa.list_(item))
    runs = [[{"size": m["size"], "counts": _runs(m)} for m in masks] for masks in rows]
    expected = load(mini, "dense", images=False)["masks"][:]
    for i, column in enumerate((texts, raw, pa.array(runs))):
        root = write({"dense": source.set_column(at, "masks", column)}, folder=f"source{i}")
        assert load(root, "dense", images=False)["masks"][:] == expected


def _runs(mask: dict[str, Any]) -> list[int]:
    """Uncompressed runs, counted from the decoded pixels."""
    flat = coco.decode(mask).ravel(order="F")
    edges = np.flatnonzero(np.diff(flat)) + 1
    runs = np.diff(np.concatenate([[0], edges, [flat.size]])).tolist()
    return [0, *runs] if flat[0] else runs


def test_sound_masks_takes_slices_and_nulls() -> None:
    item = pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())])
    values = pa.array([MASK, None, {"size": [10], "counts": "d0"}, MASK], item)
    masks, wrong = sound_masks(values.slice(1))
    assert masks.to_pylist() == [None, None, MASK]
    assert sorted(wrong) == [0, 1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop_columns(["masks"]), "expected column 'masks', found image: struct"),
        (lambda t: t.drop_columns(["image"]), "expected column 'image'.*images=False"),
        (lambda t: t.rename_columns(["image", "question", "answer", "count", "id"]), "expected column 'expression'"),
        (lambda t: t.set_column(4, "id", pa.array(["a"])), "column 'id': expected an integer, found string"),
        (lambda t: t.set_column(2, "masks", pa.array([[1]])), "column 'masks': expected a list of"),
        (lambda t: t.set_column(4, "id", pa.array([None], pa.int64())), r"row 0: column 'id'.*got None"),
        (
            lambda t: t.set_column(1, "expression", pa.array([None], pa.string())),
            r"row 0: column 'expression'.*got null",
        ),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_a_source_of_another_layout(write: Write, change: Any, words: str, streaming: bool) -> None:
    root = write({"level_4": change(table([{"id": 1}]))})
    with pytest.raises(BenchError, match=words) as caught:
        list(load(root, streaming=streaming))
    assert "level_4.parquet" in str(caught.value)


def test_images_come_back_as_they_were(write: Write) -> None:
    data = load(write({"level_0": [{"id": 1, "image": {"bytes": jpeg(7, 9, 3), "path": "a.jpg"}}]}))
    raw = data.cast_column("image", Image(decode=False))[0]["image"]
    assert raw["bytes"] == jpeg(7, 9, 3)
    assert isinstance(data[0]["image"], PIL.Image.Image)
