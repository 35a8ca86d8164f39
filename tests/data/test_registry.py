"""The names that `load_dataset` knows, and the one private place they hang on."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets.packaged_modules
import huggingface_hub
import pytest
from datasets import (
    get_dataset_config_names,
    get_dataset_split_names,
    load_dataset,
    load_dataset_builder,
)
from datasets.load import PackagedDatasetModuleFactory, dataset_module_factory

import bench_datasets.data as builders
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.data import registry
from bench_datasets.data.source import SourceNotFoundError, SourceUnreachableError
from bench_datasets.faults import BenchError

Write = Callable[..., Path]
ROOT = Path(__file__).resolve().parents[2]
ENV = "BENCH_DATASETS_PBENCH"
SOURCE = {"level_0": [{"id": 1}, {"id": 2}], "dense": [{"id": 1}]}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENV, raising=False)


def test_what_is_private_to_datasets_is_as_expected() -> None:
    """Fails loudly where `datasets` changes what `registry` hangs on."""
    assert isinstance(datasets.packaged_modules._PACKAGED_DATASETS_MODULES["parquet"], tuple)
    parameters = list(inspect.signature(PackagedDatasetModuleFactory.__init__).parameters)
    assert parameters[:5] == ["self", "name", "data_dir", "data_files", "download_config"]
    assert "revision" in inspect.signature(dataset_module_factory).parameters
    source = inspect.getsource(dataset_module_factory)
    assert source.index("in _PACKAGED_DATASETS_MODULES") < source.index("os.path.isfile(combined_path)")
    assert "pbench" in getattr(PackagedDatasetModuleFactory.get_module, "_bench_datasets", ())


def test_registering_again_changes_nothing() -> None:
    wrapped = PackagedDatasetModuleFactory.get_module
    threads = [threading.Thread(target=builders.register_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert PackagedDatasetModuleFactory.get_module is wrapped
    module, digest = datasets.packaged_modules._PACKAGED_DATASETS_MODULES["pbench"]
    assert module == "bench_datasets.benchmarks.pbench.build"
    assert len(digest) == 64


def test_a_reload_changes_nothing(write: Write) -> None:
    wrapped = PackagedDatasetModuleFactory.get_module
    importlib.reload(registry).register("pbench", "bench_datasets.benchmarks.pbench.build")
    assert PackagedDatasetModuleFactory.get_module is wrapped
    assert len(load_dataset("pbench", data_dir=str(write(SOURCE)), split="test")) == 3


def test_a_name_of_datasets_is_not_taken_over() -> None:
    before = datasets.packaged_modules._PACKAGED_DATASETS_MODULES["csv"]
    with pytest.raises(BenchError, match="'csv' is taken"):
        builders.register("csv", "bench_datasets.benchmarks.pbench.build")
    with pytest.raises(BenchError, match="no module"):
        builders.register("new", "bench_datasets.data.absent")
    assert datasets.packaged_modules._PACKAGED_DATASETS_MODULES["csv"] == before
    assert "new" not in datasets.packaged_modules._PACKAGED_DATASETS_MODULES


def test_rows_are_built_again_for_a_new_version_only(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench_datasets.benchmarks.pbench import build

    built: list[int] = []
    made = build.PBench._generate_tables
    monkeypatch.setattr(
        build.PBench, "_generate_tables", lambda self, *args, **kwargs: built.append(1) or made(self, *args, **kwargs)
    )

    def load() -> list[Any]:
        return load_dataset("pbench", data_dir=str(root), split="test", cache_dir=str(tmp_path / "cache")).to_list()

    root = write(SOURCE)
    rows = load()
    first = len(built)
    assert load() == rows
    assert len(built) == first > 0
    for config in build.PBench.BUILDER_CONFIGS:
        monkeypatch.setattr(config, "version", datasets.Version("99.0.0"))
    assert load() == rows
    assert len(built) == 2 * first


def test_other_names_are_served_as_before(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    data = load_dataset("csv", data_files=str(tmp_path / "a.csv"), split="train", cache_dir=str(tmp_path / "cache"))
    assert data["x"][:] == [1]


def test_importing_opens_no_connection_and_no_builder() -> None:
    code = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise AssertionError('network at import')\n"
        "socket.socket.connect = refuse\n"
        "import datasets\n"
        "before = set(sys.modules)\n"
        "import bench_datasets.data as b\n"
        "b.register_all()\n"
        "new = set(sys.modules) - before\n"
        "bad = [m for m in new if m.split('.')[0] in {'pycocotools', 'scipy', 'numba', 'evaluate'}]\n"
        "assert not bad, bad\n"
        "assert 'bench_datasets.benchmarks.pbench.build' not in new\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_configs_and_splits(write: Write) -> None:
    assert get_dataset_config_names("pbench") == ["default", *PBENCH_LEVELS, "sample"]
    root = str(write(SOURCE))
    assert get_dataset_split_names("pbench", data_dir=root) == ["test"]
    assert get_dataset_split_names("pbench", "dense", data_dir=root) == ["test"]
    builder = load_dataset_builder("pbench", "level_0", data_dir=root)
    assert builder.info.features["level"].names == list(PBENCH_LEVELS)


def test_a_folder_of_the_name_does_no_harm(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    (here / "pbench").mkdir(parents=True)
    (here / "pbench" / "pbench.py").write_text("raise AssertionError\n")
    (here / "data").mkdir()
    (here / "data" / "level_0.parquet").write_bytes(b"not to be read")
    monkeypatch.chdir(here)
    with pytest.raises(SourceUnreachableError):
        load_dataset("pbench")
    assert len(load_dataset("pbench", data_dir=str(write(SOURCE)), split="test")) == 3


def test_a_bare_call_names_the_other_ways() -> None:
    with pytest.raises(BenchError, match="tiiuae/PBench") as caught:
        load_dataset("pbench")
    assert isinstance(caught.value, ConnectionError)
    for way in ("data_dir=", ENV, "'sample'"):
        assert way in str(caught.value)


def test_the_environment_names_a_root(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, str(write(SOURCE)))
    assert load_dataset("pbench", split="test")["key"][:] == ["level_0/1", "level_0/2", "dense/1"]
    other = write({"level_1": [{"id": 5}]}, folder="other")
    assert load_dataset("pbench", split="test", data_dir=str(other))["key"][:] == ["level_1/5"]


def test_only_the_annotation_files_are_looked_at(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(SOURCE)
    (root / "data" / "train").mkdir()
    (root / "images").mkdir()
    for i in range(5):
        (root / "images" / f"{i}.jpg").write_bytes(b"x")
        (root / "data" / "train" / f"{i}.jpg").write_bytes(b"x")
    (root / "data" / "level_00.parquet").write_bytes(b"of another name")
    looked: list[str] = []
    real = os.stat

    def stat(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        looked.append(str(path))
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", stat)
    assert len(load_dataset("pbench", data_dir=str(root), split="test", images=False)) == 3
    assert not [path for path in looked if path.endswith(".jpg")]


class _Hub:
    """Stands for the Hub's API: names of commits by branch."""

    asked: Any = None

    def __init__(self, token: Any = None) -> None:
        self.token = token

    def dataset_info(self, repo: str, revision: str | None = None, timeout: float | None = None) -> Any:
        type(self).asked = (repo, revision, self.token)
        return SimpleNamespace(sha=f"commit-of-{revision or 'main'}", card_data=None)


