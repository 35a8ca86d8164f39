"""Result files of every schema version so far: they stay loadable, and say what they said."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import pytest

from bench_datasets.benchmark import BENCHMARKS
from bench_datasets.results.result import SCHEMA_VERSION, Result

FOLDER = Path(__file__).parents[1] / "fixtures" / "results"
FILES = sorted(FOLDER.glob("*.json"))
CONTENT = "57bcc1f7c78a9f12f742de02f34a96ffa5715a1f1d133eee828dd33d02632e3e"
"""SHA-256 over the files, which are written once. A new schema version or protocol adds files and changes this line."""


def test_the_files_are_those_that_were_written() -> None:
    digest = hashlib.sha256()
    for file in FILES:
        digest.update(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    assert digest.hexdigest() == CONTENT


def test_every_version_benchmark_and_protocol_is_there() -> None:
    names = {file.stem for file in FILES}
    assert {f"v1-{entry.name}-{protocol}" for entry in BENCHMARKS.values() for protocol in entry.protocols} <= names
    assert {json.loads(file.read_text())["schema_version"] for file in FILES} == set(range(1, SCHEMA_VERSION + 1))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_loads_and_says_the_same(file: Path, tmp_path: Path) -> None:
    content, result = json.loads(file.read_text()), Result.load(file)
    assert (result.benchmark, result.schema_version) == (content["benchmark"], content["schema_version"])
    assert result.protocol == content["protocol"]
    assert result.comparable_to == content["protocol"]["comparable_to"]
    assert set(result.metrics) == set(content["metrics"])
    for key, entry in content["metrics"].items():
        value = result.metrics[key].value
        assert math.isnan(value) if entry["value"] is None else value == entry["value"], key
        assert (result.metrics[key].n, result.metrics[key].higher_is_better) == (entry["n"], entry["higher_is_better"])
    for part, entry in zip(result.slices, content["slices"], strict=True):
        assert (part.by, part.value, set(part.metrics)) == (entry["by"], entry["value"], set(entry["metrics"]))
    assert result.faults == content["faults"]
    assert json.loads(Result.load(result.save(tmp_path / "again.json")).to_json()) == json.loads(result.to_json())
    for name, field in content.items():
        if name not in ("metrics", "slices"):
            assert result.to_dict()[name] == field, name


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_can_be_shown(file: Path) -> None:
    result = Result.load(file)
    assert result.protocol["name"] in str(result)
    assert "<table" in result._repr_html_()
