"""Published datasets: loaded by processes that lack the package, scored by those that have it, sent once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.data import open_truth
from bench_datasets.hub.commits import commit
from bench_datasets.hub.datasets import Built, build_dataset, publish_dataset
from bench_datasets.hub.export import open_source
from bench_datasets.hub.shards import read_shards, write_shards

from ..support.plain_process import needs, plainly

Build = Callable[[str], Built]


def send(hub: Any, built: Built, repo: str) -> Any:
    return commit(repo, "dataset", built.files, "as Parquet", create=True, beside=True)


def test_every_config_loads(hub: Any, built: Build) -> None:
    send(hub, built("pbench"), "acme/pbench")
    send(hub, built("instancebench"), "acme/instancebench")
    code = """
import sys
sys.modules["bench_datasets"] = None
from datasets import get_dataset_config_names, load_dataset
for repo in sys.argv[1:]:
    for config in get_dataset_config_names(repo):
        rows = load_dataset(repo, config, split="test")
        first = rows[0].get("overlay")
        print(repo.split("/")[1], config, len(rows), max(first.size) if first else "-")
"""
    lines = plainly(hub, code, "acme/pbench", "acme/instancebench").splitlines()
    sizes = {"level_0": 6, "level_1": 7, "level_2": 6, "level_3": 6, "level_4": 6, "dense": 4}
    expected = ["default 35 -", *(f"{level} {n} -" for level, n in sizes.items()), "preview 35 320"]
    assert [line for line in lines if line.startswith("pbench")] == [f"pbench {line}" for line in expected]
    assert "instancebench expressions 71 -" in lines
    assert "instancebench preview 20 320" in lines


def test_rows_are_resampled_by_image(reading: Any, built: Build) -> None:
    send(reading, built("pbench"), "acme/pbench")
    answers = bd.read_predictions("pbench", samples.pbench_sample_predictions("careful"))
    scores = bd.score("pbench", load_dataset("acme/pbench", split="test"), answers)
    assert bd.summarize("pbench", scores, draws=20).statistics["unit"] == "image"
    assert len(set(scores["cluster"])) == 9


def test_twice_is_once(hub: Any) -> None:
    first = publish_dataset("instancebench", "acme/twice", data="sample", private=True)
    again = publish_dataset("instancebench", "acme/twice", data="sample")
    assert first.created
    assert len(first.paths) == 6
    assert again.paths == ()
    assert again.sha == first.sha
    assert len(hub.commits("acme/twice")) == 2  # the Hub's own, and ours
    assert hub.api().repo_info("acme/twice", repo_type="dataset").private


def test_dry_run_writes_nothing(hub: Any) -> None:
    plan = publish_dataset("instancebench", "acme/dry", data="sample", dry_run=True)
    assert plan.parent is None
    assert {change.path for change in plan.changes} >= {"README.md", "eval.yaml", "default/test-00000-of-00001.parquet"}
    assert "+# InstanceBench" in str(plan)
    assert not hub.api().repo_exists("acme/dry", repo_type="dataset")
    assert not [one for one in hub.requests() if one["method"] in ("POST", "PUT") and "preupload" not in one["path"]]


def test_other_shards_replace_the_old_ones(reading: Any) -> None:
    source = samples.pbench_sample_dir()
    publish_dataset("pbench", "acme/shards", data=source, shard_bytes=1, group_bytes=1, labels_only=True)
    many = reading.api().list_repo_files("acme/shards", repo_type="dataset")
    publish_dataset("pbench", "acme/shards", data=source, labels_only=True)
    few = reading.api().list_repo_files("acme/shards", repo_type="dataset")
    assert sum(name.startswith("data/") for name in few) == 6 <= sum(name.startswith("data/") for name in many)
    assert load_dataset("acme/shards", split="test").num_rows == 35


def test_a_few_rows_touch_few_shards(hub: Any, tmp_path: Path) -> None:
    """Of many shards, `take` fetches those that hold the rows."""
    truth = open_source("pbench", "sample", with_images=False)
    features, tables = truth.read(truth.parts[-1])
    dense = pa.concat_tables(tables)
    rows = [dense.slice(k % 4, 1) for k in range(200)]
    shards = write_shards(rows, features, tmp_path, "default/test", shard_bytes=100_000, group_bytes=50_000)
    assert len(shards) > 10
    assert sum(shard.rows for shard in shards) == 200
    commit("acme/many", "dataset", {shard.name: shard.file for shard in shards}, "rows", create=True)
    before = len(hub.requests())
    code = """
import os, sys
from datasets import load_dataset
rows = list(load_dataset(sys.argv[1], split="test", streaming=True).take(20))
print(len(rows), sum(len(row["masks"]) for row in rows), flush=True)
os._exit(0)  # a stream that is left half read keeps reader threads, over which an interpreter may stumble as it ends
"""
    assert plainly(hub, code, "acme/many").split()[0] == "20"
    paths = [one["path"] for one in hub.requests()[before:] if one["method"] == "GET" and "/resolve/" in one["path"]]
    touched = {match[0] for path in paths if (match := re.search(r"test-\d{5}-of-\d{5}\.parquet", path))}
    needed = next(k for k in range(1, len(shards)) if sum(shard.rows for shard in shards[:k]) >= 20)
    assert touched
    assert touched <= {Path(shard.name).name for shard in shards[: needed + 1]}, f"{len(touched)} of {len(shards)}"


@needs("datasets", "4.4", "does not repeat a read that was dropped")
def test_a_dropped_request_is_made_again(hub: Any, built: Build) -> None:
    send(hub, built("pbench"), "acme/pbench")
    hub.trouble({"match": r"GET .*level_1.*\.parquet", "times": 2, "drop": "before"})
    code = """
