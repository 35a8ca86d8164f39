"""What holds for every benchmark and for the example plug-in: equal score tables, slices, faults, pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import evaluate
import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets import execution
from bench_datasets.benchmark import BENCHMARKS
from bench_datasets.cli import app
from bench_datasets.data import open_truth, register_all
from bench_datasets.hub.cards import metric_card
from bench_datasets.plugins import GROUP
from bench_datasets.results.run_files import write_run
from bench_datasets.scoring.prepare import make_plan

from ..support.sample_runs import BENCHMARKS as BUILT_IN
from ..support.sample_runs import file_of

PLUGIN = "refcoco_toy"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "plugin_refcoco"
ALL = (*BUILT_IN, PLUGIN)


@pytest.fixture(scope="module", autouse=True)
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The example plug-in, as an installer leaves it."""
    site = tmp_path_factory.mktemp("site")
    info = site / "bench_refcoco-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bench_refcoco\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{PLUGIN} = bench_refcoco:BENCHMARK\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLE))
        patch.syspath_prepend(str(site))
        BENCHMARKS.refresh()
        register_all()
        yield
    BENCHMARKS.refresh()


@pytest.fixture
def predictions(benchmark: str, tmp_path: Path) -> str:
    """A file of predictions for the sample; the plug-in's are the ground truth's masks, but for one."""
    if benchmark != PLUGIN:
        return file_of(benchmark)
    rows = [{"key": row["key"], "masks": row["masks"]} for row in open_truth(PLUGIN, "sample")]
    rows[0]["masks"] = rows[1]["masks"]
    file = tmp_path / "predictions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def name_of(answers: Dataset) -> str:
    """The column by which the sample's predictions name their row or expression."""
    names = [name for name in ("key", "expression_id", "id") if name in answers.column_names]
    return next(name for name in names if None not in answers[name][:])


def names_in(truth: Dataset, name: str) -> set[object]:
    """What predictions for these rows of ground truth are named."""
    if name == "expression_id":
        return {expression[name] for row in truth["expressions"] for expression in row}
    return set(truth[name])


def joined(benchmark: str, file: str) -> Dataset:
    """Ground truth and predictions of one run, side by side, in the ground truth's order."""
    truth, answers = open_truth(benchmark, "sample"), bd.read_predictions(benchmark, file)
    name = name_of(answers)
    places = {key: place for place, key in enumerate(answers[name])}
    answers = answers.select([places[key] for key in truth[name]]).flatten_indices()
    for name in answers.column_names:
        if name not in truth.column_names:
            truth = truth.add_column(name, list(answers[name]), feature=answers.features[name])
    return truth


def saved(scores: Dataset, folder: Path, benchmark: str) -> bytes:
    """The bytes of the score table as a run holds it."""
    return write_run(scores, bd.summarize(benchmark, scores, draws=0), folder)[0].read_bytes()


