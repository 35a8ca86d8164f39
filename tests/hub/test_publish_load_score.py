"""The whole circle, for every benchmark: rows out to the Hub, loaded by anybody, scored, and the results back on it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import get_dataset_config_names, load_dataset
from huggingface_hub import parse_eval_result_entries
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.cli import app
from bench_datasets.data import open_truth
from bench_datasets.data.published_copy import ORIGIN
from bench_datasets.hub.commits import commit
from bench_datasets.hub.datasets import Built
from bench_datasets.results.result import Result

from ..support.plain_process import PLAIN, areas_of, plainly

Build = Callable[[str], Built]

MODEL, REPO = "acme/net", "acme/results"
BENCHMARKS = {
    "pbench": ("default", ("test",), "released/average"),
    "instancebench": ("default", ("test",), "default/miou"),
    "pvsg": ("videos", ("train", "test"), "official/R@20/0.5"),
}
"""Main config, splits and task of each published sample."""

COUNTED: dict[str, tuple[str, Callable[[dict[str, Any]], int]]] = {
    "pbench": ("of", lambda row: bool(row["masks"])),
    "instancebench": ("expressions in", lambda row: sum(one["role"] in (0, 1) for one in row["expressions"])),
    "pvsg": ("relations in", lambda row: len(row["relations"])),
}
"""What each sample's headline number counts: the words between its n and the rows, and how many of it a row has."""

each = pytest.mark.parametrize("benchmark", BENCHMARKS)


def predictions(benchmark: str) -> str:
    return str(getattr(samples, f"{benchmark}_sample_predictions")("careful"))


def command(*args: object) -> str:
    """What a command prints; it must do its work."""
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == 0, done.output
    return done.stdout


def numbers(result: Result) -> dict[str, str]:
    return {key: repr(metric) for key, metric in result.metrics.items()}


@pytest.fixture
def sent(reading: Any, built: Build) -> Callable[[str], str]:
    """Publishes a benchmark's sample and gives its commit."""

    def send(benchmark: str) -> str:
        done: Any = commit(f"acme/{benchmark}", "dataset", built(benchmark).files, "Sample", create=True, beside=True)
        return str(done.sha)

    return send


@each
def test_loads_without_the_package(benchmark: str, reading: Any, sent: Callable[[str], str]) -> None:
    config, splits, _ = BENCHMARKS[benchmark]
    sent(benchmark)
    plain = json.loads(plainly(reading, PLAIN, f"acme/{benchmark}", *splits))
    for split in splits:
        truth = open_truth(benchmark, "sample", split=split)
        assert plain[split]["areas"] == [areas_of(row) for row in truth]
        assert set(plain[split]["columns"]) >= {*truth.column_names, *ORIGIN}
        assert ("image_sha256" in plain[split]["columns"]) == (benchmark != "pvsg")
        assert "image" not in plain[split]["columns"], "no pixels unless they are asked for"
    # The rows are the builder's own, column by column.
    copy = load_dataset(f"acme/{benchmark}", split="test")
    truth = open_truth(benchmark, "sample", images=benchmark != "pvsg").remove_columns(
        ["image"] if benchmark != "pvsg" else []
    )
    assert copy.select_columns(truth.column_names).to_list() == truth.to_list()
    assert {name: copy.features[name] for name in truth.column_names} == dict(truth.features)
    assert load_dataset(f"acme/{benchmark}", config, split="test").num_rows == len(copy)


@each
def test_the_copy_is_truth(benchmark: str, sent: Callable[[str], str], built: Build) -> None:
    """Its rows score as the source's own through either door, streaming or not, under one content hash."""
    sha = sent(benchmark)
    answers = bd.read_predictions(benchmark, predictions(benchmark))
    own = bd.summarize(benchmark, bd.score(benchmark, open_truth(benchmark, "sample"), answers), draws=0)
    assert own.dataset["content_sha256"] == built(benchmark).facts.hashes["test"]
    for streaming in (False, True):
        doors = {
            "plain": load_dataset(f"acme/{benchmark}", split="test", streaming=streaming),
            "builder": open_truth(benchmark, f"hf://datasets/acme/{benchmark}", streaming=streaming),
        }
        for door, truth in doors.items():
            copy = bd.summarize(benchmark, bd.score(benchmark, truth, answers), draws=0)
            assert numbers(copy) == numbers(own), door
            assert copy.dataset["content_sha256"] == own.dataset["content_sha256"]
            assert copy.dataset["rows"] == own.dataset["rows"]
            named = (copy.dataset["source"], copy.dataset["revision"])
            origin = ("sample", f"bench_datasets {bd.__version__}")
            assert named == (origin if door == "plain" else (f"acme/{benchmark}", sha))


@each
def test_publish_then_load_then_score_gives_same_results(
    benchmark: str, reading: Any, sent: Callable[[str], str], tmp_path: Path
) -> None:
    hub, sample, out = reading, f"acme/{benchmark}", tmp_path / "run"
    task = BENCHMARKS[benchmark][2]
    sha = sent(benchmark)
    hub.api().create_repo(MODEL)
    given = ["--data", f"hf://datasets/{sample}", "--predictions", predictions(benchmark), "--out", out]
    command("score", benchmark, *given, "--draws", 20)
    result = Result.load(out)
    assert result.dataset["source"] == sample
    assert not result.partial
    publish = ["publish", "results", out, "--model", MODEL, "--repo", REPO]
    assert f"pull request: {hub.endpoint}/{MODEL}/discussions/1" in command(*publish)
    hub.api().merge_pull_request(MODEL, 1)
    text = hub.read(MODEL, f".eval_results/{benchmark}.yaml", kind="model")
    (entry,) = parse_eval_result_entries(yaml.safe_load(text))
    headline = result.metrics[str(result.headline)]
    assert (entry.dataset_id, entry.task_id, entry.dataset_revision) == (sample, task, sha)
    assert task in hub.read(sample, "eval.yaml").decode()
    assert entry.value == pytest.approx(100 * headline.value, abs=1e-4)
    assert entry.date == result.created
    rows = result.dataset["rows"]["scored"]
    assert f"protocol {result.protocol['name']} (version {result.protocol['version']})" in entry.notes
    words, count = COUNTED[benchmark]
    assert f"; {result.headline}, n = {headline.n} {words} {rows} rows; " in entry.notes
    assert headline.n == sum(map(count, open_truth(benchmark, "sample")))
    path = re.fullmatch(f"{hub.endpoint}/datasets/{REPO}/tree/main/(.*)", entry.source_url)[1]
    assert Result.loads(hub.read(REPO, f"{path}/result.json")).metrics == result.metrics
    (board,) = json.loads(command("leaderboard", REPO, "--json"))["groups"]
    (found,) = board["runs"]
    run = f"{benchmark}-{result.protocol['name']}"
    assert (found["model"], found["run"], found["value"]) == (MODEL, run, headline.value)
    # A second time there is nothing new.
    assert command(*publish).count("nothing new") == 2
    assert hub.commits(REPO) == [f"Add {MODEL}, run {run}", "initial commit"]
    # The scores are a config of a dataset that anybody loads, and sum up to the same numbers.
    config = f"acme--net--{run}"
    assert get_dataset_config_names(REPO) == [config]
    again = bd.summarize(benchmark, load_dataset(REPO, config, split="test"), draws=0)
    assert again.metrics[str(result.headline)].value == headline.value
