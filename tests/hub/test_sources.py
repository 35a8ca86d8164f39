"""The builders over `hf://`: published copies and the benchmarks' own layouts, and no more of them than is needed."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datasets import load_dataset, load_dataset_builder
from huggingface_hub import HfFileSystem, snapshot_download

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.data import open_truth, provenance
from bench_datasets.data.source import SourceUnreachableError
from bench_datasets.hub.commits import commit
from bench_datasets.hub.datasets import Built, build_dataset
from bench_datasets.hub.export import open_source
from bench_datasets.hub.shards import write_shards

from ..support.plain_process import needs

Build = Callable[[str], Built]

BENCHMARKS = ("pbench", "instancebench", "pvsg")
CONFIGS = {"pbench": ("default", "dense"), "instancebench": ("default", "expressions"), "pvsg": ("videos", "frames")}
EVERY = [(benchmark, config) for benchmark in BENCHMARKS for config in CONFIGS[benchmark]]


@pytest.fixture(scope="module")
def pixels(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """The files of a sample's copy with images; made once."""
    made: dict[str, dict[str, Any]] = {}

    def build(benchmark: str) -> dict[str, Any]:
        if benchmark not in made:
            truth = open_source(benchmark, "sample", with_images=True)
            made[benchmark] = dict(build_dataset(truth, "acme/x", tmp_path_factory.mktemp(benchmark)).files)
        return made[benchmark]

    return build


