"""Recognition of formats, messages, and the life of what was read."""

from __future__ import annotations

import contextlib
import gc
import gzip
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bench_datasets as bd
from bench_datasets.faults import BenchError
from bench_datasets.predictions import read_predictions
from bench_datasets.predictions.detect import detect_format
from bench_datasets.predictions.files import locate
from bench_datasets.predictions.mask_form import MASK_FORM

from ..support.dense_masks import encode

LINE = {"id": 7, "masks": [encode(np.eye(3, dtype=bool))]}


def write(path: Path) -> Path:
    path.write_text(json.dumps(LINE) + "\n")
    return path


def place(dataset: Dataset) -> str:
    return str(dataset.cache_files[0]["filename"])


def masks_of(dataset: Dataset) -> Any:
    return dataset["pred_masks"][:]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("out.bin", bytes(range(256)), "begins with"),
        ("out.pkl", pickle.dumps(LINE), "never read"),
        ("out.pt", b"PK\x03\x04rubbish", "a torch file, which holds a pickle"),
        ("out.parquet", b"rubbish", "broken or cut"),
        ("out.parquet", b"PAR1rubbish", "broken or cut"),
        ("out.arrow", b"ARROW1\0\0rubbish", "broken or cut"),
        ("out.arrow", b"\xff\xff\xff\xff" + b"\x7f" * 50, "broken or cut"),
        ("out.jsonl.gz", b"\x1f\x8brubbish", "gzip"),
        ("out.jsonl.gz", gzip.compress(b"", mtime=0), "blanks"),
        ("out.txt", b"frame 1 2 3", "begins with"),
    ],
)
def test_what_is_no_format(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BenchError, match=told) as caught:
        read_predictions("pbench", tmp_path / name)
    assert name in str(caught.value)
    assert "expected" in str(caught.value)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.sampled_from(
        [b"", b"PAR1", b"ARROW1\0\0", b"PK\x03\x04", b"{", b"[", b'[{"id": ', b"\x1f\x8b", b"\xff\xff\xff\xff"]
    ),
    rest=st.binary(max_size=64),
    format=st.sampled_from([None, "jsonl", "falcon", "coco", "parquet", "arrow", "npz", "png", "saved"]),
)
def test_rubbish_gives_an_error_of_ours_or_a_fault(
    tmp_path: Path, start: bytes, rest: bytes, format: str | None
) -> None:
    path = tmp_path / "out"
    path.write_bytes(start + rest)
    with contextlib.suppress(BenchError):
        assert all(read_predictions("pbench", path, format=format)["pred_faults"])


@pytest.mark.parametrize("format", [None, "jsonl", "falcon", "coco", "parquet", "arrow", "npz", "png", "saved"])
def test_read_predictions_empty_source_is_refused(tmp_path: Path, format: str | None) -> None:
    with pytest.raises(BenchError, match=r"nowhere.*nothing there"):
        read_predictions("pbench", tmp_path / "nowhere", format=format)


def test_folders_that_hold_nothing_or_too_much(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="found an empty folder; did the run write"):
        read_predictions("pbench", tmp_path)
    (tmp_path / "readme.md").write_text("x")
    with pytest.raises(BenchError, match=r"a folder of readme\.md"):
        read_predictions("pbench", tmp_path)
    write(tmp_path / "out.jsonl")
    assert len(read_predictions("pbench", tmp_path)) == 1
    pq.write_table(pa.table({"id": [1, 2], "masks": [[], []]}), tmp_path / "out.parquet")
    with pytest.raises(BenchError, match="jsonl and parquet"):
        read_predictions("pbench", tmp_path)
    assert len(read_predictions("pbench", tmp_path, format="parquet")) == 2


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench", "pvsg"])
@pytest.mark.parametrize("given", ["", "scores.parquet", "result.json"])
def test_read_predictions_of_a_run_names_it(tmp_path: Path, benchmark: str, given: str) -> None:
    truth = [{"id": 1, "level": "level_0", "masks": LINE["masks"], "pred_masks": LINE["masks"]}]
    scores = bd.map_score(Dataset.from_list(truth), "pbench")
    bd.write_run(scores, bd.summarize("pbench", scores, draws=0), tmp_path)
    with pytest.raises(BenchError, match=r"found what `score` wrote about a run; give the file that the model wrote"):
        read_predictions(benchmark, tmp_path / given)


