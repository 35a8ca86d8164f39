"""Folders of PNGs: masks by file, label maps by value."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from PIL import Image

from bench_datasets.faults import BenchError
from bench_datasets.predictions import check, read_predictions

from ..support.dense_masks import Dense, assert_masks


def save(pixels: np.ndarray, path: Path, mode: str | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    (image if mode is None else image.convert(mode)).save(path, "PNG")


@pytest.mark.parametrize("level", ["", "level_2/"])
@pytest.mark.parametrize("mode", ["L", "1", "P", "RGB", "RGBA", "LA", "I;16"])
def test_a_file_a_mask(tmp_path: Path, rows: dict[int, Dense], mode: str, level: str) -> None:
    for name, masks in rows.items():
        (tmp_path / f"{level}{name}").mkdir(parents=True)
        for k, mask in enumerate(masks):
            path = tmp_path / f"{level}{name}/{k}.png"
            if mode == "P":
                image = Image.fromarray(mask.astype(np.uint8), "P")
                image.putpalette([0, 0, 0] * 256)  # every index looks black
                image.save(path)
            elif mode == "I;16":
                save(mask.astype(np.uint16) * 256, path)
            else:
                save(mask.astype(np.uint8) * 255, path, mode)
    (tmp_path / ".DS_Store").write_bytes(b"x")
    read = read_predictions("pbench", tmp_path)
    names = [int(key.split("/")[1]) for key in read["key"]] if level else read["id"][:]
    assert names == sorted(rows)
    for name, row in zip(names, read, strict=True):
        assert row["pred_faults"] == []
        assert_masks(row["pred_masks"], rows[name])
    assert read["key"][0] == (f"{level}2" if level else None)


@pytest.mark.parametrize("mode", ["L", "P", "I;16"])
def test_label_maps(tmp_path: Path, mode: str) -> None:
    labels = np.random.default_rng(1).choice([0, 1, 4, 200], (9, 7)).astype(np.uint16 if mode == "I;16" else np.uint8)
    if mode == "P":
        image = Image.fromarray(labels, "P")
        image.putpalette([9, 9, 9] * 256)
        (tmp_path / "level_1").mkdir()
        image.save(tmp_path / "level_1/7#2.png")
    else:
        save(labels * (257 if mode == "I;16" else 1), tmp_path / "level_1/7#2.png")
    (row,) = read_predictions("pbench", tmp_path)
    assert row["key"] == "level_1/7#2"
    assert_masks(row["pred_masks"], [labels == value for value in (1, 4, 200)])


def test_a_label_map_of_void_alone_has_no_masks(tmp_path: Path) -> None:
    save(np.zeros((3, 3), np.uint8), tmp_path / "5.png")
    (row,) = read_predictions("pbench", tmp_path)
    assert (row["id"], row["pred_masks"], row["pred_faults"]) == (5, [], [])


def test_what_cannot_be_read_is_a_fault_that_names_the_file(tmp_path: Path) -> None:
    good = np.eye(4, dtype=np.uint8)
    save(good, tmp_path / "1/0.png")
    (tmp_path / "1/1.png").write_bytes((tmp_path / "1/0.png").read_bytes()[:40])
    (tmp_path / "1/2.png").write_bytes(b"rubbish")
    (tmp_path / "1/3.png").write_bytes(b"")
    (tmp_path / "1/4.JPG").write_bytes(b"x")
    save(np.dstack([good, good, good, good * 7]), tmp_path / "1/5.png")
    save(good, tmp_path / "1/6.png")
    save(np.dstack([good, good, good]), tmp_path / "2.png")
    save(good, tmp_path / "three/0.png")
    save(good, tmp_path / "level_9/1/0.png")
    read = {row["id"]: row for row in read_predictions("pbench", tmp_path)}
    assert [mask is None for mask in read[1]["pred_masks"]] == [False, True, True, True, True, True, False]
    for fault, i in zip(read[1]["pred_faults"], range(1, 6), strict=True):
        assert fault["code"] == "unreadable_mask"
        assert fault["text"].startswith(f"mask {i}: ")
        assert f"1/{i}." in fault["text"]
    assert "one channel" in read[2]["pred_faults"][0]["text"]
    unknown = [row for row in read_predictions("pbench", tmp_path) if row["id"] is None]
    assert [row["pred_faults"][0]["code"] for row in unknown] == ["unknown_row", "unknown_row"]


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 200_000, 200_000, 8, 0, 0, 0, 0)
    data = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
        + chunk(b"IEND", b"")
    )
    (tmp_path / "7").mkdir()
    (tmp_path / "7/0.png").write_bytes(data)
    (row,) = read_predictions("pbench", tmp_path)
    assert row["pred_masks"] == [None]
    assert row["pred_faults"][0]["code"] == "unreadable_mask"


def test_other_file_systems(tmp_path: Path) -> None:
    save(np.eye(3, dtype=np.uint8), tmp_path / "0.png")
    files = fsspec.filesystem("memory")
    for path in ("png/level_0/12/0.png", "png/level_0/12/1.png", "png/dense/3.png"):
        files.pipe(f"/{path}", (tmp_path / "0.png").read_bytes())
    read = read_predictions("pbench", "memory://png")
    assert read["key"][:] == ["level_0/12", "dense/3"]
    assert [len(masks) for masks in read["pred_masks"]] == [2, 1]


def test_one_png_is_no_folder(tmp_path: Path) -> None:
    save(np.eye(3, dtype=np.uint8), tmp_path / "1.png")
    with pytest.raises(BenchError, match="give the folder"):
        read_predictions("pbench", tmp_path / "1.png")
    with pytest.raises(BenchError, match="found one file"):
        read_predictions("pbench", tmp_path / "1.png", format="png")


def test_folders_without_a_file_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "4").mkdir()
    with pytest.raises(BenchError, match="format="):
        read_predictions("pbench", tmp_path)
    (row,) = read_predictions("pbench", tmp_path, format="png")
    assert (row["id"], row["pred_masks"]) == (4, [])


def read_one(folder: Path) -> dict[str, Any]:
    (row,) = read_predictions("pbench", folder)
    return row


SOFT = np.where(np.eye(6, dtype=bool), 230, 12).astype(np.uint8)
STEPS = (np.arange(36).reshape(6, 6) % 3).astype(np.uint8)


@pytest.mark.parametrize(
    ("pixels", "mode", "told"),
    [
        (SOFT, "L", "found 2 values from 12 to 230 and no 0"),
        (STEPS * 100, "L", "found 3 values from 0 to 200"),
        (STEPS.astype(np.uint16) * 3000, None, "found 3 values from 0 to 6000"),
        (STEPS, "P", "found 3 values from 0 to 2"),
        (np.full((6, 6), 30, np.uint8), "L", "found the value 30 everywhere and no 0"),
        (np.dstack([STEPS * 9, STEPS, STEPS]), "RGB", "several colours"),
        (np.where(STEPS[..., None] > 1, (200, 30, 30), (90, 90, 90)).astype(np.uint8), "RGB", "several colours"),
        (np.full((6, 6, 3), 90, np.uint8), "RGB", "no black"),
    ],
)
@pytest.mark.parametrize("benchmark", ["pbench", "instancebench"])
def test_png_with_soft_or_coloured_values_is_refused(
    tmp_path: Path, pixels: np.ndarray, mode: str | None, told: str, benchmark: str
) -> None:
    if mode == "P":
        (tmp_path / "7").mkdir()
        image = Image.fromarray(pixels, "P")
        image.putpalette([9, 9, 9] * 256)
        image.save(tmp_path / "7/0.png")
    else:
        save(pixels, tmp_path / "7/0.png", mode)
    row = read_predictions(benchmark, tmp_path)[0]
    (fault,) = row["pred_faults"]
    assert fault["code"] == "unreadable_mask"
    assert told in fault["text"]
    assert "7/0.png" in fault["text"]
    assert row["pred_masks" if benchmark == "pbench" else "mask"] in (None, [None])


@pytest.mark.parametrize("value", [1, 255])
def test_png_of_one_value_is_empty_or_the_whole_image(tmp_path: Path, value: int) -> None:
    save(np.full((4, 5), value, np.uint8), tmp_path / "1/0.png")
    save(np.zeros((4, 5), np.uint8), tmp_path / "1/1.png")
    row = read_one(tmp_path)
    assert row["pred_faults"] == []
    assert_masks(row["pred_masks"], [np.ones((4, 5), bool), np.zeros((4, 5), bool)])


def test_png_in_black_and_one_colour_is_a_mask(tmp_path: Path) -> None:
    mask = np.random.default_rng(2).random((8, 9)) < 0.3
    save(np.where(mask[..., None], (200, 0, 30), 0).astype(np.uint8), tmp_path / "1/0.png")
    assert_masks(read_one(tmp_path)["pred_masks"], [mask])


def soft_disc(height: int, width: int) -> np.ndarray:
    """A disc with a soft edge, values 0 to 255."""
    y, x = np.mgrid[:height, :width]
    far = np.hypot(y - height / 2, x - width / 2)
    return (255 / (1 + np.exp((far - height / 4) / 2))).astype(np.uint8)


@pytest.mark.parametrize(
    ("pixels", "told"),
    [
        (soft_disc(60, 80), "found a grey picture"),
        (np.random.default_rng(0).integers(0, 256, (40, 40)).astype(np.uint8), "found a grey picture"),
        (SOFT, "found 2 values from 12 to 230 and no 0"),
    ],
)
def test_label_map_with_soft_values_is_refused(tmp_path: Path, pixels: np.ndarray, told: str) -> None:
    save(pixels, tmp_path / "7.png")
    row = read_one(tmp_path)
    (fault,) = row["pred_faults"]
    assert (fault["code"], row["pred_masks"]) == ("unreadable_mask", [])
    assert told in fault["text"]


def test_label_map_of_many_instances_is_read(tmp_path: Path) -> None:
    labels = np.kron(np.arange(100).reshape(10, 10), np.ones((3, 3), int)).astype(np.uint8)
    save(labels, tmp_path / "7.png")
    full = np.repeat([1, 2, 3], 12).reshape(6, 6).astype(np.uint8)
    save(full, tmp_path / "8.png")  # no background at all
    many, whole = read_predictions("pbench", tmp_path)
    assert_masks(many["pred_masks"], [labels == value for value in range(1, 100)])
    assert_masks(whole["pred_masks"], [full == value for value in (1, 2, 3)])
    assert many["pred_faults"] == whole["pred_faults"] == []


def test_label_255_beside_other_labels_is_noted(tmp_path: Path) -> None:
    save(np.array([[0, 1, 255]], np.uint8), tmp_path / "7.png")
    save(np.array([[0, 255, 255]], np.uint8), tmp_path / "8.png")
    both, alone = read_predictions("pbench", tmp_path)
    assert [fault["code"] for fault in both["pred_faults"]] == ["ignore_label"]
    assert (len(both["pred_masks"]), len(alone["pred_masks"]), alone["pred_faults"]) == (2, 1, [])


def test_folder_of_sam_masks_is_read_and_other_files_are_named(tmp_path: Path) -> None:
    mask = np.eye(4, dtype=np.uint8) * 255
    for name in ("1", "2", "3"):
        save(mask, tmp_path / name / "0.png")
        (tmp_path / name / "metadata.csv").write_text("id,area,predicted_iou\n0,4,0.9\n")
    (tmp_path / "3/0.jpg").write_bytes(b"a picture of the mask")
    (tmp_path / "3/notes.txt").write_text("x")
    (tmp_path / "4").mkdir()
    (tmp_path / "4/metadata.csv").write_text("id,area,predicted_iou\n")
    read = read_predictions("pbench", tmp_path)
    assert read["id"][:] == [1, 2, 3, 4]
    assert [len(masks) for masks in read["pred_masks"]] == [1, 1, 1, 0]
    assert [[fault["code"] for fault in faults] for faults in read["pred_faults"]] == [[], [], ["ignored_file"], []]
    assert "'0.jpg', 'notes.txt'" in read[2]["pred_faults"][0]["text"]


def test_other_image_formats_are_refused_where_a_mask_is_expected(tmp_path: Path) -> None:
    mask = np.eye(4, dtype=np.uint8) * 255
    save(mask, tmp_path / "1/0.png")
    (tmp_path / "1/1.jpg").write_bytes(b"x")  # named like a mask
    (tmp_path / "2").mkdir()
    (tmp_path / "2/mask.tif").write_bytes(b"x")  # no PNG beside it
    (tmp_path / "3.bmp").write_bytes(b"x")
    (tmp_path / "overview.jpg").write_bytes(b"x")  # names no row
    found = {row["id"]: [fault["code"] for fault in row["pred_faults"]] for row in read_predictions("pbench", tmp_path)}
    assert found == {1: ["unreadable_mask"], 2: ["unreadable_mask"], 3: ["unreadable_mask"]}
    told = read_predictions("pbench", tmp_path)[0]["pred_faults"][0]["text"]
    assert "JPEG changes pixel values" in told


@pytest.mark.parametrize("path", ["level_0/7/masks/0.png", "7/masks/0.png", "maps/7.png"])
def test_masks_one_folder_too_deep_are_faults(tmp_path: Path, path: str) -> None:
    save(np.eye(4, dtype=np.uint8), tmp_path / path)
    save(np.eye(4, dtype=np.uint8), tmp_path / "8/0.png")
    codes = {fault["code"] for row in read_predictions("pbench", tmp_path) for fault in row["pred_faults"]}
    assert codes <= {"unreadable_mask", "unknown_row"}
    assert codes


def test_check_warns_of_inverted_and_whole_masks(tmp_path: Path) -> None:
    disc = soft_disc(20, 30) > 127
    corner = np.zeros((20, 30), bool)
    corner[:5, :5] = True
    for k, mask in enumerate([disc, ~disc, corner, ~corner, np.ones((20, 30), bool)]):
        save(mask.astype(np.uint8) * 255, tmp_path / f"7/{k}.png")
    warnings = {group.code: [fault.text for fault in group.examples] for group in check("pbench", tmp_path).warnings}
    assert warnings == {"inverted_mask": ["mask 1 of 20 x 30"], "whole_image": ["mask 4 of 20 x 30"]}


def test_check_of_a_file_that_cannot_be_read_says_so_alone(tmp_path: Path) -> None:
    save(soft_disc(20, 30), tmp_path / "7.png")
    report = check("pbench", tmp_path)
    assert [group.code for group in report.errors] == ["unreadable_mask"]
    assert report.warnings == ()
    assert "RLE" not in str(report)
