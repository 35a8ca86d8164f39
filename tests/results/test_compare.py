"""Runs held against each other: scipy's tests, simulated coverage and false claims, refusals, the same bytes."""

from __future__ import annotations

import inspect
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
from datasets import Dataset

import bench_datasets as bd
from bench_datasets.results.compare import Difference
from bench_datasets.results.resample import holm, places
from bench_datasets.results.verdicts import LEAST, statements

from ..support.pbench_score_tables import all_levels, table_of

KEY = "macro_f1/level_0"
SEED = "rng" if "rng" in inspect.signature(scipy.stats.bootstrap).parameters else "random_state"
"""What this scipy calls the source of its draws."""


def tenths(rng: np.random.Generator, n: int, p: float = 0.5) -> np.ndarray:
    return rng.binomial(10, p, n) / 10


def difference(a: np.ndarray, b: np.ndarray, **options: object) -> Difference:
    found = bd.compare({"A": table_of(a), "B": table_of(b)}, every=False, **options)
    return next(item for item in found.pairs["A", "B"] if item.metric == KEY)


def test_against_scipy() -> None:
    rng = np.random.default_rng(0)
    a = tenths(rng, 60)
    b = np.clip(a + rng.integers(-2, 4, 60) / 10, 0, 1)
    found = difference(a, b, draws=20_000, permutations=20_000)
    assert found.difference == pytest.approx(b.mean() - a.mean(), abs=1e-12)
    assert found.n == 60
    sample = b - a
    bootstrap = scipy.stats.bootstrap(
        (sample,), np.mean, method="percentile", n_resamples=20_000, **{SEED: np.random.default_rng(1)}
    ).confidence_interval
    assert found.ci95 == pytest.approx((bootstrap.low, bootstrap.high), abs=0.004)
    test = scipy.stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(y - x, axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=20_000, **{SEED: np.random.default_rng(2)},
    )  # fmt: skip
    assert found.p == pytest.approx(test.pvalue, abs=0.01)
    assert (found.wins, found.ties, found.losses) == ((b > a).sum(), (b == a).sum(), (b < a).sum())
    assert found.detectable == pytest.approx(2.8016 * sample.std() / math.sqrt(60), rel=0.05)


def test_few_rows_against_every_permutation() -> None:
    """With eight rows scipy counts all 256 swaps."""
    a, b = np.array([2, 3, 4, 5, 4, 3, 2, 6]) / 10, np.array([3, 3, 6, 9, 5, 4, 1, 7]) / 10
    exact = scipy.stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(y - x, axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=np.inf,
    )  # fmt: skip
    assert difference(a, b, draws=10, permutations=40_000).p == pytest.approx(exact.pvalue, abs=0.01)


def test_clusters_are_drawn_and_swapped_whole() -> None:
    """Ten images of six rows that agree: as good as ten rows."""
    rng = np.random.default_rng(3)
    a, b = tenths(rng, 10), tenths(rng, 10, 0.6)
    images = [f"image {i // 6}" for i in range(60)]
    many = bd.compare({"A": table_of(a.repeat(6), clusters=images), "B": table_of(b.repeat(6), clusters=images)},
                      every=False, draws=4000, permutations=4000)  # fmt: skip
    ten = [f"image {i}" for i in range(10)]
    few = bd.compare({"A": table_of(a, clusters=ten), "B": table_of(b, clusters=ten)}, every=False, draws=4000,
                     permutations=4000)  # fmt: skip
    assert many.unit == "image"
    assert many.clusters == 10
    one, other = many.pairs["A", "B"][0], few.pairs["A", "B"][0]
    assert one.ci95 == pytest.approx(other.ci95, abs=1e-9)
    assert one.p == other.p
    assert (one.n, other.n) == (60, 10)


def test_holm() -> None:
    p = [0.001, 0.4, 0.012, 0.03]
    order = np.argsort(p)
    expected = np.empty(4)
    expected[order] = np.minimum(np.maximum.accumulate(np.array(p)[order] * [4, 3, 2, 1]), 1)
    assert holm(p) == pytest.approx(expected)
    assert holm([]) == []
    assert math.isnan(holm([math.nan])[0])


