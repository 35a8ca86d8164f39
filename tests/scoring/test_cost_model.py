"""The cost model: counts against counting by hand, and estimates that grow as they should."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from bench_datasets.cli import app
from bench_datasets.faults import BenchError
from bench_datasets.scoring.cost_model import Counts, count, estimate
from bench_datasets.scoring.validate import KEPT_BYTES

from ..support.sample_runs import BENCHMARKS, truth_of


def masks_in(value: Any) -> list[str]:
    """The counts of every mask that hangs on a value."""
    if isinstance(value, dict) and set(value) == {"size", "counts"}:
        return [value["counts"]]
    if isinstance(value, dict):
        return [text for item in value.values() for text in masks_in(item)]
    return [text for item in value for text in masks_in(item)] if isinstance(value, list) else []


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_counts(benchmark: str) -> None:
    rows, found = truth_of(benchmark).to_list(), count(benchmark, truth_of(benchmark))
    true = [text for row in rows for text in masks_in(row)]
    if benchmark == "pbench":
        assert found == Counts(35, 2 * len(true), 2 * sum(map(len, true)), sum(len(row["masks"]) ** 2 for row in rows))
    elif benchmark == "pvsg":
        seen: dict[tuple[str, int], int] = {}
        for row in rows:
            for tube in row["tubes"]:
                for frame in tube["frames"]:
                    seen[row["key"], frame] = seen.get((row["key"], frame), 0) + 1
        pairs = sum(n * n for n in seen.values())
        assert found == Counts(len(rows), 2 * len(true), 2 * sum(map(len, true)), pairs, len(seen))
    else:
        asked = sum(len(row["expressions"]) for row in rows)
        assert (found.rows, found.masks) == (asked, len(true) + asked)
        assert found.pairs == sum(len(row["expressions"]) * len(row["candidates"]) for row in rows)


def test_estimates_grow_with_every_count() -> None:
    small = Counts(1000, 8000, 1_600_000, 16_000)
    one = estimate("pbench", small)
    for name in ("rows", "masks", "bytes", "pairs"):
        more = estimate("pbench", Counts(**{**small.__dict__, name: 10 * getattr(small, name)}))
        assert more.seconds > one.seconds
    assert estimate("pbench", small.times(100)).cpu_seconds > 20 * (one.cpu_seconds - 3)
    two = estimate("pbench", small.times(100), num_proc=2)
    assert two.seconds < estimate("pbench", small.times(100)).seconds
    assert estimate("pbench", small.times(100), num_proc=4).memory > two.memory
    # One process keeps what it read of the predictions, up to a bound.
    kept = estimate("pbench", small.times(1000)).memory - estimate("pbench", replace(small.times(1000), bytes=0)).memory
    assert kept == KEPT_BYTES
    assert 0 < one.memory - estimate("pbench", replace(small, bytes=0)).memory < KEPT_BYTES
    with pytest.raises(BenchError, match="num_proc"):
        estimate("pbench", small, num_proc=0)


def test_info_tells_the_cost() -> None:
    done = CliRunner().invoke(app, ["info", "pvsg", "--data", "sample", "--cost", "--json"])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["counts"]["frames"] == count("pvsg", truth_of("pvsg")).frames
    assert found["cost"]["seconds"] > 0
    done = CliRunner().invoke(app, ["info", "pbench", "--data", "sample", "--cost", "--num-proc", "2"])
    assert "35 score rows" in done.stdout
    assert "with 2 processes" in done.stdout
