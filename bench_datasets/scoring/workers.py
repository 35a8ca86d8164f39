"""Worker processes on one machine: each with its share of the threads, none that outlives its parent."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, TypeVar

from bench_datasets.faults import BenchError

Item = TypeVar("Item")
Result = TypeVar("Result")

VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    *("NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS"),
)
"""Environment variables by which libraries take their number of threads when they are loaded."""

_task: list[Callable[[Any], Any]] = []


def in_processes(
    task: Callable[[Item], Result], items: Sequence[Item], num_proc: int | None, threads: int = 1
) -> Iterator[Result]:
    """Do a task for every item, on several processes; results as they get done.

    The task is handed over once a process (without being pickled, where processes are forked).

    Args:
        task: what is done.
        items: for what.
        num_proc: processes; 1 (this one) for `None`.
        threads: that each may use.

    Raises:
        BenchError: a process ended by itself: it was killed, by the system for want of memory, say.
    """
    if num_proc is None or num_proc < 2 or len(items) < 2:
        yield from map(task, items)
        return
    method = "fork" if sys.platform == "linux" else "spawn"
    others = set(multiprocessing.active_children())
    with _variables(threads):
        pool = ProcessPoolExecutor(
            min(num_proc, len(items)), multiprocessing.get_context(method), _begin, (task, threads)
        )
        todo = iter(items)
        # One more than there are processes, so that none waits; not all, so that a fault is met early.
        running = {pool.submit(_do, item) for item in islice(todo, num_proc + 1)}
    try:
        while running:
            finished: set[Future[Result]]
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()
                running.update(pool.submit(_do, item) for item in islice(todo, 1))
        pool.shutdown()
    except BrokenProcessPool as error:
        raise BenchError(
            "a worker process ended by itself; was it killed for want of memory? What is finished is kept: run the same"
            " command again, with fewer processes (--num-proc)"
        ) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()


def _do(item: Any) -> Any:
    return _task[0](item)


def _begin(task: Callable[[Any], Any], threads: int) -> None:
    """In a new process: keep the task, limit the threads, leave interrupts to the parent, and end when it does."""
    _task[:] = [task]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    limit_threads(threads)
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def limit_threads(threads: int) -> None:
    """Limit the threads of this process's libraries, where they allow it."""
    import pyarrow as pa

    pa.set_cpu_count(threads)
    if "numba" in sys.modules:
        numba = sys.modules["numba"]
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


@contextlib.contextmanager
def _variables(threads: int) -> Iterator[None]:
    """The environment that processes begin with."""
    before = {name: os.environ.get(name) for name in VARIABLES}
    os.environ.update(dict.fromkeys(VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
