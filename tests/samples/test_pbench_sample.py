"""The sample's files: the source's layout, exact masks, expressions that are true of the pictures."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import datasets.config
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from pycocotools import mask as coco

from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.data import sample_cache
from bench_datasets.samples import pbench_sample_dir
from bench_datasets.samples.pbench import paint, sample_files, sample_rows, write_sample

LABELS_SHA256 = "9780f52b68c3c4ec6199367ffc8a945dce22d2c86d4051d4c17e8bfe3ea7a3aa"
"""Of ids, expressions and masks, which are to be the same on every machine; to be renewed with the scenes."""


def decoded(row: dict[str, Any]) -> list[np.ndarray]:
    """A row's masks as pycocotools reads them."""
    return [
        coco.decode({"size": mask["size"], "counts": mask["counts"].encode()}).astype(bool) for mask in row["masks"]
    ]


def digest(folder: Path) -> str:
    """SHA-256 of the label columns in a sample's folder."""
    sha = hashlib.sha256()
    for file in sample_files():
        for row in pq.read_table(folder / file, columns=["id", "expression", "count", "masks"]).to_pylist():
            sha.update(repr((row["id"], row["expression"], row["count"])).encode())
            for mask in row["masks"]:
                sha.update(repr((list(mask["size"]), mask["counts"])).encode())
    return sha.hexdigest()


def row_of(rows: list[dict[str, Any]], expression: str) -> dict[str, Any]:
    """The one row that asks for this."""
    (found,) = [row for row in rows if row["expression"] == expression and row["level"] != "dense"]
    return found


def test_schema_is_the_source_s(sample: Path, shared: Path) -> None:
    """Column names, types and the metadata that datasets reads are those of the source's own export."""
    for file in sample_files():
        theirs = pq.read_schema(shared / "data" / "pbench_mini" / file)
        ours = pq.read_schema(sample / file)
        assert ours.equals(theirs, check_metadata=False)
        assert ours.metadata[b"huggingface"] == theirs.metadata[b"huggingface"]


def test_every_level_is_there_and_ids_are_unique(rows: list[dict[str, Any]]) -> None:
    """Ids are unique over all levels; expressions within a level and picture."""
    assert set(PBENCH_LEVELS) == {row["level"] for row in rows}
    assert max(Counter(row["id"] for row in rows).values()) == 1
    assert max(Counter((row["image"]["path"], row["expression"]) for row in rows).values()) == 1


def test_counts(rows: list[dict[str, Any]]) -> None:
    """`count` is the number of masks; one row is very crowded, few have no answer, the others some."""
    assert [row["count"] for row in rows] == [len(row["masks"]) for row in rows]
    assert max(row["count"] for row in rows if row["level"] == "dense") > 150
    assert [row["expression"] for row in rows if not row["masks"]] == ["umbrella", "sign that reads PHARMACY"]


def test_masks_are_what_is_seen(rows: list[dict[str, Any]]) -> None:
    """Each mask is exactly where the painter's map shows its thing; none is empty, and within a row none overlap."""
    for row, asked in zip(rows, sample_rows(), strict=True):
        labels = paint(asked.scene).labels
        with Image.open(io.BytesIO(row["image"]["bytes"])) as image:
            assert image.format == "PNG"
            assert (image.height, image.width) == labels.shape
        masks = decoded(row)
        for mask, thing in zip(masks, asked.things, strict=True):
            assert mask.any()
            assert np.array_equal(mask, labels == thing)
        assert not masks or np.sum(masks, axis=0).max() == 1


def test_layout_and_size_are_true_of_the_masks(rows: list[dict[str, Any]]) -> None:
    """Where an expression says "leftmost" and the like, the masks of all things of that kind say so too."""
    cars, jars = decoded(row_of(rows, "car")), decoded(row_of(rows, "jar"))
    airborne = decoded(row_of(rows, "hot-air balloon"))

    def left(mask: np.ndarray) -> int:
        return int(np.flatnonzero(mask.any(axis=0))[0])

    def bottom(mask: np.ndarray) -> int:
        return int(np.flatnonzero(mask.any(axis=1))[-1])

    for expression, expected in {
        "leftmost car": min(cars, key=left),
        "second jar from the left": sorted(jars, key=left)[1],
        "lowest hot-air balloon": max(airborne, key=bottom),
        "largest hot-air balloon": max(airborne, key=np.count_nonzero),
    }.items():
        (mask,) = decoded(row_of(rows, expression))
        assert np.array_equal(mask, expected), expression


@pytest.mark.parametrize(
    ("expression", "channels"),
    [("red balloon", "r>g r>b"), ("yellow car", "r>b g>b"), ("blue mug", "b>r b>g"), ("green apple", "g>r g>b")],
)
def test_colours_are_true_of_the_picture(rows: list[dict[str, Any]], expression: str, channels: str) -> None:
    """Where an expression names a colour, the median pixel under the mask has it."""
    row = row_of(rows, expression)
    pixels = np.asarray(Image.open(io.BytesIO(row["image"]["bytes"])).convert("RGB"))
    for mask in decoded(row):
        colour = dict(zip("rgb", np.median(pixels[mask], axis=0), strict=True))
        for more, less in (pair.split(">") for pair in channels.split()):
            assert colour[more] > colour[less] + 15


def test_labels_are_the_same_everywhere(sample: Path, tmp_path: Path) -> None:
    """Another drawing from scratch, and this one, both have the digest that is written here."""
    paint.cache_clear()
    write_sample(tmp_path)
    assert digest(tmp_path) == digest(sample) == LABELS_SHA256


def test_is_drawn_once_and_mended(sample: Path) -> None:
    """A whole folder is left alone; a missing file comes back and the others stay."""
    kept, lost = (sample / file for file in sample_files()[:2])
    before = kept.stat().st_mtime_ns
    assert pbench_sample_dir() == str(sample)
    content = lost.read_bytes()
    lost.unlink()
    assert pbench_sample_dir() == str(sample)
    assert lost.read_bytes() == content
    assert kept.stat().st_mtime_ns == before
    assert [path.name for path in sample.parent.iterdir() if path.name.startswith(".pbench")] == []


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the sample is in a temporary folder, and the same one at the next call."""
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setattr(datasets.config, "HF_CACHE_HOME", str(blocked))
    first = pbench_sample_dir()
    assert first == pbench_sample_dir()
    assert digest(Path(first)) == LABELS_SHA256


def test_an_error_in_the_drawing_is_not_swallowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing half-made stays behind."""
    monkeypatch.setattr(datasets.config, "HF_CACHE_HOME", str(tmp_path))

    def fail(folder: Path) -> None:
        (folder / "a").write_text("half")
        raise KeyError("b")

    with pytest.raises(KeyError):
        sample_cache.built("broken", ["a"], fail)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_two_processes_at_once(tmp_path: Path) -> None:
    """Both end with the same whole folder."""
    code = (
        f"import datasets.config; datasets.config.HF_CACHE_HOME = {str(tmp_path)!r}\n"
        "from bench_datasets.samples import pbench_sample_dir\n"
        "print(pbench_sample_dir())"
    )
    root = Path(__file__).resolve().parents[2]
    both = [
        subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    first, second = (process.communicate()[0].strip() for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert first == second
    assert digest(Path(first)) == LABELS_SHA256
    assert not [path for path in tmp_path.rglob("*") if path.is_dir() and path.name.startswith(".")]
