"""The InstanceBench sample: exact masks, words that are true of the drawings, models that differ as they should."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import load_dataset
from PIL import Image
from pycocotools import mask as coco

import bench_datasets.data as builders
from bench_datasets.benchmarks.instancebench.vocabulary import OPERATIONS, SYNONYMS
from bench_datasets.faults import BenchError
from bench_datasets.samples import SAMPLE_MODELS, instancebench_sample_dir, instancebench_sample_predictions
from bench_datasets.samples.instancebench import sample_files, sample_sets, write_sample
from bench_datasets.samples.instancebench_models import write_predictions
from bench_datasets.samples.pbench import paint

MANIFEST_SHA256 = "c7be8ac45040c9ee394c41140977bbcbb9ec30aa5e9b989d01a8be0f56cb2d56"
"""Of the manifest, which is to be the same on every machine; to be renewed with the scenes and the sets."""


@pytest.fixture(scope="module")
def root(sample_cache: Path) -> Path:
    """The sample's folder."""
    return Path(instancebench_sample_dir())


@pytest.fixture(scope="module")
def lines(root: Path) -> list[dict[str, Any]]:
    """The manifest."""
    return [json.loads(line) for line in (root / "test.jsonl").read_text("utf-8").splitlines()]


def decoded(mask: dict[str, Any]) -> np.ndarray:
    """A mask as pycocotools reads it."""
    return np.asarray(coco.decode({"size": mask["size"], "counts": mask["counts"].encode()}), dtype=bool)


def masks(line: dict[str, Any]) -> dict[str, np.ndarray]:
    """A set's candidates that are no crowds, by id."""
    return {c["instance_id"]: decoded(c["segmentation"]) for c in line["candidates"] if not c["iscrowd"]}


def test_it_has_some_of_everything(lines: list[dict[str, Any]]) -> None:
    assert len(lines) >= 12
    assert len({line["image_id"] for line in lines}) >= 5
    core: Counter[tuple[str, str]] = Counter()
    for line in lines:
        roles = Counter(e["role"] for e in line["expressions"])
        assert (roles["minimal"], roles["variant"]) == (1, 1)
        for e in line["expressions"]:
            if e["role"] in ("minimal", "variant"):
                core[line["source"], SYNONYMS.get(e["operation"], e["operation"])] += 1
    assert set(core) == {(source, operation) for source in ("coco", "openimages") for operation in OPERATIONS}
    said = [e for line in lines for e in line["expressions"]]
    assert {e["role"] for e in said} == {"minimal", "variant", "paraphrase", "extra"}
    assert any(e["role"] == "extra" and e["operation"] == "negation_or_exclusion" for e in said)
    assert sum("donor_expression_id" in e for e in said) >= 4
    assert sum(c["iscrowd"] for line in lines for c in line["candidates"]) == 1
    assert max(Counter(e["expression_id"] for e in said).values()) == 1
    assert max(Counter((line["image_id"], e["text"]) for line in lines for e in line["expressions"]).values()) == 1


def test_masks_are_what_is_seen(root: Path, lines: list[dict[str, Any]]) -> None:
    """Each mask is where the painter's map shows its thing; within a set none overlap, crowds included."""
    for line, sample in zip(lines, sample_sets(), strict=True):
        labels = paint(sample.asked.scene).labels
        with Image.open(root / line["image"]) as image:
            assert (image.height, image.width) == (line["height"], line["width"]) == labels.shape
        for name, mask in masks(line).items():
            assert mask.any()
            assert np.array_equal(mask, labels == int(name))
        everything = [decoded(c["segmentation"]) for c in line["candidates"]]
        assert np.sum(everything, axis=0).max() == 1
        for candidate, mask in zip(line["candidates"], everything, strict=True):
            counts = candidate["segmentation"]["counts"].encode()
            assert candidate["bbox"] == list(coco.toBbox({"size": list(mask.shape), "counts": counts}))


def test_layout_and_size_are_true_of_the_masks(lines: list[dict[str, Any]]) -> None:
    """Where the words speak of places and sizes, the masks say so too."""

    def left(mask: np.ndarray) -> float:
        return float(np.flatnonzero(mask.any(axis=0)).mean())

    def bottom(mask: np.ndarray) -> float:
        return float(np.flatnonzero(mask.any(axis=1))[-1])

    def area(mask: np.ndarray) -> float:
        return float(mask.sum())

    rules = {
        "leftmost": (left, 0),
        "farthest to the left": (left, 0),
        "second person from the left": (left, 1),
        "second jar from the left": (left, 1),
        "second mug from the left": (left, 1),
        "second, counted from the left": (left, 1),
        "rightmost": (left, -1),
        "farthest to the right": (left, -1),
        "second balloon from the right": (left, -2),
        "second, counted from the right": (left, -2),
        "lowest": (bottom, -1),
        "smallest": (area, 0),
        "smaller": (area, 0),
        "largest": (area, -1),
    }
    checked = Counter[str]()
    for line in lines:
        for e in line["expressions"]:
            for words, (measure, place) in rules.items():
                if words in e["text"]:
                    found = masks(line)
                    assert sorted(found, key=lambda name: measure(found[name]))[place] == line["target"], e["text"]
                    checked[words] += 1
    assert set(checked) == set(rules)