@pytest.fixture(autouse=True)
def _fresh(reading: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A datasets cache of one's own."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


def send(files: Any, repo: str) -> str:
    done: Any = commit(repo, "dataset", files, "Rows", create=True, beside=True)
    HfFileSystem.clear_instance_cache()
    return str(done.sha)


def folder(root: Any) -> dict[str, Path]:
    """A folder's files by their paths in it."""
    return {str(path.relative_to(root)): path for path in sorted(Path(root).rglob("*")) if path.is_file()}


def sample_dir(benchmark: str) -> Path:
    return Path(getattr(samples, f"{benchmark}_sample_dir")())


def rows_of(data: Any) -> list[dict[str, Any]]:
    """Rows as plain values, an image as its pixels."""
    return [{k: v.tobytes() if hasattr(v, "tobytes") else v for k, v in row.items()} for row in data]


def original(benchmark: str, config: str, *, images: bool) -> Any:
    return load_dataset(benchmark, config, data_dir=str(sample_dir(benchmark)), split="test", images=images)


def resolved(hub: Any, since: int) -> list[str]:
    """Paths of the files whose content was asked for."""
    found = [one["path"] for one in hub.requests()[since:] if one["method"] == "GET" and "/resolve/" in one["path"]]
    return [path.split("/resolve/")[1].split("/", 1)[1].split("?")[0] for path in found]


@pytest.mark.parametrize(("benchmark", "config"), EVERY)
def test_a_copy_without_images(benchmark: str, config: str, built: Build) -> None:
    sha = send(built(benchmark).files, "acme/copy")
    expected = original(benchmark, config, images=False)
    for streaming, images in itertools.product((False, True), (False, True)):
        root = "hf://datasets/acme/copy"
        copy = load_dataset(benchmark, config, data_dir=root, split="test", images=images, streaming=streaming)
        labels = {name: copy.features[name] for name in expected.column_names}
        assert labels == dict(expected.features)
        assert set(copy.features) - set(labels) <= {"image_sha256"}
        names = set(expected.column_names)
        assert [{k: v for k, v in row.items() if k in names} for row in copy] == expected.to_list()
        facts = provenance(copy)
        assert facts is not None
        assert (facts["source"], facts["revision"]) == ("acme/copy", sha)
        assert facts["rows"] == provenance(expected)["rows"]  # type: ignore[index]


@pytest.mark.parametrize(("benchmark", "config"), EVERY)
def test_a_copy_with_images(benchmark: str, config: str, pixels: Callable[[str], Any]) -> None:
    send(pixels(benchmark), "acme/copy")
    for images in (False, True):
        expected = original(benchmark, config, images=images)
        for streaming in (False, True):
            root = "hf://datasets/acme/copy"
            copy = load_dataset(benchmark, config, data_dir=root, split="test", images=images, streaming=streaming)
            shared = [name for name in copy.features if name in expected.features]
            assert {name: copy.features[name] for name in shared} == dict(expected.features)
            assert rows_of(copy.select_columns(shared)) == rows_of(expected)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_downloaded_copy(benchmark: str, built: Build, reading: Any, tmp_path: Path) -> None:
    send(built(benchmark).files, "acme/copy")
    place = snapshot_download("acme/copy", repo_type="dataset", local_dir=tmp_path / "copy")
    main = CONFIGS[benchmark][0]
    expected = original(benchmark, main, images=False)
    copy = load_dataset(benchmark, data_dir=place, split="test", images=False)
    assert copy.select_columns(expected.column_names).to_list() == expected.to_list()
    assert provenance(copy)["source"] == os.path.realpath(place)  # type: ignore[index]
    # One file of it, in several processes, and published again.
    (name,) = [name for name in built(benchmark).files if re.match(r"(default|videos|data)/(test|level_0)-", name)]
    single = open_truth(benchmark, os.path.join(place, name), num_proc=2)
    assert single["key"] == expected["key"][: len(single)]
    again = build_dataset(open_source(benchmark, place, with_images=False), "acme/again", tmp_path / "again")
    assert again.facts.hashes == built(benchmark).facts.hashes


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_benchmarks_own_layout(benchmark: str) -> None:
    sha = send(folder(sample_dir(benchmark)), "acme/source")
    for config, streaming, images in itertools.product(CONFIGS[benchmark], (False, True), (False, True)):
        root = "hf://datasets/acme/source"
        data = load_dataset(benchmark, config, data_dir=root, split="test", images=images, streaming=streaming)
        expected = original(benchmark, config, images=images)
        assert data.features == expected.features
        names = [name for name in data.features if name != "video"]
        assert rows_of(data.select_columns(names)) == rows_of(expected.select_columns(names))
        assert provenance(data)["revision"] == sha  # type: ignore[index]


def test_zips_of_pvsg(tmp_path: Path) -> None:
    root = sample_dir("pvsg")
    files: dict[str, Any] = {"pvsg.json": root / "pvsg.json"}
    for kind in ("masks", "frames"):
        for source in sorted(path.parent for path in root.glob(f"*/{kind}")):
            name = shutil.make_archive(str(tmp_path / f"{source.name}_{kind}"), "zip", source, kind)
            files[f"{source.name}/{source.name}_{kind}.zip"] = Path(name)
    send(files, "acme/zips")
    for config in CONFIGS["pvsg"]:
        data = load_dataset("pvsg", config, data_dir="hf://datasets/acme/zips", split="test", streaming=True)
        expected = original("pvsg", config, images=True)
        names = [name for name in data.features if name != "video"]
        assert rows_of(data.select_columns(names)) == rows_of(expected.select_columns(names))


def cut(benchmark: str, files: dict[str, Any], place: Path, each: int) -> dict[str, Any]:
    """The same copy in shards of a few rows."""
    kept = {name: file for name, file in files.items() if not name.startswith(("default/", "videos/", "data/"))}
    for name, file in files.items():
        if name in kept:
            continue
        table = pa.parquet.read_table(file)
        stem = name.rsplit("-", 3)[0]
        tables = [table.slice(first, each) for first in range(0, len(table), each)]
        features = open_source(benchmark, "sample", with_images=False)
        part = next(part for part in features.parts if part.stem == stem)
        for shard in write_shards(tables, features.read(part)[0], place, stem, shard_bytes=1, group_bytes=1):
            kept[shard.name] = shard.file
    return kept


@pytest.mark.parametrize(("benchmark", "take", "each"), [("pbench", 20, 2), ("instancebench", 5, 1), ("pvsg", 1, 1)])
def test_a_few_rows_touch_few_shards(
    benchmark: str, take: int, each: int, built: Build, reading: Any, tmp_path: Path
) -> None:
    """A stream of a copy asks for the shards that hold the rows (and one footer), however many there are."""
    files = cut(benchmark, dict(built(benchmark).files), tmp_path / "shards", each)
    send(files, "acme/copy")
    main = {"pbench": "data/", "instancebench": "default/test-", "pvsg": "videos/test-"}[benchmark]
    names = sorted(name for name in files if name.startswith(main))
    if benchmark == "pbench":  # the order of the levels, not of the names
        names = [name for name in names if "level" in name] + [name for name in names if "dense" in name]
    before = len(reading.requests())
    stream = open_truth(benchmark, "hf://datasets/acme/copy", streaming=True)
    assert len(list(stream.take(take))) == take
    touched = set(resolved(reading, before)) - {"README.md"}
    needed, held = 0, 0
    while held < take:
        held += pa.parquet.read_metadata(files[names[needed]]).num_rows
        needed += 1
    assert touched <= set(names[: needed + 1]), f"{len(touched)} of {len(names)}"
    assert len(names) > needed + 1 or benchmark == "pvsg"


def test_a_few_rows_of_the_sources_own_layouts(reading: Any) -> None:
    """Images, or the masks of videos, are fetched for the rows that are asked for."""
    sets = []
    line = json.loads((sample_dir("instancebench") / "test.jsonl").read_text().splitlines()[0])
    for k in range(64):
        for expression in line["expressions"]:
            expression["expression_id"] = f"{expression['expression_id']}-{k}"
            expression["donor_expression_id"] = None
        sets.append(json.dumps({**line, "tces_id": f"set-{k}", "image": f"images/{k}.png"}))
    picture = sample_dir("instancebench") / line["image"]
    files = {"test.jsonl": "\n".join(sets), **{f"images/{k}.png": picture for k in range(64)}}
    send(files, "acme/instancebench")
    before = len(reading.requests())
    rows = list(open_truth("instancebench", "hf://datasets/acme/instancebench", streaming=True, images=True).take(4))
    pictures = {path for path in resolved(reading, before) if not path.endswith(".jsonl")}
    assert all(row["image"] is not None for row in rows)
    assert 4 <= len(pictures) <= 32  # 16 are read at a time, and one time ahead
    send(folder(sample_dir("pvsg")), "acme/pvsg")
    before = len(reading.requests())
    (row,) = open_truth("pvsg", "hf://datasets/acme/pvsg", streaming=True).take(1)
    masks = {path for path in resolved(reading, before) if path.endswith(".png")}
    videos = [path.split("/")[-2] for path in masks]
    assert videos.count(row["key"]) == row["frames_present"]
    assert len(set(videos)) <= 2 < 4  # `datasets` reads one row ahead
    send(folder(sample_dir("pbench")), "acme/pbench")
    before = len(reading.requests())
    assert len(list(open_truth("pbench", "hf://datasets/acme/pbench", streaming=True).take(6))) == 6
    asked = [one for one in reading.requests()[before:] if "dense-" in one["path"] and one["method"] == "GET"]
    assert len(asked) <= 3, "of a file that is not needed no more than its footer"


@needs("huggingface_hub", "1.31", "does not repeat a read that was dropped")
@pytest.mark.parametrize("benchmark", BENCHMARKS)
@pytest.mark.parametrize("drop", ["before", "after"])
def test_a_dropped_request_is_made_again(
    benchmark: str, drop: str, built: Build, reading: Any, patient: list[float]
) -> None:
    send(built(benchmark).files, "acme/copy")
    expected = original(benchmark, CONFIGS[benchmark][0], images=False)
    for streaming in (True, False):
        reading.trouble({"match": r"GET .*/resolve/.*\.parquet", "times": 2, "drop": drop})
        copy = open_truth(benchmark, "hf://datasets/acme/copy", streaming=streaming)
        assert [row["key"] for row in copy] == expected["key"][:]
        assert not left(reading)
    reading.trouble({"match": r"GET .*/resolve/.*\.parquet", "times": 1, "status": 503})
    assert len(list(open_truth(benchmark, "hf://datasets/acme/copy", streaming=True))) == len(expected)


def left(hub: Any) -> Any:
    """Troubles that no request has run into yet."""
    with urllib.request.urlopen(f"{hub.endpoint}/_localhub/troubles") as answer:
        return [trouble for trouble in json.loads(answer.read()) if trouble.get("times", 1)]


@pytest.fixture
def away(reading: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Takes the Hub away: the server is dead, or the libraries were told to stay offline."""

    def go(how: str) -> None:
        HfFileSystem.clear_instance_cache()
        if how == "dead":
            reading.kill()
        else:
            monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
            monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)

    return go


@pytest.mark.parametrize("how", ["dead", "offline"])
@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_build_in_the_cache_needs_no_hub(
    benchmark: str, how: str, built: Build, away: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    sha = send(built(benchmark).files, "acme/copy")
    root, main = "hf://datasets/acme/copy", CONFIGS[benchmark][0]
    first = load_dataset(benchmark, data_dir=root, images=False)["test"]
    away(how)
    again = load_dataset(benchmark, data_dir=root, images=False)["test"]
    assert again.to_list() == first.to_list()
    assert provenance(again) == provenance(first)
    assert provenance(again)["revision"] == sha  # type: ignore[index]
    assert f"taking acme/copy as it was when it was built, at commit {sha}" in caplog.text
    # What was never built, or is to be streamed, says so.
    with pytest.raises(SourceUnreachableError, match=r"could not be read .*'sample'"):
        load_dataset(benchmark, CONFIGS[benchmark][1], data_dir=root, images=False)
    with pytest.raises(SourceUnreachableError, match="No build with these options is in the cache"):
        load_dataset(benchmark, main, data_dir=root, images=False, streaming=True)
    with pytest.raises(SourceUnreachableError, match="'sample'"):
        load_dataset(benchmark, data_dir="hf://datasets/acme/other", images=False)


def test_what_the_hub_refuses_is_not_recalled(built: Build, reading: Any) -> None:
    send(built("instancebench").files, "acme/copy")
    root = "hf://datasets/acme/copy"
    load_dataset("instancebench", data_dir=root, images=False)
    reading.api().delete_repo("acme/copy", repo_type="dataset")
    HfFileSystem.clear_instance_cache()
    with pytest.raises(SourceUnreachableError, match="could not be read"):
        load_dataset("instancebench", data_dir=root, images=False)


def test_a_bare_name_without_the_hub(
    built: Build, away: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = send(built("pbench").files, "acme/PBench")
    monkeypatch.setenv("BENCH_DATASETS_PBENCH", "hf://datasets/acme/PBench")
    first = load_dataset("pbench", images=False, split="test")
    away("offline")
    assert load_dataset("pbench", images=False, split="test")["key"] == first["key"]
    assert load_dataset_builder("pbench", images=False).listing.revision == sha
    monkeypatch.delenv("BENCH_DATASETS_PBENCH")
    with pytest.raises(SourceUnreachableError, match="Three other ways"):
        load_dataset("pbench", images=False)


def test_predictions_on_the_hub(reading: Any) -> None:
    for benchmark in BENCHMARKS:
        place = getattr(samples, f"{benchmark}_sample_predictions")("careful")
        expected = bd.read_predictions(benchmark, place)
        files = {"out.jsonl": Path(place)} if Path(place).is_file() else folder(place)
        send(files, f"acme/{benchmark}-out")
        url = f"hf://datasets/acme/{benchmark}-out" + ("/out.jsonl" if Path(place).is_file() else "")
        assert bd.read_predictions(benchmark, url).to_list() == expected.to_list()
