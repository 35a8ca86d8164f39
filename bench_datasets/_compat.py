"""Every use of names that datasets, fsspec, huggingface_hub, evaluate, scipy and zipfile keep private.

A new version of these libraries may rename them without notice. Each function here uses one such name and has a test of
its own in `tests/test_compat.py`, so that a version that differs fails there, and is worked around here.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import sys
import zipfile
from collections.abc import Callable, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from datasets import Dataset, Features

try:
    from datasets.builder import Key as _Key
except ImportError:  # older versions, whose builders take any key

    class _Key(NamedTuple):  # type: ignore[no-redef]
        original_shard_id: int
        item_or_batch_id: int


Key = _Key
"""A builder's key of a table: the number of its file, and of the batch in that file."""


ARROW = int(pa.__version__.split(".")[0])
"""The first number of the version of `pyarrow`."""

FIXED_SIZE_NULLS = ARROW >= 26
"""Whether null values around fixed-size lists can be written to Parquet and read back.

The package writes `size` of masks as a plain list, which every version reads. Other people's files may hold it as a
fixed-size list.
"""

PARQUET_CHUNKING: dict[str, Any] = {"use_content_defined_chunking": True} if ARROW >= 21 else {}
"""Options of `ParquetWriter` that cut pages by their content, so that the Hub stores equal parts of two files once.

Files written by an older `pyarrow` hold the same rows, but the Hub stores them whole.
"""

EVALUATE_LOADING = "evaluate.loading"
"""Module of `evaluate` that looks for a metric's module by name or path."""


def indices_of(dataset: Dataset) -> Any:
    """The table of the rows that a Dataset chose from its data; `None` where it shows all of them in order.

    Uses `Dataset._indices`.

    Example:
        >>> from datasets import Dataset
        >>> rows = Dataset.from_dict({"id": [1, 2, 3]})
        >>> indices_of(rows) is None, indices_of(rows.select([2, 0])).num_rows
        (True, 2)
    """
    return dataset._indices


def whole_table(dataset: Dataset) -> pa.Table:
    """The Arrow table behind a Dataset, without a copy, before the choice that `indices_of` gives.

    Uses `Dataset.data.table`.

    Example:
        >>> from datasets import Dataset
        >>> whole_table(Dataset.from_dict({"id": [1, 2, 3]}).select([2, 0])).num_rows
        3
    """
    table: pa.Table = dataset.data.table
    return table


def take_rows(data: Any, rows: slice | Sequence[int], indices: Any) -> pa.Table:
    """Rows of a Dataset's data as an Arrow table.

    Uses `datasets.formatting.query_table`.

    Args:
        data: `Dataset.data`, or some of its columns.
        rows: numbers of rows, counted among the chosen ones.
        indices: what `indices_of` returned.

    Example:
        >>> from datasets import Dataset
        >>> rows = Dataset.from_dict({"id": [1, 2, 3]}).select([2, 0])
        >>> take_rows(rows.data, [1], indices_of(rows)).to_pydict()
        {'id': [1]}
    """
    from datasets.formatting import query_table

    found: pa.Table = query_table(data, rows, indices=indices)
    return found


def features_entry(features: Features) -> dict[str, Any]:
    """The entry that `datasets` writes into the metadata of a table's schema for its features.

    Uses `ArrowWriter._build_metadata`.

    Example:
        >>> from datasets import Features, Value
        >>> features_entry(Features({"id": Value("int64")}))
        {'info': {'features': {'id': {'dtype': 'int64', '_type': 'Value'}}}}
    """
    from datasets import DatasetInfo
    from datasets.arrow_writer import ArrowWriter

    found: dict[str, Any] = json.loads(ArrowWriter._build_metadata(DatasetInfo(features=features))["huggingface"])
    return found


def features_for_card(features: Features) -> list[Any]:
    """Features as the list that stands in a dataset card.

    Uses `Features._to_yaml_list`.

    Example:
        >>> from datasets import Features, Value
        >>> features_for_card(Features({"id": Value("int64")}))
        [{'name': 'id', 'dtype': 'int64'}]
    """
    found: list[Any] = features._to_yaml_list()
    return found


