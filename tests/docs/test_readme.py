"""The README is true: its blocks run, in order, somewhere else; what it says of the code is the code's own."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as coco
from scipy import ndimage

import bench_datasets as bd
from bench_datasets.benchmark import BENCHMARKS, get_benchmark
from bench_datasets.cli.demo import demo
from bench_datasets.data import open_truth

from ..support.markdown_blocks import ROOT, blocks, environment, run

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
NOT_RUN = ("make demo", "pip install")
"""Blocks that fetch packages begin so."""


def small_refcoco(folder: Path) -> None:
    """RefCOCO's two files, with one image, two dogs and two refs."""
    square = {"image_id": 1, "category_id": 18, "iscrowd": 0}
    corners = ([2, 2, 12, 2, 12, 12, 2, 12], [20, 2, 30, 2, 30, 12, 20, 12])
    instances = {
        "images": [{"id": 1, "file_name": "1.jpg", "height": 30, "width": 40}],
        "categories": [{"id": 18, "name": "dog"}],
        "annotations": [{**square, "id": k + 1, "segmentation": [c]} for k, c in enumerate(corners)],
    }
    refs = [
        {
            "ref_id": k, "ann_id": k, "image_id": 1, "category_id": 18, "split": "val", "file_name": "1.jpg",
            "sentences": [{"sent_id": k, "sent": f"the {word} dog"}, {"sent_id": k + 9, "sent": f"dog, {word}"}],
        }
        for k, word in ((1, "left"), (2, "right"))
    ]  # fmt: skip
    (folder / "instances.json").write_text(json.dumps(instances))
    (folder / "refs(unc).p").write_bytes(pickle.dumps(refs, protocol=2))


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Variables that name a Hub of one's own, and a user who may write there."""
    root = tmp_path_factory.mktemp("hub")
    command = [sys.executable, str(ROOT / "tests" / "support" / "localhub.py"), "--root", str(root), "--port", "0"]
    with subprocess.Popen([*command, "--user=alice=hf_alice:acme"], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", server.stderr.readline())
        assert found is not None
        yield {
            "HF_ENDPOINT": found[0], "HF_TOKEN": "hf_alice", "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1",
        }  # fmt: skip
        server.terminate()


def most_vivid() -> float:
    """By pixels: the mean IoU of InstanceBench's targets with the most vivid thing in their pictures."""
    found = []
    for row in open_truth("instancebench", "sample", images=True):
        vivid = np.asarray(row["image"].convert("HSV"))[..., 1]
        labels, count = ndimage.label(ndimage.binary_opening(vivid > 170, iterations=2))
        things = [labels == k for k in range(1, count + 1)]
        best = max(things, key=lambda thing: vivid[thing].mean(), default=np.zeros(vivid.shape, bool))
        target = coco.decode(row["candidates"][row["target"]]["mask"]).astype(bool)
        found.append((best & target).sum() / (best | target).sum())
    return float(np.mean(found))


def test_blocks_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    demo(str(folder / "demo"))
    small_refcoco(folder)
    shell = environment(tmp_path / "bin")
    chosen = [block for block in blocks(README) if not block.text.startswith(NOT_RUN)]
    kinds = ["bash", "python", "bash", "python", *["bash"] * 2, "python", *["bash"] * 2, "bibtex"]
    assert [block.language for block in chosen] == kinds

    run(chosen[:-2], shell, folder)
    *_, grounded, tracked = capsys.readouterr().out.splitlines()
    assert float(grounded.split()[0]) == pytest.approx(most_vivid(), abs=1e-9)
    assert [float(word) for word in tracked.split()] == [0, pytest.approx(0.0483, abs=1e-4)]
    averages = {"run": 0.8589, "my_run": bd.Result.load("my_run").metrics["average"].value}
    for name, average in averages.items():
        result = bd.Result.load(name)
        again = bd.summarize("pbench", bd.read_scores(name), draws=0)
        assert result.metrics["average"].value == pytest.approx(average, abs=1e-4)
        assert again.metrics["average"].value == result.metrics["average"].value
    assert bd.Result.load("instance_run").benchmark == "instancebench"
    assert bd.Result.load("pvsg_run").metrics["R@20/0.5"].value == pytest.approx(0.7857, abs=1e-4)
    (converted,) = [json.loads(line) for line in Path("data/test.jsonl").read_text().splitlines()][:1]
    assert len(converted["expressions"]) == 2
    assert Path("report.html").stat().st_size > 10_000
    assert "data:image/" in Path("run.html").read_text(encoding="utf-8")

    swaps = {"ORG/MODEL": "acme/model", "ORG/RESULTS": "acme/results"}
    _make_model(hub)
    run([chosen[-2]], {**shell, **hub}, folder, swaps)


def _make_model(hub: dict[str, str]) -> None:
    code = "import huggingface_hub; huggingface_hub.create_repo('acme/model')"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **hub}, check=True)


def test_what_is_not_run_fetches_packages() -> None:
    left_out = [b.text for b in blocks(README) if b.language == "bash" and b.text.startswith(NOT_RUN)]
    assert len(left_out) == 2
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = {a or b for a, b in re.findall(r"^make (\w+)|`make (\w+)`", TEXT, re.MULTILINE)}
    assert {"demo", "test", "docs"} <= named <= set(targets)
    extras = re.findall(r"\.\[(\w+)\]", TEXT)
    assert all(re.search(rf"^{name} = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE) for name in extras)


def test_comparable_to_is_the_codes() -> None:
    rows = [line for line in TEXT.split("## What is the same")[1].split("## ")[0].splitlines() if line.startswith("| ")]
    for name, title in (("pbench", "PBench"), ("instancebench", "InstanceBench"), ("pvsg", "PVSG")):
        (row,) = [row for row in rows if row.startswith(f"| {title}")]
        published, ours = row.split("|")[2:4]
        for protocol in BENCHMARKS[name].protocols.values():
            if protocol.comparable_to is None:
                assert f"`{protocol.name}`" in ours
            elif name == "pvsg" and protocol.weak:
                assert f"`{protocol.name}`: to its 0.1 column" in published
            else:
                assert protocol.comparable_to in published
    assert f"all {sum(BENCHMARKS['pbench'].source.rows.values()):,} rows" in TEXT
    assert f"test set of {BENCHMARKS['instancebench'].source.rows['test']:,}" in TEXT


def test_citations_are_the_benchmarks_own() -> None:
    (block,) = [b.text for b in blocks(README) if b.language == "bibtex"]
    assert block.strip().splitlines() == [entry.citation for entry in map(get_benchmark, BENCHMARKS.own)]


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", TEXT):
        if link.startswith("http"):
            assert link.split("/")[2] == "huggingface.co"
            continue
        file, _, anchor = link.partition("#")
        assert (ROOT / file).is_file(), link
        titles = re.findall(r"^#+ (.+)$", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
        slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
        assert not anchor or anchor in slugs, link


def test_the_picture_is_small() -> None:
    (picture,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", TEXT)
    data: Any = (ROOT / picture).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(data) < 200_000


def test_it_is_short() -> None:
    for number, line in enumerate(TEXT.splitlines(), 1):
        assert len(line) <= 120 or line.startswith(("|", "@")), f"line {number}: {len(line)} characters"
    assert len(TEXT.splitlines()) < 240
