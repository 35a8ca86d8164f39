"""From score rows to numbers: intervals, slices, thresholds, ranks, and what they may be compared with."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bench_datasets as bd
from bench_datasets.benchmarks.pvsg import BENCHMARK
from bench_datasets.faults import BenchError
from bench_datasets.results.paper_results import published
from bench_datasets.results.statistics import weights

from ...support import dense_pvsg as dense
from ...support.pvsg_rows import score, summed_up
from ...support.random_videos import random_video


@pytest.fixture(scope="module")
def videos() -> list[dense.Video]:
    random = np.random.default_rng(11)
    return [random_video(random) for _ in range(12)]


@pytest.fixture(scope="module")
def table(videos: list[dense.Video]) -> pa.Table:
    return score(videos)


def test_the_interval_is_that_of_videos_drawn_again(videos: list[dense.Video], table: pa.Table) -> None:
    """R, mR and VPQ of every draw, computed anew from the drawn videos."""
    found, _ = summed_up(table, draws=40, seed=3)
    order = sorted(range(len(videos)), key=lambda i: f"v{i}")
    values: dict[str, list[float]] = {"R@20/0.1": [], "mR@20/0.1": [], "vpq/2": [], "stq/aq": []}
    for drawn in np.concatenate(list(weights(len(videos), 40, 3))):
        chosen = [videos[order[i]] for i, times in enumerate(drawn) for _ in range(int(times))]
        r, mr = dense.recall(chosen, "official", 20, 0.1)
        numbers = (r, mr, dense.vpq(chosen, 2), dense.stq(chosen)[0])
        for name, value in zip(values, numbers, strict=True):
            values[name].append(value)
    for name, sample in values.items():
        low, high = np.nanquantile(sample, [0.025, 0.975])
        assert found[name].ci95 == (pytest.approx(low), pytest.approx(high)), name


def test_order_of_rows_does_not_matter(table: pa.Table) -> None:
    turned = table.take(pa.array(np.arange(len(table))[::-1]))
    a, b = (summed_up(t)[0] for t in (table, turned))
    assert {k: v.value for k, v in a.items()} == pytest.approx({k: v.value for k, v in b.items()}, nan_ok=True)


def test_slices_part_the_relations(table: pa.Table) -> None:
    found, slices = summed_up(table, by=("frames",))
    whole = found["R@20/0.1"]
    for by in ("predicate", "span", "size", "source", "frames"):
        parts = [part.metrics["R@20/0.1"] for part in slices if part.by == by]
        assert sum(part.n for part in parts) == whole.n, by
        hits = sum(part.value * part.n for part in parts if part.n)
        assert hits / whole.n == pytest.approx(whole.value), by
    mean = [part.metrics["R@20/0.1"].value for part in slices if part.by == "predicate"]
    assert found["mR@20/0.1"].value == pytest.approx(sum(mean) / len(mean))
    assert found["mR@20/0.1"].n == len(mean)


def test_every_number_says_what_it_is_about(table: pa.Table) -> None:
    found, slices = summed_up(table, thresholds=(0.3, 0.75), k=(7,))
    assert {"R@7/0.3", "mR@7/0.75", "pair_recall@7/0.3", "timeless_recall@7/0.75", "tube_recall@0.3"} <= set(found)
    assert {"loss/first_stage@7/0.3", "loss/second_stage@7/0.75", "vpq", "vpq/6", "stq", "stq/aq", "stq/sq"} <= set(
        found
    )
    assert not any(key.startswith("R@") and key not in ("R@7/0.3", "R@7/0.75") for key in found)
    assert all(metric.higher_is_better is not key.startswith("loss/") for key, metric in found.items())
    for metrics in (found, *(part.metrics for part in slices)):
        assert all((metric.n == 0) == math.isnan(metric.value) for metric in metrics.values())


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"thresholds": (0.0,)}, "thresholds: expected overlaps"), ({"thresholds": ()}, "thresholds"),
        ({"k": (0,)}, "k: expected whole numbers from 1"), ({"by": ("height_of_joy",)}, "by: expected predicate"),
        ({"by": ("pair_rank",)}, "by: expected predicate"),
    ],
)  # fmt: skip
def test_wrong_choices(table: pa.Table, how: dict[str, Any], message: str) -> None:
    with pytest.raises(BenchError, match=message):
        summed_up(table, **{"k": (20,), **how})


def test_no_rows_no_numbers(table: pa.Table) -> None:
    found, slices = BENCHMARK.summarize_table(table.slice(0, 0), "official", thresholds=None, by=(), draws=10, seed=0)
    assert all(math.isnan(metric.value) and metric.n == 0 and metric.ci95 is None for metric in found.values())
    assert slices == []


def test_what_compares_with_what(table: pa.Table) -> None:
    whole = pa.concat_tables([table] * 6).slice(0, 62)
    settings = {"thresholds": None, "k": [20, 50, 100]}
    test = {"split": "test"}
    assert BENCHMARK.comparable_to("official", whole, test, settings) == "PVSG arXiv v1 at 0.5"
    assert BENCHMARK.comparable_to("weak_official", whole, test, settings) == "PVSG arXiv v1 at 0.1"
    assert BENCHMARK.comparable_to("volume", whole, test, settings) is None
    assert BENCHMARK.comparable_to("card", whole, test, settings) is None
    assert BENCHMARK.comparable_to("official", whole.slice(1), test, settings) is None
    assert BENCHMARK.comparable_to("official", whole, {"split": "train"}, settings) is None
    assert BENCHMARK.comparable_to("official", whole, test, {"thresholds": [0.3], "k": [20]}) is None
    assert BENCHMARK.comparable_to("official", whole, test, {"thresholds": None, "k": [7]}) is None
    oracle = whole.set_column(whole.column_names.index("oracle"), "oracle", pa.array(["tubes"] * 62))
    assert BENCHMARK.comparable_to("official", oracle, test, settings) is None


class TestPublished:
    def test_recalls_are_fractions_of_the_relations(self) -> None:
        """Every printed recall is a whole number of the split's relations; the soft recalls of CVPR are not."""
        content = published("pvsg")
        total = content["relations"]
        for model, printed in content["models"].items():
            for key, value in printed.items():
                if key.startswith(("R@", "weak_official/R@")):
                    hits = round(value * total / 100)
                    assert abs(100 * hits / total - value) <= 0.0051, (model, key)

    def test_as_printed(self, shared: Path) -> None:
        printed = json.loads((shared / "reference" / "published.json").read_text())["pvsg"]
        models = published("pvsg")["models"]
        count = 0
        for paper, tables in (("arXiv v1", printed["arxiv_v1"]), ("MACL", printed["macl"])):
            for threshold, rows in tables.items():
                for name, by_rank in rows.items():
                    for k, (r, mr) in by_rank.items():
                        tail = f"@{k}/0.5" if threshold == "0.5" else f"@{k}"
                        head = "" if threshold == "0.5" else "weak_official/"
                        row = models[f"{name.capitalize()} ({paper})"]
                        assert (row[f"{head}R{tail}"], row[f"{head}mR{tail}"]) == (r, mr)
                        count += 2
        assert count == sum(len(row) for row in models.values())


