"""InstanceBench's truth rows: what they hold, and that every road to them gives the same."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from datasets import (
    ClassLabel,
    Dataset,
    Image,
    List,
    Value,
    get_dataset_config_names,
    get_dataset_split_names,
    load_dataset,
    load_dataset_builder,
    load_from_disk,
)
from pycocotools import mask as coco

import bench_datasets.data as builders
from bench_datasets.benchmarks.instancebench.vocabulary import FAMILY_OF, SYNONYMS
from bench_datasets.data.source import SourceNotFoundError
from bench_datasets.faults import BenchError

from ...support.manifests import candidate, expression, load, runs, tces, write
from ...support.small_sources import jpeg

ENV = "BENCH_DATASETS_INSTANCEBENCH"
COLUMNS = ["key", "image_id", "source", "category", "height", "width", "target", "candidates", "expressions", "faults"]
FIELDS = ["expression_id", "text", "role", "operation", "family", "track", "tags", "donor_mask"]
MASK = {"size": List(Value("int32")), "counts": Value("string")}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENV, raising=False)


@pytest.fixture
def mini(shared: Path) -> Path:
    """The real source of nine sets."""
    return shared / "data" / "instancebench_mini"


def decoded(mask: dict[str, Any]) -> np.ndarray:
    """A mask as pycocotools reads it."""
    counts = mask["counts"]
    encoded = {"size": mask["size"], "counts": counts.encode() if isinstance(counts, str) else counts}
    return np.asarray(coco.decode(encoded), dtype=bool)


def test_the_rows_of_the_mini_source(mini: Path) -> None:
    data = load(mini, images=True)
    features = data.features
    assert list(features) == [*COLUMNS, "image", "image_sha256"]
    assert features["candidates"] == List({"instance_id": Value("string"), "mask": MASK, "iscrowd": Value("bool")})
    assert list(features["expressions"].feature) == FIELDS
    assert features["target"] == Value("int32")
    assert features["image"] == Image()
    labels = {name: features["expressions"].feature[name] for name in ("role", "operation", "family", "track")}
    assert all(isinstance(label, ClassLabel) for label in labels.values())
    assert labels["track"].names == ["minimal", "paraphrase", "same_target", "exclusion"]
    assert len(labels["operation"].names) == 9
    assert len(labels["family"].names) == 5
    source = [json.loads(line) for line in (mini / "test.jsonl").read_text().splitlines()]
    assert len(data) == len(source) == 9
    assert sum(len(row["expressions"]) for row in data) == 25
    for row, line in zip(data, source, strict=True):
        assert row["key"] == line["tces_id"]
        assert {n: row[n] for n in COLUMNS[1:6]} == {n: line[n] for n in COLUMNS[1:6]}
        assert row["candidates"][row["target"]]["instance_id"] == line["target"]
        assert [(c["instance_id"], c["mask"], int(c["iscrowd"])) for c in row["candidates"]] == [
            (c["instance_id"], c["segmentation"], c["iscrowd"]) for c in line["candidates"]
        ]
        for got, given in zip(row["expressions"], line["expressions"], strict=True):
            named = given["operation"]
            operation = SYNONYMS.get(named, named)
            assert labels["operation"].int2str(got["operation"]) == operation
            assert labels["family"].int2str(got["family"]) == FAMILY_OF[operation]
            assert labels["role"].int2str(got["role"]) == given["role"]
            assert (got["expression_id"], got["text"]) == (given["expression_id"], given["text"])
            assert got["tags"] == ([named] if named in SYNONYMS else [])
            assert got["donor_mask"] is None
        assert row["faults"] == (["crowd_candidate"] if any(c["iscrowd"] for c in line["candidates"]) else [])
        assert (row["image"].height, row["image"].width) == (row["height"], row["width"])
        assert row["image_sha256"] == hashlib.sha256((mini / line["image"]).read_bytes()).hexdigest()


def test_tracks(tmp_path: Path) -> None:
    asked = [
        ("minimal", "negation_or_exclusion", "minimal"),
        ("variant", "ordinal", "same_target"),
        ("paraphrase", "negation_or_exclusion", "paraphrase"),
        ("extra", "nested_grounding", "same_target"),
        ("extra", "negation_or_exclusion", "exclusion"),
    ]
    made = [expression(f"e{k}", role, operation) for k, (role, operation, _) in enumerate(asked)]
    data = load(write(tmp_path / "s", {"test.jsonl": [tces("t", expressions=made)]}))
    names = data.features["expressions"].feature["track"].names
    assert [names[e["track"]] for e in data[0]["expressions"]] == [track for *_, track in asked]


def test_build_sources_give_same_rows(mini: Path, tmp_path: Path) -> None:
    lines = (mini / "test.jsonl").read_text().splitlines()
    root = write(tmp_path / "s", {f"test-{k}.jsonl": lines[3 * k : 3 * k + 3] for k in range(3)})
    built = load(root).to_list()
    assert built == load(mini).to_list()
    assert load(root, num_proc=3, download_mode="force_redownload").to_list() == built
    stream = load(root, streaming=True)
    assert stream.num_shards == 3
    assert list(stream) == built
    assert [row["key"] for row in stream.shard(3, 1)] == [row["key"] for row in built[3:6]]
    assert [row["key"] for row in stream.take(2)] == [row["key"] for row in built[:2]]
    assert load(root, split="test[4:6]").to_list() == built[4:6]
    assert load_dataset("instancebench", data_files=str(root / "test-*.jsonl"), split="test", images=False).to_list()
    for truth in (
        builders.open_truth("instancebench", str(mini)),
        list(builders.open_truth("instancebench", str(mini), streaming=True)),
    ):
        assert list(truth) == built
    assert list(builders.open_truth("instancebench", str(mini / "test.jsonl"))) == built
    pictured = load(mini, images=True, streaming=True)
    assert [{name: row[name] for name in COLUMNS} for row in pictured] == built


def test_one_row_an_expression(mini: Path) -> None:
    whole, flat = load(mini), load(mini, "expressions")
    assert flat.column_names == [*COLUMNS[:-2], *FIELDS, "faults"]
    expected = [
        {**{name: value for name, value in row.items() if name != "expressions"}, **one}
        for row in whole
        for one in row["expressions"]
    ]
    assert flat.to_list() == expected
    assert len(flat) == 25
    assert list(load(mini, "expressions", streaming=True)) == expected
    assert load(mini, "expressions", images=True).column_names[-1] == "image_sha256"


def test_masks_of_every_kind_become_compressed_rle(tmp_path: Path) -> None:
    polygon = [[2.0, 2.0, 12.0, 2.0, 12.0, 8.0, 2.0, 8.0], [15.0, 1.0, 19.0, 1.0, 17.0, 9.0]]
    dense = np.zeros((10, 20), dtype=np.uint8, order="F")
    dense[3:5, 4:9] = 1
    compressed = coco.encode(dense)
    flat = dense.ravel(order="F")
    ends = np.flatnonzero(np.diff(np.concatenate([[0], flat]))) if flat[0] == 0 else None
    counts = np.diff(np.concatenate([[0], ends, [flat.size]])).tolist()
    given = {
        "a": {"size": [10, 20], "counts": compressed["counts"].decode()},
        "b": {"size": [10, 20], "counts": counts},
        "c": polygon,
    }
    made = [{"instance_id": name, "segmentation": mask} for name, mask in given.items()]
    row = load(write(tmp_path / "s", {"test.jsonl": [tces("t", height=10, candidates=made)]}))[0]
    assert row["faults"] == []
    got = {c["instance_id"]: c["mask"] for c in row["candidates"]}
    assert np.array_equal(decoded(got["a"]), dense.astype(bool))
    assert got["a"] == got["b"]
    drawn = coco.decode(coco.merge(coco.frPyObjects(polygon, 10, 20))).astype(bool)
    assert np.array_equal(decoded(got["c"]), drawn)


def test_donors_may_stand_anywhere_in_the_split(tmp_path: Path) -> None:
    def asking(name: str, donor: str | None, first: int) -> dict[str, Any]:
        own = [expression(f"{name}-0", "minimal", donor_expression_id=donor), expression(f"{name}-1", "variant")]
        return tces(name, candidates=[candidate("a", first), candidate("b", 15)], expressions=own)

    lines = [asking("s", "u-1", 1), asking("t", "s-0", 2), asking("u", "u-1", 3), asking("v", None, 4)]
    root = write(tmp_path / "s", {"test-0.jsonl": lines[:1], "test-1.jsonl": lines[1:2], "test-2.jsonl": lines[2:]})
    targets = {name: load(root)[i]["candidates"][0]["mask"] for i, name in enumerate("stuv")}
    for kwargs in ({}, {"num_proc": 3, "download_mode": "force_redownload"}, {"streaming": True}):
        found = {row["key"]: [e["donor_mask"] for e in row["expressions"]] for row in load(root, **kwargs)}
        assert found == {
            "s": [targets["u"], None],
            "t": [targets["s"], None],
            "u": [targets["u"], None],
            "v": [None, None],
        }
    lines[1]["expressions"][0]["donor_expression_id"] = "nobody"
    with pytest.raises(BenchError, match=r"test\.jsonl:2: expression 't-0': field 'donor_expression_id'.*'nobody'"):
        load(write(tmp_path / "bad", {"test.jsonl": lines}))


def test_a_donor_whose_target_is_of_no_use(tmp_path: Path) -> None:
    wide = tces("w", width=30, candidates=[{"instance_id": "a", "segmentation": runs(0, 5, 30)}])
    lost = tces("l", target="z")
    asks = [
        expression("t-0", "minimal", donor_expression_id="w-0"),
        expression("t-1", "variant", donor_expression_id="l-0"),
    ]
    data = load(write(tmp_path / "s", {"test.jsonl": [wide, lost, tces("t", expressions=asks)]}))
    assert [e["donor_mask"] for e in data[2]["expressions"]] == [None, None]
    assert data["faults"][:] == [[], ["target_missing"], ["size_mismatch"]]


def test_splits_as_far_as_they_are_there(tmp_path: Path) -> None:
    root = write(
        tmp_path / "s",
        {"test.jsonl": [tces("t")], "train-a.jsonl": [tces("t"), tces("u")], "train-b.jsonl": [tces("v")]},
    )
    data = load(root, split=None)
    assert {name: part["key"][:] for name, part in data.items()} == {"train": ["t", "u", "v"], "test": ["t"]}
    assert get_dataset_split_names("instancebench", data_dir=str(root)) == ["train", "test"]
    assert get_dataset_config_names("instancebench") == ["default", "expressions", "sample"]
    facts = builders.provenance(data["test"])
    assert facts == {
        "benchmark": "instancebench",
        "source": os.path.realpath(root),
        "revision": None,
        "config": "default",
        "split": "test",
        "rows": {"train": 3, "test": 1},
    }
    assert builders.provenance(load(root, streaming=True).take(1)) == facts


def test_a_bare_call_names_the_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "instancebench", {"test.jsonl": [tces("t")]})
    with pytest.raises(SourceNotFoundError, match="no public source") as caught:
        load_dataset("instancebench")
    for way in ("data_dir=", ENV, "'sample'", "<split>.jsonl"):
        assert way in str(caught.value)
    monkeypatch.setenv(ENV, str(tmp_path / "instancebench"))
    assert load_dataset("instancebench", split="test")["key"][:] == ["t"]
    with pytest.raises(BenchError, match="images: expected True or False"):
        load(tmp_path / "instancebench", images="no")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceNotFoundError, match=r"expected files like test\.jsonl.*an empty folder"):
        load(tmp_path / "empty")


def test_an_edited_manifest_is_built_anew(tmp_path: Path) -> None:
    root = write(tmp_path / "s", {"test.jsonl": [tces("t")]})
    first = load(root)
    assert load(root).cache_files == first.cache_files
    write(root, {"test.jsonl": [tces("u")]})
    assert load(root)["key"][:] == ["u"]
    write(root, {"test.jsonl": [tces("u")], "train.jsonl": [tces("v")]})
    assert set(load(root, split=None)) == {"train", "test"}


def test_rows_without_candidates_or_tags_keep_their_types(tmp_path: Path) -> None:
    bare = tces("t", candidates=[], expressions=[])
    root = write(tmp_path / "s", {"test-0.jsonl": [bare], "test-1.jsonl": [tces("u")]})
    data = load(root)
    assert data["faults"][0] == ["target_missing", "core_role_missing"]
    assert (data[0]["target"], data[0]["candidates"], data[0]["expressions"]) == (-1, [], [])
    load(root, streaming=True).to_parquet(str(tmp_path / "out.parquet"))
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == data.to_list()
    data.to_parquet(str(tmp_path / "built.parquet"))
    assert Dataset.from_parquet(str(tmp_path / "built.parquet"), cache_dir=str(tmp_path)).features == data.features
    data.save_to_disk(str(tmp_path / "saved"))
    assert load_from_disk(str(tmp_path / "saved")).to_list() == data.to_list()
    again = data.map(lambda row: {"more": 1})
    assert again.remove_columns("more").to_list() == data.to_list()
    builder = pickle.loads(pickle.dumps(load_dataset_builder("instancebench", data_dir=str(root), images=False)))
    builder.download_and_prepare()
    assert builder.as_dataset("test").to_list() == data.to_list()


def test_other_file_systems(tmp_path: Path) -> None:
    root = write(tmp_path / "s", {"test.jsonl": [tces("t", image="images/1.jpg", height=10, width=10)]})
    (root / "images").mkdir()
    (root / "images" / "1.jpg").write_bytes(jpeg())
    memory = fsspec.filesystem("memory")
    memory.put(str(root) + "/", "/manifest/", recursive=True)
    try:
        for url in ("memory://manifest", f"file://{root}"):
            row = load(url, images=True)[0]
            assert row["image_sha256"] == hashlib.sha256(jpeg()).hexdigest(), url
            assert row["image"].size == (10, 10)
    finally:
        memory.rm("/manifest", recursive=True)
    fs = fsspec.filesystem("zip", fo=str(tmp_path / "all.zip"), mode="w")
    for name in ("test.jsonl", "images/1.jpg"):
        with fs.open(name, "wb") as file:
            file.write((root / name).read_bytes())
    fs.close()
    assert load(f"zip://::{tmp_path / 'all.zip'}", images=True)[0]["image"].size == (10, 10)


def test_the_small_cases_load(shared: Path, tmp_path: Path) -> None:
    cases = json.loads((shared / "data" / "small_cases.json").read_text())
    cases = [case for case in cases if case["benchmark"] == "instancebench"]
    assert len(cases) >= 9
    for number, case in enumerate(cases):
        root = write(tmp_path / str(number), {"test.jsonl": case["truth"]})
        data = load(root, images=bool(number % 2))
        assert data["key"][:] == [line["tces_id"] for line in case["truth"]]
        for row, line in zip(data, case["truth"], strict=True):
            assert set(row["faults"]) <= {"crowd_candidate"}, case["name"]
            for got, given in zip(row["candidates"], line["candidates"], strict=True):
                length = sum(given["segmentation"]["counts"][1::2])
                assert int(coco.area({**got["mask"], "counts": got["mask"]["counts"].encode()})) == length