@pytest.mark.parametrize(
    ("arguments", "asked", "root"),
    [
        ({}, ("tiiuae/PBench", "main", None), "tiiuae/PBench@commit-of-main"),
        ({"revision": "v2"}, ("tiiuae/PBench", "v2", None), "tiiuae/PBench@commit-of-v2"),
        ({"data_dir": "hf://datasets/o/n@v3"}, ("o/n", "v3", None), "o/n@commit-of-v3"),
        ({"data_dir": "hf://datasets/o/n/sub", "token": "t"}, ("o/n", None, "t"), "o/n@commit-of-main/sub"),
    ],
)
def test_hub_sources_are_pinned_to_a_commit(
    arguments: dict[str, Any], asked: Any, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench_datasets.data import source as sources

    seen: list[str] = []

    def listed(root: str, *args: Any) -> dict[str, Any]:
        seen.append(root)
        return {"level_0": (sources.SourceFile(f"{root}/data/level_0.parquet", "1"),)}

    monkeypatch.setattr(huggingface_hub, "HfApi", _Hub)
    monkeypatch.setattr(sources, "_list", listed)
    builder = load_dataset_builder("pbench", **arguments)
    assert seen == [f"hf://datasets/{root}"]
    assert _Hub.asked == asked
    assert builder.listing.source == asked[0]
    assert builder.listing.revision == root.split("@")[1].split("/")[0]


def test_a_revision_needs_a_hub_source(write: Write) -> None:
    root = str(write(SOURCE))
    with pytest.raises(BenchError, match="expected a source on the Hub"):
        load_dataset("pbench", data_dir=root, revision="v1")
    with pytest.raises(BenchError, match="names 'v1' already"):
        load_dataset("pbench", data_dir="hf://datasets/o/n@v1", revision="v2")
    with pytest.raises(BenchError, match="expected hf://datasets/<org>/<name>"):
        load_dataset("pbench", data_dir="hf://datasets/o")


def test_roots_that_are_none(tmp_path: Path, write: Write) -> None:
    file = write(SOURCE) / "data" / "level_0.parquet"
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "train.csv").write_text("x")
    for root, words in {
        tmp_path / "absent": "found no such folder",
        file: "found a file",
        tmp_path / "empty": "found an empty folder",
        tmp_path / "other": r"found train\.csv",
        "memory://absent": "found no such folder",
    }.items():
        with pytest.raises(BenchError, match=words) as caught:
            load_dataset("pbench", data_dir=str(root))
        assert str(root) in str(caught.value)
        assert "level_0" in str(caught.value)
    with pytest.raises(FileNotFoundError):
        load_dataset("pbench", data_dir=str(tmp_path / "absent"))


