"""Threads that read the many small files of a folder."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from bench_datasets._util.cpus import usable_cpus

Item = TypeVar("Item")
Result = TypeVar("Result")

WORKERS = min(4, usable_cpus())
"""Threads that read at the same time; more of them would mostly wait for one another."""


def map_in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Results of a function, in the order of the items, computed by a few threads.

    At most `4 * WORKERS` results wait at any time, so memory does not grow with the number of items.

    Args:
        function: called once per item, in any thread; an error that it raises is raised here.
        items: what it is called with; read only as fast as the results are taken.

    Example:
        >>> list(map_in_threads(len, ["a", "bcd", ""]))
        [1, 3, 0]
    """
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(WORKERS, thread_name_prefix="read") as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= 4 * WORKERS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
