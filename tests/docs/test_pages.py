"""The documentation is true: its blocks run, its formats are read, its keys and columns are the code's, it builds."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

import bench_datasets as bd
from bench_datasets import samples
from bench_datasets.benchmark import BENCHMARKS, Benchmark, get_benchmark
from bench_datasets.data import open_truth
from bench_datasets.faults import FAULTS

from ..support.loading import load_file
from ..support.markdown_blocks import ROOT, Block, blocks, by_hand, run

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
OURS = [page for page in PAGES if page.name != "scaling.md"]
NAMES = ("pbench", "instancebench", "pvsg")


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def keys_told(benchmark: str) -> set[str]:
    """What stands in the first column of a page's table of metrics."""
    section = text_of(f"benchmarks/{benchmark}.md").split("\n## Metrics\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {code for row in rows for code in re.findall(r"`([^`]+)`", row)}


def keys_made(benchmark: str) -> set[str]:
    """The keys of all protocols, with every kind of answer among the predictions."""
    truth = open_truth(benchmark, "sample")
    predictions = bd.read_predictions(benchmark, getattr(samples, f"{benchmark}_sample_predictions")("hasty"))
    if benchmark == "instancebench":
        more = [{**row, "condition": "deliberation"} for row in predictions if row["condition"] == "original"]
        predictions = Dataset.from_list([*predictions, *more], features=predictions.features)
    return {
        key
        for protocol in BENCHMARKS[benchmark].protocols
        for key in bd.summarize(benchmark, bd.score(benchmark, truth, predictions, protocol), draws=0).metrics
    }


@pytest.mark.parametrize("benchmark", NAMES)
def test_pages_describe_every_result_key(benchmark: str) -> None:
    told, made = keys_told(benchmark), keys_made(benchmark)
    patterns = {key: re.compile(re.sub(r"<[^>]+>", "[^/]+", re.escape(key))) for key in told}
    assert {key for key in made if not any(pattern.fullmatch(key) for pattern in patterns.values())} == set()
    assert {key for key, pattern in patterns.items() if not any(map(pattern.fullmatch, made))} == set()


@pytest.mark.parametrize("benchmark", NAMES)
def test_pages_describe_every_truth_column(benchmark: str) -> None:
    section = text_of(f"benchmarks/{benchmark}.md").split("\n## Data\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    told = {code for row in rows for code in re.findall(r"`([^`{]+)`", row)}
    assert set(open_truth(benchmark, "sample", images=True).features) <= told


@pytest.mark.parametrize("benchmark", NAMES)
def test_every_format_is_shown(benchmark: str) -> None:
    title = {"pbench": "PBench", "instancebench": "InstanceBench", "pvsg": "PVSG"}[benchmark]
    section = text_of("predictions.md").split(f"\n## {title}\n")[1].split("\n## ")[0]
    assert set(get_benchmark(benchmark).prediction_form().readers) <= set(re.findall(r"\*\*`(\w+)`\*\*", section))


@pytest.mark.parametrize("block", [b for b in blocks(DOCS / "predictions.md") if b.language == "json"], ids=str)
def test_formats_are_read(block: Block, tmp_path: Path) -> None:
    file = tmp_path / ("out.json" if block.text.startswith("[") else "out.jsonl")
    file.write_text(block.text, encoding="utf-8")
    found = bd.read_predictions(block.rest, file)
    assert len(found) == block.text.count("\n")
    assert [row["pred_faults"] for row in found] == [[]] * len(found)


def test_the_manifest_is_read(tmp_path: Path) -> None:
    (block,) = [b for b in blocks(DOCS / "benchmarks" / "instancebench.md") if b.language == "json"]
    (tmp_path / "test.jsonl").write_text(json.dumps(json.loads(block.text)), encoding="utf-8")
    (row,) = open_truth("instancebench", str(tmp_path))
    assert row["faults"] == []
    assert [one["text"] for one in row["expressions"]] == ["the left dog", "the dog by the wall"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, but for a model's output for each benchmark."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("BENCH_DATASETS_PBENCH", samples.pbench_sample_dir())
    shutil.copy(samples.pbench_sample_predictions("careful"), "out.jsonl")
    shutil.copy(samples.instancebench_sample_predictions("careful"), "answers.jsonl")
    return place


@pytest.mark.parametrize(
    "page", [p for p in OURS if {"python", "bash"} & {b.language for b in blocks(p)}], ids=lambda page: page.name
)
def test_blocks_run(page: Path, folder: Path) -> None:
    if page.name == "pvsg.md":
        shutil.copytree(samples.pvsg_sample_predictions("careful", "research"), "work")
    run(blocks(page), {}, folder, here=True)
    if page.name == "predictions.md":
        _read_back(folder)


def _read_back(folder: Path) -> None:
    """What the page's blocks wrote is read as what it is meant to be."""
    for benchmark, written, names in (
        ("pbench", "pbench.parquet", [7]),
        ("pbench", "arrays", ["level_0/7"]),
        ("pbench", "pictures", ["level_0/7"]),
        ("instancebench", "instancebench.parquet", ["x-0", "x-1"]),
        ("instancebench", "answers", ["x-0"]),
        ("instancebench", "answer_arrays", ["x-0"]),
        ("pvsg", "work", ["v"]),
        ("pvsg", "clips", ["v"]),
    ):
        found = bd.read_predictions(benchmark, folder / written)
        assert [row.get("expression_id") or row.get("key") or row["id"] for row in found] == names, written
        assert all(row["pred_faults"] == [] for row in found), written
        if benchmark == "pvsg":
            assert [tube["category"] for tube in found[0]["pred_tubes"]] == ["adult", "dog"]
            assert found[0]["pred_triplets"][0]["spans"] == [[0, 1]]


def test_the_result_schema_is_told() -> None:
    table = text_of("results.md").split("| field | meaning |")[1].split("\n\n")[0]
    told = {line.split("|")[1].strip().strip("`") for line in table.splitlines() if line.startswith("| `")}
    truth = open_truth("pbench", "sample")
    predictions = bd.read_predictions("pbench", samples.pbench_sample_predictions("hasty"))
    content = bd.summarize("pbench", bd.score("pbench", truth, predictions), draws=0).to_dict()
    assert told == set(content)
    for name in ("dataset", "settings", "statistics"):
        row = next(line for line in table.splitlines() if line.startswith(f"| `{name}`"))
        assert all(f"`{key}`" in row for key in content[name]), name


def test_every_place_of_faults_is_told() -> None:
    told = re.findall(r"generate: faults (\S+)", text_of("faults.md"))
    assert {place.replace("-", " ") for place in told} == {kind.where for kind in FAULTS.values()}


def test_add_a_benchmark_page_names_every_member() -> None:
    named = set(re.findall(r"`([a-z_]+)(?:\(\w*(?:, \w+)*\))?`", text_of("add-a-benchmark.md")))
    members = {name for name in (*vars(Benchmark), *Benchmark.__annotations__) if not name.startswith("_")}
    assert members <= named


def test_lines_are_short() -> None:
    for page in OURS:
        fenced = False
        for number, line in enumerate(by_hand(page).splitlines(), 1):
            fenced ^= line.startswith("```")
            assert len(line) <= 125 or fenced or line.startswith("|"), f"{page.name}:{number}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_made_is_made_of_the_code_as_it_is(page: Path) -> None:
    hooks = load_file(DOCS / "hooks.py")
    text = page.read_text(encoding="utf-8")
    assert hooks.fill(text) == text, "run: python docs/hooks.py"
    begun = len(re.findall(r"^<!-- (?:generate|include): ", text, re.MULTILINE))
    assert len(re.findall(r"^<!-- end -->$", text, re.MULTILINE)) == begun
    assert by_hand(page).count("\n") == text.count("\n")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors."""
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    pytest.importorskip("material", reason="needs the extra docs")
    target = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def test_the_site_builds(site: Path) -> None:
    for page in PAGES:
        assert (site / page.relative_to(DOCS).with_suffix(".html")).is_file()
    assert not list(site.rglob("*.py"))
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "<!-- generate" not in text, page
        assert "<!-- include" not in text, page
        assert "<!-- end" not in text, page


def test_the_site_asks_no_other_server(site: Path) -> None:
    for page in site.rglob("*.html"):
        found = re.findall(
            r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"', page.read_text(encoding="utf-8")
        )
        assert found == [], page


def test_generated_pages(site: Path) -> None:
    commands = (site / "cli.html").read_text(encoding="utf-8")
    for word in ("bench-datasets score", "--on-fault", "bench-datasets publish results", "bench-datasets doctor"):
        assert word in commands
    faults = (site / "faults.html").read_text(encoding="utf-8")
    assert all(f"<code>{code}</code>" in faults for code in FAULTS)
    api = (site / "api.html").read_text(encoding="utf-8")
    assert {name for name in bd.__all__ if not re.search(rf'id="bench_datasets\.[\w.]+\.{name}"', api)} == set()
    columns: dict[str, Any] = BENCHMARKS["pvsg"].score_columns
    told = (site / "benchmarks" / "pvsg.html").read_text(encoding="utf-8")
    assert all(f"<code>{name}</code>" in told for name in columns)
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert any("Fault" in entry["title"] for entry in index["docs"])
