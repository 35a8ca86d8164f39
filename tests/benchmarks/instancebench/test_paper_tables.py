"""The paper's own tables: what follows from what, through the summary of score tables that hold its integers."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bench_datasets as bd

from ...support.instancebench_score_tables import AREA, Said, inside, right, row, table, wrong
from ...support.instancebench_sets import values

OPERATIONS = (
    "ordinal", "extremal", "relative_selection", "subgroup_based", "single_anchor_relation", "multi_anchor_relation",
    "nested_grounding", "target_evidence", "negation_or_exclusion",
)  # fmt: skip
COCO, OPENIMAGES = 1464, 1454


@pytest.fixture(scope="module")
def paper(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "reference" / "published.json").read_text())["instancebench"]  # type: ignore[no-any-return]


def summed(rows: list[dict[str, Any]], draws: int = 0) -> bd.Result:
    return bd.summarize("instancebench", table(rows), draws=draws)


def core(key: str, first: Said, second: Said, **more: str) -> dict[str, Any]:
    """A set of two core expressions."""
    parts = [replace(x, role=role) for role, x in (("minimal", first), ("variant", second))]
    return row(key, parts, **more)


def test_operations_give_the_overall_miou(paper: dict[str, Any]) -> None:
    counts = paper["operation_counts_test"]
    assert sum(counts.values()) == 5836
    operations = np.random.default_rng(0).permutation(list(chain.from_iterable([op] * n for op, n in counts.items())))
    for model, by_operation in paper["table9_miou_by_operation"].items():
        said = [inside("minimal", op, by_operation[op] / 100) for op in operations]
        rows = [core(f"t{k}", *said[2 * k : 2 * k + 2]) for k in range(2918)]
        result = summed(rows)
        for op, value in by_operation.items():
            metric = result.metrics[f"miou/operation/{op}"]
            assert (metric.value, metric.n) == (pytest.approx(value / 100, abs=1e-9), counts[op])
        assert 100 * result.metrics["miou"].value == pytest.approx(paper["table2_overall"][model]["miou"], abs=0.0051)
        assert result.metrics["miou"].n == 5836


def test_sources_give_the_overall_table(paper: dict[str, Any]) -> None:
    for model, printed in paper["table13_sources"].items():
        runs = 3 if model in ("X2SAM", "X-SAM") else 1  # their shares are means of three runs
        rows = []
        for source, n in (("coco", COCO), ("openimages", OPENIMAGES)):
            miou, good = printed[f"{source}_miou"] / 100, round(printed[f"{source}_all@0.7"] / 100 * n * runs)
            # The lowest IoU of the failing sets with which those that pass can make up the mean.
            low = max(0.0, (miou * n * runs - 0.95 * good) / (n * runs - good))
            high = (miou * n * runs - low * (n * runs - good)) / good
            assert low < 0.7 <= high <= 1
            for k in range(n * runs):
                said = inside("minimal", "ordinal", high if k < good else low)
                rows.append(core(f"{source}{k // runs}", said, said, source=source, run=str(k % runs)))
        found = summed(rows).metrics
        assert found["miou"].runs == (runs if runs > 1 else None)
        for ours, theirs in (("miou", "miou"), ("all@0.7", "all@0.7")):
            for source in ("coco", "openimages"):
                value = 100 * found[f"{ours}/source/{source}"].value
                assert value == pytest.approx(
                    printed[f"{source}_{theirs}"], abs=0.0051 if runs == 1 or theirs == "miou" else 0.0121
                )
            assert 100 * found[f"delta_source/{ours}"].value == pytest.approx(printed[f"delta_{theirs}"], abs=0.0151)
            overall = paper["table2_overall"][model][theirs]
            assert 100 * found[ours].value == pytest.approx(overall, abs=0.0101), model


# ---------------------------------------------------------------------- failures

RELATIONS = ("single_anchor_relation", "multi_anchor_relation", "nested_grounding")

BINS = {
    # similarity with the best candidate and margin, by what they pass: .05 | .10 | .15 and 0 | .05 | .10
    "A0": (0.07, 0.02), "A1": (0.07, 0.06), "B1": (0.12, 0.07), "C0": (0.30, 0.02), "C1": (0.30, 0.07),
    "C2": (0.50, 0.40),
}  # fmt: skip
TARGET = {"A0": 6, "A1": 13, "B1": 13, "C0": 101, "C1": 49, "C2": 1231}
OTHER = {"A0": 2, "A1": 18, "B1": 19, "C0": 132, "C1": 57, "C2": 2842}
SETTLED = ("B1", "C1", "C2")
"""Those that the default thresholds settle."""


def failing(operation: str, kind: str, other: bool) -> Said:
    best, margin = BINS[kind]
    shared = [round(best * AREA), round((best - margin) * AREA)]
    return Said("minimal", operation, AREA, tuple(shared[::-1] if other else shared))


def failures_table(paper: dict[str, Any]) -> list[dict[str, Any]]:
    """5,289 failing core expressions in the cells of table 16, and sets without a failure beside them."""
    settled = {side: [k for k in SETTLED for _ in range(sizes[k])] for side, sizes in enumerate((TARGET, OTHER))}
    open_ones = [(k, side) for side, sizes in enumerate((TARGET, OTHER)) for k in sizes if k not in SETTLED
                 for _ in range(sizes[k])]  # fmt: skip
    said: dict[str, list[Said]] = {"coco": [], "openimages": []}
    for cell in paper["table16_failures"]:
        source, op, n = {"COCO": "coco", "OI": "openimages"}[cell["source"]], cell["operation"], cell["n"]
        poor, switched = round(n * cell["correct_id_poor_mask"] / 100), round(n * cell["same_class_switch"] / 100)
        said[source] += [failing(op, settled[0].pop(), False) for _ in range(poor)]
        said[source] += [failing(op, settled[1].pop(), True) for _ in range(switched)]
        for _ in range(n - poor - switched):
            kind, side = open_ones.pop() if open_ones else ("", 0)
            said[source].append(failing(op, kind, bool(side)) if kind else Said("minimal", op, AREA, (0, 0)))
    assert not open_ones
    assert not settled[0]
    assert not settled[1]
    rows = []
    for source, items in said.items():
        items = items if len(items) % 2 == 0 else [*items, right("minimal", RELATIONS[0])]
        rows += [core(f"{source}{k}", items[k], items[k + 1], source=source) for k in range(0, len(items), 2)]
    return rows


def test_failures_by_cell_by_operation_and_by_threshold(paper: dict[str, Any]) -> None:
    rows = failures_table(paper)
    rows += [core(f"good{k}", right("minimal", RELATIONS[0]), right("variant", RELATIONS[1])) for k in range(3000)]
    result = summed(rows)
    integers = paper["failure_integers_default"]
    names = {"identity_error": "identity", "same_class_switch": "switch", "unresolved": "unresolved",
             "correct_id_poor_mask": "correct_id_poor_mask"}  # fmt: skip
    for ours, theirs in names.items():
        metric = result.metrics[f"{ours}@0.7"]
        assert (round(metric.value * metric.n), metric.n) == (integers[theirs], integers["n"])
        assert result.metrics[f"sensitivity/0.1/0.05/{ours}"].value == metric.value
    slices = {(part.by, part.value): part.metrics for part in result.slices}
    for cell in paper["table16_failures"]:
        source = {"COCO": "coco", "OI": "openimages"}[cell["source"]]
        found = slices["source/operation", f"{source}/{cell['operation']}"]
        for name in ("identity_error", "same_class_switch", "correct_id_poor_mask"):
            assert 100 * found[f"{name}@0.7"].value == pytest.approx(cell[name], abs=0.0051)
            assert found[f"{name}@0.7"].n == cell["n"]
    for operation, printed in paper["table17_failures_pooled"].items():
        for name, value in printed.items():
            assert 100 * slices["operation", operation][f"{name}@0.7"].value == pytest.approx(value, abs=0.0051)
    for line in paper["table18_sensitivity"]:
        prefix = f"sensitivity/{line['min_score']:g}/{line['min_margin']:g}"
        for name in ("identity_error", "same_class_switch", "unresolved", "correct_id_poor_mask"):
            assert 100 * result.metrics[f"{prefix}/{name}"].value == pytest.approx(line[name], abs=0.0051), prefix


def test_the_printed_thresholds_are_monotone(paper: dict[str, Any]) -> None:
    lines = {(line["min_score"], line["min_margin"]): line for line in paper["table18_sensitivity"]}
    for path in ([(0.05, 0.0), (0.05, 0.05), (0.1, 0.05), (0.1, 0.1)], [(0.1, 0.0), (0.1, 0.05), (0.15, 0.05)]):
        for loose, strict in pairwise(path):
            for name in ("all_target_id_core", "same_class_switch"):
                assert lines[strict][name] <= lines[loose][name]
            assert lines[strict]["unresolved"] >= lines[loose]["unresolved"]


# ---------------------------------------------------------------------- consistency


def matched_sets(n: int, minimal: int, both: tuple[int, int], alone: tuple[int, int]) -> list[dict[str, Any]]:
    """Sets with a paraphrase; paraphrase and variant are independent given whether minimal is right.

    Args:
        n: how many.
        minimal: how many are right on minimal.
        both: right on minimal and (paraphrase, variant).
        alone: right on (paraphrase, variant).
    """
    rows: list[dict[str, Any]] = []
    for first, count, hits in (
        (right, minimal, both), (wrong, n - minimal, (alone[0] - both[0], alone[1] - both[1]))
    ):  # fmt: skip
        together = round(hits[0] * hits[1] / count)
        kinds = [(True, True)] * together + [(True, False)] * (hits[0] - together)
        kinds += [(False, True)] * (hits[1] - together)
        kinds += [(False, False)] * (count - len(kinds))
        for paraphrase, variant in kinds:
            said = [first("minimal"), (right if variant else wrong)("variant")]
            rows.append(row(f"t{len(rows)}", [*said, (right if paraphrase else wrong)("paraphrase")]))
    return rows


def test_consistency_from_the_integers(paper: dict[str, Any]) -> None:
    golden = paper["nci_golden_integers"]
    for model, (minimal, p_both, p, v_both, v) in golden["models"].items():
        result = summed(matched_sets(golden["n"], minimal, (p_both, v_both), (p, v)), draws=1000)
        found, printed = result.metrics, paper["table3_consistency"][model]
        for track in ("paraphrase", "variant"):
            metric = found[f"retention/{track}/matched"]
            assert metric.n == minimal
            assert round(100 * metric.value, 2) == printed[f"{track}_retention"], model
            assert found[f"nci/{track}"].n == golden["n"]
            assert round(found[f"nci/{track}"].value, 3) == printed[f"{track}_nci_fraction"], model
        assert found["delta_nci"].value == pytest.approx(printed["delta_nci_fraction"], abs=0.0011), model
        interval = (printed["delta_nci_low"], printed["delta_nci_high"])
        assert found["delta_nci"].ci95 == pytest.approx(interval, abs=0.03), model
        assert found["retention/variant"].value == found["retention/variant/matched"].value  # all sets are matched


def test_printed_table_2_obeys_the_inequalities(paper: dict[str, Any]) -> None:
    for model, printed in paper["table2_overall"].items():
        slack = 0.011 if model not in ("X2SAM", "X-SAM") else 0.02
        assert printed["all@0.9"] <= printed["all@0.7"] <= printed["p@0.7"]
        assert printed["all@0.7"] >= 2 * printed["p@0.7"] - 100 - slack
        assert printed["worst_path_iou"] >= 2 * printed["miou"] - 100 - slack


def test_one_and_the_same_model_three_times() -> None:
    """Several runs: mean and sample deviation, and a draw takes the same sets in every run."""
    rng = np.random.default_rng(3)
    rows, shares = [], []
    for run in "012":
        hits = rng.random(40) < 0.6
        shares.append(hits.mean())
        rows += [
            core(f"t{k:02d}", right("minimal"), (right if hit else wrong)("variant"), run=run)
            for k, hit in enumerate(hits)
        ]
    result = summed(rows, draws=500)
    metric = result.metrics["retention/variant"]
    assert metric.value == pytest.approx(np.mean(shares))
    assert metric.sd == pytest.approx(np.std(shares, ddof=1))
    assert (metric.runs, metric.n) == (3, 40)
    assert metric.ci95 is not None
    assert metric.ci95[0] < metric.value < metric.ci95[1]
    assert values(summed([{**x, "run": "0"} for x in rows if x["run"] == "1"]))["retention/variant"] == shares[1]
    again = summed([{**x, "run": r} for x in rows if x["run"] == "0" for r in ("0", "1")], draws=500)
    once = summed([x for x in rows if x["run"] == "0"], draws=500)
    assert again.metrics["miou"].ci95 == once.metrics["miou"].ci95
    assert again.metrics["miou"].sd == 0.0
