"""PBench's truth rows: what they hold, and that every road to them gives the same."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import (
    ClassLabel,
    Image,
    List,
    Value,
    concatenate_datasets,
    load_dataset,
    load_dataset_builder,
    load_from_disk,
)

import bench_datasets.data as builders
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.faults import BenchError
from bench_datasets.masks import MASK_TYPE

from ...support.small_sources import load, table

Write = Callable[..., Path]
ROOT = Path(__file__).resolve().parents[3]
LABEL_COLUMNS = ["key", "id", "level", "expression", "masks", "count", "height", "width", "faults"]
REPEATS = {
    "level_0-00000-of-00003": [{"id": 7}, {"id": 8}, {"id": 7}],
    "level_0-00001-of-00003": [{"id": 7}, {"id": 9}],
    "level_0-00002-of-00003": [{"id": 8}, {"id": 7}, {"id": 10}],
    "dense-00000-of-00002": [{"id": 7}],
    "dense-00001-of-00002": [{"id": 7}],
}
REPEAT_KEYS = [f"level_0/{key}" for key in ("7", "8", "7#2", "7#3", "9", "8#2", "7#4", "10")] + ["dense/7", "dense/7#2"]


def test_the_rows_of_the_mini_source(mini: str) -> None:
    data = load(mini)
    features = data.features
    assert list(features) == [*LABEL_COLUMNS, "image", "image_sha256"]
    assert features["level"] == ClassLabel(names=list(PBENCH_LEVELS))
    assert features["masks"] == List({"size": List(Value("int32")), "counts": Value("string")})
    assert features["image"] == Image()
    assert data.data.schema.field("masks").type == pa.list_(MASK_TYPE)
    source = [
        (level, row)
        for level in PBENCH_LEVELS
        for row in pq.read_table(f"{mini}/data/{level}-00000-of-00001.parquet").to_pylist()
    ]
    assert len(data) == len(source) == 17
    for got, (level, row) in zip(data, source, strict=True):
        assert got["key"] == f"{level}/{row['id']}"
        assert PBENCH_LEVELS[got["level"]] == level
        assert {name: got[name] for name in ("id", "expression", "masks", "count")} == {
            name: row[name] for name in ("id", "expression", "masks", "count")
        }
        assert (got["width"], got["height"]) == got["image"].size
        assert got["image_sha256"] == hashlib.sha256(row["image"]["bytes"]).hexdigest()
        assert got["faults"] == []


def test_build_sources_give_same_rows(mini: str) -> None:
    built = load(mini).remove_columns("image").to_list()
    assert load(mini, num_proc=2).remove_columns("image").to_list() == built
    assert [{k: v for k, v in row.items() if k != "image"} for row in load(mini, streaming=True)] == built
    labels = load(mini, images=False)
    assert labels.column_names == LABEL_COLUMNS
    assert labels.to_list() == [{k: row[k] for k in LABEL_COLUMNS} for row in built]
    assert list(load(mini, images=False, streaming=True)) == labels.to_list()
    assert load(mini, split="test[:5]").remove_columns("image").to_list() == built[:5]
    assert load(mini, "level_3", images=False).to_list() == [row for row in labels if row["level"] == 3]
    assert [row["key"] for row in load(mini, streaming=True).take(4)] == [row["key"] for row in built[:4]]
    assert builders.open_truth("pbench", mini).to_list() == labels.to_list()
    assert list(builders.open_truth("pbench", mini, streaming=True)) == labels.to_list()
    assert builders.open_truth("pbench", mini, config="dense", images=True).column_names[-1] == "image_sha256"


def test_repeated_ids_are_numbered_within_a_level_over_its_files(write: Write) -> None:
    root = write(REPEATS)
    expected = [["repeated_id"] if "#" in key else [] for key in REPEAT_KEYS]
    for kwargs in ({}, {"num_proc": 2}, {"num_proc": 5}, {"images": False}, {"images": False, "num_proc": 3}):
        data = load(root, download_mode="force_redownload", **kwargs)
        assert data["key"][:] == REPEAT_KEYS, kwargs
        assert data["faults"][:] == expected
    for images in (True, False):
        stream = load(root, streaming=True, images=images)
        assert stream.num_shards == 5
        assert [row["key"] for row in stream] == REPEAT_KEYS
        assert [row["key"] for row in stream.shard(5, 1)] == REPEAT_KEYS[3:5]
        assert sorted(row["key"] for row in stream.shuffle(seed=3, buffer_size=1)) == sorted(REPEAT_KEYS)
    assert load(root, "dense")["key"][:] == ["dense/7", "dense/7#2"]


def test_labels_alone_need_no_image_column(write: Write) -> None:
    root = write({"level_4": [{"id": 1}]}, image=False)
    assert load(root, images=False)["key"][:] == ["level_4/1"]


def test_images_is_yes_or_no(mini: str) -> None:
    with pytest.raises(BenchError, match="images: expected True or False"):
        load(mini, images="no")


def test_broken_files(write: Write) -> None:
    rows = {f"level_0-0000{i}-of-00002": [{"id": 1}, {"id": 2}] for i in range(2)}
    file = write(rows) / "data" / "level_0-00001-of-00002.parquet"
    for content, words in ((file.read_bytes()[:-20], "cut off"), (b"", "empty file")):
        file.write_bytes(content)
        for kwargs in ({}, {"images": False}, {"num_proc": 2}):
            with pytest.raises(BenchError, match=rf"level_0-00001-of-00002\.parquet.*{words}"):
                load(file.parents[1], **kwargs)


def test_a_worker_raises_what_it_found(write: Write) -> None:
    wrong = table([{"id": 1}]).set_column(4, "id", pa.array([None], pa.int64()))
    root = write({"level_0": [{"id": 1}], "level_1": wrong})
    with pytest.raises(BenchError, match=r"level_1\.parquet: row 0: column 'id'"):
        load(root, num_proc=2)


def test_a_part_without_rows(write: Write) -> None:
    root = write({"level_0": [], "level_1": [{"id": 1}]})
    assert load(root)["key"][:] == ["level_1/1"]
    with pytest.raises(BenchError, match="expected rows of level_0, found files without any"):
        load(root, "level_0")
    facts = builders.provenance(load(root, streaming=True))
    assert facts is not None
    assert facts["rows"] == {"level_0": 0, "level_1": 1}


def test_an_edited_source_is_built_anew(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write({"level_0": [{"id": 1}]})
    first = load(root)
    assert load(root)._fingerprint == first._fingerprint
    assert load(root).cache_files == first.cache_files
    write({"level_0": [{"id": 2}]})
    assert load(root)["id"][:] == [2]
    write({"level_1": [{"id": 3}]})
    assert load(root)["id"][:] == [2, 3]
    monkeypatch.setenv("BENCH_DATASETS_PBENCH", str(root))
    assert load_dataset("pbench", split="test").cache_files == load(root, images=True).cache_files


def test_a_built_source_is_not_read_again(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench_datasets.benchmarks.pbench import build

    root = write({"level_0": [{"id": 1}]})
    load(root)

    def fail(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(build, "LabelFile", fail)
    assert len(load(root)) == 1


def test_other_file_systems(write: Write) -> None:
    import fsspec

    root = write(REPEATS)
    memory = fsspec.filesystem("memory")
    memory.put(str(root / "data") + "/", "/truth/data/", recursive=True)
    zipped = root / "all.zip"
    subprocess.run([sys.executable, "-m", "zipfile", "-c", str(zipped), str(root / "data")], check=True)
    try:
        for url in ("memory://truth", f"file://{root}", f"zip://::{zipped}"):
            assert load(url, images=False)["key"][:] == REPEAT_KEYS, url
            assert [row["key"] for row in load(url, streaming=True)] == REPEAT_KEYS
        assert load("memory://truth")["key"][:] == REPEAT_KEYS
    finally:
        memory.rm("/truth", recursive=True)


def test_provenance_lasts(mini: str, tmp_path: Path) -> None:
    expected = {
        "benchmark": "pbench",
        "source": os.path.realpath(mini),
        "revision": None,
        "config": "default",
        "split": "test",
        "rows": {"level_0": 3, "level_1": 3, "level_2": 2, "level_3": 3, "level_4": 3, "dense": 3},
    }
    built = load(mini, images=False)
    for data in (
        built,
        load(mini, images=False),
        built.select([1, 2]),
        built.filter(lambda row: row["count"] > 1),
        built.map(lambda row: {"more": 1}),
        built.sort("count"),
        built.shard(2, 0),
        built.remove_columns("masks"),
        load(mini, streaming=True),
        load(mini, streaming=True).take(2),
        load(mini, streaming=True).map(lambda row: {"more": 1}).filter(lambda row: True),
        load_dataset("pbench", data_dir=mini, images=False),
    ):
        assert builders.provenance(data) == {**expected, "split": builders.provenance(data)["split"]}  # type: ignore[index]
    assert builders.provenance(built) == expected
    built.save_to_disk(str(tmp_path / "saved"))
    assert builders.provenance(load_from_disk(str(tmp_path / "saved"))) == expected
    assert list(next(iter([builders.provenance(built)]))["rows"]) == list(PBENCH_LEVELS)  # type: ignore[index]
    parts = [load(mini, level, images=False) for level in ("level_0", "dense")]
    assert builders.provenance(parts[1]) == {**expected, "config": "dense"}
    assert builders.provenance(concatenate_datasets(parts)) == {**expected, "config": None, "split": None}


def test_provenance_of_mixed_sources_is_none(write: Write) -> None:
    roots = [write({"level_0": [{"id": i}]}, folder=f"s{i}") for i in range(2)]
    both = concatenate_datasets([load(root, images=False) for root in roots])
    assert builders.provenance(both) is None


def test_the_builder_pickles(mini: str) -> None:
    builder = pickle.loads(pickle.dumps(load_dataset_builder("pbench", "dense", data_dir=mini, images=False)))
    builder.download_and_prepare()
    assert builder.as_dataset("test")["id"][:] == [14, 15, 16]
    stream = pickle.loads(pickle.dumps(load(mini, streaming=True)))
    assert next(iter(stream))["key"] == "level_0/0"


def test_spawned_workers(write: Write, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import multiprocess, sys\n"
        "import bench_datasets.data as builders\n"
        "from datasets import load_dataset\n"
        "if __name__ == '__main__':\n"
        "    multiprocess.set_start_method('spawn')\n"
        "    builders.register_all()\n"
        "    data = load_dataset('pbench', split='test', data_dir=sys.argv[1], num_proc=2, cache_dir=sys.argv[2])\n"
        "    print(*data['key'])\n"
    )
    arguments = [sys.executable, str(script), str(write(REPEATS)), str(tmp_path / "cache")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(arguments, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.split() == REPEAT_KEYS


def test_streaming_to_parquet_where_no_row_has_masks(write: Write, tmp_path: Path) -> None:
    root = write({"level_0": [{"id": 1, "masks": []}, {"id": 2, "masks": []}]})
    load(root, streaming=True).to_parquet(str(tmp_path / "out.parquet"))
    assert (
        pq.read_table(tmp_path / "out.parquet").schema.field("masks").type.value_type.field("counts").type
        == pa.string()
    )
