"""PVSG's builder: every road to a source gives the same rows, and what is wrong with one is told."""

from __future__ import annotations

import io
import json
import pickle
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import datasets
import fsspec
import numpy as np
import PIL.Image
import pytest
from datasets import Dataset, ReadInstruction, get_dataset_config_names, get_dataset_split_names, load_dataset
from packaging.version import Version
from pycocotools import mask as coco

import bench_datasets as bd
import bench_datasets.data as builders
from bench_datasets.benchmarks.pvsg.truth import truth_features
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.data.source import SourceNotFoundError, SourceUnreachableError
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.masks import MASK_TYPE

from ...support.pvsg_sources import ENV, STILL, VIDEOS, load, png, video, write


def test_the_mini_source(pvsg_mini: Path) -> None:
    data = load(pvsg_mini)
    assert data.features == truth_features()
    assert data.data.schema.field("tubes").type.value_type.field("masks").type.value_type == MASK_TYPE
    (row,) = data
    assert (row["key"], row["source"], row["num_frames"], row["frames_present"]) == (
        "9001_0000000001",
        "vidor",
        146,
        146,
    )
    assert (row["height"], row["width"], len(row["objects"]), len(row["tubes"])) == (1280, 720, 17, 17)
    assert len(row["relations"]) == 11
    assert [relation["predicate"] for relation in row["relations_left_out"]] == ["squeezing"]
    assert PREDICATES[row["relations"][-1]["predicate"]] == "looking at"
    assert row["relations"][-1]["spans"] == [[100, 145]]
    assert row["faults"] == ["unknown_predicate", "span_clipped"]
    source = json.loads((pvsg_mini / "pvsg.json").read_text())["data"][1]
    assert [CATEGORIES[item["category"]] for item in row["objects"]] == [item["category"] for item in source["objects"]]
    assert (row["captions"], row["qa_pairs"], row["summary"]) == (source["captions"], [], source["summary"])
    masks: dict[tuple[int, int], dict[str, Any]] = {
        (item["object_id"], frame): mask
        for item, tube in zip(row["objects"], row["tubes"], strict=True)
        for frame, mask in zip(tube["frames"], tube["masks"], strict=True)
    }
    for frame in range(0, 146, 29):
        with PIL.Image.open(pvsg_mini / f"vidor/masks/9001_0000000001/{frame:04d}.png") as image:
            values = np.asarray(image)
        seen = {label for label, at in masks if at == frame}
        assert seen == set(np.unique(values).tolist()) - {0}
        for label in seen:
            expected = coco.encode(np.asfortranarray(values == label, dtype=np.uint8))
            mask = masks[label, frame]
            assert (mask["size"], mask["counts"].encode()) == (expected["size"], expected["counts"])
    train = load(pvsg_mini, split="train")
    assert train["faults"][:] == [["mask_missing"]]
    assert len(train[0]["relations"]) == 15
    assert all(tube == {"frames": [], "masks": []} for tube in train[0]["tubes"])
    assert builders.provenance(data) == {
        "benchmark": "pvsg",
        "source": str(pvsg_mini.resolve()),
        "revision": None,
        "config": "videos",
        "split": "test",
        "rows": {"train": 1, "test": 1},
    }


def test_build_sources_give_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path / "source", VIDEOS)
    built = load(root).to_list()
    assert [row["key"] for row in built] == ["a", "b", "c"]
    assert [row["source"] for row in built] == ["vidor", "vidor", "ego4d"]
    fresh = {"download_mode": "force_redownload"}
    for kwargs in ({"num_proc": 2}, {"num_proc": 3}, {"split": "val"}, {"config": "default"}, {"config": "videos"}):
        assert load(root, **fresh, **kwargs).to_list() == built, kwargs
    stream = load(root, streaming=True)
    assert list(stream) == built
    assert stream.num_shards == 3
    assert list(load(root, split="val", streaming=True).take(1)) == built[:1]
    assert list(pickle.loads(pickle.dumps(stream))) == built
    assert load(root / "pvsg.json").to_list() == built
    monkeypatch.setenv(ENV, str(root))
    assert load_dataset("pvsg", split="test").to_list() == built
    assert builders.open_truth("pvsg", str(root)).to_list() == built
    monkeypatch.delenv(ENV)
    memory = fsspec.filesystem("memory")
    memory.put(f"{root}/", "/pvsg-source/", recursive=True)
    for kwargs in ({}, {"streaming": True}):
        assert list(load("memory://pvsg-source", **kwargs)) == built


