"""What several tests need: the real inputs (where they stand beside the project) and an untouched cache."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
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


OLD_ARROW = int(pa.__version__.split(".")[0]) < 26
"""Whether null masks can neither be written as Parquet nor be read back: what Python 3.10 has to live with."""


@pytest.fixture
def null_masks() -> None:
    """For tests that write null masks into Parquet and read them back."""
    if OLD_ARROW:
        pytest.skip(f"Arrow {pa.__version__} cannot read null masks back from Parquet")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Where Arrow itself gives up on null masks, in this process or in one that said so, a test can't go on."""
    outcome = yield
    failed = outcome.excinfo
    if OLD_ARROW and failed is not None and "null components are not supported" in _told(failed[1]):
        outcome.force_exception(pytest.skip.Exception(f"Arrow {pa.__version__} cannot write null masks as Parquet"))


def _told(error: BaseException | None) -> str:
    """An error's message and those of its causes."""
    return "" if error is None else f"{error}\n{_told(error.__cause__ or error.__context__)}"


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
