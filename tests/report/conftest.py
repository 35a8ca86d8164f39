"""Runs to report on: those of the built-in samples, and a benchmark whose every text is hostile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ..support.browser import CHROMIUM, DRIVER, Browser
from ..support.report_runs import HOSTILE, Hostile, Runs


@pytest.fixture(scope="session")
def make_runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Runs]:
    """Runs of a benchmark's sample, made once each."""
    made: dict[tuple[Any, ...], Runs] = {}

    def make(benchmark: str, *models: str, protocol: str | None = None) -> Runs:
        name = (benchmark, *models, protocol)
        if name not in made:
            made[name] = Runs(benchmark, tmp_path_factory.mktemp("runs"), list(models), protocol)
        return made[name]

    return make


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    return Hostile(tmp_path_factory.mktemp("hostile"), HOSTILE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A wide, light window."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium and chromedriver on this machine (apt-get install chromium chromium-driver)")
    with Browser() as opened:
        yield opened
