"""Old import paths that plug-ins and published metrics use; each works and gives a `DeprecationWarning`."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_PACKAGE = "bench_datasets."

MOVED = {
    "builders": "data",
    "builders.base": "data.builder",
    "builders.provenance": "data.provenance",
    "engines": "execution",
    "metrics": "scoring",
    "metrics.columns": "_util.arrow",
    "metrics.faulty": "scoring.faulty_rows",
    "metrics.gathering": "results.estimates",
    "metrics.hashes": "scoring.hashes",
    "metrics.instancebench": "benchmarks.instancebench",
    "metrics.instancebench.evaluating": "benchmarks.instancebench.hf_evaluate",
    "metrics.legend": "results.legend",
    "metrics.masklists": "masks.ragged",
    "metrics.options": "scoring.options",
    "metrics.pbench": "benchmarks.pbench",
    "metrics.pbench.evaluating": "benchmarks.pbench.hf_evaluate",
    "metrics.pvsg": "benchmarks.pvsg",
    "metrics.pvsg.evaluating": "benchmarks.pvsg.hf_evaluate",
    "metrics.rowsmetric": "hf_evaluate.rows_metric",
    "metrics.units": "scoring.units",
    "predictions.coco": "predictions.formats.coco",
    "predictions.instancebench": "benchmarks.instancebench.predictions",
    "predictions.pbench": "benchmarks.pbench.predictions",
    "predictions.pvsg": "benchmarks.pvsg.predictions",
    "predictions.rows": "predictions.mask_rows",
    "report.instancebench": "benchmarks.instancebench.report",
    "report.pbench": "benchmarks.pbench.report",
    "report.pvsg": "benchmarks.pvsg.report",
    "samples.cache": "data.sample_cache",
    "statistics": "results.statistics",
}
"""Old module to new module, both without the package's name."""


class _OldPaths(MetaPathFinder, Loader):
    """Import an old path as a module with the names of the new one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a moved module; `None` for all others."""
        if fullname.removeprefix(_PACKAGE) not in MOVED or not fullname.startswith(_PACKAGE):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        """Warn, and copy the names of the new module."""
        new = _PACKAGE + MOVED[module.__name__.removeprefix(_PACKAGE)]
        warnings.warn(
            f"{module.__name__} is now {new}; the old path works until version 0.2", DeprecationWarning, stacklevel=2
        )
        names = vars(importlib.import_module(new))
        module.__dict__.update({name: value for name, value in names.items() if not name.startswith("__")})


def serve_old_paths() -> None:
    """Make the old paths importable. Calling it again changes nothing."""
    if not any(isinstance(finder, _OldPaths) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OldPaths())
