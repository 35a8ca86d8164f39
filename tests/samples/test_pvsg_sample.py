"""The PVSG sample: the layout, exact masks, relations that are true of the pictures, three models' answers."""

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
from bench_datasets.benchmarks.pvsg.truth import truth_features
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.faults import BenchError
from bench_datasets.samples import SAMPLE_MODELS, pvsg_sample_dir, pvsg_sample_predictions
from bench_datasets.samples.pvsg import FILMS, sample_files, write_sample
from bench_datasets.samples.pvsg_models import MANNERS

MASKS_SHA256 = "230145e8bd60e70524787aa25e0fc09ee1fa06808bda06634983bd8ca0becd7a"
"""Of all masks' pixel values, which are to be the same on every machine; to be renewed with the films."""

builders.register_all()


@pytest.fixture(scope="session")
def films(sample_cache: Path) -> Path:
    """The sample's folder."""
    return Path(pvsg_sample_dir())


def values(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        assert image.mode == "P"
        return np.asarray(image)


def digest(folder: Path) -> str:
    sha = hashlib.sha256()
    for file in sample_files():
        if "/masks/" in file:
            sha.update(file.encode() + values(folder / file).tobytes())
    return sha.hexdigest()


def masks_of(folder: Path, video_id: str) -> np.ndarray:
    """All label maps of a film, `(frames, height, width)`."""
    return np.stack([values(path) for path in sorted((folder / FILMS[video_id].source / "masks" / video_id).iterdir())])


def test_the_layout_is_the_release_s(films: Path, shared: Path) -> None:
    ours = json.loads((films / "pvsg.json").read_text())
    theirs = json.loads((shared / "data" / "pvsg_mini" / "pvsg.json").read_text())
    assert ours.keys() == theirs.keys()
    assert (ours["objects"], ours["relations"]) == (theirs["objects"], theirs["relations"])
    assert ours["split"].keys() == theirs["split"].keys()
    for entry in ours["data"]:
        assert entry.keys() == theirs["data"][0].keys()
        assert entry["meta"].keys() == theirs["data"][0]["meta"].keys()
        assert [item.keys() for item in entry["objects"]] == [theirs["data"][0]["objects"][0].keys()] * len(
            entry["objects"]
        )
    assert sorted(path.relative_to(films).as_posix() for path in films.rglob("*") if path.is_file()) == sorted(
        sample_files()
    )


def test_masks_are_the_same_everywhere(films: Path, tmp_path: Path) -> None:
    write_sample(tmp_path)
    assert digest(tmp_path) == digest(films) == MASKS_SHA256


def test_the_truth_rows(films: Path) -> None:
    data = load_dataset("pvsg", "sample", split="test")
    assert data.features == truth_features()
    assert Counter(code for codes in data["faults"] for code in codes) == {
        "unknown_predicate": 1,
        "span_clipped": 1,
        "self_relation": 1,
    }
    assert {row["source"] for row in data} == {"vidor", "epic_kitchen", "ego4d"}
    assert builders.provenance(data)["source"] == "sample"
    assert len(load_dataset("pvsg", "sample", split="train")) == 1
    for row in data:
        maps = masks_of(films, row["key"])
        assert (row["height"], row["width"], row["frames_present"]) == (200, 320, len(maps))
        assert any(not item["is_thing"] for item in row["objects"])
        for item, tube in zip(row["objects"], row["tubes"], strict=True):
            assert tube["frames"] == np.flatnonzero((maps == item["object_id"]).any(axis=(1, 2))).tolist()
            expected = coco.encode(np.asfortranarray(maps[tube["frames"][0]] == item["object_id"], dtype=np.uint8))
            assert tube["masks"][0] == {"size": expected["size"], "counts": expected["counts"].decode()}


def test_what_relations_say_is_to_be_seen(films: Path) -> None:
    """In every frame of a relation's spans both its objects are visible."""
    for film in FILMS.values():
        maps = masks_of(films, film.video_id)
        for subject_id, object_id, predicate, spans in film.relations:
            for first, last in spans:
                for label in (subject_id, object_id):
                    seen = (maps[first : last + 1] == label).any(axis=(1, 2))
                    assert seen.all(), (film.video_id, subject_id, predicate, object_id, label)
    park, kitchen, beach = (masks_of(films, name) for name in list(FILMS)[:3])

    def middle(maps: np.ndarray, label: int, frame: int) -> np.ndarray:
        return np.argwhere(maps[frame] == label).mean(axis=0)

    for frame in range(8, 30):  # the dog runs after the child, which rides above the bike
        assert middle(park, 3, frame)[1] < middle(park, 1, frame)[1]
        assert middle(park, 1, frame)[0] < middle(park, 2, frame)[0]
    assert middle(kitchen, 2, 13)[0] < middle(kitchen, 2, 0)[0] - 30  # the cup is lifted
    assert middle(beach, 2, 16)[1] > middle(beach, 2, 4)[1] + 100  # the ball flies to the child


def test_frames_are_the_pictures_of_the_masks(films: Path) -> None:
    data = load_dataset("pvsg", "frames", split="test", data_dir=str(films))
    assert len(data) == sum(film.frames for film in FILMS.values() if film.split == "val")
    row = data[40]
    assert row["image"].size == (320, 200)
    pixels = np.asarray(row["image"].convert("RGB"))
    labels = masks_of(films, row["video_id"])[row["frame"]]
    red, green, blue = np.median(pixels[labels == FILMS[row["video_id"]].objects.index("cup") + 1], axis=0)
    assert red > green + 60 > blue  # the red cup


@pytest.mark.parametrize("model", list(SAMPLE_MODELS))
def test_the_models_answers(films: Path, model: str) -> None:
    path = Path(pvsg_sample_predictions(model))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["video_id"] for line in lines] == [film.video_id for film in FILMS.values() if film.split == "val"]
    assert pvsg_sample_predictions(model) == str(path)
    for line in lines:
        tubes = {tube["tube_id"]: tube for tube in line["tubes"]}
        assert len(tubes) == len(line["tubes"])
        frames = FILMS[line["video_id"]].frames
        painted = np.zeros((frames, 200, 320), np.int64)
        for tube in line["tubes"]:
            assert tube["category"] in CATEGORIES
            assert tube["frames"] == sorted(set(tube["frames"]))
            assert set(tube["frames"]) <= set(range(frames))
            for frame, mask in zip(tube["frames"], tube["masks"], strict=True):
                assert mask["size"] == [200, 320]
                dense = coco.decode({**mask, "counts": mask["counts"].encode()})
                assert dense.any()
                painted[frame] += dense
        assert painted.max() == 1
        assert line["triplets"]
        for triplet in line["triplets"]:
            assert {triplet["subject_id"], triplet["object_id"]} <= tubes.keys()
            assert triplet["predicate"] in PREDICATES
            assert 0 < triplet["score"] < 1
            assert all(0 <= first <= last < frames for first, last in triplet["spans"])


