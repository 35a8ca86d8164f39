"""The one place that reaches into `datasets`: our builders' names among those that `load_dataset` knows.

`datasets` keeps a table of packaged modules; an entry there makes `load_dataset(name)` use a builder of ours, with
configs, splits, cache, workers and streaming. Left at that, a call would glob the working directory, or stat everything
below `data_dir`, in search of data files. So `PackagedDatasetModuleFactory.get_module` is wrapped, for our names only:
it looks for nothing and hands the caller's wishes to the builder. Both names are private to `datasets`;
the supported range is `>=4,<6`, and `tests/data/test_registry.py` fails where they change.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
import threading
from typing import Any

from bench_datasets._compat import packaged_modules
from bench_datasets.benchmark import BENCHMARKS, get_benchmark
from bench_datasets.faults import BenchError

_LOCK = threading.RLock()
_LATER = ("", "")
"""Stands in the table for a plug-in whose module is not known yet."""


def register(name: str, module: str, package: str = "") -> None:
    """Make `load_dataset(name)` use the builder of a module. Registering the same again changes nothing.

    Args:
        name: the benchmark's name.
        module: the importable module that holds the builder class, a `SourceBuilder`; it is not imported now.
        package: name and version of the package that declares a plug-in, part of the cache's key.

    Raises:
        BenchError: `datasets` or another builder of ours has the name already, or the module does not exist.
        ImportError: the installed `datasets` has no such table or factory.
    """
    modules, factory = packaged_modules()
    with _LOCK:
        if name in modules and modules[name] != _LATER and modules[name][0] != module:
            raise BenchError(f"register: the name {name!r} is taken by {modules[name][0]}")
        _enter(name, (module, module_hash(module, package)), modules, factory)


def register_later(name: str) -> None:
    """Make `load_dataset(name)` ask `get_benchmark(name)` for its builder when it is called.

    Args:
        name: a plug-in's; nothing of it is imported now.

    Raises:
        BenchError: `datasets` has the name already.
    """
    modules, factory = packaged_modules()
    with _LOCK:
        if name not in modules:
            _enter(name, _LATER, modules, factory)
        elif name not in getattr(factory.get_module, "_bench_datasets", ()):
            raise BenchError(f"register: the name {name!r} is taken by {modules[name][0]}")


def _enter(name: str, entry: tuple[str, str], modules: dict[str, tuple[str, str]], factory: Any) -> None:
    if not hasattr(factory.get_module, "_bench_datasets"):
        factory.get_module = _wrap(factory.get_module, set())
    factory.get_module._bench_datasets.add(name)  # outlives a reload of this module, as the wrap does
    modules[name] = entry


def registered() -> list[str]:
    """The names of ours that `load_dataset` knows, sorted.

    Raises:
        ImportError: the installed `datasets` has no such table or factory.
    """
    modules, factory = packaged_modules()
    return sorted(name for name in getattr(factory.get_module, "_bench_datasets", ()) if name in modules)


def module_hash(module: str, package: str = "") -> str:
    """SHA-256 of the names of the builder's module and package, in the cache's folder name.

    The version of the builder's config stands there too. It is raised by hand whenever the rows change, so that no rows
    of an older builder are read, and no edit of the code that leaves the rows alone builds them again. A plug-in's
    package, with its version, is part of the hash: a new release of a plug-in builds its rows again even where its
    author forgot to raise the builder's version.

    Raises:
        BenchError: there is no such module.
    """
    if importlib.util.find_spec(module) is None:
        raise BenchError(f"register: there is no module {module!r}")
    return hashlib.sha256(f"{module}\n{package}".encode()).hexdigest()


def _wrap(original: Any, names: set[str]) -> Any:
    @functools.wraps(original)
    def get_module(self: Any) -> Any:
        if self.name not in names:
            return original(self)
        from datasets.load import DatasetModule

        from bench_datasets.data.builder import SourceRequest

        # The factory is not told of `revision=`; the function that calls it, dataset_module_factory, holds it.
        revision = sys._getframe(1).f_locals.get("revision")
        config = self.download_config
        request = SourceRequest(
            self.data_files,
            None if revision is None else str(revision),
            None if config is None else config.token,
            None if config is None else config.storage_options,
        )
        if packaged_modules()[0][self.name] == _LATER:
            register(self.name, get_benchmark(self.name).builder, BENCHMARKS.plugins[self.name].package)
        module, digest = packaged_modules()[0][self.name]
        return DatasetModule(module, digest, {"data_files": request, "dataset_name": self.name})

    get_module._bench_datasets = names  # type: ignore[attr-defined]
    return get_module