def test_incomplete_and_doubled_parts(write: Write) -> None:
    rows = [{"id": 1}]
    for i, (files, words) in enumerate(
        [
            ({"level_0-00000-of-00002": rows}, "expected 2 files, found 1 .number 1 is missing"),
            ({"level_0-00000-of-00001": rows, "level_0": rows}, "more than one"),
            ({"level_0-00000-of-00001": rows, "level_0-00000-of-00002": rows}, "more than one"),
        ]
    ):
        with pytest.raises(BenchError, match=words):
            load_dataset("pbench", data_dir=str(write(files, folder=f"source{i}")))


def test_files_directly_in_the_root(write: Write) -> None:
    root = write({"level_0-00000-of-00002-abc": [{"id": 1}], "level_0-00001-of-00002-abc": [{"id": 2}]}) / "data"
    assert load_dataset("pbench", data_dir=str(root), split="test")["id"][:] == [1, 2]


def test_data_files(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = (
        write({"level_0-a": [{"id": 1}], "level_0-b": [{"id": 1}], "dense": [{"id": 3}], "x": [{"id": 9}]}) / "data"
    )
    named = {"dense": str(folder / "dense.parquet"), "level_0": str(folder / "level_0-*.parquet")}
    keys = ["level_0/1", "level_0/1#2", "dense/3"]
    assert load_dataset("pbench", data_files=named, split="test")["key"][:] == keys
    monkeypatch.chdir(folder)
    assert load_dataset("pbench", data_files=["dense.parquet", "level_0-*.parquet"], split="test")["key"][:] == keys
    assert load_dataset("pbench", data_files={"level_1": "x.parquet"}, split="test")["key"][:] == ["level_1/9"]
    for wrong, words in [
        ({"test": "x.parquet"}, "expected parts of pbench"),
        ("x.parquet", "begins with none of"),
        ({"dense": "absent.parquet"}, "found none"),
        ({"dense": 3}, "expected paths"),
    ]:
        with pytest.raises(BenchError, match=words):
            load_dataset("pbench", data_files=wrong, split="test")


def test_a_level_that_the_source_lacks(write: Write) -> None:
    with pytest.raises(SourceNotFoundError, match="'level_3' has no files there; found level_0, dense"):
        load_dataset("pbench", "level_3", data_dir=str(write(SOURCE)))


def test_the_sample_is_built_in() -> None:
    pytest.importorskip("bench_datasets.samples")
    data = load_dataset("pbench", "sample", split="test")
    assert len(data) > 0
    facts = builders.provenance(data)
    assert facts is not None
    assert facts["source"] == "sample"
    with pytest.raises(BenchError, match="is built in"):
        load_dataset("pbench", "sample", data_dir="somewhere")