def run(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("benchmark", ALL)
def test_score_table_every_path_gives_same_bytes(benchmark: str, predictions: str, tmp_path: Path) -> None:
    truth, answers = open_truth(benchmark, "sample"), bd.read_predictions(benchmark, predictions)
    expected = saved(bd.score(benchmark, truth, answers), tmp_path / "score", benchmark)
    stream = open_truth(benchmark, "sample", streaming=True)
    found = {
        "file": bd.score(benchmark, truth, predictions),
        "processes": bd.score(benchmark, truth, answers, num_proc=2),
        "stream": execution.score_in_parts(make_plan(benchmark, stream, answers), tmp_path / "stream"),
    }
    for name, scores in found.items():
        assert saved(scores, tmp_path / f"saved {name}", benchmark) == expected, name
    if benchmark != "instancebench":  # several rows of predictions belong to one row of its ground truth
        mapped = bd.map_score(joined(benchmark, predictions), benchmark)  # in the order of its input
        scores = bd.score(benchmark, truth, answers)
        assert sorted(map(repr, mapped)) == sorted(map(repr, scores))
    options = [benchmark, "--data", "sample", "--predictions", predictions]
    run("score", *options, "--out", tmp_path / "command", "--draws", 0)
    for part in (2, 0, 1):
        run("score", *options, "--out", tmp_path / "parts", "--shard", f"{part}/3")
    run("merge", tmp_path / "parts", "--out", tmp_path / "merged", "--draws", 0)
    for name in ("command", "merged"):
        assert (tmp_path / name / "scores.parquet").read_bytes() == expected, name


# Modules of PBench and InstanceBench take other arguments: see the tests of their entry points.
@pytest.mark.parametrize("benchmark", ["pvsg", PLUGIN])
def test_evaluate_sample_gives_metrics_of_score(benchmark: str, predictions: str) -> None:
    rows = joined(benchmark, predictions)
    truth, answers = open_truth(benchmark, "sample"), bd.read_predictions(benchmark, predictions)
    expected = bd.summarize(benchmark, bd.score(benchmark, truth, answers), draws=0).metrics
    names = [name for name in rows.column_names if name.startswith("pred_")]
    module = evaluate.load(PLUGIN if benchmark == PLUGIN else bd.metric_path(benchmark))
    for row in rows:
        module.add(predictions={name: row[name] for name in names}, references={name: row[name] for name in truth[0]})
    found = module.compute()
    for name, metric in expected.items():
        np.testing.assert_equal(found[name], metric.value, err_msg=name)


@pytest.mark.parametrize("benchmark", ALL)
def test_score_halves_of_rows_add_up_to_whole(benchmark: str, predictions: str) -> None:
    truth, answers = open_truth(benchmark, "sample"), bd.read_predictions(benchmark, predictions)
    whole = bd.score(benchmark, truth, answers)
    half = len(truth) // 2
    scored = []
    for chosen in (range(half), range(half, len(truth))):
        rows = truth.select(chosen)
        names = names_in(rows, name_of(answers))
        kept = [place for place, name in enumerate(answers[name_of(answers)]) if name in names]
        scored.append(bd.score(benchmark, rows, answers.select(kept)))
    assert sum(map(len, scored)) == len(whole)
    both = Dataset(pa.concat_tables([part.with_format("arrow")[:] for part in scored]))
    assert sorted(map(repr, both)) == sorted(map(repr, whole))


@pytest.mark.parametrize("benchmark", ALL)
def test_missing_prediction_stops_or_is_skipped_and_counted(benchmark: str, predictions: str) -> None:
    truth, answers = open_truth(benchmark, "sample"), bd.read_predictions(benchmark, predictions)
    fewer = answers.select(range(1, len(answers)))
    with pytest.raises(bd.FaultError, match="missing_prediction") as stopped:
        bd.score(benchmark, truth, fewer)
    assert stopped.value.key is not None
    assert str(stopped.value).startswith(str(stopped.value.key))
    skipped = bd.score(benchmark, truth, fewer, on_fault="skip-and-report")
    result = bd.summarize(benchmark, skipped, draws=0)
    assert result.faults["missing_prediction"]["count"] == 1
    assert sum(skipped["skipped"]) == 1


@pytest.mark.parametrize("benchmark", ALL)
def test_report_leaderboard_and_card_render(benchmark: str, predictions: str, tmp_path: Path) -> None:
    options = ["--data", "sample", "--predictions", predictions]
    run("score", benchmark, *options, "--out", tmp_path / "run", "--draws", 20)
    run("report", tmp_path / "run", *options, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.search(r"<html\b", page)
    assert BENCHMARKS[benchmark].title in page
    headline = bd.summarize(
        benchmark, bd.score(benchmark, open_truth(benchmark, "sample"), predictions), draws=0
    ).headline
    assert headline in run("leaderboard", tmp_path)
    card = metric_card(benchmark, "org/metric")
    assert BENCHMARKS[benchmark].title in card
    assert "{{" not in card
