"""Mask engines that are installed and do not work: another engine is used, with one warning."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import bench_datasets as bd
from bench_datasets.cli import app
from bench_datasets.faults import BenchWarning
from bench_datasets.masks import MaskError, available_engines, engine, engine_problem, get_engine, using_engine
from bench_datasets.samples import pbench_sample_predictions

CACHES = (engine.engine_problem, engine._warn, engine._load)


@pytest.fixture
def numba_raises(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Exception], list[str]]]:
    """Make importing the numba engine raise; gives the names of the modules that were imported."""
    asked: list[str] = []

    def broken(error: Exception) -> list[str]:
        def load(name: str) -> Any:
            asked.append(name)
            if name.endswith("numba"):
                raise error
            return import_module(name)

        monkeypatch.setattr(engine, "find_spec", lambda name: object())
        monkeypatch.setattr(engine, "import_module", load)
        return asked

    monkeypatch.delenv(engine.ENV, raising=False)
    for function in CACHES:
        function.cache_clear()
    yield broken
    for function in CACHES:
        function.cache_clear()


def test_engine_numba_does_not_import_uses_pycocotools(numba_raises: Callable[..., Any]) -> None:
    numba_raises(ImportError("Numba needs NumPy 2.4 or less"))
    with pytest.warns(BenchWarning, match="Numba needs NumPy 2.4 or less.*using pycocotools") as warned:
        names = [get_engine().name for _ in range(3)]
    assert names == ["pycocotools"] * 3
    assert len(warned) == 1
    assert available_engines() == ("pycocotools",)


def test_engine_numba_without_cache_folder_names_numba_cache_dir(numba_raises: Callable[..., Any]) -> None:
    numba_raises(RuntimeError("cannot cache function '_read': no locator available for file 'kernels.py'"))
    with pytest.warns(BenchWarning, match="set NUMBA_CACHE_DIR to a folder that can be written"):
        assert get_engine().name == "pycocotools"


def test_engine_pycocotools_chosen_never_imports_numba(numba_raises: Callable[..., Any]) -> None:
    asked = numba_raises(ImportError("no"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with using_engine("pycocotools") as chosen:
            assert chosen.name == "pycocotools"
    assert [name for name in asked if "numba" in name] == []


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_engine_numba_chosen_but_broken_is_an_error(
    numba_raises: Callable[..., Any], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numba_raises(ImportError("no library"))
    if how == "variable":
        monkeypatch.setenv(engine.ENV, "numba")
    with pytest.raises(MaskError, match=r"numba does not work here \(ImportError: no library\); use pycocotools"):
        get_engine("numba" if how == "argument" else None)


def test_engine_problem_of_engine_that_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    engine.engine_problem.cache_clear()
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    assert engine_problem("numba") == "numba is not installed"
    engine.engine_problem.cache_clear()


@pytest.mark.parametrize("chosen", [[], ["--engine", "pycocotools"]], ids=["default", "pycocotools"])
def test_score_with_broken_numba_gives_same_numbers(
    numba_raises: Callable[..., Any], chosen: list[str], tmp_path: Path
) -> None:
    predictions = str(pbench_sample_predictions("careful"))
    common = ["score", "pbench", "--data", "sample", "--predictions", predictions, "--draws", "0", "--json"]
    expected = json.loads(CliRunner().invoke(app, common).stdout)["metrics"]
    for function in CACHES:
        function.cache_clear()
    numba_raises(ImportError("no library"))
    done = CliRunner().invoke(app, [*common, *chosen])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["metrics"] == expected
    assert done.stderr.count("no library") == (0 if chosen else 1)


def test_bd_score_engine_applies_to_reading_predictions(numba_raises: Callable[..., Any]) -> None:
    asked = numba_raises(ImportError("no library"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", BenchWarning)
        scores = bd.score("pbench", "sample", pbench_sample_predictions("careful"), engine="pycocotools")
    assert len(scores) == 35
    assert [name for name in asked if "numba" in name] == []