def was_committed(operation: Any) -> bool:
    """Whether a `CommitOperationAdd` was part of a commit that the Hub made.

    Uses `CommitOperationAdd._is_committed`.

    Example:
        >>> from huggingface_hub import CommitOperationAdd
        >>> was_committed(CommitOperationAdd("a.txt", b"text"))
        False
    """
    return bool(operation._is_committed)


def path_in(fs: Any, url: str) -> str:
    """The path of a URL in its fsspec file system.

    Uses `AbstractFileSystem._strip_protocol`.

    Example:
        >>> from fsspec.implementations.memory import MemoryFileSystem
        >>> path_in(MemoryFileSystem, "memory://runs/out.jsonl")
        '/runs/out.jsonl'
    """
    return str(fs._strip_protocol(url))


def packaged_modules() -> tuple[dict[str, tuple[str, str]], Any]:
    """The table of builders that `load_dataset` knows by name, and the class of the factory that reads it.

    Uses `datasets.packaged_modules._PACKAGED_DATASETS_MODULES` and `datasets.load.PackagedDatasetModuleFactory`.

    Raises:
        ImportError: the installed `datasets` has no such table or factory.

    Example:
        >>> modules, factory = packaged_modules()
        >>> modules["parquet"][0], callable(factory.get_module)
        ('datasets.packaged_modules.parquet.parquet', True)
    """
    try:
        from datasets.load import PackagedDatasetModuleFactory
        from datasets.packaged_modules import _PACKAGED_DATASETS_MODULES
    except ImportError as error:
        raise ImportError(f"bench_datasets needs datasets>=4,<6: {error}") from error
    return _PACKAGED_DATASETS_MODULES, PackagedDatasetModuleFactory


def rename_in_evaluate(loading: Any, rename: Callable[[str], str]) -> None:
    """Let `evaluate.load` look for another name or path than it was given; a second call changes nothing.

    Wraps `evaluate.loading.evaluation_module_factory`; a version without that function is left as it is.

    Args:
        loading: the module `EVALUATE_LOADING`.
        rename: gives what is looked for, from what `evaluate.load` was given.
    """
    original = getattr(loading, "evaluation_module_factory", None)
    if original is None or hasattr(original, "_bench_datasets"):
        return

    @functools.wraps(original)
    def evaluation_module_factory(path: Any, *args: Any, **kwargs: Any) -> Any:
        return original(rename(path) if isinstance(path, str) else path, *args, **kwargs)

    evaluation_module_factory._bench_datasets = True  # type: ignore[attr-defined]
    loading.evaluation_module_factory = evaluation_module_factory


def zip_directory_size(raw: IO[bytes]) -> int:
    """Bytes of a ZIP archive's list of members, as its end says; 0 for other files.

    Uses `zipfile._EndRecData`, which `ZipFile` reads first itself.

    Example:
        >>> import io
        >>> raw = io.BytesIO()
        >>> with zipfile.ZipFile(raw, "w") as archive:
        ...     archive.writestr("a", b"")
        >>> zip_directory_size(raw)
        47
    """
    end = getattr(zipfile, "_EndRecData")(raw)  # noqa: B009 - not typed
    return int(end[5]) if end else 0


@functools.cache
def linear_sum_assignment() -> Any:
    """SciPy's solver of assignments.

    Uses the compiled module `scipy/optimize/_lsap`, where that is found, because importing the whole of
    `scipy.optimize` takes a quarter of a second.

    Example:
        >>> linear_sum_assignment()([[0.2, 0.9], [0.8, 0.9]], maximize=True)[1]
        array([1, 0])
    """
    scipy = importlib.util.find_spec("scipy")
    if "scipy.optimize" not in sys.modules and scipy is not None and scipy.origin is not None:
        for suffix in EXTENSION_SUFFIXES:
            file = Path(scipy.origin).parent / "optimize" / f"_lsap{suffix}"
            found = importlib.util.spec_from_file_location("scipy.optimize._lsap", file)
            if file.is_file() and found is not None and found.loader is not None:
                with contextlib.suppress(ImportError, AttributeError):
                    module = importlib.util.module_from_spec(found)
                    found.loader.exec_module(module)
                    return module.linear_sum_assignment
    from scipy import optimize

    return optimize.linear_sum_assignment
