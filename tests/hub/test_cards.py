"""Cards: metadata that the Hub takes, tables that agree with the data, and no empty section."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import yaml
from datasets import Features
from huggingface_hub import DatasetCard, RepoCard, SpaceCard
from PIL import Image

from bench_datasets.benchmark import BENCHMARKS
from bench_datasets.benchmarks.pbench.publish import LEVEL_MEANINGS
from bench_datasets.data import open_truth
from bench_datasets.hub import cards
from bench_datasets.hub.dataset_form import size_category
from bench_datasets.hub.datasets import Built
from bench_datasets.hub.export import open_source

Build = Callable[[str], Built]
NAMES = ("pbench", "instancebench", "pvsg")


def text_of(built: Built, name: str) -> str:
    content = built.files[name]
    assert isinstance(content, str)
    return content


def sections(text: str) -> dict[str, str]:
    """What stands under each heading, down to the next of its rank or above; code blocks are no headings."""
    blanked = re.sub(r"```.*?```", lambda match: "\n" * match[0].count("\n") + "code", text, flags=re.DOTALL)
    heads = [(match.start(), match.end(), match[1], match[2]) for match in re.finditer(r"^(#+) (.*)$", blanked, re.M)]
    found = {}
    for k, (_, end, rank, title) in enumerate(heads):
        stop = next((start for start, _, other, _ in heads[k + 1 :] if len(other) <= len(rank)), len(blanked))
        found[title] = blanked[end:stop].strip()
    return found


def tables(text: str) -> list[list[list[str]]]:
    """Every Markdown table: its lines, cell by cell."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", text, re.M)
    return [[re.split(r"(?<!\\)\|", line)[1:-1] for line in block.strip().splitlines()] for block in blocks]


def validate(card: RepoCard, kind: str, hub: Any) -> None:
    """Ask the Hub about a card's metadata; libraries before 2.0 know one Hub only, which is not here."""
    if int(huggingface_hub.__version__.split(".")[0]) < 2:
        return
    card.validate(repo_type=kind)
    assert any(one["path"] == "/api/validate-yaml" for one in hub.requests())


@pytest.mark.parametrize("name", NAMES)
def test_dataset_cards(name: str, built: Build, reading: Any) -> None:
    text = text_of(built(name), "README.md")
    card = DatasetCard(text)
    validate(card, "dataset", reading)
    data = card.data.to_dict()
    assert data["license"] == "apache-2.0"
    assert "bench-datasets" in data["tags"]
    assert data["size_categories"] == ["n<1K"]
    configs = {one["config_name"] for one in data["configs"]}
    assert configs == {one["config_name"] for one in data["dataset_info"]} >= {"preview"}
    for info in data["dataset_info"]:
        assert all(split["num_examples"] > 0 for split in info["splits"])
        if "features" in info:
            Features._from_yaml_list(info["features"])
    files = {path for path in built(name).files if path.endswith(".parquet")}
    stems = [pattern for one in data["configs"] for item in one["data_files"] for pattern in _patterns(item["path"])]
    assert all(any(file.startswith(stem.rstrip("*")) for file in files) for stem in stems)
    assert all(any(file.startswith(stem.rstrip("*")) for stem in stems) for file in files)
    for title, body in sections(card.content).items():
        assert body, f"section {title!r} is empty"
    for table in tables(card.content):
        assert len(table) > 2, f"a table without rows: {table[0]}"
        assert len({len(line) for line in table}) == 1, f"ragged: {table[0]}"
    assert "\n\n\n" not in card.content
    assert not re.search(r"\{\{|\{%|None|nan\b", card.content)
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", card.content):
        assert picture in built(name).files


def _patterns(path: str | list[str]) -> list[str]:
    return [path] if isinstance(path, str) else path


@pytest.mark.parametrize("name", NAMES)
def test_tasks(name: str, built: Build) -> None:
    found = yaml.safe_load(text_of(built(name), "eval.yaml"))
    assert set(found) == {"name", "description", "evaluation_framework", "tasks"}
    entry = BENCHMARKS[name]
    assert [task["id"] for task in found["tasks"]] == [f"{p}/{entry.headline[p]}" for p in entry.protocols]
    assert {task["config"] for task in found["tasks"]} == {"videos" if name == "pvsg" else "default"}
    assert {task["split"] for task in found["tasks"]} == {"test"}


