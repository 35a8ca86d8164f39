"""Folders that are not what was meant: the truth itself, files of two benchmarks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.faults import BenchError

NAMES = ("pbench", "instancebench", "pvsg")


@pytest.mark.parametrize("given", NAMES)
@pytest.mark.parametrize("wanted", NAMES)
def test_the_truth_is_called_so(given: str, wanted: str) -> None:
    folder = getattr(samples, f"{given}_sample_dir")()
    with pytest.raises(BenchError, match=r"expected predictions, this is the truth \("):
        bd.read_predictions(wanted, folder)


def test_predictions_as_the_hub_holds_them_are_no_truth(tmp_path: Path) -> None:
    given = bd.read_predictions("pbench", samples.pbench_sample_predictions("careful"))
    given.to_parquet(tmp_path / "test-00000-of-00001.parquet")
    assert len(bd.read_predictions("pbench", tmp_path)) == len(given)


@pytest.mark.parametrize("wanted", NAMES)
def test_files_of_several_benchmarks(wanted: str, tmp_path: Path) -> None:
    for name in NAMES:
        shutil.copy(getattr(samples, f"{name}_sample_predictions")("careful"), tmp_path / f"{name}.jsonl")
    with pytest.raises(BenchError, match=f"expected files of {wanted} alone, found .*give .*{wanted}.jsonl itself"):
        bd.read_predictions(wanted, tmp_path)
    (tmp_path / f"{wanted}.jsonl").unlink()
    with pytest.raises(BenchError, match="wrong benchmark"):
        bd.read_predictions(wanted, tmp_path)
