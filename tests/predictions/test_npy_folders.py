"""Folders of `.npy` files, of PBench and InstanceBench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_datasets.faults import BenchError
from bench_datasets.predictions import check, read_predictions

from ..support.dense_masks import Dense, assert_masks


def save(path: Path, array: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64])
@pytest.mark.parametrize("pattern", ["{}.npy", "level_1__{}.npy", "level_1/{}.npy"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_with_all_masks_of_a_row_is_read(
    tmp_path: Path, rows: dict[int, Dense], dtype: Any, pattern: str, order: Any
) -> None:
    for name, masks in rows.items():
        array = np.array(masks).astype(dtype) if masks else np.zeros((0, 4, 4), dtype)
        save(tmp_path / pattern.format(name), np.asarray(array, order=order))
    read = read_predictions("pbench", tmp_path)
    assert len(read) == len(rows)
    for row in read:
        name = row["id"] if row["key"] is None else int(row["key"].removeprefix("level_1/"))
        assert (row["key"] is None) == (pattern == "{}.npy")
        assert row["pred_faults"] == []
        assert_masks(row["pred_masks"], rows[name])


@pytest.mark.parametrize("level", ["", "dense/"])
def test_npy_with_one_mask_per_file_is_read(tmp_path: Path, rows: dict[int, Dense], level: str) -> None:
    for k, mask in enumerate(rows[100]):
        save(tmp_path / f"{level}100/{k}.npy", mask)
    (tmp_path / f"{level}101").mkdir()
    (tmp_path / f"{level}100/notes.txt").write_text("x")
    row, empty = read_predictions("pbench", tmp_path)
    assert (empty["pred_masks"], empty["pred_faults"]) == ([], [])
    assert [fault["code"] for fault in row["pred_faults"]] == ["ignored_file"]
    assert (row["key"], row["id"]) == (("dense/100", None) if level else (None, 100))
    assert_masks(row["pred_masks"], rows[100])  # in natural order: 2 before 10


def test_npy_of_height_and_width_is_one_mask(tmp_path: Path, rows: dict[int, Dense]) -> None:
    save(tmp_path / "12.npy", rows[12][0])
    for path in (tmp_path, tmp_path / "12.npy"):
        (row,) = read_predictions("pbench", path)
        assert_masks(row["pred_masks"], rows[12])


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (np.full((1, 4, 4), 0.5), "masks > 0.5"),
        (np.full((1, 4, 4), 3), "write masks > 0"),
        (np.arange(16).reshape(1, 4, 4), "apply a threshold"),
        (np.zeros((40, 60, 2), bool), "transpose"),
        (np.zeros((1, 1, 4, 4), bool), "masks[:, 0]"),
        (np.zeros(4, bool), "expected shape (n, height, width)"),
        (np.array([[{}]]), "never read"),
    ],
)
def test_npy_with_other_values_is_refused(tmp_path: Path, array: Any, told: str) -> None:
    np.save(tmp_path / "7.npy", array, allow_pickle=True)
    report = check("pbench", tmp_path)
    assert [group.code for group in report.errors] == ["unreadable_mask"]
    assert told in report.errors[0].examples[0].text
    assert report.warnings == ()


def test_npy_that_is_broken_is_a_fault_of_its_mask(tmp_path: Path, rows: dict[int, Dense]) -> None:
    for k in range(4):
        save(tmp_path / f"100/{k}.npy", rows[100][k])
    whole = (tmp_path / "100/0.npy").read_bytes()
    (tmp_path / "100/1.npy").write_bytes(whole[:-3])
    (tmp_path / "100/2.npy").write_bytes(b"rubbish")
    (row,) = read_predictions("pbench", tmp_path)
    assert [mask is None for mask in row["pred_masks"]] == [False, True, True, False]
    assert [fault["text"][:7] for fault in row["pred_faults"]] == ["mask 1:", "mask 2:"]
    assert {fault["code"] for fault in row["pred_faults"]} == {"unreadable_mask"}


def test_npy_of_instancebench_is_read(tmp_path: Path) -> None:
    mask = np.random.default_rng(0).random((5, 7)) < 0.5
    save(tmp_path / "a-0.npy", mask)
    save(tmp_path / "1/text_swap/a.b-1.npy", mask.astype(np.uint8))
    save(tmp_path / "soft.npy", mask * 0.7)
    save(tmp_path / "deep.npy", mask[None])
    np.savez(tmp_path / "npz.npz", mask)
    with pytest.raises(BenchError, match="found npz and npy"):
        read_predictions("instancebench", tmp_path)
    (archived,) = read_predictions("instancebench", tmp_path / "npz.npz")
    (tmp_path / "npz.npz").unlink()
    read = {row["expression_id"]: row for row in read_predictions("instancebench", tmp_path)}
    assert_masks([read["a-0"]["mask"], read["a.b-1"]["mask"], archived["mask"]], [mask] * 3)
    assert (read["a.b-1"]["run"], read["a.b-1"]["condition"]) == ("1", "text_swap")
    assert "mask > 0.5" in read["soft"]["pred_faults"][0]["text"]
    assert "write mask[0]" in read["deep"]["pred_faults"][0]["text"]


def test_npy_folder_without_arrays_is_refused(tmp_path: Path) -> None:
    for benchmark in ("pbench", "instancebench"):
        with pytest.raises(BenchError, match="found none in the folder"):
            read_predictions(benchmark, tmp_path, format="npy")
