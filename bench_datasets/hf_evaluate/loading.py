"""Where `evaluate.load` finds the metrics of the package and of plug-ins, by name or by path."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from bench_datasets._compat import EVALUATE_LOADING, rename_in_evaluate
from bench_datasets.benchmark import BENCHMARKS, get_benchmark

_PLUGIN = '''"""{title} for `evaluate.load`: the same numbers as `bench_datasets` gives."""

from bench_datasets.hf_evaluate.rows_metric import rows_metric

Metric = rows_metric("{name}")
'''


def metric_path(benchmark: str) -> str:
    """The folder or file to give to `evaluate.load`; where this package is imported, the name alone does, too.

    Args:
        benchmark: its name.

    Raises:
        BenchError: there is no benchmark of that name.

    Example:
        >>> import evaluate
        >>> metric = evaluate.load(metric_path("pbench"))
        >>> mask = {"size": [2, 3], "counts": "15"}
        >>> metric.compute(predictions=[[mask]], references=[[mask]], levels=["level_0"])["macro_f1/level_0"]
        1.0
    """
    entry = get_benchmark(benchmark)
    folder = Path(__file__).parents[1] / "benchmarks" / entry.name
    if folder.is_dir():
        return str(folder)
    from bench_datasets.data.sample_cache import built

    text = _PLUGIN.format(title=entry.title.replace('"', "'").replace("\\", "/"), name=entry.name)
    file = f"{entry.name}.py"
    return str(built("metrics", [file], lambda place: (place / file).write_text(text, encoding="utf-8")) / file)  # type: ignore[arg-type]


def serve_by_name() -> None:
    """Make `evaluate.load(name)` find every benchmark's metric.

    `evaluate` has no table of names, so its function that looks for a module is wrapped, for our names only. It is
    wrapped when `evaluate` is imported, which this package does not do before it needs to.
    """
    if EVALUATE_LOADING in sys.modules:
        rename_in_evaluate(sys.modules[EVALUATE_LOADING], _our_path)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds `evaluate.loading` once, and wraps its function when it has been imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec, with one more step after its code has run; `None` for every other module."""
        if fullname != EVALUATE_LOADING:
            return None
        with contextlib.suppress(ValueError):  # another thread was here
            sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                rename_in_evaluate(module, _our_path)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _our_path(path: str) -> str:
    return metric_path(path) if path in BENCHMARKS.own or path in BENCHMARKS.plugins else path
