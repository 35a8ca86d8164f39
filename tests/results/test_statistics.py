"""Bootstrap intervals: against scipy's, and the same bytes however the draws are cut."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from scipy import stats

from bench_datasets.results import statistics
from bench_datasets.results.statistics import ClusterSums, Estimate, Statistic, estimate, percentile_interval, weights

FIVE = {"rng" if "rng" in inspect.signature(stats.bootstrap).parameters else "random_state": 5}
"""The seed of scipy's draws, by the name that this scipy has for it."""


def quotient(sums: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[..., 0] / sums[..., 1])


def mean_of(values: np.ndarray, rows: np.ndarray | None = None) -> Statistic:
    rows = np.arange(len(values)) if rows is None else rows
    chosen = values[rows]
    return Statistic(rows, np.stack([chosen, np.ones_like(chosen)], axis=1), quotient, len(rows))


def names(n: int) -> list[str]:
    return [f"row {k}" for k in range(n)]


def test_a_mean_against_scipy() -> None:
    generator = np.random.default_rng(0)
    for values in (generator.random(200), generator.integers(0, 9, size=80), generator.exponential(size=40)):
        found = estimate({"mean": mean_of(values)}, names(len(values)), draws=20_000, seed=1)["mean"]
        assert found.value == pytest.approx(values.mean())
        assert found.n == len(values)
        theirs = stats.bootstrap(
            (values,), np.mean, n_resamples=20_000, method="percentile", confidence_level=0.95, **FIVE
        ).confidence_interval
        near = 0.05 * (theirs.high - theirs.low)
        assert found.ci95 == pytest.approx((theirs.low, theirs.high), abs=near)


def test_a_ratio_of_pairs_against_scipy() -> None:
    generator = np.random.default_rng(2)
    bottom = generator.integers(1, 50, size=120)
    top = generator.binomial(bottom, 0.4)
    ratio = Statistic(np.arange(120), np.stack([top, bottom], axis=1), quotient, 120)
    found = estimate({"ratio": ratio}, names(120), draws=20_000)["ratio"]
    theirs = stats.bootstrap(
        (top, bottom), lambda x, y, axis=-1: x.sum(axis=axis) / y.sum(axis=axis), paired=True, n_resamples=20_000,
        method="percentile", **FIVE,
    ).confidence_interval  # fmt: skip
    assert found.value == top.sum() / bottom.sum()
    assert found.ci95 == pytest.approx((theirs.low, theirs.high), abs=0.05 * (theirs.high - theirs.low))


def test_clusters_are_drawn_whole_against_scipy() -> None:
    generator = np.random.default_rng(3)
    size = generator.integers(1, 9, size=60)
    cluster = np.repeat(np.arange(60), size)
    values = np.repeat(generator.random(60), size) + 0.1 * generator.random(len(cluster))
    order = generator.permutation(len(cluster))
    found = estimate({"mean": mean_of(values[order])}, [f"c{k}" for k in cluster[order]], draws=20_000)["mean"]
    totals = np.bincount(cluster, values)
    theirs = stats.bootstrap(
        (totals, size), lambda x, y, axis=-1: x.sum(axis=axis) / y.sum(axis=axis), paired=True, n_resamples=20_000,
        method="percentile", **FIVE,
    ).confidence_interval  # fmt: skip
    assert found.value == pytest.approx(values.mean())
    assert found.ci95 == pytest.approx((theirs.low, theirs.high), abs=0.05 * (theirs.high - theirs.low))
    alone = estimate({"mean": mean_of(values)}, names(len(values)), draws=20_000)["mean"]
    assert found.ci95[1] - found.ci95[0] > 1.3 * (alone.ci95[1] - alone.ci95[0])


def test_statistics_share_their_draws() -> None:
    """So that a difference of two can be taken draw by draw; and each is as it would be alone."""
    generator = np.random.default_rng(4)
    values, others = generator.random(50), generator.random(50)
    some = np.flatnonzero(generator.random(50) < 0.5)
    items = {"all": mean_of(values), "other": mean_of(others), "some": mean_of(values, some), "same": mean_of(values)}
    together = estimate(items, names(50), draws=500, seed=7)
    assert together["all"] == together["same"]
    for name, item in items.items():
        assert estimate({name: item}, names(50), draws=500, seed=7)[name] == together[name]


