"""Stored scores of other people: files that take too much memory, columns that contradict each other, odd metadata."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets.cli import app
from bench_datasets.faults import BenchError
from bench_datasets.results import run_files
from bench_datasets.results.reproduce import reproduce
from bench_datasets.results.result import Result

MASK = {"size": [2, 3], "counts": "15"}


@pytest.fixture(scope="module")
def scores() -> Dataset:
    truth = Dataset.from_list([{"id": i, "level": "level_0", "masks": [MASK]} for i in range(5)])
    answers = Dataset.from_list([{"id": i, "masks": [MASK] * (i % 2)} for i in range(5)])
    return bd.score("pbench", truth, bd.read_predictions("pbench", answers))


def written(table: pa.Table, folder: Path, **options: Any) -> Path:
    pq.write_table(table, folder / "scores.parquet", **options)
    return folder


def test_read_scores_list_bomb_is_refused(scores: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = scores.with_format("arrow")[:1].drop_columns(["position_truth"])
    huge = pa.array([np.zeros(1 << 22, np.int32)], pa.list_(pa.int32()))  # stands for a bound and a list 128 times this
    bomb = table.append_column("position_truth", huge)
    monkeypatch.setattr(run_files, "MAX_DECODED", 1 << 24)
    with pytest.raises(BenchError, match="bytes in memory"):
        run_files.read_scores(written(bomb, tmp_path, compression="zstd"))
    assert (tmp_path / "scores.parquet").stat().st_size < 100_000


def test_read_scores_repeated_long_text_is_refused(scores: Dataset, tmp_path: Path) -> None:
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3000, np.int32)), pa.array(["x" * 1_000_000]))
    bomb = pa.table({"key": names, "protocol": names, "row_sha256": names})
    with pytest.raises(BenchError, match="bytes in memory"):
        run_files.read_scores(written(bomb, tmp_path, compression="zstd"))
    assert (tmp_path / "scores.parquet").stat().st_size < 100_000


def test_read_scores_prefix_encoding_is_refused(scores: Dataset, tmp_path: Path) -> None:
    names = pa.array(["x" * 1000] * 10)
    bomb = pa.table({"key": names, "protocol": names, "row_sha256": names})
    encoding = dict.fromkeys(bomb.column_names, "DELTA_BYTE_ARRAY")
    with pytest.raises(BenchError, match="encoding DELTA_BYTE_ARRAY is not read"):
        run_files.read_scores(written(bomb, tmp_path, use_dictionary=False, column_encoding=encoding))


def test_read_scores_larger_than_the_limit_is_refused(scores: Dataset, tmp_path: Path) -> None:
    run_files.write_scores(scores, tmp_path)
    size = (tmp_path / "scores.parquet").stat().st_size
    assert len(run_files.read_scores(tmp_path, limit=size)) == 5
    with pytest.raises(BenchError, match=f"at most {size - 1:,} bytes, found {size:,}"):
        run_files.read_scores(tmp_path, limit=size - 1)


def test_read_scores_with_plain_texts_gives_the_same(scores: Dataset, tmp_path: Path) -> None:
    table = scores.with_format("arrow")[:].replace_schema_metadata(scores.data.schema.metadata)
    assert run_files.read_scores(written(table, tmp_path, use_dictionary=False)).to_list() == scores.to_list()


ODD: dict[str, Any] = {
    "list": [],
    "dataset": {"dataset": []},
    "source": {"dataset": {"source": ["x"]}},
    "expected": {"dataset": {"expected": -1}},
    "settings": {"settings": "x"},
    "faults": {"faults": {"x": {"count": "many", "examples": []}}},
    "deep": {"settings": {"x": [[[[[[[[[[1]]]]]]]]]]}},
}


@pytest.mark.parametrize("name", ODD)
def test_summarize_odd_provenance_is_named(scores: Dataset, tmp_path: Path, name: str) -> None:
    table = scores.with_format("arrow")[:]
    content = json.loads(scores.data.schema.metadata[b"huggingface"])
    content["bench_datasets"] = ODD[name]
    folder = written(table.replace_schema_metadata({"huggingface": json.dumps(content)}), tmp_path)
    with pytest.raises(BenchError, match="expected their provenance"):
        bd.summarize("pbench", run_files.read_scores(folder), draws=0)
    done = CliRunner().invoke(app, ["report", str(folder), "--out", str(tmp_path / "page.html")])
    assert done.exit_code == 1
    assert "expected their provenance" in done.stderr


CHANGES: dict[str, Any] = {
    "key": pa.nulls(5, pa.string()),
    "protocol": pa.nulls(5, pa.string()),
    "skipped": pa.array(["x"] * 5),
    "faults": pa.array([1] * 5),
    "raw_count": pa.array([[1]] * 5),
}


@pytest.mark.parametrize("name", CHANGES)
def test_summarize_columns_of_another_kind_are_named(scores: Dataset, name: str) -> None:
    table = scores.with_format("arrow")[:]
    broken = table.set_column(table.column_names.index(name), name, CHANGES[name])
    with pytest.raises(BenchError, match=rf"column '{name}': expected"):
        bd.summarize("pbench", broken, draws=0)


def test_reproduce_honest_result_keeps_every_number(scores: Dataset) -> None:
    result = bd.summarize("pbench", scores, draws=20, by=["level"])
    again = reproduce(result, scores)
    assert again.to_json() == result.to_json()
    # A number of a later version is left out, as nothing here can tell whether it is right.
    later = replace(result, metrics={**result.metrics, "later": result.metrics["giou/level_0"]})
    assert reproduce(later, scores).to_json() == result.to_json()


def test_reproduce_forged_slice_is_refused(scores: Dataset) -> None:
    result = bd.summarize("pbench", scores, draws=0, by=["level"])
    parts = [
        replace(part, metrics={key: replace(m, value=m.value / 2 + 0.4) for key, m in part.metrics.items()})
        for part in result.slices
    ]
    with pytest.raises(BenchError, match="the result says"):
        reproduce(replace(result, slices=parts), scores)


def test_reproduce_columns_that_contradict_each_other_are_refused(scores: Dataset) -> None:
    result, table = bd.summarize("pbench", scores, draws=0), scores.with_format("arrow")[:]
    metadata = scores.data.schema.metadata
    for name in ("matched_union", "matched_intersection"):
        column = pa.array([[1, 2, 3]] + [[]] * 4, table.schema.field(name).type)
        broken = table.set_column(table.column_names.index(name), name, column).replace_schema_metadata(metadata)
        with pytest.raises(BenchError, match="the scores contradict themselves"):
            reproduce(result, Dataset(broken))


FIELDS = [[], {}, "x", -1, 1.5, True, None, "\ud800", math.nan, 10**400, ["x"], {"a": []}, "y" * 200_000]


def test_result_any_field_of_another_kind_is_refused_or_shown(scores: Dataset, tmp_path: Path) -> None:
    """Each field of a result takes odd values: the file is refused in words, or its result can be shown."""
    content = bd.summarize("pbench", scores, draws=5).to_dict()
    content["slices"] = content["slices"][:1]
    content["slices"][0]["metrics"] = dict(list(content["slices"][0]["metrics"].items())[:1])
    content["metrics"] = dict(list(content["metrics"].items())[:2])

    def places(value: Any, path: tuple[Any, ...] = ()) -> Any:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, item in items:
            yield (*path, name)
            yield from places(item, (*path, name))

    refused = shown = 0
    for path in places(content):
        for odd in FIELDS:
            changed = json.loads(json.dumps(content))
            inner = changed
            for name in path[:-1]:
                inner = inner[name]
            inner[path[-1]] = odd
            try:
                result = Result.loads(json.dumps(changed).encode())
            except BenchError as error:
                refused += len(str(error)) < 500
                continue
            str(result).encode()
            result._repr_html_().encode()
            result.to_json().encode()
            shown += 1
    assert refused > 500
    assert refused + shown == len(FIELDS) * len(list(places(content)))