def test_places() -> None:
    values = np.random.default_rng(0).integers(0, 4, (6, 50)).astype(float)
    assert np.array_equal(places(values), scipy.stats.rankdata(values, axis=0))
    assert np.isnan(places(np.array([[1.0], [np.nan]]))[1, 0])


def simulate(effect: float, runs: int, rows: int) -> list[Difference]:
    """Two runs of models that answer rows of differing difficulty; `effect` is the true difference."""
    rng = np.random.default_rng(12)
    found = []
    for i in range(runs):
        hard = rng.beta(2, 2, rows) * (1 - abs(effect))
        a, b = rng.binomial(10, hard) / 10, rng.binomial(10, hard + effect) / 10
        found.append(difference(a, b, draws=400, permutations=400, seed=i))
    return found


def test_intervals_cover() -> None:
    found = simulate(0.1, 160, 50)
    covered = sum(d.ci95 is not None and d.ci95[0] <= 0.1 <= d.ci95[1] for d in found)
    low, high = scipy.stats.binom.interval(0.999, len(found), 0.94)
    assert low <= covered <= high


def test_few_false_claims() -> None:
    found = simulate(0.0, 200, 40)
    claims = sum(d.verdict is not None for d in found)
    assert claims <= scipy.stats.binom.ppf(0.999, len(found), 0.05)
    assert 0.3 < np.mean([d.p for d in found]) < 0.7


def test_a_run_with_itself() -> None:
    rng = np.random.default_rng(5)
    levels = all_levels(120)
    table = table_of(tenths(rng, 120), levels)
    found = bd.compare({"A": table, "again": table}, draws=200, permutations=200)
    for item in found.pairs["A", "again"]:
        if item.n:
            assert item.difference == 0
            assert item.ci95 in ((0.0, 0.0), None)
            assert item.p == 1.0
        assert item.verdict is None
    assert found.sentences["A", "again"] == "A and again have the same value in every metric."


def test_the_same_bytes() -> None:
    rng = np.random.default_rng(6)
    a, b = tenths(rng, 90), tenths(rng, 90)
    levels = all_levels(90)
    one, two = table_of(a, levels), table_of(b, levels)
    text = bd.compare({"A": one, "B": two}, draws=300, permutations=300, seed=4).to_json()
    shuffled = rng.permutation(90)
    again = bd.compare({"A": one.take(shuffled), "B": Dataset(two.take(shuffled[::-1]))}, draws=300, permutations=300,
                       seed=4)  # fmt: skip
    assert again.to_json() == text
    assert json.loads(text)["seed"] == 4
    assert bd.compare({"A": one, "B": two}, draws=300, permutations=300, seed=5).to_json() != text


def test_both_ways_round() -> None:
    rng = np.random.default_rng(7)
    a = tenths(rng, 80, 0.4)
    b = np.clip(a + 0.2, 0, 1)
    there, back = difference(a, b), difference(b, a)
    assert there.verdict == "B"
    assert back.verdict == "A"
    assert there.difference == -back.difference
    assert there.ci95 == pytest.approx((-back.ci95[1], -back.ci95[0]))
    assert (there.wins, there.losses) == (back.losses, back.wins)


def test_compare_messages() -> None:
    rng = np.random.default_rng(8)
    levels = all_levels(300)
    a = tenths(rng, 300)
    b = np.where(np.array(levels) == "level_1", np.clip(a + 0.4, 0, 1), a)
    found = bd.compare({"old": table_of(a, levels), "new": table_of(b, levels)}, every=False)
    text = found.sentences["old", "new"]
    item = next(d for d in found.pairs["old", "new"] if d.metric == "average")
    assert item.ci95 is not None
    low, high = (f"{100 * bound:.2f}" for bound in item.ci95)
    assert found.statements["old", "new"] == [
        f"Macro-F1 average: new is {100 * (item.b - item.a):.2f} points higher than old (95 % CI {low} to {high};"
        " paired permutation test p < 0.001). Significant at 0.05.",
        "new is significantly better at level_1 (Holm-corrected p < 0.05).",
        "No significant difference in the other 5 parts.",
    ]
    assert text == " ".join(found.statements["old", "new"])
    assert all(line in str(found) for line in found.statements["old", "new"])
    assert "<table>" in found._repr_html_()


