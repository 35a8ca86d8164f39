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
from bench_datasets.data import open_truth

from ..support.loading import load_file
from ..support.markdown_blocks import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def adapters() -> Any:
    return load_file(ROOT / "examples" / "adapters.py")


def test_examples_in_docstrings_run(adapters: Any) -> None:
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


def disc(height: int = 60, width: int = 80) -> np.ndarray:
    """Probabilities of a disc with a soft edge; the disc itself is where they are above 0.5."""
    y, x = np.mgrid[:height, :width]
    return 1 / (1 + np.exp((np.hypot(y - height / 2, x - width / 2) - 7) / 3))


class Tensor:
    """What the adapter asks of a tensor that has gradients: NumPy can only read what is detached and on the CPU."""

    def __init__(self, values: np.ndarray, *, detached: bool = False) -> None:
        self.values, self.detached = np.asarray(values), detached

    def detach(self) -> Tensor:
        return Tensor(self.values, detached=True)

    def cpu(self) -> Tensor:
        return self

    def is_floating_point(self) -> bool:
        return self.values.dtype.kind == "f"

    def float(self) -> Tensor:
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if not self.detached:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self.values


def test_from_sam_cuts_probabilities_at_half_and_logits_at_zero(adapters: Any) -> None:
    soft = disc()
    expected = (soft > 0.5).astype(np.uint8)
    logits = np.log(soft / (1 - soft))
    forms = (soft[None], soft[None, None], logits[None], [Tensor(soft)], Tensor(soft[None]), expected[None] * 255)
    forms = (*forms, expected.astype(bool)[None], [Image.fromarray(expected * 255)])
    for form in forms:
        (mask,) = adapters.from_sam("k", form)["masks"]
        np.testing.assert_array_equal(coco.decode(mask), expected)
    (mask,) = adapters.from_sam("k", (soft * 255).astype(np.uint8)[None], threshold=127)["masks"]
    np.testing.assert_array_equal(coco.decode(mask), (soft * 255).astype(np.uint8) > 127)


@pytest.mark.parametrize("masks", [None, [], np.zeros((0, 5, 5)), np.zeros((0, 1, 5, 5), bool), ()])
@pytest.mark.parametrize("scores", [None, []])
def test_from_sam_without_masks_gives_none(adapters: Any, masks: Any, scores: Any) -> None:
    assert adapters.from_sam("k", masks, scores) == {"key": "k", "masks": []}


def test_from_sam_leaves_scores_out_where_one_is_none(adapters: Any) -> None:
    masks = np.ones((2, 3, 4), bool)
    assert "scores" not in adapters.from_sam("k", masks, [0.5, None])
    assert adapters.from_sam("k", masks, [Tensor(np.array(0.5)), Tensor(np.array(0.25))])["scores"] == [0.5, 0.25]


def test_from_sam_takes_the_best_of_several_masks_per_prompt(adapters: Any) -> None:
    parts = np.zeros((2, 3, 4, 4), bool)
    for prompt in range(2):
        for k in range(3):
            parts[prompt, k, : k + 1] = True
    line = adapters.from_sam("k", parts, np.array([[0.1, 0.9, 0.2], [0.3, 0.1, 0.8]]))
    assert [int(coco.area(mask)) for mask in line["masks"]] == [8, 12]
    assert line["scores"] == [0.9, 0.8]
    with pytest.raises(ValueError, match="give their scores"):
        adapters.from_sam("k", parts)


@pytest.mark.parametrize(
    ("masks", "scores", "told"),
    [
        ((disc() * 255)[None], None, "threshold="),
        ((disc() * 255).astype(np.uint8)[None], None, "threshold="),
        (disc()[None] * np.nan, None, "finite"),
        (disc() > 0.5, None, r"write masks\[None\]"),
        (np.ones((1, 2, 2), bool), [1.0, 2.0], "one score per mask"),
    ],
)
def test_from_sam_refuses_what_is_ambiguous(adapters: Any, masks: Any, scores: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        adapters.from_sam("k", masks, scores)


def test_from_sa2va_cuts_grey_and_coloured_pictures(adapters: Any, tmp_path: Path) -> None:
    grey = (disc() * 255).astype(np.uint8)
    Image.fromarray(grey).save(tmp_path / "grey.png")
    Image.fromarray(np.where(disc()[..., None] > 0.5, (200, 0, 30), 0).astype(np.uint8)).save(tmp_path / "red.png")
    found = {line["expression_id"]: coco.decode(line["mask"]) for line in adapters.from_sa2va(tmp_path)}
    np.testing.assert_array_equal(found["grey"], grey > 127)
    np.testing.assert_array_equal(found["red"], disc() > 0.5)


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
