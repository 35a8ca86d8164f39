"""Modules that stand in no package: scripts, examples and hooks, loaded by their files."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def load_file(path: Path) -> Any:
    """A file's module, made anew and kept nowhere; its name is the file's."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