def test_val_is_another_name_of_test(tmp_path: Path) -> None:
    root = write(tmp_path, VIDEOS)
    assert load(root, split="val[:2]")["key"][:] == ["a", "b"]
    assert load(root, split="train+val[1:]")["key"][:] == ["d", "e", "b", "c"]
    assert load(root, split=ReadInstruction("val", to=1, unit="abs"))["key"][:] == ["a"]
    assert [len(part) for part in load(root, split=["train", "val"])] == [2, 3]
    if Version(datasets.__version__) >= Version("5.0"):  # older ones stream one split at a time
        assert [row["key"] for row in load(root, split="train+val", streaming=True)] == ["d", "e", "a", "b", "c"]
    assert set(load(root, split=None)) == {"train", "test"}
    assert str(load(root, split="val").split) == "test"
    assert get_dataset_split_names("pvsg", data_dir=str(root)) == ["train", "test"]
    assert get_dataset_config_names("pvsg") == ["videos", "frames", "sample"]
    with pytest.raises(ValueError, match="valid"):
        load(root, split="valid")


def test_over_http(tmp_path: Path) -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    root = write(tmp_path, {"vidor/val": [video("a")]})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            assert load(f"http://127.0.0.1:{server.server_port}").to_list() == load(root).to_list()
        finally:
            server.shutdown()


def test_faults_are_told_once_with_their_videos(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    videos = [video("a", [(1, 2, "squeezing", [[0, 1]])]), video("b", frames=9), video("c")]
    root = write(tmp_path, {"vidor/val": videos}, {"c": [STILL, None, STILL]})
    for kwargs in ({}, {"download_mode": "force_redownload"}):
        caplog.clear()
        assert load(root, **kwargs)["faults"][:] == [["unknown_predicate"], ["frames_short"], ["mask_missing"]]
        (text,) = [record.getMessage() for record in caplog.records if "rows with faults" in record.getMessage()]
        for line in (
            "unknown_predicate: 1 rows, e.g. a",
            "frames_short: 1 rows, e.g. b",
            "mask_missing: 1 rows, e.g. c",
        ):
            assert line in text


def test_videos_that_split_and_data_do_not_share_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = write(tmp_path, VIDEOS)
    data = json.loads((root / "pvsg.json").read_text())
    data["split"]["ego4d"]["val"].append("gone")
    data["data"].append(video("stray"))
    (root / "pvsg.json").write_text(json.dumps(data))
    assert load(root)["key"][:] == ["a", "b", "c"]
    assert "1 videos stand in `split` without an entry in `data`, and are left out: gone" in caplog.text
    assert "1 videos stand in `data` and in no split, and are left out: stray" in caplog.text


def _sixteen_bits(label: int) -> bytes:
    stream = io.BytesIO()
    PIL.Image.fromarray(np.full((4, 6), label, np.uint16)).save(stream, "PNG")
    return stream.getvalue()


def test_masks_of_one_channel_and_many_ids(tmp_path: Path) -> None:
    objects = [{"object_id": k, "category": "cup", "is_thing": True} for k in (1, 300)]
    files = {"vidor/masks/v/0000.png": png(STILL, "L"), "vidor/masks/v/0001.png": _sixteen_bits(300)}
    (row,) = load(write(tmp_path, {"vidor/val": [video("v", (), 2, objects=objects)]}, files=files))
    assert [tube["frames"] for tube in row["tubes"]] == [[0], [1]]


@pytest.mark.parametrize("num_proc", [None, 2])
def test_bad_masks_are_named(tmp_path: Path, num_proc: int | None) -> None:
    colours = io.BytesIO()
    PIL.Image.new("RGB", (6, 4)).save(colours, "PNG")
    for i, (content, words) in enumerate(
        (
            (png(STILL)[:-30], "cannot be read"),
            (b"", "cannot be read"),
            (b"GIF89a", "cannot be read"),
            (colours.getvalue(), "found RGB"),
        )
    ):
        root = write(tmp_path / str(i), {"vidor/val": [video("a"), video("b")]})
        (root / "vidor/masks/b/0001.png").write_bytes(content)
        for kwargs in ({"num_proc": num_proc}, {"streaming": True}):
            with pytest.raises(BenchError, match=words) as caught:
                list(load(root, **kwargs))
            assert str(Path("b", "0001.png")) in str(caught.value)


def test_two_files_for_one_frame(tmp_path: Path) -> None:
    root = write(tmp_path, {"vidor/val": [video("a")]})
    (root / "vidor/masks/a/1.png").write_bytes(png(STILL))
    with pytest.raises(BenchError, match="expected one file a frame"):
        load(root)


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match=r"found no pvsg\.json"):
        load(tmp_path)
    with pytest.raises(SourceNotFoundError, match=r"found no pvsg\.json"):
        load(tmp_path / "none")
    with pytest.raises(SourceUnreachableError, match=f"Three other ways: .*data_dir.*{ENV}.*'sample'"):
        load_dataset("pvsg")
    with pytest.raises(BenchError, match="name the folder that holds"):
        load_dataset("pvsg", data_files="masks.parquet")
    with pytest.raises(BenchError, match="leave it out"):
        load(write(tmp_path, VIDEOS), revision="main")
    with pytest.raises(BenchError, match="config 'sample' is built in"):
        load(tmp_path, "sample")