def test_many_runs_have_places() -> None:
    rng = np.random.default_rng(9)
    levels = all_levels(240)
    tables = {name: table_of(tenths(rng, 240, p), levels) for name, p in (("low", 0.2), ("mid", 0.5), ("high", 0.8))}
    found = bd.compare(tables, draws=300, permutations=300)
    assert len(found.pairs) == 3
    by_name = {rank.name: rank for rank in found.ranks if rank.metric == "average"}
    assert [by_name[name].rank for name in ("high", "mid", "low")] == [1, 2, 3]
    assert by_name["high"].ci95 == (1, 1)
    assert "high vs. low" not in str(found).split("\n")[1]


def test_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    tables = [table_of(tenths(rng, 20)) for _ in range(2)]
    assert bd.compare(tables, draws=10, permutations=10).names == ["A", "B"]
    assert bd.compare(tables, names=["x", "y"], draws=10, permutations=10).names == ["x", "y"]
    from bench_datasets.results.run_files import write_scores

    folder = tmp_path / "v1.2"
    folder.mkdir()
    write_scores(Dataset(tables[0]), folder)
    found = bd.compare([folder, folder / "scores.parquet"], draws=10, permutations=10)
    assert found.names == ["v1.2", "v1.2 (2)"]
    with pytest.raises(bd.BenchError, match=r"names: expected 2, one per run, got 1"):
        bd.compare(tables, names=["x"])
    with pytest.raises(bd.BenchError, match="names that differ, got x, x"):
        bd.compare(tables, names=["x", "x"])


def altered(table: pa.Table, column: str, values: list[object]) -> pa.Table:
    place = table.column_names.index(column)
    return table.set_column(place, column, pa.array(values, table.schema.field(column).type))


def test_refusals_say_which() -> None:
    rng = np.random.default_rng(11)
    table = table_of(tenths(rng, 20))
    with pytest.raises(bd.BenchError, match="two runs or more, got 1"):
        bd.compare({"A": table})
    with pytest.raises(bd.BenchError, match="A was scored under released@1, B under paper@1"):
        bd.compare({"A": table, "B": table_of(tenths(rng, 20), protocol="paper")})
    with pytest.raises(bd.BenchError, match="A has 1 rows that B lacks, such as level_0/00019"):
        bd.compare({"A": table, "B": table.slice(0, 19)})
    with pytest.raises(bd.BenchError, match="B has 2 rows that A lacks, such as level_0/00000"):
        bd.compare({"A": table.slice(2), "B": table})
    with pytest.raises(
        bd.BenchError, match=r"A was scored on rows from a place .* \(20 rows\), B on .* \(19 rows\): A has"
    ):
        bd.compare({"A": table, "B": table.slice(0, 19)})
    hashes = table["row_sha256"].to_pylist()
    with pytest.raises(bd.BenchError, match=r"1 rows of B were scored against other truth.*level_0/00003"):
        bd.compare({"A": table, "B": altered(table, "row_sha256", [*hashes[:3], "f" * 64, *hashes[4:]])})
    with pytest.raises(bd.BenchError, match="B left out 1 rows, such as level_0/00005"):
        bd.compare({"A": table, "B": altered(table, "skipped", [i == 5 for i in range(20)])})
    with pytest.raises(bd.BenchError, match="expected a score table, found the columns a"):
        bd.compare({"A": pa.table({"a": [1]}), "B": table})


