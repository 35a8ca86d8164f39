"""The examples work: notebooks run offline, adapters turn perfect outputs into perfect scores."""

from __future__ import annotations

import doctest
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as coco

import bench_datasets as bd
from bench_datasets.builders import open_truth

from ..blocks import ROOT
from ..loading import load_file

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def adapters() -> Any:
    return load_file(ROOT / "examples" / "adapters.py")


def test_their_own_examples(adapters: Any) -> None:
    done = doctest.testmod(adapters)
    assert done.attempted >= 3
    assert done.failed == 0


def test_perfect_arrays_score_one(adapters: Any, tmp_path: Path) -> None:
    truth = open_truth("pbench", "sample")
    lines, falcon = [], []
    for row in truth:
        size = row["masks"][0]["size"] if row["masks"] else [2, 2]
        masks = np.array([coco.decode(mask) for mask in row["masks"]], bool).reshape(-1, 1, *size)
        lines.append(adapters.from_sam(row["key"], masks, np.ones((len(masks), 1))))
        encoded = [{**mask, "counts": mask["counts"].encode()} for mask in row["masks"]]
        place = {"xy": {"x": 0.5, "y": 0.5}, "hw": {"h": 0.1, "w": 0.1}}
        falcon.append(adapters.from_falcon(row["key"], [{**place, "mask_rle": mask} for mask in encoded]))
    for name, written in (("sam", lines), ("falcon", falcon)):
        file = adapters.write(written, tmp_path / f"{name}.jsonl")
        result = bd.summarize("pbench", bd.score("pbench", truth, bd.read_predictions("pbench", file)), draws=0)
        assert result.metrics["average"].value == 1.0, name
    assert any(part.by == "position" for part in result.slices)


def test_perfect_pictures_and_boxes_score_one(adapters: Any, tmp_path: Path) -> None:
    truth = open_truth("instancebench", "sample")
    (tmp_path / "png").mkdir()
    boxes = []
    for row in truth:
        target = coco.decode(row["candidates"][row["target"]]["mask"])
        ys, xs = np.nonzero(target)
        height, width = target.shape
        corners = [xs.min() / width, ys.min() / height, (xs.max() + 1) / width, (ys.max() + 1) / height]
        for one in row["expressions"]:
            Image.fromarray(target * 255).save(tmp_path / "png" / f"{one['expression_id']}.png")
            boxes.append(adapters.from_boxes(one["expression_id"], [1000 * v for v in corners], (height, width)))
    pictures = adapters.write(adapters.from_sa2va(tmp_path / "png"), tmp_path / "pictures.jsonl")
    boxed = adapters.write(boxes, tmp_path / "boxes.jsonl")
    for file, key in ((pictures, "miou"), (tmp_path / "png", "miou"), (boxed, "box_acc@0.5")):
        scores = bd.score("instancebench", truth, bd.read_predictions("instancebench", file))
        assert bd.summarize("instancebench", scores, draws=0).metrics[key].value == 1.0


def test_notebooks_hold_no_output() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["instancebench", "pbench", "pvsg"]
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in cells), path.name


def test_notebooks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
    pytest.importorskip("ipykernel", reason="needs ipykernel")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))

    def execute(path: Path) -> str:
        notebook = nbformat.read(path, 4)
        client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
        client.execute()
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
        return "".join(str(output.get("data", {}).get("text/html", "")) for output in outputs)

    with ThreadPoolExecutor(len(NOTEBOOKS)) as pool:
        shown = dict(zip([path.stem for path in NOTEBOOKS], pool.map(execute, NOTEBOOKS), strict=True))
    for name, html in shown.items():
        assert re.search(r"<table|<img", html), name
