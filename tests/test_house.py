"""How the house is built: imports go down the floors only, public names are there and explained."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import bench_datasets
import bench_datasets.benchmark

ROOT = Path(bench_datasets.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
FLOORS = [
    {"masks"},
    {"data", "predictions", "samples"},
    {"scoring", "results", "display", "hf_evaluate"},
    {"hub", "report", "execution"},
    {"cli", "__main__"},
]
BESIDE = {"_moved", "faults", "benchmark", "benchmarks", "plugins", "_util"}
OPTIONAL = ("numba",)


def floor_of(part: str) -> int | None:
    return next((k for k, names in enumerate(FLOORS) if part in names), None)


def imported(file: Path) -> list[str]:
    """The parts of the package that a file imports, wherever in it."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: line {node.lineno}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found += [name.split(".")[1] for name in names if name.startswith("bench_datasets.")]
    return [part for part in found if (ROOT / part).is_dir() or (ROOT / f"{part}.py").is_file()]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_go_down(file: Path) -> None:
    own = file.relative_to(ROOT).parts[0].removesuffix(".py")
    if own in ("__init__", "benchmark", "benchmarks"):
        return
    if own in BESIDE:
        assert set(imported(file)) <= {"faults", "plugins", "_util"}
        return
    floor = floor_of(own)
    assert floor is not None, f"{own} stands on no floor; give it one"
    for part in imported(file):
        assert part in BESIDE or ((below := floor_of(part)) is not None and below <= floor), f"{own} imports {part}"


def undescribed(node: ast.AST, name: str) -> list[str]:
    """The module, classes, functions and methods in it that are public and have no docstring."""
    found = [] if ast.get_docstring(node) or (isinstance(node, ast.Module) and not node.body) else [name]
    for child in node.body if isinstance(node, (ast.Module, ast.ClassDef)) else ():
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and not child.name.startswith("_"):
            found += undescribed(child, f"{name}: {child.name}")
    return found


def test_every_public_name_is_described() -> None:
    others = [*(ROOT.parent / "scripts").rglob("*.py"), *(ROOT.parent / "examples").rglob("bench_*/*.py")]
    assert [name for file in (*FILES, *others) for name in undescribed(ast.parse(file.read_text()), str(file))] == []


@pytest.mark.parametrize("name", bench_datasets.__all__)
def test_public_names(name: str) -> None:
    value = getattr(bench_datasets, name)
    assert inspect.getdoc(value), f"{name} has no docstring"
    assert name in dir(bench_datasets)
    if inspect.isfunction(value):
        assert "return" in value.__annotations__


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bench_datasets.nothing  # noqa: B018
    assert bench_datasets.__all__ == sorted(bench_datasets.__all__)
    assert set(bench_datasets._HOMES) == set(bench_datasets.__all__)


def modules() -> list[str]:
    names = [info.name for info in pkgutil.walk_packages([str(ROOT)], "bench_datasets.")]
    return ["bench_datasets", *(name for name in names if not name.endswith(".__main__"))]


@pytest.mark.parametrize("name", modules())
def test_examples_run(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in OPTIONAL:
            pytest.skip(f"{error.name} is not installed")
        raise
    assert module.__doc__ or name.endswith("modules"), f"{name} has no docstring"
    failed, _ = doctest.testmod(module)
    assert failed == 0


LIGHT = """
import socket, sys
def refuse(*args, **kwargs):
    raise AssertionError("network")
socket.socket.connect = refuse
socket.create_connection = socket.getaddrinfo = refuse
import datasets
before = set(sys.modules)  # what `datasets` itself imports is not ours to refuse
import bench_datasets
heavy = {"pycocotools", "scipy", "evaluate", "numba", "PIL", "rich", "typer", "torch", "matplotlib"}
print(sorted(heavy & {name.partition(".")[0] for name in set(sys.modules) - before}))
from datasets import get_dataset_config_names
assert "sample" in get_dataset_config_names("pbench")
"""


def test_importing_is_light_and_needs_no_network(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT],
        env={**os.environ, "PYTHONPATH": str(ROOT.parent), "HF_HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[0] == "[]"


SHARED_FILES = [
    file
    for file in FILES
    if file.relative_to(ROOT).parts[0] not in ("benchmarks", "samples") and file.name != "_moved.py"
]


@pytest.mark.parametrize("file", SHARED_FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_shared_module_names_no_benchmark(file: Path) -> None:
    names = set(bench_datasets.benchmark.BENCHMARKS.own)
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        place = f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Constant):
            assert node.value not in names, f"{place}: the name of a benchmark"
        if isinstance(node, ast.ImportFrom):
            assert not str(node.module).startswith("bench_datasets.benchmarks."), f"{place}: imports {node.module}"
        if isinstance(node, (ast.Name, ast.FunctionDef, ast.ClassDef, ast.arg)):
            called = getattr(node, "id", getattr(node, "name", getattr(node, "arg", ""))).lower().strip("_")
            assert called not in names, f"{place}: {called}"
