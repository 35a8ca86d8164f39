"""The design page names modules that exist and layers as they are tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench_datasets.benchmark import BENCHMARKS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")


def table_cells(heading: str) -> list[str]:
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [line.split("|")[2] for line in section.splitlines() if line.startswith("|")][2:]


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`([\w<>/]+(?:\.py|/))`", " ".join(table_cells("Where to find what")))))
)
def test_design_page_module_exists(path: str) -> None:
    folders = [ROOT / "bench_datasets" / path.replace("<name>", name) for name in BENCHMARKS.own]
    folders += [ROOT / "bench_datasets" / "benchmarks" / name / path for name in BENCHMARKS.own]
    assert any(folder.exists() for folder in folders)


def test_design_page_covers_every_package() -> None:
    named = " ".join(table_cells("Where to find what") + table_cells("Layers"))
    for folder in (ROOT / "bench_datasets").iterdir():
        if (folder / "__init__.py").is_file():
            assert folder.name in named, folder.name


def test_design_page_picture_exists() -> None:
    for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", PAGE):
        assert (ROOT / "docs" / name).is_file()
