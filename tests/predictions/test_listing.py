"""Listing folders and reading their files: the quick ways give what the plain ways give."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench_datasets.faults import BenchError
from bench_datasets.masks import dense, encode_dense
from bench_datasets.predictions import threads
from bench_datasets.predictions.files import locate
from bench_datasets.predictions.threads import map_in_threads

PATHS = (
    "level_0/10/0.png",
    "level_0/2/1.png",
    "level_0/2/10.png",
    "dense/3.png",
    "7.png",
    "a/b/c/deep.png",
    "x y/z.txt",
)


def fill(folder: Path) -> None:
    for name in (*PATHS, ".hidden/1.png", "__pycache__/2.png", "7/.DS_Store"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")


def test_listing_of_a_local_folder_equals_that_of_fsspec(tmp_path: Path) -> None:
    fill(tmp_path)
    here = locate(tmp_path)
    expected = [(relative, is_folder) for relative, is_folder, _ in here._found(here.path.rstrip("/"))]
    found = [(relative, is_folder) for relative, _, is_folder in here.inside()]
    assert sorted(found) == sorted(expected)
    assert [name for name, is_folder in found if not is_folder] == [
        "7.png", "level_0/2/1.png", "level_0/2/10.png", "level_0/10/0.png", "dense/3.png", "x y/z.txt",
    ]  # fmt: skip


def test_listing_follows_links_inside_the_folder_alone(tmp_path: Path) -> None:
    fill(tmp_path / "run")
    (tmp_path / "run/level_1").symlink_to(tmp_path / "run/level_0", target_is_directory=True)
    names = [relative for relative, _, _ in locate(tmp_path / "run").inside()]
    assert "level_1/2/10.png" in names
    (tmp_path / "other/9").mkdir(parents=True)
    (tmp_path / "run/level_2").symlink_to(tmp_path / "other", target_is_directory=True)
    with pytest.raises(BenchError, match="level_2: the path leads out of the folder"):
        locate(tmp_path / "run").inside()


def test_map_in_threads_keeps_order_and_reads_no_further_than_it_must() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for i in range(1000):
            taken.append(i)
            yield i

    results = map_in_threads(lambda i: (i * i, threading.current_thread().name), items())
    first = [next(results) for _ in range(5)]
    assert [value for value, _ in first] == [0, 1, 4, 9, 16]
    assert len(taken) <= 5 + 4 * threads.WORKERS
    assert threading.current_thread().name not in {name for _, name in first}
    assert [value for value, _ in results] == [i * i for i in range(5, 1000)]


def test_map_in_threads_raises_what_the_function_raises() -> None:
    with pytest.raises(BenchError, match="no 7"):
        list(map_in_threads(lambda i: refuse(i) if i == 7 else i, range(100)))


def refuse(i: int) -> None:
    raise BenchError(f"no {i}")


def test_encode_dense_gives_the_same_with_and_without_pycocotools(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    masks = [random.random(shape) < share for shape in ((1, 1), (7, 5), (40, 31)) for share in (0, 0.1, 0.5, 1)]
    masks += [masks[5].astype(np.int64) * -3, np.asfortranarray(masks[9]), masks[9][::2, ::-1]]
    quick = [encode_dense(mask) for mask in masks]
    monkeypatch.setattr(dense, "_ENCODED_PIXELS", 0)
    assert quick == [encode_dense(mask) for mask in masks]
