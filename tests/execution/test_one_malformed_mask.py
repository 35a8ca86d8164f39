"""One malformed mask among many rows: named before anything is scored, or skipped and counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from bench_datasets.cli import app
from bench_datasets.execution import fingerprint
from bench_datasets.scoring.prepare import Plan

ROWS, POISONOUS = 3000, 2345
GOOD = {"size": [2, 3], "counts": "15"}
TRUTH = pa.schema(
    [
        ("id", pa.int64()), ("expression", pa.string()), ("count", pa.int32()),
        ("masks", pa.list_(pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())]))),
    ]
)  # fmt: skip


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(fingerprint, "PART_UNITS", 256)
    (tmp_path / "truth").mkdir()
    write(tmp_path, [[GOOD]] * ROWS, [[GOOD]] * ROWS)
    return tmp_path


def write(folder: Path, truth: list[Any], answers: list[Any]) -> None:
    ids = list(range(len(truth)))
    table = pa.table([ids, [f"thing {i}" for i in ids], [len(row) for row in truth], truth], schema=TRUTH)
    pq.write_table(table, folder / "truth" / "level_0.parquet")
    lines = (json.dumps({"id": i, "masks": masks}) + "\n" for i, masks in enumerate(answers))
    (folder / "predictions.jsonl").write_text("".join(lines))


def score(folder: Path, *more: object) -> Any:
    paths = ["--data", folder / "truth", "--predictions", folder / "predictions.jsonl", "--out", folder / "run"]
    return CliRunner().invoke(app, list(map(str, ["score", "pbench", *paths, "--draws", 0, "--json", *more])))


def spoiled(rows: list[Any]) -> list[Any]:
    return [[{"size": [2, 3], "counts": "~broken"}] if i == POISONOUS else row for i, row in enumerate(rows)]


def test_a_prediction(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(source, [[GOOD]] * ROWS, spoiled([[GOOD]] * ROWS))
    whole = Plan.score
    monkeypatch.setattr(Plan, "score", lambda *args, **more: pytest.fail("rows were scored"))
    done = score(source)
    assert done.exit_code == 1
    assert f"error: level_0/{POISONOUS}: prediction, mask 0: " in done.stderr
    assert "[malformed_mask]" in done.stderr
    monkeypatch.setattr(Plan, "score", whole)
    for more in ([], ["--num-proc", 2]):
        done = score(source, "--on-fault", "skip-and-report", *more)
        assert done.exit_code == 0, done.stderr
        result = json.loads(done.stdout)
        assert result["faults"] == {"malformed_mask": {"count": 1, "examples": [f"level_0/{POISONOUS}"]}}
        assert result["dataset"]["rows"] == {"scored": ROWS - 1, "expected": ROWS}
        assert result["protocol"]["comparable_to"] is None
        assert result["settings"]["on_fault"] == "skip-and-report"


def test_a_mask_of_the_truth_is_met_in_the_first_part(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(source, spoiled([[GOOD]] * ROWS), [[GOOD]] * ROWS)
    whole, scored = Plan.score, []

    def watched(self: Plan, units: list[int], *args: Any, **more: Any) -> Any:
        scored.extend(units)
        return whole(self, units, *args, **more)

    monkeypatch.setattr(Plan, "score", watched)
    done = score(source)
    assert done.exit_code == 1
    assert f"error: level_0/{POISONOUS}: masks (ground truth), mask 0: " in done.stderr
    assert POISONOUS in scored
    assert len(scored) <= 256
    done = score(source, "--on-fault", "skip-and-report")
    assert json.loads(done.stdout)["faults"]["malformed_mask"]["count"] == 1
