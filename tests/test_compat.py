"""Names that other libraries keep private do what the package needs, and only one module uses them."""

from __future__ import annotations

import ast
import inspect
import io
import json
import types
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasets import ClassLabel, Dataset, Features, List, Value, concatenate_datasets

import bench_datasets
from bench_datasets import _compat

PACKAGE = Path(bench_datasets.__file__).parent
PRIVATE = {
    "_indices", "_build_metadata", "_is_committed", "_to_yaml_list", "_strip_protocol", "_PACKAGED_DATASETS_MODULES",
    "_EndRecData", "query_table", "PackagedDatasetModuleFactory", "ArrowWriter",
}  # fmt: skip


@pytest.fixture
def shuffled() -> tuple[Dataset, list[int]]:
    """A Dataset of several chunks in another order, and its ids in that order."""
    parts = [Dataset.from_dict({"id": list(range(k, k + 5))}) for k in (0, 5, 10)]
    order = np.random.default_rng(0).permutation(15).tolist()
    return concatenate_datasets(parts).select(order), order


def test_indices_of_chosen_rows_are_their_numbers(shuffled: tuple[Dataset, list[int]]) -> None:
    rows, order = shuffled
    assert _compat.indices_of(rows).column(0).to_pylist() == order
    assert _compat.indices_of(rows.flatten_indices()) is None


def test_whole_table_of_chosen_rows_is_the_data_in_its_own_order(shuffled: tuple[Dataset, list[int]]) -> None:
    table = _compat.whole_table(shuffled[0])
    assert type(table) is pa.Table
    assert table.column("id").to_pylist() == list(range(15))


@pytest.mark.parametrize("rows", [slice(3, 9), [14, 0, 7, 7], slice(0, 0)])
def test_take_rows_counts_among_chosen_rows(shuffled: tuple[Dataset, list[int]], rows: Any) -> None:
    dataset, order = shuffled
    found = _compat.take_rows(dataset.data, rows, _compat.indices_of(dataset))
    assert found.column("id").to_pylist() == np.array(order)[rows].tolist()
    plain = dataset.flatten_indices()
    assert _compat.take_rows(plain.data, rows, None).column("id").to_pylist() == found.column("id").to_pylist()


def test_features_entry_is_what_datasets_reads_back() -> None:
    features = Features({"id": Value("string"), "kind": ClassLabel(names=["a", "b"]), "sizes": List(Value("int32"))})
    metadata = {"huggingface": json.dumps(_compat.features_entry(features))}
    assert Features.from_arrow_schema(features.arrow_schema.with_metadata(metadata)) == features


def test_features_for_card_lists_columns_in_order() -> None:
    features = Features({"id": Value("string"), "kind": ClassLabel(names=["a", "b"])})
    assert _compat.features_for_card(features) == [
        {"name": "id", "dtype": "string"},
        {"name": "kind", "dtype": {"class_label": {"names": {"0": "a", "1": "b"}}}},
    ]


def test_was_committed_reads_what_the_client_sets() -> None:
    from huggingface_hub import CommitOperationAdd, HfApi

    operation = CommitOperationAdd("a.txt", b"text")
    assert not _compat.was_committed(operation)
    assert "._is_committed = True" in inspect.getsource(HfApi.create_commit)
    operation._is_committed = True
    assert _compat.was_committed(operation)


@pytest.mark.parametrize(
    ("protocol", "url", "path"),
    [
        ("file", "file:///data/a.jsonl", "/data/a.jsonl"),
        ("memory", "memory://data/a.jsonl", "/data/a.jsonl"),
        ("file", "/data/a.jsonl", "/data/a.jsonl"),
    ],
)
def test_path_in_file_system_has_no_protocol(protocol: str, url: str, path: str) -> None:
    import fsspec

    assert _compat.path_in(fsspec.filesystem(protocol), url) == path


def test_packaged_modules_are_those_that_load_dataset_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import load_dataset_builder

    modules, factory = _compat.packaged_modules()
    (tmp_path / "a.json").write_text('{"id": 1}\n')
    asked = []
    original = factory.get_module

    def noting(self: Any) -> Any:
        asked.append(self.name)
        return original(self)

    monkeypatch.setattr(factory, "get_module", noting)
    monkeypatch.setitem(modules, "renamed", modules["json"])
    builder = load_dataset_builder("renamed", data_files=str(tmp_path / "a.json"), cache_dir=str(tmp_path / "cache"))
    assert type(builder).__module__ == modules["json"][0]
    assert asked == ["renamed"]


def test_rename_in_evaluate_changes_what_is_looked_for_once() -> None:
    module = types.SimpleNamespace(evaluation_module_factory=lambda path, more=None: (path, more))
    for _ in range(2):
        _compat.rename_in_evaluate(module, lambda path: f"<{path}>")
    assert module.evaluation_module_factory("iou", more=1) == ("<iou>", 1)
    _compat.rename_in_evaluate(types.SimpleNamespace(), str)


def test_rename_in_evaluate_reaches_load(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    import evaluate

    loading = importlib.import_module(_compat.EVALUATE_LOADING)
    asked: list[str] = []

    def stop(path: str, *args: Any, **kwargs: Any) -> Any:
        asked.append(path)
        raise FileNotFoundError(path)

    monkeypatch.setattr(loading, "evaluation_module_factory", stop)
    _compat.rename_in_evaluate(loading, lambda path: f"renamed-{path}")
    with pytest.raises(FileNotFoundError):
        evaluate.load("some-metric")
    assert asked == ["renamed-some-metric"]


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_zip_directory_size_is_that_of_the_members_entries(count: int) -> None:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for k in range(count):
            archive.writestr(f"{k:08d}", b"data")
    assert _compat.zip_directory_size(raw) == count * (46 + 8)  # a fixed part, and the name


def test_zip_directory_size_of_another_file_is_zero() -> None:
    assert _compat.zip_directory_size(io.BytesIO(b"no archive" * 100)) == 0


def test_private_names_of_libraries_are_used_in_compat_only() -> None:
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                names = [node.attr]
            elif isinstance(node, ast.ImportFrom):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                names = [node.value]
            if PRIVATE & set(names):
                found.add(file.relative_to(PACKAGE).as_posix())
    assert found == {"_compat.py"}


def test_linear_sum_assignment_alone_equals_scipy_optimize() -> None:
    from scipy import optimize

    random = np.random.default_rng(3)
    for n, m in ((1, 1), (3, 5), (6, 2), (8, 8), (0, 4)):
        table = np.round(random.random((n, m)), 1)  # with ties
        for found, expected in zip(
            _compat.linear_sum_assignment()(table, maximize=True),
            optimize.linear_sum_assignment(table, True),
            strict=True,
        ):
            np.testing.assert_array_equal(found, expected)


def test_linear_sum_assignment_without_its_module_is_scipy_optimize(monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy import optimize

    _compat.linear_sum_assignment.cache_clear()
    monkeypatch.setattr(_compat, "EXTENSION_SUFFIXES", [".absent"])
    assert _compat.linear_sum_assignment() is optimize.linear_sum_assignment
    _compat.linear_sum_assignment.cache_clear()