@pytest.mark.parametrize(("protocol", "against"), [("official", "PVSG arXiv v1 at 0.5"),
                                                   ("weak_official", "PVSG arXiv v1 at 0.1")])  # fmt: skip
def test_the_whole_test_split_is_comparable_and_less_says_why(table: pa.Table, protocol: str, against: str) -> None:
    """Whatever the protocol, so long as anybody has published numbers under it."""
    whole = pa.concat_tables([table] * (62 // len(table) + 1)).slice(0, 62)
    columns = {"key": [f"video_{i:03}" for i in range(62)], "protocol": [f"{protocol}@1"] * 62}
    for name, values in columns.items():
        whole = whole.set_column(whole.column_names.index(name), name, pa.array(values))
    origin = {"dataset": {"source": "Jingkang/PVSG", "split": "test", "expected": 62}}

    def said(rows: pa.Table, expected: int = 62, **how: Any) -> str:
        place = {"dataset": {**origin["dataset"], "expected": expected}}
        return str(bd.summarize("pvsg", rows, draws=0, provenance=place, **how))

    assert f"comparable to published numbers: {against}" in said(whole)
    assert "not comparable to published numbers: subset (61 of 62 rows)" in said(whole.slice(1))
    assert "61 rows were scored, the published test set has 62" in said(whole.slice(1), 61)
    assert "because of the chosen K" in said(whole, k=(5,))
