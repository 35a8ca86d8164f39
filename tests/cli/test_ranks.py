"""PVSG runs scored up to ranks of one's own, or with an oracle: every command speaks of what was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bench_datasets as bd
from bench_datasets.data import open_truth
from bench_datasets.hub.eval_results import NoPlaceError, place_of
from bench_datasets.results.result import Result
from bench_datasets.results.run_files import write_run
from bench_datasets.samples import pvsg_sample_predictions

FEW = ["--draws", 50, "--permutations", 50, "--headline"]
RUNS: dict[str, dict[str, Any]] = {
    "usual": {},
    "five": {"k": (5,)},
    "card": {"k": (7, 9), "protocol": "card"},
    "tubes": {"k": (7, 9), "oracle": "tubes"},
    "seven": {"k": (7, 9)},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one model on the sample, as `score --out` writes them."""
    place, truth = tmp_path_factory.mktemp("runs"), open_truth("pvsg", "sample")
    answers = bd.read_predictions("pvsg", pvsg_sample_predictions("careful"))
    for name, how in RUNS.items():
        scores = bd.score("pvsg", truth, answers, **{key: how[key] for key in ("protocol", "oracle") if key in how})
        ranks = {"k": how["k"]} if "k" in how else {}
        write_run(scores, bd.summarize("pvsg", scores, draws=20, **ranks), place / name)
    return place


@pytest.mark.parametrize(
    ("name", "key"), [("usual", "R@20/0.5"), ("five", "R@5/0.5"), ("card", "R@7/0.5"), ("tubes", "R@7/0.5")]
)
def test_the_headline_is_at_a_rank_that_was_asked_for(runs: Path, name: str, key: str) -> None:
    result = Result.load(runs / name)
    assert result.headline == key
    assert key in result.metrics
    assert key in str(result)


@pytest.mark.parametrize("name", RUNS)
def test_a_page_of_it(run: Callable[..., Any], runs: Path, tmp_path: Path, name: str) -> None:
    done = run("report", runs / name, "--out", tmp_path / "page.html")
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert str(Result.load(runs / name).headline) in page
    assert ("those of the ground truth" in page) == (name == "tubes")


def test_a_page_of_two(run: Callable[..., Any], runs: Path, tmp_path: Path) -> None:
    assert run("report", runs / "seven", runs / "tubes", "--out", tmp_path / "two.html").exit_code == 0
    page = (tmp_path / "two.html").read_text()
    assert "oracle tubes in tubes" in page
    assert "Stages at overlap 0.5, K = 7" in page
    assert "R@7/0.5 by predicate" in page


def test_leaderboards_keep_ranks_apart(run: Callable[..., Any], runs: Path) -> None:
    groups = json.loads(run("leaderboard", runs, "--json").stdout)["groups"]
    found = {(table["protocol"]["name"], table["headline"], len(table["runs"])) for table in groups}
    assert found == {
        ("official", "R@20/0.5", 1), ("official", "R@5/0.5", 1), ("official", "R@7/0.5", 1), ("card", "R@7/0.5", 1),
    }  # fmt: skip
    assert sum(len(table["runs"]) for table in groups) == len(RUNS)  # the oracle's stands apart


def test_a_comparison_is_at_the_ranks_of_both(run: Callable[..., Any], runs: Path) -> None:
    def metrics(*names: str) -> set[str]:
        done = run("compare", *(runs / name for name in names), *FEW, "--json")
        return {item["metric"] for item in json.loads(done.stdout)["pairs"][0]["differences"]}

    assert metrics("seven", "tubes") == {"R@7/0.5"}
    assert metrics("five", "usual") == {"R@20/0.5"}
    assert metrics("five", "seven") == {"R@5/0.5"}


def test_ranks_of_ones_own_compare_with_nothing(runs: Path) -> None:
    assert "the headline number is R@5/0.5 and not R@20/0.5, because of the chosen K" in str(Result.load(runs / "five"))
    with pytest.raises(NoPlaceError, match=r"R@20/0\.5, and this run's headline number is R@5/0\.5"):
        place_of(Result.load(runs / "five"), "acme/rows")


def test_an_oracle_is_told_of(run: Callable[..., Any], runs: Path) -> None:
    result = Result.load(runs / "tubes")
    assert "oracle tubes" in str(result).splitlines()[0]
    assert "oracle" not in str(Result.load(runs / "seven"))
    done = run("compare", runs / "tubes", runs / "seven", *FEW)
    assert done.exit_code == 0
    assert "tubes was scored with an oracle: its tubes are those of the ground truth" in " ".join(done.stdout.split())
    assert "oracle" not in run("compare", runs / "five", runs / "seven", *FEW).stdout
