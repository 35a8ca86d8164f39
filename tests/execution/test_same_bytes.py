"""One process, several, a stream, shards in any order, either engine: the same two files."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bench_datasets as bd
from bench_datasets import execution
from bench_datasets.data import open_truth
from bench_datasets.execution import shards
from bench_datasets.masks import available_engines
from bench_datasets.scoring.prepare import make_plan

from ..support.sample_runs import BENCHMARKS, answers_of, files, plan_of, truth_of

Files = tuple[bytes, dict[str, Any]]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_processes_streams_and_engines(benchmark: str, undisturbed: Callable[[str], Files], tmp_path: Path) -> None:
    expected = undisturbed(benchmark)
    stream = open_truth(benchmark, "sample", streaming=True)
    ways = {
        "parts": lambda: execution.score_in_parts(plan_of(benchmark), tmp_path / "a"),
        "two processes": lambda: execution.score_in_parts(plan_of(benchmark), tmp_path / "b", 2),
        "stream": lambda: execution.score_in_parts(make_plan(benchmark, stream, answers_of(benchmark)), tmp_path / "c"),
        "map": lambda: bd.score(benchmark, truth_of(benchmark), answers_of(benchmark), num_proc=2),
        **{
            engine: lambda engine=engine: execution.score_in_parts(plan_of(benchmark, engine=engine), tmp_path / engine)
            for engine in available_engines()
        },
    }
    for name, way in ways.items():
        assert files(way(), tmp_path / "run", benchmark) == expected, name
    assert list(tmp_path.rglob(".parts-*")) == []


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_seven_shards_in_any_order(benchmark: str, undisturbed: Callable[[str], Files], tmp_path: Path) -> None:
    expected = undisturbed(benchmark)
    order = list(range(7))
    random.Random(0).shuffle(order)
    found = []
    for index in order:
        stream = open_truth(benchmark, "sample", streaming=True)
        plan = plan_of(benchmark) if index % 2 else make_plan(benchmark, stream, answers_of(benchmark))
        found.append(execution.score_shard(plan, index, 7, tmp_path / "parts", 2 if index == 3 else None))
    # As files, as a folder, and as folders of several machines.
    assert files(execution.merge(found), tmp_path / "run", benchmark) == expected
    assert files(execution.merge([tmp_path / "parts"]), tmp_path / "run", benchmark) == expected
    (tmp_path / "more").mkdir()
    for file in found[:3]:
        shutil.move(file, tmp_path / "more" / file.name)
    assert files(execution.merge([tmp_path / "more", tmp_path / "parts"]), tmp_path / "run", benchmark) == expected


def test_a_row_belongs_to_the_part_of_its_key() -> None:
    plan = plan_of()
    units = shards.units_of(plan, 7)
    assert sorted(unit for some in units for unit in some) == list(plan.everything)
    keys = truth_of("pbench")["key"]
    assert all(shards.part_of(keys[unit], 7) == index for index, some in enumerate(units) for unit in some)
    # Whatever order the rows come in.
    backwards = make_plan("pbench", truth_of("pbench").select(range(34, -1, -1)), answers_of("pbench"))
    names = [{backwards.labels[unit]["key"] for unit in some} for some in shards.units_of(backwards, 7)]
    assert names == [{keys[unit] for unit in some} for some in units]
    assert [shards.part_of(f"level_0/{i}", 3) for i in range(6)] == [0, 0, 0, 0, 2, 1], "never to change"
