"""The sample, drawn once for these tests into a folder of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets.config
import pyarrow.parquet as pq
import pytest

from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.samples import pbench_sample_dir


@pytest.fixture(scope="session")
def sample_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The cache that the sample is drawn into."""
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.mktemp("hf-home")
        patch.setattr(datasets.config, "HF_CACHE_HOME", str(cache))
        yield cache


@pytest.fixture(scope="session")
def sample(sample_cache: Path) -> Path:
    """The sample's folder."""
    return Path(pbench_sample_dir())


@pytest.fixture(scope="session")
def rows(sample: Path) -> list[dict[str, Any]]:
    """All rows as read from the files, with their level."""
    return [
        {"level": level, **row}
        for level in PBENCH_LEVELS
        for row in pq.read_table(sample / f"data/{level}-00000-of-00001.parquet").to_pylist()
    ]
