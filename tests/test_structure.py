"""Structure of the package: layers of imports, public names, docstrings, no benchmark's name in shared code."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import bench_datasets
import bench_datasets.benchmark
from bench_datasets.benchmark import BENCHMARKS
from bench_datasets.faults import FAULTS

ROOT = Path(bench_datasets.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
LAYERS = [
    {"_compat", "_util", "faults", "plugins"},
    {"benchmark"},
    {"masks"},
    {"data", "predictions"},
    {"scoring"},
    {"results"},
    {"display", "hf_evaluate"},
    {"execution"},
    {"report", "hub"},
    {"benchmarks", "samples"},
    {"cli", "__main__"},
]
"""Parts of the package, the lowest first. A module imports its own layer and lower ones when it is imported.

Higher layers are imported inside functions only: by the defaults of `Benchmark`, and where a benchmark is loaded.
"""

OPTIONAL = ("numba",)


def layer_of(part: str) -> int:
    return next(number for number, parts in enumerate(LAYERS) if part in parts)


def imported(file: Path) -> list[str]:
    """Modules of the package that a file imports when it is imported itself."""

    def at_import(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in statements:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                yield node
            elif isinstance(node, ast.Try):
                yield from at_import([*node.body, *node.orelse, *node.finalbody])
            elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
                yield from at_import([*node.body, *node.orelse])

    found = []
    for node in at_import(ast.parse(file.read_text(encoding="utf-8")).body):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: line {node.lineno}: a relative import"
            folder = ROOT.parent.joinpath(*str(node.module).split("."))
            parts = [alias.name for alias in node.names if (folder / f"{alias.name}.py").is_file()]
            parts += [alias.name for alias in node.names if (folder / alias.name).is_dir()]
            names = [f"{node.module}.{name}" for name in parts]
            names += [str(node.module)] if len(parts) < len(node.names) else []
        found += [name for name in names if name.startswith("bench_datasets.")]
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_go_down(file: Path) -> None:
    own = file.relative_to(ROOT).parts[0].removesuffix(".py")
    if own in ("__init__", "_moved"):
        return
    for module in imported(file):
        part = module.split(".")[1]
        if (own, module) == ("benchmark", "bench_datasets.benchmarks"):  # the names of the folders
            continue
        if (ROOT / part).is_dir() or (ROOT / f"{part}.py").is_file():
            assert layer_of(part) <= layer_of(own), f"{own} imports {module}"


def test_imports_have_no_cycle() -> None:
    graph: dict[str, set[str]] = {}
    for file in FILES:
        name = ".".join(("bench_datasets", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        graph[name] = {module for module in imported(file) if module != name}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path[path.index(name) :], name))
        if name not in done:
            for other in sorted(graph.get(name, ())):
                visit(other, (*path, name))
            done.add(name)

    for name in sorted(graph):
        if name != "bench_datasets":
            visit(name, ())


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


def test_public_names_unknown_name_raises() -> None:
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


def texts_with_names(file: Path) -> list[str]:
    """Places of texts other than docstrings that hold a benchmark's name as a word."""
    named = re.compile(rf"\b({'|'.join(bench_datasets.benchmark.BENCHMARKS.own)})\b")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare
        if named.search(node.value)
    ]


@pytest.mark.parametrize("file", SHARED_FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_shared_module_texts_name_no_benchmark(file: Path) -> None:
    assert not texts_with_names(file)


@pytest.mark.parametrize("file", SHARED_FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_shared_module_uses_fault_codes_of_all_benchmarks_only(file: Path) -> None:
    owned = {code for name in bench_datasets.benchmark.BENCHMARKS.own for code in BENCHMARKS[name].faults}
    assert owned < set(FAULTS)
    tree = ast.parse(file.read_text(encoding="utf-8"))
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in owned]
    assert not [f"{file.relative_to(ROOT)}:{node.lineno}: {node.value}" for node in used]


TESTS = Path(__file__).parent


def test_test_modules_import_helpers_from_support_only() -> None:
    """A test module imports no other test module and no conftest: what tests share is in `tests/support`."""
    wrong = []
    for file in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom):
                continue
            names = (node.module or "").split(".") + [alias.name for alias in node.names if not node.module]
            other_test = any(name == "conftest" or name.startswith("test_") for name in names)
            outside = node.level and file.parent.name != "support" and "support" not in names
            if other_test or outside:
                place = f"{file.relative_to(TESTS)}:{node.lineno}"
                wrong.append(f"{place} imports from {'.' * node.level}{'.'.join(names)}")
    assert not wrong


def test_test_folders_mirror_the_package() -> None:
    """Each folder of tests is a folder of the package, or one of the few that test something else."""
    package = {path.name for path in ROOT.iterdir() if path.is_dir()}
    others = {"contract", "docs", "fixtures", "golden", "scripts", "support"}
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert folders - others <= package
    benchmarks = {path.name for path in (ROOT / "benchmarks").iterdir() if path.is_dir()} - {"__pycache__"}
    found = {path.name for path in (TESTS / "benchmarks").iterdir() if path.is_dir()} - {"__pycache__"}
    assert found == benchmarks
