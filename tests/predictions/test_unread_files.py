"""Files of a folder that its format does not read are named, so that a missing prediction has a visible cause."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import bench_datasets as bd
from bench_datasets.predictions import read_predictions

MASK = np.eye(4, dtype=bool)
LINE = json.dumps({"id": 2, "masks": [{"size": [4, 4], "counts": [16]}]}) + "\n"


def write(folder: Path, kind: str) -> None:
    for i in range(2):
        if kind == "npz":
            np.savez(folder / f"{i}.npz", masks=MASK[None])
        elif kind == "npy":
            np.save(folder / f"{i}.npy", MASK[None])
        elif kind == "png":
            Image.fromarray(MASK.astype(np.uint8) * 255).save(folder / f"{i}.png")
        else:
            (folder / f"p{i}.jsonl").write_text(LINE.replace("2", str(i), 1))


@pytest.mark.parametrize("other", ["2.json", "p2.jsonlines", "2.npz.gz", "2.png.tmp"])
@pytest.mark.parametrize("kind", ["npz", "npy", "png", "jsonl"])
def test_file_of_another_format_beside_those_that_are_read_is_noted(kind: str, other: str, tmp_path: Path) -> None:
    write(tmp_path, kind)
    (tmp_path / other).write_text(LINE)
    if (kind, other) == ("jsonl", "2.json"):
        pytest.skip("this format reads such files")
    read = read_predictions("pbench", tmp_path)
    assert len(read) == 2
    (fault,) = read["pred_faults"][0]
    assert fault["code"] == "ignored_file"
    assert f"'{other}': not read; the folder is read as {kind}" in fault["text"]
    assert read["pred_faults"][1] == []
    assert "ignored_file" in {group.code for group in bd.check("pbench", tmp_path).warnings}


@pytest.mark.parametrize("other", ["readme.md", "log.txt", ".DS_Store", "metadata.csv", "result.json"])
def test_file_that_is_no_prediction_is_not_noted(other: str, tmp_path: Path) -> None:
    write(tmp_path, "npz")
    (tmp_path / other).write_text("x")
    assert read_predictions("pbench", tmp_path)["pred_faults"][:] == [[], []]