def test_colours_are_true_of_the_pictures(root: Path, lines: list[dict[str, Any]]) -> None:
    """Where the words name one colour and nothing else, the median pixel under the mask has it."""
    colours = {
        "the blue bird": "b>r b>g",
        "the blue car": "b>r b>g",
        "the boat with red sails": "r>g r>b",
        "the balloon that is red all over": "r>g r>b",
        "the brown dog": "r>g g>b",
    }
    seen = set()
    for line in lines:
        for e in line["expressions"]:
            if e["text"] in colours:
                seen.add(e["text"])
                pixels = np.asarray(Image.open(root / line["image"]).convert("RGB"))
                colour = dict(zip("rgb", np.median(pixels[masks(line)[line["target"]]], axis=0), strict=True))
                for more, less in (pair.split(">") for pair in colours[e["text"]].split()):
                    assert colour[more] > colour[less] + 15, e["text"]
    assert seen == set(colours)


def test_the_manifest_is_the_same_everywhere(root: Path, tmp_path: Path) -> None:
    write_sample(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")) == sorted(sample_files())
    digests = {hashlib.sha256((folder / "test.jsonl").read_bytes()).hexdigest() for folder in (root, tmp_path)}
    assert digests == {MANIFEST_SHA256}


def test_the_builder_reads_it(lines: list[dict[str, Any]]) -> None:
    data = load_dataset("instancebench", "sample", split="test")
    assert data["key"][:] == [line["tces_id"] for line in lines]
    assert [row["faults"] for row in data if row["faults"]] == [["crowd_candidate"]]
    facts = builders.provenance(data)
    assert facts is not None
    assert (facts["source"], facts["rows"]) == ("sample", {"test": len(lines)})
    by_target = {row["key"]: row["candidates"][row["target"]]["mask"] for row in data}
    for row, line in zip(data, lines, strict=True):
        for got, given in zip(row["expressions"], line["expressions"], strict=True):
            donor = given.get("donor_expression_id")
            assert got["donor_mask"] == (None if donor is None else by_target[donor.rsplit("-", 1)[0]])
            assert got["donor_mask"] != by_target[row["key"]]
    with pytest.raises(BenchError, match="is built in"):
        load_dataset("instancebench", "sample", data_dir="somewhere")


def read(model: str) -> dict[tuple[str, str], dict[str, Any]]:
    """A model's masks by run and condition, then by expression."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for text in Path(instancebench_sample_predictions(model)).read_text("utf-8").splitlines():
        line = json.loads(text)
        group = found.setdefault((line.get("run", "0"), line.get("condition", "original")), {})
        assert line["expression_id"] not in group
        group[line["expression_id"]] = line["mask"]
    return found


@pytest.mark.parametrize("model", sorted(SAMPLE_MODELS))
def test_every_expression_is_answered(model: str, lines: list[dict[str, Any]], tmp_path: Path) -> None:
    sizes = {e["expression_id"]: [line["height"], line["width"]] for line in lines for e in line["expressions"]}
    for (_, condition), group in read(model).items():
        if condition == "original":
            assert set(group) == set(sizes)
        for name, mask in group.items():
            assert mask is None or (mask["size"] == sizes[name] and decoded(mask).any())
    write_predictions(model, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == Path(instancebench_sample_predictions(model)).read_bytes()


def test_sample_models_match_their_descriptions(lines: list[dict[str, Any]]) -> None:
    """Three runs that differ; conditions; nulls; and who takes another instance how often."""
    careful, hasty, shy = (read(model) for model in ("careful", "hasty", "crowd_shy"))
    assert set(careful) == {("0", "original"), ("1", "original"), ("2", "original")}
    assert careful["0", "original"] != careful["1", "original"] != careful["2", "original"]
    assert set(hasty) == {("0", "original"), ("0", "category_only"), ("0", "text_swap")}
    assert any(mask is None for mask in shy["0", "original"].values())
    by_expression = {e["expression_id"]: line for line in lines for e in line["expressions"]}
    donors = {e["expression_id"]: e.get("donor_expression_id") for line in lines for e in line["expressions"]}
    assert set(hasty["0", "text_swap"]) == {name for name, donor in donors.items() if donor}
    assert set(hasty["0", "category_only"]) == {line["expressions"][0]["expression_id"] for line in lines}

    def overlap(mask: Any, line: dict[str, Any]) -> float:
        truth = masks(line)[line["target"]]
        return 0.0 if mask is None else float((decoded(mask) & truth).sum() / (decoded(mask) | truth).sum())

    def mean(group: dict[str, Any]) -> float:
        return float(np.mean([overlap(mask, by_expression[name]) for name, mask in group.items()]))

    def switches(group: dict[str, Any]) -> int:
        found = 0
        for name, mask in group.items():
            others = masks(by_expression[name])
            hits = {other: int((decoded(mask) & others[other]).sum()) for other in others} if mask else {}
            found += bool(hits) and max(hits, key=lambda other: hits[other]) != by_expression[name]["target"]
        return found

    assert mean(careful["0", "original"]) > 0.75 > 0.65 > mean(hasty["0", "original"])
    assert switches(hasty["0", "original"]) > 2 * switches(careful["0", "original"]) > 0
    swapped = hasty["0", "text_swap"]
    followed = [overlap(m, by_expression[donors[k] or ""]) > overlap(m, by_expression[k]) for k, m in swapped.items()]
    assert np.mean(followed) > 0.7


def test_no_such_model() -> None:
    with pytest.raises(BenchError, match="careful, hasty, crowd_shy"):
        instancebench_sample_predictions("perfect")