def test_level_table(built: Build) -> None:
    (table,) = [t for t in tables(text_of(built("pbench"), "README.md")) if t[0][0].strip() == "level"]
    rows = open_truth("pbench", "sample", images=True).remove_columns("image")
    names = rows.features["level"].names
    for line in table[2:-1]:
        level, asks, n, images, masks, _, most, none, _ = (cell.strip() for cell in line)
        some = [row for row in rows if names[row["level"]] == level]
        assert asks == LEVEL_MEANINGS[level]
        assert (int(n), int(images)) == (len(some), len({row["image_sha256"] for row in some}))
        counts = [len(row["masks"]) for row in some]
        assert (int(masks), int(most), int(none)) == (sum(counts), max(counts), counts.count(0))
    assert [cell.strip() for cell in table[-1]][:5] == ["all", "", "35", "9", "484"]


def test_operation_table(built: Build) -> None:
    text = text_of(built("instancebench"), "README.md")
    (table,) = [t for t in tables(text) if t[0][0].strip() == "operation"]
    rows = open_truth("instancebench", "sample")
    operations = rows.features["expressions"].feature["operation"].names
    counts = Counter(operations[item["operation"]] for row in rows for item in row["expressions"])
    assert {line[0].strip(): int(line[2]) for line in table[2:-1]} == counts


def test_source_table(built: Build) -> None:
    text = text_of(built("pvsg"), "README.md")
    (table,) = [t for t in tables(text) if t[0][1].strip() == "videos"]
    both = [*open_truth("pvsg", "sample", split="train"), *open_truth("pvsg", "sample", split="test")]
    relations = sum(len(row["relations"]) for row in both)
    assert [cell.strip() for cell in table[-1]][:2] == ["all", str(len(both))]
    assert int(table[-1][4]) == relations


def test_other_licences(built: Build) -> None:
    """What the source does not state is said to be so, and is nobody's to give."""
    from dataclasses import replace

    expected = {"pbench": "other", "instancebench": "unknown", "pvsg": "other"}
    for name, licence in expected.items():
        facts = replace(built(name).facts, source="somebody/copy", revision="0123abc", over_images=False)
        card = DatasetCard(cards.dataset_card(facts))
        assert card.data.license == licence
        assert (licence == "other") == ("license_link" in card.data.to_dict())
        assert "built-in sample" not in card.content
        assert "plain ground" in card.content
        assert card.data.to_dict()["source_datasets"] == ["somebody/copy"]
        assert "[somebody/copy](https://huggingface.co/datasets/somebody/copy)" in card.content
    facts = replace(built("pbench").facts, faults={}, tallies=(), revision=None)
    assert "## Faults" not in cards.dataset_card(facts)
    assert "preview.png" not in cards.dataset_card(replace(facts, picture=False))


def test_every_column_is_explained(built: Build) -> None:
    for name in NAMES:
        truth = open_source(name, "sample", with_images=True)
        for config in built(name).facts.configs:
            assert all(meaning.endswith(".") for _, _, meaning in config.columns)
        assert {part.config for part in truth.parts} <= {"default", "expressions", "videos", "frames"}
    assert all(BENCHMARKS[name].dataset_form().complete for name in NAMES)


def test_pictures(built: Build) -> None:
    for name in NAMES:
        content = built(name).files["assets/preview.png"]
        assert isinstance(content, bytes)
        picture = Image.open(io.BytesIO(content))
        picture.load()
        assert picture.width > 600
        assert len(content) < 400_000
        preview = [file for path, file in built(name).files.items() if path.startswith("preview/")]
        assert sum(file.stat().st_size for file in preview if isinstance(file, Path)) < 3_000_000


@pytest.mark.parametrize("name", NAMES)
def test_metric_cards(name: str, reading: Any) -> None:
    card = SpaceCard(cards.metric_card(name, f"acme/{name}"))
    validate(card, "space", reading)
    assert card.data.to_dict()["sdk"] == "static"
    for title, body in sections(card.content).items():
        assert body, f"section {title!r} is empty"
    assert "predictions:" in card.content


def test_sizes() -> None:
    assert [size_category(n) for n in (1, 999, 1000, 9999, 10_000, 999_999, 1_000_000)] == [
        "n<1K", "n<1K", "1K<n<10K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M",
    ]  # fmt: skip
