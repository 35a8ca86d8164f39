"""NumPy archives, sound and hostile."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_datasets.faults import BenchError
from bench_datasets.predictions import read_predictions

from ..support.dense_masks import Dense, assert_masks


def read_one(path: Path) -> dict[str, Any]:
    (row,) = read_predictions("pbench", path)
    return row


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_folder(tmp_path: Path, rows: dict[int, Dense], dtype: Any, order: Any, save: Any) -> None:
    for name, masks in rows.items():
        array = np.array(masks).astype(dtype) if masks else np.zeros((0, 4, 4), dtype)
        path = tmp_path / (f"dense__{name}.npz" if name != 3 else "3.npz")
        save(path, masks=np.asarray(array, order=order), scores=np.linspace(0, 1, len(masks), dtype=np.float32))
    read = read_predictions("pbench", tmp_path)
    assert len(read) == len(rows)
    for row in read:
        name = row["id"] or int(row["key"].removeprefix("dense/"))
        assert (row["id"] == 3) == (name == 3)
        assert_masks(row["pred_masks"], rows[name])
        assert row["pred_scores"] == np.linspace(0, 1, len(rows[name]), dtype=np.float32).tolist()
        assert row["pred_faults"] == []


@pytest.mark.parametrize("empty", [np.zeros((0,)), np.zeros((0, 5, 5)), np.array([])])
def test_no_masks(tmp_path: Path, empty: Any) -> None:
    np.savez(tmp_path / "7.npz", masks=empty)
    assert read_one(tmp_path / "7.npz")["pred_faults"] == []


@pytest.mark.parametrize(
    ("masks", "told"),
    [
        (np.full((1, 2, 2), 0.5), "masks > 0.5"),
        (np.zeros((2, 1, 2, 2), bool), "masks[:, 0]"),
        (np.zeros((40, 60, 3), bool), "masks.transpose(2, 0, 1)"),
        (np.zeros((2, 0, 2), bool), "1 to"),
        (np.array([[[{}]]]), "pickle"),
        (np.array([[["a"]]]), "expected bool"),
    ],
)
def test_other_arrays(tmp_path: Path, masks: Any, told: str) -> None:
    np.savez(tmp_path / "level_0__7.npz", masks=masks)
    row = read_one(tmp_path / "level_0__7.npz")
    assert (row["key"], row["pred_masks"]) == ("level_0/7", [])
    assert row["pred_faults"][0]["code"] == "unreadable_mask"
    assert told in row["pred_faults"][0]["text"]


def test_values_beside_0_and_1_are_told_by_mask(tmp_path: Path) -> None:
    masks = np.zeros((3, 2, 2), np.uint8)
    masks[1, 0, 0] = 255
    masks[2, 0, 0] = 1
    np.savez(tmp_path / "7.npz", masks=masks)
    row = read_one(tmp_path / "7.npz")
    assert [mask is None for mask in row["pred_masks"]] == [False, True, False]
    assert row["pred_faults"][0]["code"] == "unreadable_mask"
    assert "expected 0 and 1, found values from 0 to 255; write masks > 0" in row["pred_faults"][0]["text"]
    masks[1, 0, 1] = 130
    np.savez(tmp_path / "7.npz", masks=masks)
    assert "apply a threshold" in read_one(tmp_path / "7.npz")["pred_faults"][0]["text"]


@pytest.mark.parametrize("scores", [np.zeros(3), np.zeros((1, 2)), np.array(["a", "b"]), np.array([0.5, np.nan])])
def test_bad_scores(tmp_path: Path, scores: Any) -> None:
    np.savez(tmp_path / "7.npz", masks=np.zeros((2, 2, 2), bool), scores=scores)
    row = read_one(tmp_path / "7.npz")
    assert [fault["code"] for fault in row["pred_faults"]] == ["bad_score"]
    assert len(row["pred_masks"]) == 2


def test_hostile_archives(tmp_path: Path) -> None:
    def header(shape: str, descr: str = "|b1", order: bool = False) -> bytes:
        text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()

    claims = {
        1: header("(1, 100000, 100000)"),  # a bomb by its header
        2: header("(4, 10, 10)") + b"\0" * 150,  # cut short
        3: header("(2147483647, 10, 10)") + b"\0" * 100,
        4: header("(-1, -5, -5)") + b"\0" * 100,
        5: b"rubbish",
        6: header("(60000, 1000, 1000)", order=True),
        7: header("(1, 1, 10**9)"),
    }
    for name, data in claims.items():
        with zipfile.ZipFile(tmp_path / f"{name}.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("masks.npy", data)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, masks=np.random.default_rng(0).random((4, 50, 50)) < 0.5)
    whole = buffer.getvalue()
    (tmp_path / "8.npz").write_bytes(whole[:-100])
    (tmp_path / "9.npz").write_bytes(whole[:300] + bytes(50) + whole[350:])
    (tmp_path / "10.npz").write_bytes(b"rubbish")
    (tmp_path / "11.npz").write_bytes(b"")
    np.savez(tmp_path / "12.npz", arrays=np.zeros(3))
    np.savez(tmp_path / "13.npz", masks=np.ones((1, 3, 3), bool))
    read = {row["id"]: row for row in read_predictions("pbench", tmp_path)}
    assert sorted(read) == list(range(1, 14))
    for name in range(1, 13):
        assert read[name]["pred_masks"] == []
        (fault,) = read[name]["pred_faults"]
        assert fault["code"] == "unreadable_mask"
        assert f"{name}.npz" in fault["text"]
    assert read[13]["pred_faults"] == []


def test_names_that_are_no_rows(tmp_path: Path) -> None:
    for name in ("level_7__1", "x", "dense__y", "dense__7#2"):
        np.savez(tmp_path / f"{name}.npz", masks=np.ones((1, 2, 2), bool))
    read = read_predictions("pbench", tmp_path)
    assert [key for key in read["key"] if key] == ["dense/7#2"]
    assert sum(bool(faults) and faults[0]["code"] == "unknown_row" for faults in read["pred_faults"]) == 3


def test_a_folder_without_archives(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="found none"):
        read_predictions("pbench", tmp_path, format="npz")


def test_npz_with_one_array_without_a_name_is_read(tmp_path: Path, rows: dict[int, Dense]) -> None:
    np.savez(tmp_path / "100.npz", np.array(rows[100]))
    assert_masks(read_one(tmp_path / "100.npz")["pred_masks"], rows[100])
    np.savez(tmp_path / "12.npz", np.array(rows[12][0]))  # (height, width) is one mask
    assert_masks(read_one(tmp_path / "12.npz")["pred_masks"], rows[12])
    np.savez(tmp_path / "two.npz", np.array(rows[12]), np.array(rows[12]))
    np.savez(tmp_path / "3.npz", np.array(rows[3]), np.array(rows[3]))
    (fault,) = read_one(tmp_path / "3.npz")["pred_faults"]
    assert "expected an array 'masks'" in fault["text"]


def test_npz_in_a_folder_of_a_level_is_read(tmp_path: Path, rows: dict[int, Dense]) -> None:
    (tmp_path / "dense").mkdir()
    (tmp_path / "level_9").mkdir()
    np.savez(tmp_path / "dense/100.npz", masks=np.array(rows[100]))
    np.savez(tmp_path / "level_9/100.npz", masks=np.array(rows[100]))
    bad, good = read_predictions("pbench", tmp_path)
    assert (good["key"], good["pred_faults"]) == ("dense/100", [])
    assert_masks(good["pred_masks"], rows[100])
    assert [fault["code"] for fault in bad["pred_faults"]] == ["unknown_row"]


@pytest.mark.parametrize(("method", "name"), [(zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "lzma")])
def test_npz_with_foreign_compression_is_refused_unread(tmp_path: Path, method: int, name: str) -> None:
    array = io.BytesIO()
    np.save(array, np.zeros((1, 2000, 2000), bool))
    with zipfile.ZipFile(tmp_path / "7.npz", "w", method) as archive:
        archive.writestr("masks.npy", array.getvalue())
    (fault,) = read_one(tmp_path / "7.npz")["pred_faults"]
    assert fault["code"] == "unreadable_mask"
    assert f"found {name} compression in 'masks.npy'" in fault["text"]


def test_npz_with_a_huge_header_or_total_is_refused(tmp_path: Path) -> None:
    def write(name: str, data: bytes) -> Any:
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("masks.npy", data)
        (fault,) = read_one(tmp_path / name)["pred_faults"]
        return fault["text"]

    long = b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little") + bytes(1000)
    assert "expected a header of at most" in write("1.npz", long)
    text = "{'descr': '|b1', 'fortran_order': False, 'shape': (65536, 1000, 1000), }".ljust(117) + "\n"
    many = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
    assert "together at most" in write("2.npz", many)


def test_npz_long_list_of_members_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench_datasets.predictions.formats import npz

    monkeypatch.setattr(npz, "MAX_DIRECTORY", 1_000)
    with zipfile.ZipFile(tmp_path / "level_0__7.npz", "w") as archive:
        for i in range(100):
            archive.writestr(f"{i}.npy", b"")
    row = read_predictions("pbench", str(tmp_path), format="npz")[0]
    assert "list of members takes at most 1,000 bytes" in row["pred_faults"][0]["text"]
