"""PNG files whose pixels Pillow changes when it reads them, or whose palette hides which value is the background."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as coco

from bench_datasets.benchmarks.pvsg.frames import read_label_map as read_truth_map
from bench_datasets.faults import BenchError
from bench_datasets.predictions.files import Location, locate
from bench_datasets.predictions.formats.png import read_label_map, read_mask

IDS = np.array([[0, 0, 1, 1], [0, 2, 2, 1], [3, 3, 0, 0]], np.uint8)


def png(values: np.ndarray[Any, Any], depth: int, kind: int) -> bytes:
    """A PNG of grey values of `depth` bits (kind 0) or colours (kinds 2, 4, 6), written here because Pillow cannot."""
    height, width = values.shape[:2]
    if depth == 16:
        rows = [b"\0" + row.astype(">u2").tobytes() for row in values]
    else:
        bits = np.unpackbits(values[..., None].astype(np.uint8), axis=-1)[..., 8 - depth :]
        rows = [b"\0" + np.packbits(row.reshape(-1)).tobytes() for row in bits]

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"".join(rows)))
        + chunk(b"IEND", b"")
    )


def located(tmp_path: Path, data: bytes) -> Location:
    (tmp_path / "0.png").write_bytes(data)
    return locate(tmp_path / "0.png")


@pytest.mark.parametrize("depth", [2, 4, 8])
def test_label_map_of_few_bits_keeps_its_ids(depth: int, tmp_path: Path) -> None:
    data = png(IDS, depth, 0)
    found = read_label_map(located(tmp_path, data))
    assert {label: coco.decode(mask).tolist() for label, mask in found.items()} == {
        label: (label == IDS).astype(int).tolist() for label in (1, 2, 3)
    }
    assert read_truth_map(data, 100, "0.png").tolist() == IDS.tolist()


@pytest.mark.parametrize(("kind", "channels"), [(2, 3), (4, 2), (6, 4)])
@pytest.mark.parametrize("value", [1, 255, 40 * 256, 65535])
def test_colours_of_16_bits_are_refused(kind: int, channels: int, value: int, tmp_path: Path) -> None:
    pixels = np.repeat((IDS > 0)[..., None] * value, channels, axis=2)
    file = located(tmp_path, png(pixels, 16, kind))
    for read in (read_mask, read_label_map):
        with pytest.raises(
            BenchError, match=r"0\.png: expected one channel, or channels of 8 bits, found channels of 16"
        ):
            read(file)


def test_grey_of_16_bits_is_read(tmp_path: Path) -> None:
    mask = read_mask(located(tmp_path, png((IDS == 2) * 300, 16, 0)))
    assert coco.decode(mask).tolist() == (IDS == 2).astype(int).tolist()


def palette(indices: np.ndarray[Any, Any], *colours: int) -> bytes:
    image = Image.fromarray(indices)
    image.putpalette(list(colours))
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def test_palette_with_the_background_at_another_index_is_refused(tmp_path: Path) -> None:
    image = Image.fromarray(np.where(IDS[..., None] > 0, 255, 0).astype(np.uint8).repeat(3, axis=2)).quantize(2)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    black = int(np.asarray(image)[0, 0])
    data = stream.getvalue() if black else palette(1 - np.asarray(image), 255, 255, 255, 0, 0, 0)
    for read in (read_mask, read_label_map):
        with pytest.raises(
            BenchError, match=r"0\.png: expected palette index 0 as the background, found index 0 of the"
        ):
            read(located(tmp_path, data))
    with pytest.raises(BenchError, match=r"0\.png: expected palette index 0 as the background"):
        read_truth_map(data, 100, "0.png")


@pytest.mark.parametrize(
    "colours",
    [(0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255), (9, 9, 9, 255, 0, 0, 0, 255, 0, 0, 0, 255),
     (255, 255, 255, 255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0)],
    ids=["black first", "no black", "black not used"],
)  # fmt: skip
def test_palette_with_the_background_at_index_0_is_read(colours: tuple[int, ...], tmp_path: Path) -> None:
    assert list(read_label_map(located(tmp_path, palette(IDS, *colours)))) == [1, 2, 3]


def test_animated_png_is_refused(tmp_path: Path) -> None:
    frames = [Image.fromarray((k == IDS).astype(np.uint8) * 255) for k in (1, 2)]
    stream = io.BytesIO()
    frames[0].save(stream, "PNG", save_all=True, append_images=frames[1:])
    with pytest.raises(BenchError, match=r"0\.png: expected one image, found an animated PNG"):
        read_mask(located(tmp_path, stream.getvalue()))
    with pytest.raises(BenchError, match="found an animated PNG"):
        read_truth_map(stream.getvalue(), 100, "0.png")
