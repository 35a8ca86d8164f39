"""A short run does its work once: masks decoded, rows sorted, the table hashed and written once, and no parts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import bench_datasets as bd
from bench_datasets.benchmark import get_benchmark
from bench_datasets.execution import local, scoring_in_parts
from bench_datasets.masks.column import MaskColumn
from bench_datasets.masks.engine import available_engines, get_engine
from bench_datasets.predictions.read import read_for_scoring
from bench_datasets.results import summarize
from bench_datasets.results.run_files import write_run
from bench_datasets.scoring import prepare, shared_truth
from bench_datasets.scoring.prepare import Plan, make_plan

from ..support.sample_runs import BENCHMARKS, answers_of, files, plan_of, truth_of


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many masks are decoded, and how often a score table is sorted and a file is written."""
    counts: Counter[str] = Counter()
    sort, write = prepare.sort_order, pq.write_table

    def counting(decode: Callable[..., Any]) -> Callable[..., Any]:
        def decoding(self: Any, column: MaskColumn) -> Any:
            counts["masks"] += int(column.present.sum())
            return decode(self, column)

        return decoding

    def sorting(*args: Any) -> Any:
        counts["sorts"] += 1
        return sort(*args)

    def writing(*args: Any, **options: Any) -> Any:
        counts["writes"] += 1
        return write(*args, **options)

    for name in available_engines():
        engine = type(get_engine(name))
        monkeypatch.setattr(engine, "decode", counting(engine.decode))
    monkeypatch.setattr(prepare, "sort_order", sorting)
    monkeypatch.setattr(summarize, "sort_order", sorting)
    monkeypatch.setattr(pq, "write_table", writing)
    return counts


def masks_of(value: Any) -> int:
    """Masks anywhere in a row's value."""
    if isinstance(value, dict):
        return 1 if "counts" in value else sum(map(masks_of, value.values()))
    return sum(map(masks_of, value)) if isinstance(value, list) else 0


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_score_from_lines_decodes_sorts_and_writes_once(
    benchmark: str, counted: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "CHECKPOINT_SECONDS", 60.0)
    monkeypatch.setattr(shared_truth, "LEAST_ROWS", 1)  # share the few rows of the sample
    truth = truth_of(benchmark)
    path = get_benchmark(benchmark).sample_predictions("careful")
    predictions = read_for_scoring(benchmark, path)
    wanted = [name for name in truth.column_names if name in get_benchmark(benchmark).truth_columns]
    masks = masks_of(truth.select_columns(wanted).to_list()) + masks_of(predictions.to_list())
    counted.clear()
    plan = make_plan(benchmark, truth, predictions)
    with scoring_in_parts(plan, tmp_path, None) as scores:
        write_run(scores, bd.summarize(benchmark, scores, draws=0), tmp_path)
    assert counted == {"masks": masks, "sorts": 1, "writes": 1}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["result.json", "scores.parquet"]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_reading_lines_for_scoring_decodes_no_mask(benchmark: str, counted: Counter[str]) -> None:
    assert masks_of(read_for_scoring(benchmark, get_benchmark(benchmark).sample_predictions("careful")).to_list())
    assert not counted


@pytest.mark.parametrize("lots", [1, 2, 5])
def test_score_that_takes_longer_goes_on_in_parts_with_the_same_bytes(
    lots: int, undisturbed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = undisturbed("pbench")
    monkeypatch.setattr(Plan, "lot", 3)
    clock = itertools.count()
    monkeypatch.setattr(local.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(local, "CHECKPOINT_SECONDS", lots + 0.5)
    scored: list[int] = []
    score = Plan.score
    monkeypatch.setattr(
        Plan, "score", lambda self, units, *args, **more: scored.extend(units) or score(self, units, *args, **more)
    )
    with scoring_in_parts(plan_of(), tmp_path / "run", None) as scores:
        found = files(scores, tmp_path / "run")
        kept = sorted((tmp_path / "run").glob(".parts-*/*.parquet"))
    assert found == expected
    assert len(kept) == 9
    assert len(scored) - 35 < 4, "only a piece that was scored in part is scored again"


def test_score_of_answers_in_rows_equals_that_of_lines(tmp_path: Path) -> None:
    path = get_benchmark("pbench").sample_predictions("careful")
    one = bd.score("pbench", truth_of("pbench"), bd.read_predictions("pbench", path))
    other = bd.score("pbench", truth_of("pbench"), path)
    assert files(one, tmp_path / "one") == files(other, tmp_path / "other")
    assert len(answers_of("pbench"))
