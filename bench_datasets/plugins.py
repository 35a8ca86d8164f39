"""Benchmarks of other packages: found by their entry points, loaded when they are asked for, never trusted to work.

A package declares its benchmark in its `pyproject.toml`:

    [project.entry-points."bench_datasets.benchmarks"]
    mybench = "my_package:BENCHMARK"

The entry point's name is the benchmark's; what it points at is a `bench_datasets.benchmark.Benchmark`. Looking for
entry points reads the installed packages' metadata and imports none of them. A plug-in that can't be loaded, or isn't
what it should be, gives a warning, and everything else goes on as if it were not installed.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from bench_datasets.faults import BenchError

GROUP = "bench_datasets.benchmarks"
"""The entry-point group."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class PluginWarning(UserWarning):
    """A plug-in can't be used; the message says which, of which package, and why."""


class PluginError(BenchError):
    """A benchmark was asked for whose plug-in can't be used."""


@dataclass(frozen=True)
class Plugin:
    """One entry point of the group, not loaded.

    Attributes:
        name: the benchmark's name.
        target: what the entry point names, `module:attribute`.
        package: name and version of the package that declares it.
    """

    name: str
    target: str
    package: str
    entry: metadata.EntryPoint

    def __str__(self) -> str:
        return f"plug-in {self.name!r} of {self.package} ({self.target})"

    def load(self, check: Callable[[Any], str | None]) -> Any:
        """Import the object of an entry point.

        Args:
            check: says what is wrong with the value, or None.

        Raises:
            PluginError: it can't be imported, or `check` objects.
        """
        try:
            value = self.entry.load()
            wrong = check(value)
        except (Exception, SystemExit) as error:  # whatever somebody else's module does when it is imported
            raise PluginError(f"{self} can't be loaded: {type(error).__name__}: {error}") from error
        if wrong:
            raise PluginError(f"{self} can't be used: {wrong}")
        return value


def find_plugins(taken: Collection[str] = ()) -> dict[str, Plugin]:
    """The plug-ins of the installed packages, by name; none of them is imported.

    Args:
        taken: names that no plug-in may have.

    Returns:
        One for each name, in the order of the names. A name that is taken, is no name, or was declared by another
        package already is left out with a warning.

    Example:
        >>> "csv" in find_plugins(taken=["csv"])
        False
    """
    try:
        entries = [(entry, _package(entry)) for entry in metadata.entry_points(group=GROUP)]
    except Exception as error:  # metadata that another package broke
        warn(f"plug-ins can't be looked for: {type(error).__name__}: {error}")
        return {}
    found: dict[str, Plugin] = {}
    for entry, package in sorted(entries, key=lambda item: (item[0].name, item[1], item[0].value)):
        plugin = Plugin(entry.name, entry.value, package, entry)
        if not _NAME.fullmatch(entry.name):
            warn(f"{plugin} is left out: a benchmark's name is lower-case letters, digits and _")
        elif entry.name in taken:
            warn(f"{plugin} is left out: there is a benchmark of that name already")
        elif entry.name not in found:
            found[entry.name] = plugin
        elif (found[entry.name].target, found[entry.name].package) != (plugin.target, package):  # not one path twice
            warn(f"{plugin} is left out: {found[entry.name].package} declares that name, too")
    return found


def warn(text: str) -> None:
    """Say that a plug-in can't be used."""
    warnings.warn(text, PluginWarning, stacklevel=3)


def _package(entry: metadata.EntryPoint) -> str:
    dist = entry.dist
    return "an unknown package" if dist is None else f"{dist.name} {dist.version}"
