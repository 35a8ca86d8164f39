"""Ray on this machine, two workers: the same bytes, and faults as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets.cli import app
from bench_datasets.execution.ray import score_on_ray
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.results.result import Result
from bench_datasets.scoring.provenance import provenance_of

from ..support.sample_runs import answers_of, files, truth_of

ray = pytest.importorskip("ray", reason="Ray is not installed: bench-datasets[ray]")


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False, logging_level="warning")
    yield
    ray.shutdown()


def write(folder: Path, benchmark: str, answers: Dataset | None = None) -> tuple[str, str]:
    """Truth in two files, predictions in one, as Parquet."""
    truth, half = truth_of(benchmark), len(truth_of(benchmark)) // 2
    (folder / "truth").mkdir(parents=True)
    truth.select(range(half)).to_parquet(str(folder / "truth" / "a.parquet"))
    truth.select(range(half, len(truth))).to_parquet(str(folder / "truth" / "b.parquet"))
    (answers or answers_of(benchmark)).to_parquet(str(folder / "predictions.parquet"), batch_size=8)
    return str(folder / "truth"), str(folder / "predictions.parquet")


@pytest.mark.parametrize("benchmark", ["pbench", "pvsg", "instancebench"])
def test_the_same_bytes(benchmark: str, tmp_path: Path) -> None:
    plain = bd.score(benchmark, truth_of(benchmark), answers_of(benchmark))
    origin: dict[str, Any] = (provenance_of(plain) or {})["dataset"]
    scores = score_on_ray(benchmark, *write(tmp_path, benchmark), str(tmp_path / "run"), dataset=origin)
    assert files(scores, tmp_path / "a", benchmark) == files(plain, tmp_path / "b", benchmark)
    assert (tmp_path / "run" / "scores.parquet").read_bytes() == (tmp_path / "b" / "scores.parquet").read_bytes()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["scores.parquet"]


def test_on_the_command_line(tmp_path: Path) -> None:
    truth, predictions = write(tmp_path, "pbench")
    words = ["score", "pbench", "--ray", "--data", truth, "--predictions", predictions, "--draws", "20"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "run"), "--json"])
    assert done.exit_code == 0, done.output
    plain = bd.summarize("pbench", bd.score("pbench", truth_of("pbench"), answers_of("pbench")), draws=20)
    found = Result.load(tmp_path / "run")
    assert found.metrics == plain.metrics
    assert found.dataset["content_sha256"] == plain.dataset["content_sha256"]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["result.json", "scores.parquet"]
    again = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "run"), "--protocol", "card"])
    assert "of another protocol is overwritten" in again.stderr
    assert Result.load(tmp_path / "run").protocol["name"] == "card"


def test_what_is_in_the_folder_stays(tmp_path: Path) -> None:
    place = tmp_path / "run"
    place.mkdir()
    (place / "scores.parquet").write_bytes(b"an earlier run's")
    scores = score_on_ray("pbench", *write(tmp_path, "pbench"), str(place), write=False)
    assert len(scores) == len(truth_of("pbench"))
    assert [path.name for path in place.iterdir()] == ["scores.parquet"]
    assert (place / "scores.parquet").read_bytes() == b"an earlier run's"


def test_predictions_in_another_order(tmp_path: Path) -> None:
    answers = answers_of("pbench")
    backwards = answers.select(range(len(answers) - 1, -1, -1))
    scores = score_on_ray("pbench", *write(tmp_path, "pbench", backwards), str(tmp_path / "run"))
    assert scores[:] == bd.score("pbench", truth_of("pbench"), answers)[:]


def test_a_fault_is_named_and_skipping_counts_it(tmp_path: Path) -> None:
    def spoil(row: dict[str, Any], index: int) -> dict[str, Any]:
        bad = {"size": [10, 10], "counts": "~~~~"}
        return {**row, "pred_masks": [bad], "pred_scores": None} if index == 17 else row

    answers = answers_of("pbench").remove_columns("pred_faults").map(spoil, with_indices=True)
    urls = write(tmp_path, "pbench", answers)
    with pytest.raises(FaultError, match=r"mask 0.*\[malformed_mask\]") as caught:
        score_on_ray("pbench", *urls, str(tmp_path / "run"))
    scores = score_on_ray("pbench", *urls, str(tmp_path / "run"), on_fault="skip-and-report")
    result = bd.summarize("pbench", scores, draws=0)
    assert result.faults["malformed_mask"] == {"count": 1, "examples": [caught.value.key]}
    assert result.comparable_to is None
    plain = bd.score("pbench", truth_of("pbench"), bd.read_predictions("pbench", urls[1]), on_fault="skip-and-report")
    assert scores[:] == plain[:]


def test_what_is_no_truth(tmp_path: Path) -> None:
    truth, predictions = write(tmp_path, "pbench")
    with pytest.raises(BenchError, match="expected truth rows with a column key"):
        score_on_ray("pbench", file_without_key(tmp_path), predictions, str(tmp_path / "run"))
    with pytest.raises(BenchError, match="expected Parquet files, found none"):
        score_on_ray("pbench", str(tmp_path / "absent"), predictions, str(tmp_path / "run"))
    with pytest.raises(BenchError, match="expected a column pred_masks"):
        score_on_ray("pbench", truth, file_without_key(tmp_path), str(tmp_path / "run"))


def file_without_key(folder: Path) -> str:
    path = str(folder / "other.parquet")
    Dataset.from_dict({"id": [1, 2]}).to_parquet(path)
    return path
