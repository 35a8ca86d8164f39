"""The README is true: its blocks run, in order, somewhere else; its tables are the code's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import bench_datasets as bd
from bench_datasets.benchmarks import BENCHMARKS
from bench_datasets.faults import FAULTS
from bench_datasets.samples import pbench_sample_dir

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
NOT_RUN = ("make demo", "pip install")
"""Blocks that fetch packages begin so."""


class Block(NamedTuple):
    """A fenced block: its line in the README, its language and its text."""

    line: int
    language: str
    text: str


def blocks() -> list[Block]:
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    return [Block(TEXT[: m.start()].count("\n") + 2, m[1], m[2]) for m in found]


def section(title: str) -> str:
    return re.split(r"^## ", TEXT.split(f"\n## {title}\n")[1], flags=re.MULTILINE)[0]


def table(title: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def codes(cell: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", cell, flags=re.MULTILINE | re.DOTALL))


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment in which the commands of this very package are found, from any folder."""
    if shutil.which("bash") is None:
        pytest.skip("bash is absent")
    place = tmp_path / "bin"
    place.mkdir()
    for name, arguments in (("bench-datasets", "-m bench_datasets"), ("python", "")):
        file = place / name
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        file.chmod(0o755)
    paths = {
        "PATH": os.pathsep.join([str(place), os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    return {**os.environ, **paths}


def test_blocks_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: dict[str, str]) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    # What would come from the Hub comes from the sample, which has the same layout.
    monkeypatch.setenv("BENCH_DATASETS_PBENCH", pbench_sample_dir())
    names: dict[str, Any] = {"__name__": "readme"}
    ran = 0
    for block in blocks():
        if block.language == "python":
            text = block.text.replace('"tiiuae/PBench"', repr(pbench_sample_dir()))
            exec(compile("\n" * (block.line - 1) + text, "README.md", "exec"), names)
        elif block.language == "bash" and not block.text.startswith(NOT_RUN):
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block.text], env=shell, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"README.md:{block.line}\n{done.stdout}\n{done.stderr}"
        else:
            continue
        ran += 1
    assert ran >= 10
    for made in ("run/scores.parquet", "run/result.json", "row.png"):
        assert (folder / made).is_file(), made
    for written in ("out.parquet", "arrays", "pictures"):
        (row,) = bd.read_predictions("pbench", folder / written)
        assert (row["id"], row["key"])[written != "out.parquet"] in (7, "level_0/7")
        assert row["pred_faults"] == []
        assert row["pred_masks"]
    assert bd.Result.load(folder / "run").metrics["average"].value == bd.summarize("pbench", _sample()).metrics[
        "average"
    ].value  # fmt: skip


def _sample() -> Any:
    from datasets import load_dataset

    from bench_datasets.samples import pbench_sample_predictions

    truth = load_dataset("pbench", "sample", split="test")
    return bd.score("pbench", truth, bd.read_predictions("pbench", pbench_sample_predictions("careful")))


def test_what_is_not_run_fetches_packages() -> None:
    left_out = [b.text for b in blocks() if b.language == "bash" and b.text.startswith(NOT_RUN)]
    assert len(left_out) == 2
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"make (\w+)", TEXT)) <= set(targets)
    extras = re.findall(r"\.\[(\w+)\]", TEXT)
    assert all(re.search(rf"^{name} = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE) for name in extras)


@pytest.mark.parametrize("block", [b for b in blocks() if b.language == "json"], ids=lambda block: f"line {block.line}")
def test_formats_are_read(block: Block, tmp_path: Path) -> None:
    name = "out.json" if block.text.startswith("[") else "out.jsonl"
    (tmp_path / name).write_text(block.text, encoding="utf-8")
    found = bd.read_predictions("pbench", tmp_path / name)
    assert len(found) == block.text.count("\n")
    assert [row["pred_faults"] for row in found] == [[]] * len(found)
    assert found[0]["pred_masks"][0] == {"size": [2, 3], "counts": "15"}


def test_every_format_is_named() -> None:
    from bench_datasets.predictions.pbench import READERS

    assert set(READERS) <= set(codes(section("Predictions")))


def test_protocols() -> None:
    protocols = BENCHMARKS["pbench"].metric_module().PROTOCOLS
    rows = table("Protocols")
    assert [codes(row[0])[0] for row in rows] == list(protocols)
    for row, protocol in zip(rows, protocols.values(), strict=True):
        assert row[3] == (f"the {protocol.comparable_to}" if protocol.comparable_to else "nothing published")
        assert ("left out" in row[2]) == (protocol.without_truth == "left_out")
        assert ("non-maximum" in row[1] or row[1] == "the same") == (protocol.nms is not None)


def test_faults() -> None:
    rows = {codes(row[0])[0]: row for row in table("Faults")}
    assert list(rows) == [code for code, kind in FAULTS.items() if kind.where in ("predictions", "pbench truth")]
    assert {code: row[2] for code, row in rows.items()} == {code: FAULTS[code].default for code in rows}
    for code, row in rows.items():
        assert FAULTS[code].where.split()[-1] in row[1]


def test_metric_keys() -> None:
    named = {code for row in table("Metrics") for code in codes(row[0])}
    made: set[str] = set()
    for protocol in BENCHMARKS["pbench"].protocols:
        from datasets import load_dataset

        truth = load_dataset("pbench", "sample", split="test")
        nothing = bd.read_predictions("pbench", truth.select_columns(["key", "masks"]))
        metrics = bd.summarize("pbench", bd.score("pbench", truth, nothing, protocol), draws=0).metrics
        made |= {key.partition("/")[0] for key in metrics}
    assert named == made


def test_numbers_of_rows() -> None:
    assert f"all {sum(BENCHMARKS['pbench'].source.rows.values()):,} rows" in TEXT


def test_citation_is_the_benchmarks_own() -> None:
    (block,) = [b.text for b in blocks() if b.language == "bibtex"]
    assert block.strip() == BENCHMARKS["pbench"].citation


def test_lines_are_short_and_links_are_few() -> None:
    for number, line in enumerate(TEXT.splitlines(), 1):
        assert len(line) <= 120 or line.startswith(("|", "{", "[")), f"line {number}: {len(line)} characters"
    assert not re.findall(r"!\[", TEXT)
    assert {link.split("/")[2] for link in re.findall(r"https?://[^\s)]+", TEXT)} == {"huggingface.co"}
