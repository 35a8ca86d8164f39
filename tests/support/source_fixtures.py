"""Fixtures over `small_sources`, for the tests of `data` and of each benchmark; the builders are registered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bench_datasets.data as builders

from .pvsg_sources import ENV
from .small_sources import CountedFileSystem, table

builders.register_all()


@pytest.fixture(autouse=True)
def no_pvsg_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENV, raising=False)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a source folder: `write({"level_0-00000-of-00001": rows, ...})` gives its root."""

    def write_source(files: dict[str, Any], folder: str = "source", group: int = 2, **kwargs: Any) -> Path:
        root = tmp_path / folder
        (root / "data").mkdir(parents=True, exist_ok=True)
        for name, rows in files.items():
            content = rows if isinstance(rows, pa.Table) else table(rows, **kwargs)
            pq.write_table(content, root / "data" / f"{name}.parquet", row_group_size=group)
        return root

    return write_source


@pytest.fixture
def counted() -> type[CountedFileSystem]:
    """The counting file system, empty; `counted://<path>`."""
    fsspec.register_implementation("counted", CountedFileSystem, clobber=True)
    CountedFileSystem.files.clear()
    CountedFileSystem.reads.clear()
    return CountedFileSystem


@pytest.fixture
def mini(shared: Path) -> str:
    """The real source of 17 rows."""
    return str(shared / "data" / "pbench_mini")


@pytest.fixture
def pvsg_mini(shared: Path) -> Path:
    """The real videos, small."""
    return shared / "data" / "pvsg_mini"