@pytest.mark.parametrize("benchmark", ["instancebench", "pvsg"])
def test_other_benchmarks(benchmark: str) -> None:
    from bench_datasets import samples
    from bench_datasets.data import open_truth

    truth = open_truth(benchmark, "sample")
    place = getattr(samples, f"{benchmark}_sample_predictions")
    scores = {name: bd.score(benchmark, truth, bd.read_predictions(benchmark, place(name))) for name in
              ("hasty", "crowd_shy")}  # fmt: skip
    found = bd.compare(scores, draws=100, permutations=100)
    values = {name: bd.summarize(benchmark, table, draws=0).metrics for name, table in scores.items()}
    shared = {item.metric: item for item in found.pairs["hasty", "crowd_shy"] if item.part == ("", "")}
    assert len(shared) > 10
    for key, item in shared.items():
        assert item.a == pytest.approx(values["hasty"][key].value, nan_ok=True), key
        assert item.b == pytest.approx(values["crowd_shy"][key].value, nan_ok=True), key


def test_runs_of_different_units_are_compared_by_the_coarser() -> None:
    """The same rows, scored with and without their images: by image both ways round, and it is said."""
    rng = np.random.default_rng(13)
    a, b = tenths(rng, 40), tenths(rng, 40, 0.7)
    images = [f"image {i // 20}" for i in range(40)]
    by_row, by_image = table_of(a), table_of(a, clusters=images)
    options = {"every": False, "draws": 300, "permutations": 300}
    found = bd.compare({"A": by_row, "B": table_of(b, clusters=images)}, **options)
    both = bd.compare({"A": by_image, "B": table_of(b, clusters=images)}, **options)
    assert (found.unit, found.clusters) == ("image", 2)
    assert found.pairs == both.pairs
    assert found.remarks[0] == ("resampled apart, A by 40 rows, B by 2 images; here all by the coarsest, 2 images")
    assert found.remarks[1] == "only 2 images: so few that intervals mean little"
    assert both.remarks == found.remarks[1:]
    assert all(remark[1:] in str(found) for remark in found.remarks)
    assert bd.compare({"A": by_row, "B": table_of(b)}, **options).remarks == []


def test_why_the_data_cannot_tell() -> None:
    """Interval and test need not agree; the sentence says why."""
    a, b = np.full(12, 0.5), np.array([0.6, 0.7, 0.8, 0.9] + [0.5] * 8)
    found = bd.compare({"A": table_of(a), "B": table_of(b)}, every=False, draws=400, permutations=400)
    item = next(d for d in found.pairs["A", "B"] if d.metric == KEY)
    assert item.ci95 is not None
    assert item.ci95[0] > 0
    assert item.differing == 4
    assert item.p > 0.05
    said = found.statements["A", "B"]
    assert said == ["level_0: too few differing rows (< 6) for a significance test."]
    numbers = (0.5, 0.43, -0.07, (-0.1547, -0.0112), 0.0589, 0.0589, 3, 0, 9, 12, 0.1)
    unsure = Difference(("", ""), "miou", *numbers, higher_is_better=True, differing=12)

    def say(item: Difference) -> str:
        return " ".join(statements("A", "B", [item], "miou", "miou/operation/", "tces", {"miou": "mIoU"}.__getitem__))

    assert say(unsure) == (
        "mIoU: B is 7.00 points lower than A (95 % CI -15.47 to -1.12; paired permutation test p = 0.059). Not"
        " significant at 0.05."
    )
    assert say(replace(unsure, differing=1)).endswith(
        "Too few differing sets for a significance test (only 1 set differs, at least 6 are needed)."
    )
    assert "p = 0.600, Holm-corrected)" in say(replace(unsure, p=0.3, p_holm=0.6))
    assert say(replace(unsure, p=0.01, p_holm=0.01)).endswith("Significant at 0.05.")
    assert say(replace(unsure, p=0.01, p_holm=0.01, higher_is_better=False)).endswith(
        "Significant at 0.05 (B is better: lower is better)."
    )
    assert say(replace(unsure, difference=0.0, ci95=(0.0, 0.0))) == "A and B have the same value in every metric."
    assert say(replace(unsure, difference=math.nan)) == "A and B have the same value in every metric."


