"""Files of other people: pipes, devices, links out of a folder, repeated names in JSON, long values in messages."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bench_datasets import read_predictions
from bench_datasets._util.untrusted import (
    NotRegularError,
    load_json,
    open_file,
    open_regular,
    read_regular,
    refuse_outside,
)
from bench_datasets.benchmarks.instancebench.manifest import read_tces
from bench_datasets.benchmarks.pvsg.annotation import read_annotation
from bench_datasets.faults import BenchError, FaultError, shorten, shorten_text
from bench_datasets.predictions.files import locate
from bench_datasets.results.result import Result

LINE = '{"id": 1, "masks": [{"size": [2, 3], "counts": [1, 5]}]}'


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A named pipe that nobody writes to: whoever opens it the plain way waits for ever."""
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)
    return path


def test_open_regular_named_pipe_refused(pipe: Path) -> None:
    with pytest.raises(NotRegularError, match="expected a regular file, found a named pipe"):
        open_regular(pipe)
    with pytest.raises(NotRegularError, match="named pipe"):
        open_file(locate(pipe).fs, str(pipe))


def test_open_regular_link_to_device_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").symlink_to("/dev/zero")
    with pytest.raises(NotRegularError, match="found a device"):
        open_regular(tmp_path / "result.json")


def test_read_regular_file_over_limit_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1001)
    assert read_regular(tmp_path / "a", 1001) == b"x" * 1001
    with pytest.raises(BenchError, match="at most 1,000 bytes"):
        read_regular(tmp_path / "a", 1000)


def test_result_load_pipe_or_device_refused(tmp_path: Path, pipe: Path) -> None:
    pipe.rename(tmp_path / "result.json")
    with pytest.raises(BenchError, match="named pipe"):
        Result.load(tmp_path)
    (tmp_path / "result.json").unlink()
    (tmp_path / "result.json").symlink_to("/dev/zero")
    with pytest.raises(BenchError, match="device"):
        Result.load(tmp_path)


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench", "pvsg"])
def test_read_predictions_named_pipe_refused(benchmark: str, tmp_path: Path, pipe: Path) -> None:
    with pytest.raises(BenchError, match="pipe"):
        read_predictions(benchmark, pipe)
    with pytest.raises(BenchError, match=r"pipe\.jsonl: expected a regular file, found a named pipe"):
        read_predictions(benchmark, tmp_path)


def test_read_predictions_link_out_of_folder_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "secret.jsonl").write_text(LINE)
    (tmp_path / "run" / "level_0.jsonl").symlink_to(tmp_path / "secret.jsonl")
    with pytest.raises(BenchError, match=r"run/level_0\.jsonl: the path leads out of the folder"):
        read_predictions("pbench", tmp_path / "run")


def test_read_predictions_link_inside_folder_read(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "files").mkdir(parents=True)
    (run / "files" / "a").write_text(LINE)
    (run / "level_0.jsonl").symlink_to(run / "files" / "a")
    (tmp_path / "link").symlink_to(run)
    assert read_predictions("pbench", tmp_path / "link")["id"] == [1]


def test_read_predictions_hub_cache_links_read(tmp_path: Path) -> None:
    snapshot = tmp_path / "datasets--a--b" / "snapshots" / "c0ffee"
    blobs = tmp_path / "datasets--a--b" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "12ab").write_text(LINE)
    (snapshot / "level_0.jsonl").symlink_to("../../blobs/12ab")
    assert read_predictions("pbench", snapshot)["id"] == [1]


def test_refuse_outside_folder_with_same_beginning_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="leads out of the folder"):
        refuse_outside(str(tmp_path / "run"), str(tmp_path / "run2" / "a"), "a")


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '{"b": [{"a": 1, "c": 2, "a": 3}]}'])
def test_load_json_repeated_name_refused(text: str) -> None:
    with pytest.raises(ValueError, match="the name 'a' twice in one object"):
        load_json(text)


def test_load_json_equal_to_standard_library() -> None:
    text = '{"a": {"b": [1, 2.5, null, true, "\\u00e9"]}, "c": {}, "d": [{}, {"a": 1}, {"a": 2}]}'
    assert load_json(text) == load_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize("wrap", ["{}\n", "[{}]"])
def test_read_predictions_repeated_name_refused(wrap: str, tmp_path: Path) -> None:
    repeated = '{"id": 1, "masks": [], "masks": [{"size": [2, 3], "counts": [1, 5]}]}'
    (tmp_path / "p.json").write_text(wrap.format(repeated))
    with pytest.raises(BenchError, match=r"p\.json:1: .*the name 'masks' twice"):
        read_predictions("pbench", tmp_path / "p.json")


def test_truth_repeated_name_refused() -> None:
    with pytest.raises(BenchError, match=r"test\.jsonl:3: .*the name 'candidates' twice"):
        read_tces(b'{"candidates": [], "candidates": []}', "test.jsonl:3")
    with pytest.raises(BenchError, match=r"pvsg\.json: .*the name 'data' twice"):
        read_annotation(b'{"data": [], "data": []}', "pvsg.json")


def test_shorten_long_value_bounded() -> None:
    assert len(shorten("x" * 10**6)) == 60
    assert len(shorten({"a": ["b" * 10**6] * 10**6})) == 60
    assert shorten({"b": 1, "a": (2, None)}) == "{'b': 1, 'a': (2, None)}"
    assert len(str(FaultError("unknown_row", "k" * 10**6, "no row"))) < 300


def test_shorten_text_control_characters_quoted() -> None:
    assert shorten_text("level_0/7") == "level_0/7"
    assert "\x1b" not in shorten_text("\x1b[2J")