@pytest.mark.parametrize("benchmark", ["pbench", "instancebench", "pvsg"])
def test_read_predictions_of_an_empty_folder_asks_for_the_model_run(tmp_path: Path, benchmark: str) -> None:
    with pytest.raises(BenchError, match=r"found an empty folder; did the run write its predictions\?"):
        read_predictions(benchmark, tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are named on POSIX only")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BenchError, match="device, pipe"):
        read_predictions("pbench", tmp_path / "pipe")


@pytest.mark.parametrize("path", [None, 7, "", "a\0b", "nosuchprotocol://x", ["out.jsonl"]])
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(BenchError, match="expected"):
        read_predictions("pbench", path)


def test_names_of_benchmark_and_format(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="benchmark: expected one of"):
        read_predictions("pbenchmark", write(tmp_path / "out.jsonl"))
    with pytest.raises(BenchError, match="format: expected one of jsonl"):
        read_predictions("pbench", tmp_path / "out.jsonl", format="yaml")


@pytest.mark.parametrize("name", ["out.jsonl", "out.json", "out", "a::b.jsonl", "out ü.txt"])
def test_content_counts_more_than_the_name(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name)
    assert detect_format(locate(path), MASK_FORM) == "jsonl"
    assert read_predictions("pbench", str(path))["id"][:] == [7]


def test_the_file_lives_as_long_as_its_data(tmp_path: Path) -> None:
    read = read_predictions("pbench", write(tmp_path / "out.jsonl"))
    path = place(read)
    part = read.select([0])
    table = part.data.table
    del read
    gc.collect()
    assert os.path.exists(path)
    assert pickle.loads(pickle.dumps(part))["id"][:] == [7]
    del part
    gc.collect()
    assert os.path.exists(path)
    assert table.column("id").to_pylist() == [7]
    del table
    gc.collect()
    assert not os.path.exists(os.path.dirname(path))


def test_a_failed_reading_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    path = write(tmp_path / "out.jsonl")
    path.write_text(path.read_text() + "{")
    with pytest.raises(BenchError):
        read_predictions("pbench", path)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_nothing_is_left_when_the_process_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "out.jsonl")
    code = (
        "import sys; from bench_datasets.predictions import read_predictions as read; "
        "d = read('pbench', sys.argv[1]); d = d.map(lambda row: {'n': len(row['pred_masks'])}); print(d['n'][:])"
    )
    (tmp_path / "temporary").mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        cwd=Path(__file__).resolve().parents[2],
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ran.stdout.strip() == "[1]"
    assert [item.name for item in (tmp_path / "temporary").iterdir() if item.name.startswith("bench")] == []


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_read_the_same_rows(tmp_path: Path, method: str) -> None:
    read = read_predictions("pbench", write(tmp_path / "out.jsonl"))
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no start method {method} here")
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(pickle.loads, (pickle.dumps(read),))["pred_masks"][:] == read["pred_masks"][:]
    gc.collect()
    assert os.path.exists(place(read))


def test_the_same_path_is_read_anew(tmp_path: Path) -> None:
    path = write(tmp_path / "out.jsonl")
    first = read_predictions("pbench", path)
    stat = path.stat()
    path.write_text(path.read_text().replace("7", "8"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    second = read_predictions("pbench", path)
    assert (first["id"][:], second["id"][:]) == ([7], [8])
    ids = [dataset.map(lambda row: {"twice": 2 * row["id"]})["twice"][:] for dataset in (first, second)]
    assert ids == [[14], [16]]