def test_statements_of_thresholds_keep_the_whole_key() -> None:
    """A family that ends within a word is part of the name: p@0.7 is not called 0.7."""
    numbers = (0.5, 0.9, 0.4, (0.1, 0.6), 0.01, 0.01, 9, 0, 3, 12, 0.1)
    found = [Difference(("", ""), key, *numbers, higher_is_better=True, differing=12) for key in ("miou", "p@0.7")]
    assert statements("A", "B", found, "miou", "p@")[1].startswith("B is significantly better at p@0.7 (")


@pytest.mark.parametrize("differ", range(2, 9))
def test_how_many_rows_a_swap_test_needs(differ: int) -> None:
    """Every arrangement counted by scipy, over rows that all differ the same way: the best that m rows can give."""
    a, b = np.zeros(differ), np.full(differ, 0.5)
    exact = scipy.stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(y - x, axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=np.inf,
    )  # fmt: skip
    assert (exact.pvalue < 0.05) == (differ >= LEAST)


def test_other_data_is_named(shared: Path) -> None:
    from bench_datasets import samples
    from bench_datasets.data import open_truth

    root = str((shared / "data" / "pbench_mini").resolve())
    mini = bd.score("pbench", open_truth("pbench", root),
                    bd.read_predictions("pbench", shared / "data" / "predictions_a" / "pbench.jsonl"))  # fmt: skip
    place = samples.pbench_sample_predictions("careful")
    sample = bd.score("pbench", open_truth("pbench", "sample"), bd.read_predictions("pbench", place))
    with pytest.raises(bd.BenchError, match="lacks") as found:
        bd.compare({"mine": sample, "theirs": mini})
    assert f"mine was scored on sample (35 rows), theirs on {root} (17 rows)" in str(found.value)


def test_another_benchmark_is_named() -> None:
    from bench_datasets import samples
    from bench_datasets.data import open_truth

    place = samples.pvsg_sample_predictions("careful")
    video = bd.score("pvsg", open_truth("pvsg", "sample"), bd.read_predictions("pvsg", place))
    with pytest.raises(bd.BenchError, match="expected runs of one benchmark; a is PBench, b is PVSG"):
        bd.compare({"a": table_of(np.full(5, 0.5)), "b": video})


@pytest.fixture(scope="module")
def sets() -> dict[str, Dataset]:
    """Score tables of the sample's models: careful ran three times, hasty once, under three conditions."""
    from bench_datasets import samples
    from bench_datasets.data import open_truth

    truth = open_truth("instancebench", "sample")
    return {
        name: bd.score("instancebench", truth, bd.read_predictions("instancebench",
                       samples.instancebench_sample_predictions(name)))
        for name in ("careful", "hasty")
    }  # fmt: skip


def core_ious(scores: Dataset, condition: str = "original", answered: bool = False) -> dict[str, dict[str, float]]:
    """By run and expression, the IoU of the core expressions, from the score rows' pixels."""
    found: dict[str, dict[str, float]] = {}
    for row in scores:
        if row["condition"] != condition:
            continue
        target = row["candidate_areas"][row["target"]]
        for k, name in enumerate(row["expression_ids"]):
            if row["roles"][k] not in ("minimal", "variant") or (answered and not row["answered"][k]):
                continue
            shared = row["intersections"][k][row["target"]]
            found.setdefault(row["run"], {})[name] = shared / (row["areas"][k] + target - shared)
    return found


def headline(found: bd.Comparison, a: str, b: str) -> Difference:
    return next(item for item in found.pairs[a, b] if item.metric == "miou" and item.part == ("", ""))


