"""Files that are read without validation: one with an invalid mask is scored as if it had been read with it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets.benchmark import get_benchmark
from bench_datasets.cli import app
from bench_datasets.data import open_truth
from bench_datasets.faults import BenchError
from bench_datasets.scoring import prepare

BENCHMARKS = ("pbench", "instancebench", "pvsg")
ON_FAULT = ("stop", "skip-and-report", "count-as-wrong")


def masks_of(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The masks of a line of any benchmark."""
    if line.get("mask"):
        yield line["mask"]
    yield from line.get("masks", ())
    for tube in line.get("tubes", ()):
        yield from tube["masks"]


def broken(benchmark: str, folder: Path, places: tuple[int, ...]) -> Path:
    """The sample's predictions with invalid masks: of the masks, counted through the file, those at `places`."""
    source = Path(str(get_benchmark(benchmark).sample_predictions("careful")))
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    masks = [mask for line in lines for mask in masks_of(line)]
    for k, place in enumerate(places):
        masks[place % len(masks)]["counts"] = ("0", "", "~", masks[0]["counts"][:-1] + "1")[k % 4]
    path = folder / "p.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def outcome(benchmark: str, predictions: Any, **options: Any) -> Any:
    """The bytes of the score table with its provenance, or the text of the error."""
    try:
        scores = bd.score(benchmark, open_truth(benchmark, "sample"), predictions, **options)
    except BenchError as error:
        return str(error)
    sink = io.BytesIO()
    pq.write_table(scores.data.table, sink)
    return sink.getvalue()


@pytest.mark.parametrize("on_fault", ON_FAULT)
@pytest.mark.parametrize("places", [(), (3,), (40, 7, 21, 12)])
@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_score_of_file_equals_score_of_validated_rows(
    benchmark: str, places: tuple[int, ...], on_fault: str, tmp_path: Path
) -> None:
    path = broken(benchmark, tmp_path, places)
    validated = bd.read_predictions(benchmark, path)
    assert outcome(benchmark, path, on_fault=on_fault) == outcome(benchmark, validated, on_fault=on_fault)
    noted = [fault["code"] for row in validated["pred_faults"] for fault in row]
    assert ("malformed_mask" in noted) == bool(places)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_score_command_equals_that_of_validated_rows(
    benchmark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = broken(benchmark, tmp_path, (3, 9))
    for on_fault in ON_FAULT:
        found = []
        for again in (False, True):
            out = tmp_path / f"{on_fault}-{again}"
            words = ["score", benchmark, "--data", "sample", "--predictions", str(path), "--out", str(out)]
            with monkeypatch.context() as patch:
                if again:
                    import bench_datasets.predictions.read as read

                    patch.setattr(read, "read_for_scoring", read.read_predictions)
                result = CliRunner().invoke(app, [*words, "--draws", "0", "--on-fault", on_fault])
            text = result.output.replace(str(out), "OUT")
            file = out / "scores.parquet"
            found.append((result.exit_code, text, file.read_bytes() if file.is_file() else None))
        assert found[0] == found[1]
        assert found[0][0] == (1 if on_fault == "stop" else 0), found[0][1]


def test_plan_reads_file_again_only_for_invalid_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    for name in ("read_for_scoring", "read_predictions"):
        real = getattr(prepare, name)
        monkeypatch.setattr(prepare, name, lambda *args, name=name, real=real: reads.append(name) or real(*args))
    truth = open_truth("instancebench", "sample")
    for places, expected in (((), ["read_for_scoring"]), ((3,), ["read_for_scoring", "read_predictions"])):
        reads.clear()
        prepare.make_plan("instancebench", truth, broken("instancebench", tmp_path, places), on_fault="skip-and-report")
        assert reads == expected
