"""Folders of PNGs: masks by file, label maps by value."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import fsspec
import numpy as np
import pytest
from PIL import Image

from bench_datasets.faults import BenchError
from bench_datasets.predictions import read_predictions

from .dense_masks import Dense, assert_masks


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
    (tmp_path / "1/4.jpg").write_bytes(b"x")
    save(np.dstack([good, good, good, good * 7]), tmp_path / "1/5.png")
    save(good, tmp_path / "1/6.png")
    save(np.dstack([good, good, good]), tmp_path / "2.png")
    save(good, tmp_path / "three/0.png")
    save(good, tmp_path / "level_9/1/0.png")
    read = {row["id"]: row for row in read_predictions("pbench", tmp_path)}
    assert [mask is None for mask in read[1]["pred_masks"]] == [False, True, True, True, True, True, False]
    for fault, i in zip(read[1]["pred_faults"], range(1, 6), strict=True):
        assert fault["code"] == "malformed_mask"
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
    assert row["pred_faults"][0]["code"] == "malformed_mask"


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
