"""Every test that asks for `engine` runs once with each engine there is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench_datasets.masks import available_engines, using_engine
from bench_datasets.masks.engine import Engine


@pytest.fixture(params=["pycocotools", "numba"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The engine in use."""
    if request.param not in available_engines():
        pytest.skip(f"{request.param} is not installed")
    with using_engine(request.param) as chosen:
        yield chosen