def test_one_video_is_held_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written has left the builder's hands: after each video a record batch of its own."""
    root = write(tmp_path, {"vidor/val": [video(name) for name in "abcd"]})
    data = load(root)
    assert [len(batch) for batch in data.data.to_batches()] == [1] * 4


def test_a_mask_of_another_size_is_a_fault_of_its_video_alone(tmp_path: Path) -> None:
    root = write(tmp_path / "data", {"vidor/val": [video("a"), video("b")]})
    (root / "vidor/masks/b/0001.png").write_bytes(png(STILL.T))
    truth = load(root)
    assert [row["faults"] for row in truth] == [[], ["mask_size"]]
    triplet = {"subject_id": 1, "object_id": 2, "predicate": "on", "score": 0.9, "spans": [[0, 2]]}
    names = truth.features["objects"].feature["category"].names
    answers = [
        {
            "key": row["key"],
            "tubes": [
                {"tube_id": item["object_id"], "category": names[item["category"]], **tube}
                for item, tube in zip(truth[0]["objects"], truth[0]["tubes"], strict=True)
            ],
            "triplets": [triplet],
        }
        for row in truth
    ]
    predictions = bd.read_predictions("pvsg", Dataset.from_list(answers))
    with pytest.raises(FaultError, match="b: ") as error:
        bd.score("pvsg", truth, predictions)
    assert error.value.key == "b"
    scores = bd.score("pvsg", truth, predictions, on_fault="skip-and-report")
    assert [(row["key"], row["skipped"]) for row in scores] == [("a", False), ("b", True)]
    assert set(scores[1]["faults"]) == {"mask_size", "size_mismatch"}
    assert bd.summarize("pvsg", scores, draws=0).metrics["R@20/0.5"].value == 1
    report = bd.check("pvsg", predictions, truth)
    assert {group.code for group in report.errors} == {"mask_size", "size_mismatch"}
    assert {fault.key for group in report.errors for fault in group.examples} == {"b"}
    frames = load(root, "frames")
    assert [row["masks"][0]["size"] for row in frames if row["video_id"] == "b"] == [[4, 6], [6, 4], [4, 6]]
