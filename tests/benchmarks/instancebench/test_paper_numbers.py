"""The shipped copy of the paper's numbers: our keys, its values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bench_datasets as bd
from bench_datasets.benchmark import get_benchmark
from bench_datasets.results.paper_results import published

from ...support.instancebench_score_tables import right, row, table

CONDITIONS = ("category_only", "text_swap", "logic_explicit", "deliberation", "same_class_context")


def test_every_key_is_one_that_a_result_has() -> None:
    said = [right("minimal"), right("variant")]
    rows = [row("t", said), *({**row("t", said), "condition": condition} for condition in CONDITIONS)]
    known = set(bd.summarize("instancebench", table(rows), draws=0).metrics)
    content = published("instancebench")
    for model, numbers in content["models"].items():
        assert set(numbers) <= known, model
        assert all(isinstance(value, (int, float)) and -100 <= value <= 100 for value in numbers.values()), model
    for model, intervals in content["ci95"].items():
        for key, (low, high) in intervals.items():
            assert low <= content["models"][model][key] <= high
    for thresholds, numbers in content["failures"]["by_threshold"].items():
        assert {f"sensitivity/{thresholds}/{name}" for name in numbers} <= known
    assert set(content["exceptions"]) <= set(content["models"])


def test_counts_agree_with_the_entry_and_among_themselves() -> None:
    counts = published("instancebench")["counts"]
    assert counts["test"]["tces"] == get_benchmark("instancebench").source.rows["test"]
    assert sum(counts[split]["tces"] for split in ("train", "validation", "test")) == counts["tces"]
    assert sum(counts["operations"].values()) == counts["test"]["core_expressions"] == 2 * counts["test"]["tces"]
    for operation, n in counts["operations"].items():
        assert sum(cells[operation] for cells in counts["source_operations"].values()) == n


def test_values_are_the_papers(shared: Path) -> None:
    paper = json.loads((shared / "reference" / "published.json").read_text())["instancebench"]
    models = published("instancebench")["models"]
    for model, printed in paper["table2_overall"].items():
        assert {key: models[model][key] for key in printed} == printed
    for model, printed in paper["table3_consistency"].items():
        assert models[model]["retention/variant/matched"] == printed["variant_retention"]
        assert models[model]["delta_nci"] == pytest.approx(100 * printed["delta_nci_fraction"])
    for model, printed in paper["table9_miou_by_operation"].items():
        assert {op: models[model][f"miou/operation/{op}"] for op in printed} == printed
    for model, printed in paper["table14_dense_tracks"].items():
        assert models[model]["retention/same_target/dense"] == printed["variant_retention"]
        assert models[model]["tm@0.7/exclusion/dense"] == printed["exclusion_tm@0.7"]
    for model, printed in paper["table15_stability"].items():
        assert models[model]["spearman/source"] == pytest.approx(100 * printed["spearman_rho"])
    for model, printed in paper["table7_oracle_candidate"].items():
        assert models[model]["oracle/all_target_id"] == printed["all_target_id"]
