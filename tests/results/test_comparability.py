"""Only a whole run under the published protocol, of known origin, compares with what is published."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from datasets import Dataset

import bench_datasets as bd
from bench_datasets.benchmark import BENCHMARKS

ROWS = {"level_0": 1930, "level_1": 1108, "level_2": 969, "level_3": 1089, "level_4": 861, "dense": 381}
ORIGIN: dict[str, Any] = {
    "benchmark": "pbench",
    "dataset": {"source": "tiiuae/PBench", "split": "test", "revision": "abc", "expected": 6338},
    "predictions": {"sha256": "0" * 64, "rows": 6338, "missing": 0},
    "settings": {"missing": "error", "on_fault": "stop"},
    "faults": {},
}


def table(protocol: str = "released", fewer: str | None = None, skipped: int = 0) -> Dataset:
    levels = [level for level, count in ROWS.items() for _ in range(count - (level == fewer))]
    n = len(levels)
    schema = bd.score_features("pbench", protocol).arrow_schema
    columns: dict[str, list[Any]] = {
        name: [0] * n if pa.types.is_integer(schema.field(name).type) else [[]] * n for name in schema.names
    }
    columns |= {
        "key": [f"{level}/{k}" for k, level in enumerate(levels)], "cluster": [f"{k}" for k in range(n)],
        "protocol": [f"{protocol}@1"] * n, "row_sha256": ["ab"] * n, "level": levels,
        "skipped": [k < skipped for k in range(n)], "true_count": [1] * n, "raw_count": [1] * n,
        "nms_count": [1] * n, "kept_count": [1] * n, "union_true": [1] * n, "union_predicted": [1] * n,
        **{name: [None] * n for name in schema.names if name.startswith("position")},
    }  # fmt: skip
    return Dataset.from_dict(columns, features=bd.score_features("pbench", protocol))


def test_the_published_counts() -> None:
    assert BENCHMARKS["pbench"].source.rows == ROWS
    assert sum(ROWS.values()) == 6338


def test_a_whole_run_is_comparable() -> None:
    result = bd.summarize("pbench", table(), draws=0, provenance=ORIGIN)
    assert result.comparable_to == "Falcon Perception table"
    assert result.partial is False
    assert result.metrics["average"].value == 0.0
    assert "comparable to published numbers: Falcon Perception table" in str(result)


@pytest.mark.parametrize(
    ("scores", "options", "words"),
    [
        ({"fewer": "dense"}, {}, "partial run"),
        ({}, {"thresholds": [0.5]}, "the thresholds are not those of the protocol"),
        ({"protocol": "paper"}, {}, "exist for the protocol paper"),
        ({"protocol": "card"}, {}, "exist for the protocol card"),
        ({"skipped": 1}, {}, "partial run"),
        ({}, {"provenance": None}, "not recorded"),
        ({}, {"provenance": {}}, "not recorded"),
        ({}, {"provenance": {**ORIGIN, "dataset": {"source": None, "expected": None}}}, "not recorded"),
        (
            {},
            {"provenance": {**ORIGIN, "faults": {"unknown_row": {"count": 1, "examples": ["x"]}}}},
            "not comparable to published numbers",
        ),
    ],
)
def test_less_is_not(scores: dict[str, Any], options: dict[str, Any], words: str) -> None:
    result = bd.summarize("pbench", table(**scores), **{"draws": 0, "provenance": ORIGIN, **options})
    assert result.comparable_to is None
    assert words in str(result)
    assert "not comparable to published numbers: " in str(result)