import sys
from datasets import load_dataset
print(sum(len(row["masks"]) for row in load_dataset(sys.argv[1], split="test", streaming=True)))
"""
    assert plainly(hub, code, "acme/pbench").split() == ["484"]


def test_pixels_are_sent_when_asked_for(tmp_path: Path) -> None:
    source = open_source("pbench", samples.pbench_sample_dir(), with_images=True)
    built = build_dataset(source, "acme/pixels", tmp_path / "a")
    rows = next(read_shards([_shard(built, "data/level_2")]))
    assert rows["image"].type == pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    images = open_truth("pbench", "sample", images=True).cast_column("image", bd_image())
    hashes = {row["key"]: row["image_sha256"] for row in images.remove_columns("image")}
    assert dict(zip(rows["key"].to_pylist(), rows["image_sha256"].to_pylist(), strict=True)).items() <= hashes.items()
    assert "The images are the source's own files." in str(built.files["README.md"])
    frames = open_source("pvsg", "sample", with_images=True)
    assert [part.stem for part in frames.parts] == ["videos/train", "videos/test", "frames/train", "frames/test"]
    features, tables = frames.read(frames.parts[2])
    table = next(iter(tables))
    assert table["image"][0]["bytes"].as_py().startswith(b"\x89PNG")
    assert len(set(table["image_sha256"].to_pylist())) > 1
    assert "image_sha256" in features


def bd_image() -> Any:
    from datasets import Image

    return Image(decode=False)


def _shard(built: Built, stem: str) -> Any:
    from bench_datasets.hub.shards import Shard

    name, file = next((name, file) for name, file in built.files.items() if name.startswith(stem))
    assert isinstance(file, Path)
    return Shard(name, file, 0, 0)


def test_the_way_back(built: Build, tmp_path: Path) -> None:
    """Source columns lead to the source's row, and say nothing of this machine."""
    folder = tmp_path / "mine"
    folder.symlink_to(samples.pbench_sample_dir())
    truth = open_source("pbench", str(folder), with_images=False, labels_only=True)
    assert "/" not in truth.source
    _, tables = truth.read(truth.parts[1])
    table = next(iter(tables))
    source = pq.read_table(Path(samples.pbench_sample_dir(), "data/level_1-00000-of-00001.parquet"))
    assert table["source_id"].to_pylist() == [str(number) for number in source["id"].to_pylist()]
    assert set(table["source_split"].to_pylist()) == {"level_1"}
    assert "image_sha256" not in table.column_names
    text = b"".join(
        file.read_bytes() if isinstance(file, Path) else file.encode() if isinstance(file, str) else file
        for benchmark in ("pbench", "instancebench", "pvsg")
        for file in built(benchmark).files.values()
    )
    assert os.path.expanduser("~").encode() not in text
    assert str(tmp_path.parent).encode() not in text


def test_somebody_elses_repo_is_left_alone(hub: Any, built: Build) -> None:
    commit("acme/theirs", "dataset", {"README.md": "---\ntags: [cats]\n---\nCats.\n"}, "cats", create=True)
    with pytest.raises(bd.BenchError, match=r"acme/theirs: expected a new repo .* lacks the tag bench-datasets"):
        publish_dataset("instancebench", "acme/theirs", data="sample")
    assert hub.read("acme/theirs", "README.md").endswith(b"Cats.\n")


def test_bad_input(hub: Any, tmp_path: Path) -> None:
    with pytest.raises(bd.BenchError, match="expected files like"):
        publish_dataset("pbench", "acme/none", data=str(tmp_path))
    with pytest.raises(bd.BenchError, match="got both"):
        publish_dataset("pbench", "acme/none", data="sample", with_images=True, labels_only=True)
    with pytest.raises(bd.BenchError, match="ORG/NAME"):
        publish_dataset("pbench", "none", data="sample")
    with pytest.raises(bd.BenchError, match="may not write at labs"):
        publish_dataset("instancebench", "labs/none", data="sample")
    assert not hub.api().repo_exists("acme/none", repo_type="dataset")


def test_shards_are_bounded_and_the_same_each_time(tmp_path: Path) -> None:
    truth = open_source("pbench", "sample", with_images=False)
    features, tables = truth.read(truth.parts[-1])
    rows = list(tables)
    sizes = {"shard_bytes": 30_000, "group_bytes": 10_000}
    one = write_shards(rows * 3, features, tmp_path / "one", "data/dense", **sizes)
    other = write_shards(rows * 3, features, tmp_path / "other", "data/dense", **sizes)
    assert [shard.file.read_bytes() for shard in one] == [shard.file.read_bytes() for shard in other]
    assert [shard.name for shard in one] == [f"data/dense-{k:05d}-of-{len(one):05d}.parquet" for k in range(len(one))]
    assert len(one) == 3
    again = pa.concat_tables(read_shards(one))
    assert again.equals(pa.concat_tables(rows * 3).cast(features.arrow_schema))
    assert np.all([pq.ParquetFile(shard.file).metadata.num_row_groups >= 1 for shard in one])
    assert not list((tmp_path / "one" / "data").glob("*.partial"))