def _recall(films: Path, model: str) -> float:
    """Share of truth objects that some tube of their class covers: mean IoU of at least one half over their frames."""
    hits, total = 0, 0
    for line in map(json.loads, Path(pvsg_sample_predictions(model)).read_text().splitlines()):
        film, maps = FILMS[line["video_id"]], masks_of(films, line["video_id"])
        for label, category in enumerate(film.objects, 1):
            truth = maps == label
            best = 0.0
            for tube in line["tubes"]:
                if tube["category"] == category:
                    dense = np.zeros_like(truth)
                    for frame, mask in zip(tube["frames"], tube["masks"], strict=True):
                        dense[frame] = coco.decode({**mask, "counts": mask["counts"].encode()})
                    best = max(best, (dense & truth).sum() / (dense | truth).sum())
            hits, total = hits + (best >= 0.5), total + 1
    return hits / total


def test_the_models_differ(films: Path) -> None:
    careful, hasty, shy = (_recall(films, model) for model in ("careful", "hasty", "crowd_shy"))
    assert 1 >= careful > hasty > 0.2
    assert careful > shy > 0.2


@pytest.mark.parametrize("model", list(SAMPLE_MODELS))
def test_the_research_layout_says_the_same(films: Path, model: str) -> None:
    folder = Path(pvsg_sample_predictions(model, layout="research"))
    for line in map(json.loads, Path(pvsg_sample_predictions(model)).read_text().splitlines()):
        own = folder / line["video_id"]
        assert json.loads((own / "relations.json").read_text()) == {
            "video_id": line["video_id"],
            "relations": line["triplets"],
        }
        read = Counter()
        for text in (own / "quantitive" / "masks.txt").read_text().splitlines():
            frame, track, category, height, width, counts = text.split(" ")
            read[int(frame) - 1, int(track), CATEGORIES[int(category)], int(height), int(width), counts] += 1
        assert read == Counter(
            (frame, tube["tube_id"], tube["category"], *mask["size"], mask["counts"])
            for tube in line["tubes"]
            for frame, mask in zip(tube["frames"], tube["masks"], strict=True)
        )


def test_pvsg_sample_unknown_names_are_refused(films: Path) -> None:
    assert MANNERS.keys() == SAMPLE_MODELS.keys()
    with pytest.raises(BenchError, match="model: expected one of careful, hasty, crowd_shy, got 'best'"):
        pvsg_sample_predictions("best")
    with pytest.raises(BenchError, match="layout: expected jsonl or research"):
        pvsg_sample_predictions("careful", layout="pickle")


def test_a_missing_file_comes_back(films: Path) -> None:
    lost: dict[str, Any] = {file: (films / file).read_bytes() for file in sample_files()[3:5]}
    for file in lost:
        (films / file).unlink()
    assert pvsg_sample_dir() == str(films)
    for file, content in lost.items():
        assert (films / file).read_bytes() == content
