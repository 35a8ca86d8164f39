"""COCO annotations as ground truth of PBench: what is written, what is left out, what stops."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import load_dataset
from pycocotools import mask as coco_mask
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets.benchmarks.pbench.coco_source import coco_to_pbench
from bench_datasets.cli.app import app
from bench_datasets.data.coco_annotations import looks_exchanged
from bench_datasets.faults import BenchError

from ...support.small_sources import jpeg

SQUARE = [[1, 1, 5, 1, 5, 5, 1, 5]]
RIGHT = [[10, 1, 15, 1, 15, 8]]


def annotation(number: int, image: int, category: int, segmentation: Any, **more: Any) -> dict[str, Any]:
    return {"id": number, "image_id": image, "category_id": category, "segmentation": segmentation, **more}


def small() -> dict[str, Any]:
    """Two cars and a dog in the first image, a dog in the second, nothing in the third."""
    return {
        "images": [{"id": k, "file_name": f"{k}.jpg", "height": 10, "width": 20} for k in (1, 2, 3)],
        "categories": [{"id": 18, "name": "dog"}, {"id": 3, "name": "car"}],
        "annotations": [
            annotation(11, 1, 3, SQUARE, bbox=[1, 1, 4, 4]),
            annotation(12, 1, 3, RIGHT, bbox=[10, 1, 5, 7]),
            annotation(21, 2, 18, SQUARE, bbox=[1, 1, 4, 4]),
            annotation(14, 1, 18, SQUARE, bbox=[1, 1, 4, 4]),
        ],
    }


def convert(folder: Path, change: Any = None, captions: Any = None, **kwargs: Any) -> tuple[Any, list[dict[str, Any]]]:
    """What was done, and the rows as the builder reads them."""
    coco = small()
    if change:
        change(coco)
    (folder / "instances.json").write_text(json.dumps(coco))
    if captions is not None:
        kwargs["captions"] = folder / "captions.json"
        kwargs["captions"].write_text(json.dumps(captions))
    done = coco_to_pbench(folder / "instances.json", folder / "own", **kwargs)
    return done, load_dataset("pbench", data_dir=str(folder / "own"), split="test", images=False).to_list()


def drawn(*polygons: Any) -> np.ndarray[Any, Any]:
    floats = [[float(x) for x in polygon] for polygon in polygons]
    return coco_mask.decode(coco_mask.merge(coco_mask.frPyObjects(floats, 10, 20)))


def test_coco_categories_become_rows_with_the_masks_that_pycocotools_draws(tmp_path: Path) -> None:
    done, rows = convert(tmp_path)
    assert (done.rows, done.masks, dict(done.left_out)) == (3, 4, {})
    assert [(r["key"], r["expression"], r["count"], r["faults"]) for r in rows] == [
        ("level_0/0", "dog", 1, []),
        ("level_0/1", "car", 2, []),
        ("level_0/2", "dog", 1, []),
    ]
    for mask, polygons in zip(rows[1]["masks"], (SQUARE, RIGHT), strict=True):
        np.testing.assert_array_equal(coco_mask.decode({**mask, "counts": mask["counts"].encode()}), drawn(*polygons))


def test_coco_ground_truth_scores_a_perfect_and_an_empty_prediction(tmp_path: Path) -> None:
    _, rows = convert(tmp_path)
    truth = load_dataset("pbench", data_dir=str(tmp_path / "own"), split="test", images=False)
    lines = [{"id": r["id"], "masks": r["masks"] if r["id"] else []} for r in rows]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    scores = bd.score("pbench", truth, bd.read_predictions("pbench", str(tmp_path / "p.jsonl")))
    assert bd.summarize("pbench", scores, draws=0).metrics["macro_f1/level_0"].value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"iscrowd": 1}, "rows with a crowd region, whose objects have no masks of their own"),
        ({"segmentation": [[1, 1, 2, 2]]}, "rows with an annotation whose mask is not valid"),
        ({"segmentation": {"size": [10, 20], "counts": [200]}}, "rows with an annotation whose mask is empty"),
        (
            {"segmentation": {"size": [20, 10], "counts": [0, 200]}},
            "rows with an annotation whose mask has another size than the image (height and width exchanged)",
        ),
    ],
)
def test_coco_row_with_an_unusable_annotation_is_left_out_whole(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    done, rows = convert(tmp_path, lambda coco: coco["annotations"][1].update(change))
    assert dict(done.left_out) == {reason: 1}
    assert [row["expression"] for row in rows] == ["dog", "dog"]


def test_coco_polygon_part_of_two_points_is_noted(tmp_path: Path) -> None:
    done, rows = convert(tmp_path, lambda coco: coco["annotations"][0].update(segmentation=[*SQUARE, [1, 1, 2, 2]]))
    assert list(done.noted.values()) == [1]
    np.testing.assert_array_equal(
        coco_mask.decode({**rows[1]["masks"][0], "counts": rows[1]["masks"][0]["counts"].encode()}), drawn(*SQUARE)
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda coco: coco["annotations"].append(coco["annotations"][0]), "annotations.4.: .*the id 11 twice"),
        (lambda coco: coco["images"].append(coco["images"][0]), "images.3.: .*the id 1 twice"),
        (lambda coco: coco["categories"][0].update(name="car"), "categories: expected names that differ, found 'car'"),
        (lambda coco: coco["annotations"][0].update(image_id=9), "annotation 11: expected image 9 in the file"),
        (lambda coco: coco["annotations"][0].update(category_id=9), "annotation 11: expected category 9 in the file"),
        (lambda coco: coco["images"][0].update(height="10"), "image 1: field 'height': expected a positive number"),
        (lambda coco: coco.update(annotations=[]), "expected rows to write, found none"),
    ],
)
def test_coco_file_that_is_malformed_stops_with_its_place(tmp_path: Path, change: Any, words: str) -> None:
    with pytest.raises(BenchError, match=words):
        convert(tmp_path, change)
    assert not list(tmp_path.rglob("*.parquet*"))


def test_coco_captions_name_annotations_by_ids_or_by_boxes(tmp_path: Path) -> None:
    captions = [
        {"id": 1, "image_id": 1, "caption": "  all   cars ", "annotation_ids": [11, 12, 11]},
        {"id": 2, "image_id": 1, "caption": "the right car", "boxes": [[10.4, 1, 5, 7]]},
        {"id": 3, "image_id": 1, "caption": "two things share this box", "bbox": [1, 1, 4, 4]},
        {"id": 4, "image_id": 1, "caption": "who knows"},
        {"id": 5, "image_id": 1, "caption": " ", "annotation_ids": [11]},
        {"id": 6, "image_id": 3, "caption": "no car", "annotation_ids": []},
    ]
    done, rows = convert(tmp_path, captions={"annotations": captions})
    assert [(r["expression"], r["count"]) for r in rows] == [("all cars", 2), ("the right car", 1), ("no car", 0)]
    assert dict(done.left_out) == {
        "captions with a box that is not the box of exactly one annotation": 1,
        "captions that do not name their annotations (annotation_ids or boxes)": 1,
        "captions without text": 1,
    }


def test_coco_refs_of_several_targets_or_none_become_rows(tmp_path: Path) -> None:
    refs = [
        {
            "ref_id": 1,
            "image_id": 1,
            "ann_id": [11, 12],
            "split": "val",
            "sentences": [{"sent": "cars"}, {"sent": "c"}],
        },
        {"ref_id": 2, "image_id": 2, "ann_id": [-1], "no_target": True, "split": "val", "sentences": [{"sent": "cat"}]},
        {"ref_id": 3, "image_id": 2, "ann_id": 21, "split": "testA", "sentences": [{"sent": "dog"}]},
    ]
    done, rows = convert(tmp_path, captions=refs, split="val")
    assert [(r["expression"], r["count"]) for r in rows] == [("cars", 2), ("c", 2), ("cat", 0)]
    assert dict(done.left_out) == {"captions of other splits than val": 1}
    (tmp_path / "refs.p").write_bytes(pickle.dumps(refs, protocol=2))
    coco_to_pbench(tmp_path / "instances.json", tmp_path / "pickled", captions=tmp_path / "refs.p", split="val")
    pickled = load_dataset("pbench", data_dir=str(tmp_path / "pickled"), split="test", images=False)
    assert pickled.to_list() == rows


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"image_id": 9, "caption": "x"}, r"annotations\[0\]: field 'image_id': expected an image"),
        ({"image_id": 1, "caption": "x", "ann_ids": [21]}, "'ann_ids': expected annotations of its image .*found 21"),
        ({"image_id": 1, "caption": 3, "ann_ids": [11]}, "field 'caption': expected a text"),
        ({"image_id": 1, "caption": "x", "boxes": [[1, 2, 3]]}, "field 'boxes': expected .x, y, width, height."),
    ],
)
def test_coco_caption_that_is_malformed_stops_with_its_place(tmp_path: Path, entry: Any, words: str) -> None:
    with pytest.raises(BenchError, match=words):
        convert(tmp_path, captions={"annotations": [entry]})


def test_coco_images_are_written_and_read_back(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for k in (1, 2):
        (tmp_path / "photos" / f"{k}.jpg").write_bytes(jpeg(10, 20))
    convert(tmp_path, images=tmp_path / "photos")
    rows = load_dataset("pbench", data_dir=str(tmp_path / "own"), split="test")
    assert [row["image"].size for row in rows] == [(20, 10)] * 3
    assert [row["faults"] for row in rows] == [[]] * 3
    (tmp_path / "secret.jpg").write_bytes(jpeg(10, 20))
    with pytest.raises(BenchError, match="leads out of the folder"):
        convert(tmp_path, lambda coco: coco["images"][0].update(file_name="../secret.jpg"), images=tmp_path / "photos")
    with pytest.raises(BenchError, match="expected an image file, found none"):
        convert(tmp_path, lambda coco: coco["images"][0].update(file_name="9.jpg"), images=tmp_path / "photos")


@pytest.mark.parametrize(
    ("polygon", "height", "width", "exchanged"),
    [
        ([0, 0, 50, 0, 50, 30], 60, 40, True),
        ([0, 0, 50, 0, 50, 30], 40, 60, False),
        ([0, 0, 40.5, 0, 40.5, 30], 60, 40, False),
        ([0, 0, 80, 0, 80, 30], 60, 40, False),
        ([0, 0, 50, 0, 50, 30], 50, 50, False),
        ({"counts": []}, 60, 40, False),
    ],
)
def test_looks_exchanged_needs_polygons_that_fit_only_the_other_way(
    polygon: Any, height: int, width: int, exchanged: bool
) -> None:
    assert looks_exchanged([polygon], height, width) is exchanged


def test_convert_coco_command_tells_what_it_wrote(tmp_path: Path) -> None:
    (tmp_path / "instances.json").write_text(json.dumps(small()))
    given = ["convert", "coco", "--instances", str(tmp_path / "instances.json"), "--out", str(tmp_path / "own")]
    told = CliRunner().invoke(app, given)
    assert told.exit_code == 0
    assert "3 rows, 4 masks" in told.stdout
    found = json.loads(CliRunner().invoke(app, [*given, "--level", "dense", "--json"]).stdout)
    assert (found["rows"], Path(found["path"]).name) == (3, "dense-00000-of-00001.parquet")
    assert isinstance(CliRunner().invoke(app, [*given, "--split", "val"]).exception, (BenchError, SystemExit))
