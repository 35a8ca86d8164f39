"""`Engine`: the grouped operations on valid mask columns, and the choice among the engines."""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench_datasets.faults import BenchWarning
from bench_datasets.masks.status import MaskError

if TYPE_CHECKING:
    from bench_datasets.masks.column import MaskColumn
    from bench_datasets.masks.decoded import Decoded

Offsets = NDArray[np.int64]
Part = tuple["MaskColumn", NDArray[np.int64]]
"""A column and the group `(n,) int64` of each of its masks; -1 for a mask that is in none."""


class Hits(NamedTuple):
    """Pairs of masks of two columns that share a pixel, by the first mask and then by the second.

    Attributes:
        left: `(h,) int64`, position in the one column.
        right: `(h,) int64`, position in the other.
        shared: `(h,) int64`, pixels of both.
    """

    left: Offsets
    right: Offsets
    shared: Offsets


ENV = "BENCH_DATASETS_ENGINE"
"""Environment variable that names the engine."""


class Engine(Protocol):
    """The operations that an engine implements.

    Groups are given as offsets `(g + 1,) int64` into a column: group k holds the masks `offsets[k]` to
    `offsets[k + 1]`, which are all of one size (the callers in `ops` see to it). But for `decode` and
    `pair_overlaps`, columns are validated. Every result is an exact integer, so that engines can be told apart by
    their speed alone.
    """

    name: str

    def decode(self, column: MaskColumn) -> Decoded:
        """Read and validate every mask, once."""

    def words(self, column: MaskColumn, begin: Offsets) -> NDArray[np.uint32]:
        """Each mask's height, width, number of runs and runs, from `begin` `(n,)` on, one behind the other."""

    def pair_overlaps(self, a: MaskColumn, b: MaskColumn) -> tuple[Offsets, Offsets, Offsets]:
        """Shared pixels of aligned masks and the areas of both, each `(n,) int64`; validates the masks."""

    def group_intersections(
        self, a: MaskColumn, a_groups: Offsets, b: MaskColumn, b_groups: Offsets
    ) -> NDArray[np.int64]:
        """All pairs within each group, flat: group k's `(n_k, m_k)` matrix in row order behind that of group k - 1."""

    def group_hits(self, a: MaskColumn, a_groups: Offsets, b: MaskColumn, b_groups: Offsets) -> Hits:
        """The pairs within each group that share a pixel."""

    def group_nms(self, column: MaskColumn, groups: Offsets, threshold: float) -> NDArray[np.bool_]:
        """`(n,) bool`, which masks greedy non-maximum suppression keeps (see `ops.nms`)."""

    def union_overlaps(self, count: int, a: Part, b: Part) -> tuple[Offsets, Offsets, Offsets]:
        """Shared pixels, a's pixels and b's pixels of the unions, each `(count,) int64`."""

    def tube_intersections(
        self,
        a: MaskColumn,
        a_frames: Offsets,
        a_tubes: NDArray[np.int64],
        b: MaskColumn,
        b_frames: Offsets,
        b_tubes: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """`(tubes of a, tubes of b) int64`, shared pixels summed over frames."""


_MODULES = {
    "numba": "bench_datasets.masks.engine_numba",
    "pycocotools": "bench_datasets.masks.engine_pycocotools",
}
SMALL_WORK = 1 << 21
"""Bytes of masks that a process hands to pycocotools before numba, which takes half a second to load, is imported."""

_chosen: ContextVar[tuple[str | None, int]] = ContextVar("engine", default=(None, 1))


def quotient(intersection: ArrayLike, union: ArrayLike) -> NDArray[np.float64]:
    """Intersection / union in float64; 0 where the union is empty."""
    top, bottom = np.asarray(intersection, np.int64), np.asarray(union, np.int64)
    return np.divide(top, bottom, out=np.zeros(np.broadcast_shapes(top.shape, bottom.shape)), where=bottom > 0)


def nms_order(areas: NDArray[np.int64], group: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Indices from the largest area to the smallest; of equal areas the later one first.

    Args:
        areas: `(n,) int64`, pixels.
        group: `(n,) int64`, rising; the groups are put in order one behind the other. All are one for `None`.

    Example:
        >>> nms_order(np.array([5, 9, 5]), np.array([0, 1, 1]))
        array([0, 1, 2])
    """
    falling = np.argsort(areas, kind="stable")[::-1]
    return falling if group is None else falling[np.argsort(group[falling], kind="stable")]


def available_engines() -> tuple[str, ...]:
    """Names of the engines that work here, the fastest first.

    Example:
        >>> "pycocotools" in available_engines()
        True
    """
    return tuple(name for name in _MODULES if engine_problem(name) is None)


@cache
def engine_problem(name: str) -> str | None:
    """Why an engine cannot be used here, or None if it works.

    The engine's module is imported once. An optional package that does not import, or a compiler that finds no place
    for its cache, is a problem of this engine alone.

    Args:
        name: a name of an engine.

    Example:
        >>> engine_problem("pycocotools") is None
        True
    """
    if find_spec(name) is None:
        return f"{name} is not installed"
    try:
        import_module(_MODULES[name])
    except Exception as error:  # a broken installation may raise anything
        reason = (str(error).strip().splitlines() or ["no message"])[0]
        if "cannot cache function" in reason:
            return f"{name} found no folder for its compiled code (set NUMBA_CACHE_DIR to a folder that can be written)"
        return f"{name} does not work here ({type(error).__name__}: {reason})"
    return None


def _fastest() -> str:
    """The fastest engine that works; warns once if a faster one is installed but broken."""
    for name in _MODULES:
        problem = engine_problem(name)
        if problem is None:
            return name
        if find_spec(name) is not None:
            _warn(problem)
    raise MaskError("engine: expected pycocotools to work, found that no engine does; run bench-datasets doctor")


@cache
def _warn(problem: str) -> None:
    if multiprocessing.parent_process() is None:  # worker processes would repeat it
        warnings.warn(
            f"{problem}; using pycocotools, which is slower and gives the same numbers", BenchWarning, stacklevel=2
        )


def get_engine(name: str | None = None, threads: int | None = None) -> Engine:
    """The engine in use.

    Args:
        name: of an engine; for `None` that of `using_engine`, else of the environment variable
            `BENCH_DATASETS_ENGINE`, else the fastest there is.
        threads: how many the numba engine may use; for `None` that of `using_engine`, else 1.

    Raises:
        MaskError: there is no engine of that name here; the message says what to install.

    Example:
        >>> get_engine("pycocotools").name
        'pycocotools'
    """
    chosen, count = _chosen.get()
    wanted = name or chosen or os.environ.get(ENV) or _fastest()
    return _load(wanted, threads or count)


def engine_for(*columns: MaskColumn) -> Engine:
    """The engine for an operation: while all work is small, pycocotools instead of a numba that must be loaded first.

    The engines give the same numbers. One that was named is always used.

    Args:
        columns: the masks of the operation.
    """
    chosen, threads = _chosen.get()
    named = chosen or os.environ.get(ENV)
    if named is None and _Work.is_small(columns):
        return _load("pycocotools", threads)
    return get_engine()


class _Work:
    """Bytes of masks that this process has handed to engines that nobody named."""

    done = 0

    @classmethod
    def is_small(cls, columns: Sequence[MaskColumn]) -> bool:
        """Add an operation's masks; whether pycocotools takes less time for all of them than loading numba."""
        cls.done += sum(int(column.offsets[-1] - column.offsets[0]) for column in columns)
        return cls.done < SMALL_WORK and _MODULES["numba"] not in sys.modules


@contextmanager
def using_engine(name: str | None = None, threads: int = 1) -> Iterator[Engine]:
    """Use an engine within a block, in this thread or task.

    Args:
        name: of an engine; `None` for the one that would be in use anyway.
        threads: how many the numba engine may use.

    Raises:
        MaskError: there is no engine of that name here, or `threads` is below 1.

    Example:
        >>> with using_engine("pycocotools") as engine:
        ...     engine.name
        'pycocotools'
    """
    if threads < 1:
        raise MaskError(f"threads: expected 1 or more, got {threads}")
    token = _chosen.set((name or _chosen.get()[0], threads))
    try:
        yield engine_for()
    finally:
        _chosen.reset(token)


@cache
def _load(name: str, threads: int) -> Engine:
    if name not in _MODULES:
        raise MaskError(f"engine: expected one of {', '.join(_MODULES)}, got {name!r}")
    problem = engine_problem(name)
    if problem is not None:
        advice = "use pycocotools" if find_spec(name) else "install bench-datasets[fast], or use pycocotools"
        raise MaskError(f"engine: {problem}; {advice}")
    engine: Engine = import_module(_MODULES[name]).make_engine(threads)
    return engine