def test_compare_different_numbers_of_runs_compares_their_means(sets: dict[str, Dataset]) -> None:
    found = bd.compare(sets, draws=500, permutations=4000)
    item = headline(found, "careful", "hasty")
    runs = {name: core_ious(table) for name, table in sets.items()}
    assert {name: len(of) for name, of in runs.items()} == {"careful": 3, "hasty": 1}
    means = {name: [np.mean(list(ious.values())) for ious in of.values()] for name, of in runs.items()}
    assert item.a == pytest.approx(np.mean(means["careful"]), abs=1e-12)
    assert item.b == pytest.approx(np.mean(means["hasty"]), abs=1e-12)
    # Of a mean with the same two expressions in every set, exchanging a set's runs changes the sign of its difference.
    sums = {
        name: {row["key"]: np.mean([sum(run[e] for e in row["expression_ids"] if e in run) for run in of.values()])
               for row in sets[name] if row["condition"] == "original"}
        for name, of in runs.items()
    }  # fmt: skip
    gain = np.array([sums["hasty"][key] - sums["careful"][key] for key in sums["hasty"]])
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (20_000, len(gain)))
    p = np.mean(np.abs(signs @ gain) >= abs(gain.sum()) - 1e-9)
    assert item.p == pytest.approx(p, abs=0.002)
    assert "each number is the mean over a model's runs: careful 3 runs, hasty 1 run" in found.remarks
    assert found.remarks[0] == (
        "conditions left out, as not all runs have them: category_only (only hasty), text_swap (only hasty)"
    )
    assert headline(bd.compare([*sets.values()], names=["hasty", "careful"][::-1], draws=10, permutations=10),
                    "careful", "hasty").b == item.b  # fmt: skip


def test_compare_one_run_takes_that_run(sets: dict[str, Dataset]) -> None:
    item = headline(bd.compare(sets, run="0", draws=50, permutations=50), "careful", "hasty")
    assert item.a == pytest.approx(np.mean(list(core_ious(sets["careful"])["0"].values())), abs=1e-12)
    with pytest.raises(bd.BenchError, match=r"run: expected one of hasty's runs, 0; got '1'"):
        bd.compare(sets, run="1")
    with pytest.raises(bd.BenchError, match=r"condition: expected one of careful's conditions, original; got 'text"):
        bd.compare(sets, condition="text_swap")


def test_compare_a_condition_takes_the_answers_that_both_have(sets: dict[str, Dataset]) -> None:
    """Under a condition, only expressions that both models answered count."""
    hasty = sets["hasty"].with_format("arrow")[:]
    keys = sorted({k for k, c in zip(hasty["key"].to_pylist(), hasty["condition"].to_pylist(), strict=True)
                   if c == "category_only"})  # fmt: skip
    keep = [not (c == "category_only" and k == keys[0]) for k, c in
            zip(hasty["key"].to_pylist(), hasty["condition"].to_pylist(), strict=True)]  # fmt: skip
    less = hasty.filter(pa.array(keep))
    found = bd.compare({"all": hasty, "less": less}, condition="category_only", draws=50, permutations=50)
    item = headline(found, "all", "less")
    own = core_ious(Dataset(less), "category_only", answered=True)["0"]
    assert item.a == item.b == pytest.approx(np.mean(list(own.values())), abs=1e-12)
    assert item.n == len(own)
    assert found.rows == len(keys) - 1
    assert found.remarks[0] == "the answers under the condition category_only"
    whole = bd.compare({"all": hasty, "less": less}, draws=50, permutations=50)
    names = {d.metric for d in whole.pairs["all", "less"]}
    assert {"intervention/category_only/miou", "intervention/text_swap/donor_iou"} <= names


def test_compare_runs_of_other_benchmarks_are_refused() -> None:
    table = table_of(np.full(8, 0.5))
    with pytest.raises(bd.BenchError, match="run: these scores have one prediction per row; leave run out"):
        bd.compare({"A": table, "B": table}, run="0")


def test_compare_too_many_copies_of_runs_asks_for_one_run(sets: dict[str, Dataset]) -> None:
    from bench_datasets.benchmarks.instancebench.shared_runs import shared_rows

    one = sets["hasty"].with_format("arrow")[:]

    def runs(count: int) -> pa.Table:
        parts = [altered(one, "run", [f"{i:02}"] * len(one)) for i in range(count)]
        return pa.concat_tables(parts)

    with pytest.raises(bd.BenchError, match=r"numbers of runs \(a 9, b 7\).*run='0'"):
        shared_rows({"a": runs(9), "b": runs(7)})
