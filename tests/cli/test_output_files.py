from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset

import bench_datasets as bd
from bench_datasets.faults import BenchError
from bench_datasets.results import run_files
from bench_datasets.scoring.provenance import provenance_of


@pytest.fixture
def scores() -> Dataset:
    mask = {"size": [2, 3], "counts": "15"}
    truth = Dataset.from_list([{"id": i, "level": "level_0", "masks": [mask]} for i in range(5)])
    answers = Dataset.from_list([{"id": i, "masks": [mask] * (i % 2)} for i in range(5)])
    return bd.score("pbench", truth, bd.read_predictions("pbench", answers))


def test_round_trip(scores: Dataset, tmp_path: Path) -> None:
    file = run_files.write_scores(scores, tmp_path / "x.parquet")
    again = run_files.read_scores(file)
    assert again.to_list() == scores.to_list()
    assert again.features == scores.features
    assert provenance_of(again) == provenance_of(scores)
    assert provenance_of(again) is not None
    assert run_files.write_scores(scores, tmp_path) == tmp_path / "scores.parquet"
    assert run_files.read_scores(tmp_path).to_list() == scores.to_list()


def test_bytes_depend_on_the_rows_alone(scores: Dataset, tmp_path: Path) -> None:
    metadata = scores.data.schema.metadata
    table = scores.with_format("arrow")[:]
    pieces = pa.concat_tables([table.slice(0, 2), table.slice(2)]).replace_schema_metadata(metadata)
    one, other = (run_files.write_scores(item, tmp_path / f"{i}") for i, item in enumerate((scores, Dataset(pieces))))
    assert one.read_bytes() == other.read_bytes()


def test_selected_rows(scores: Dataset, tmp_path: Path) -> None:
    file = run_files.write_scores(scores.select([3, 1]), tmp_path / "x.parquet")
    assert run_files.read_scores(file)["key"] == ["level_0/3", "level_0/1"]


@pytest.mark.parametrize("damage", ["absent", "empty", "cut", "text", "another table", "odd metadata"])
def test_what_is_no_score_table(scores: Dataset, tmp_path: Path, damage: str) -> None:
    file = run_files.write_scores(scores, tmp_path / "x.parquet")
    if damage == "absent":
        file.unlink()
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:-50])
    elif damage == "text":
        file.write_text("key\n")
    elif damage == "another table":
        pq.write_table(pa.table({"id": [1]}), file)
    else:
        table = scores.with_format("arrow")[:].replace_schema_metadata({b"huggingface": b"{"})
        pq.write_table(table, file)
    with pytest.raises(BenchError, match=r"x\.parquet: expected a score table"):
        run_files.read_scores(file)


def test_a_full_disk_leaves_the_earlier_run(scores: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = bd.summarize("pbench", scores, draws=0)
    run_files.write_run(scores, result, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(path: Path, *text: str, **options: Any) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match=r"No space left on device: .*result\.json'"):
        run_files.write_run(scores.select([0]), result, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