@pytest.mark.parametrize("clusters", [1, 2, 3, 17, 1000])
def test_chunks_do_not_matter(clusters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.concatenate(list(weights(clusters, 301, 5, chunk=301)))
    assert whole.shape == (301, clusters)
    assert (whole.sum(axis=1) == clusters).all()
    for chunk in (1, 2, 7, 64, 300, None):
        np.testing.assert_array_equal(np.concatenate(list(weights(clusters, 301, 5, chunk=chunk))), whole)
    values = np.random.default_rng(1).random(clusters * 2)
    columns = {"mean": mean_of(values), "counts": mean_of((values * 100).astype(np.int64))}
    owners = [f"c{k % clusters}" for k in range(len(values))]
    expected = estimate(columns, owners, draws=301)
    for size in (1, 8 * clusters * 5, 1 << 20):
        monkeypatch.setattr(statistics, "CHUNK_BYTES", size)
        assert estimate(columns, owners, draws=301) == expected


def test_seeds() -> None:
    values = np.random.default_rng(1).random(40)
    first, again, other = (estimate({"m": mean_of(values)}, names(40), draws=300, seed=s)["m"] for s in (3, 3, 4))
    assert first == again
    assert first.value == other.value
    assert first.ci95 != other.ci95


def test_the_order_of_rows_does_not_matter_to_the_last_bit() -> None:
    generator = np.random.default_rng(6)
    values = generator.random(300) ** 8
    owners = np.array([f"c{k}" for k in generator.integers(0, 90, size=300)])
    order = generator.permutation(300)
    one = estimate({"m": mean_of(values)}, owners.tolist(), draws=400)
    assert estimate({"m": mean_of(values[order])}, owners[order].tolist(), draws=400) == one


def test_values_are_summed_exactly() -> None:
    values = np.array([1e16, 1.0, -1e16] * 3)
    item = Statistic(np.arange(9), values[:, None], lambda sums: sums[..., 0], 9)
    assert estimate({"sum": item}, names(9), draws=0)["sum"] == Estimate(3.0, 9, None)


def test_undefined_and_empty() -> None:
    none = Statistic(np.zeros(0, np.int64), np.zeros((0, 2)), quotient, 0)
    never = Statistic(np.arange(4), np.zeros((4, 2), np.int64), quotient, 4)
    some = Statistic(np.arange(4), np.array([[1, 1], [0, 0], [0, 0], [0, 0]]), quotient, 4)
    found = estimate({"none": none, "never": never, "some": some, "mean": mean_of(np.ones(4))}, names(4), draws=200)
    for name in ("none", "never"):
        assert math.isnan(found[name].value)
        assert (found[name].n, found[name].ci95) == (0, None)
    assert found["some"] == Estimate(1.0, 4, (1.0, 1.0))  # draws that leave it undefined are left out
    assert found["mean"] == Estimate(1.0, 4, (1.0, 1.0))
    assert estimate({}, [], draws=10) == {}
    assert estimate({"none": none}, [], draws=10)["none"].ci95 is None
    assert estimate({"mean": mean_of(np.ones(4))}, names(4), draws=0)["mean"].ci95 is None


def test_intervals_of_draws() -> None:
    generator = np.random.default_rng(8)
    sample = generator.random(1001)
    assert percentile_interval(sample) == tuple(np.percentile(sample, [2.5, 97.5]))
    assert percentile_interval([math.nan, 0.5, math.inf]) == (0.5, 0.5)
    assert percentile_interval([math.nan]) is None
    assert percentile_interval([]) is None


def test_ticker_logs_only_what_takes_long(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing in the first seconds, then a line per interval, none at the end."""
    from bench_datasets.results import statistics

    now = [0.0]
    monkeypatch.setattr(statistics.time, "monotonic", lambda: now[0])
    caplog.set_level("INFO", logger="bench_datasets.results.statistics")
    ticker = statistics.Ticker("bootstrap", 10_000)
    for seconds in (1.0, 5.0, 6.0, 16.0, 30.0):
        now[0] = seconds
        ticker.add(2000)
    assert [record.getMessage() for record in caplog.records] == [
        "bootstrap: 4,000 of 10,000 draws", "bootstrap: 8,000 of 10,000 draws"
    ]  # fmt: skip


@pytest.mark.parametrize("block", [1, 3, 64])
def test_cluster_sums_over_overlapping_slices_equal_dense_products(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "BLOCK_CLUSTERS", block)
    random = np.random.default_rng(block)
    code = random.integers(0, 40, size=200)
    content = random.integers(0, 9, size=(200, 4))
    chosen = [np.flatnonzero(random.random(200) < share) for share in (1.0, 0.5, 0.5, 0.05, 0.0)]
    items = [Statistic(rows, content[rows][:, columns], quotient, len(rows))
             for rows in chosen for columns in ([0, 1], [2, 3], [1, 0])]  # fmt: skip
    sums = ClusterSums(items, [f"{c:03d}" for c in code])
    drawn = random.integers(0, 4, size=(7, sums.clusters)).astype(np.float64)
    placed = np.empty_like(drawn)
    placed[:, sums.place] = drawn
    totals = sums.totals(placed)
    _, compact = np.unique(code, return_inverse=True)
    for number, item in enumerate(items):
        expected = np.array([[(w[compact[item.rows]] * column).sum() for w in drawn] for column in item.columns.T])
        np.testing.assert_array_equal(sums.sums_of(number, totals), expected)
        dense = np.zeros((sums.clusters, 2))
        np.add.at(dense, sums.place[compact[item.rows]], item.columns)
        np.testing.assert_array_equal(sums.by_cluster(number), dense)
    assert sums.width <= 4 * len(chosen)  # equal columns are held once
