"""While all work is small, pycocotools measures masks, and numba is not loaded."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from bench_datasets.masks import MaskColumn, available_engines, group_intersections, using_engine
from bench_datasets.masks import engine as engines
from bench_datasets.masks.engine import engine_for, get_engine

needs_numba = pytest.mark.skipif(
    "numba" not in available_engines(), reason="numba is not installed: pip install .[fast]"
)


@pytest.fixture
def unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has measured nothing and has not loaded numba."""
    monkeypatch.delenv(engines.ENV, raising=False)
    monkeypatch.setattr(engines._Work, "done", 0)
    monkeypatch.setitem(engines._MODULES, "numba", "a module that nobody imports")
    monkeypatch.setattr(engines, "get_engine", lambda: "the fastest")


def column(count: int) -> MaskColumn:
    return MaskColumn.from_values([{"size": [16, 16], "counts": "80" * 64 + "00"}] * count)


@pytest.mark.usefixtures("unused")
def test_engine_is_pycocotools_until_the_bytes_of_all_operations_reach_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    masks = column(10)
    size = len(masks.data)
    monkeypatch.setattr(engines, "SMALL_WORK", 3 * size)
    assert [getattr(engine_for(masks), "name", "the fastest") for _ in range(4)] == [
        "pycocotools", "pycocotools", "the fastest", "the fastest",
    ]  # fmt: skip


@pytest.mark.usefixtures("unused")
@pytest.mark.parametrize("how", ["variable", "block"])
def test_engine_that_is_named_is_used_for_small_work_too(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "variable":
        monkeypatch.setenv(engines.ENV, "numba")
        assert engine_for() == "the fastest"
    else:
        with using_engine("pycocotools"):
            monkeypatch.setattr(engines, "get_engine", lambda: "the named one")
            assert engine_for() == "the named one"


@needs_numba
def test_masks_decoded_by_one_engine_are_measured_by_the_other() -> None:
    rng = np.random.default_rng(5)
    dense = rng.random((6, 9, 11)) < 0.4
    masks = MaskColumn.from_dense(dense)
    expected = np.einsum("ahw,bhw->ab", dense.astype(int), dense.astype(int)).ravel()
    for first, second in (("pycocotools", "numba"), ("numba", "pycocotools")):
        again = MaskColumn.from_dense(dense)
        with using_engine(first):
            again.validate()
        with using_engine(second):
            found = group_intersections(again, [0, 6], masks, [0, 6])
        assert found.tolist() == expected.tolist()


@needs_numba
def test_small_work_does_not_import_numba() -> None:
    code = (
        "import sys, numpy as np; from bench_datasets.masks import MaskColumn;"
        "print(MaskColumn.from_dense(np.ones((1, 4, 4), bool)).areas().tolist());"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[16]", "False"]
    assert get_engine().name == available_engines()[0]
