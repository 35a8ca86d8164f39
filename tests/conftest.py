"""What several tests need: the real inputs (where they stand beside the project) and an untouched cache."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_EVALUATE_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real inputs; tests that need it are skipped where it is absent."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"real inputs are absent: no folder {SHARED / 'data'}")
    return SHARED


@pytest.fixture(autouse=True)
def one_environment() -> Iterator[None]:
    """`Dataset.map` on several processes leaves a copy of `os.environ` in its place, which rich never sees."""
    environment = os.environ
    yield
    os.environ = environment  # noqa: B003


@pytest.fixture(autouse=True)
def _own_logging() -> None:
    """Undo the log level that a command run in this process, also by a fixture, has set."""
    logging.getLogger("bench_datasets").setLevel(logging.NOTSET)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each session builds into a cache of its own."""
    import datasets.config

    home = tmp_path_factory.mktemp("hf-home")
    cache = home / "datasets"
    os.environ["HF_HOME"], os.environ["HF_DATASETS_CACHE"] = str(home), str(cache)
    datasets.config.HF_CACHE_HOME = str(home)
    datasets.config.HF_DATASETS_CACHE = cache
