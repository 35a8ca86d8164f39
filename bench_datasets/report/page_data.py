"""Data model of a report page: rows, runs, pictures, timelines, counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench_datasets.results.error_kinds import Errors, Kind
from bench_datasets.results.result import Metric


@dataclass(frozen=True)
class Point:
    """A published number: whose, what, and in percent."""

    name: str
    percent: float


@dataclass(frozen=True)
class Lane:
    """One line of a ladder: its name, each run's number, what others published.

    Attributes:
        name: of the part, such as `level_0`.
        metrics: one per run; `None` where a run has none.
        published: by others.
        apart: whether it is a total that is set apart from the parts.
    """

    name: str
    metrics: list[Metric | None]
    published: list[Point] = field(default_factory=list)
    apart: bool = False


@dataclass(frozen=True)
class Ladder:
    """Lanes under a title.

    Attributes:
        title: what is shown.
        lanes: from top to bottom.
        note: about the published numbers, or nothing.
    """

    title: str
    lanes: list[Lane]
    note: str = ""


@dataclass(frozen=True)
class Panel:
    """One picture of a row.

    Attributes:
        caption: what is asked for, or the frame; untrusted text.
        size: (height, width) at which it is drawn.
        base: the image, or `None` for a plain ground.
        truth: layer of the truth.
        runs: per run the prediction's layer and that of the difference.
        facts: per run what is to be said of it.
    """

    caption: str
    size: tuple[int, int]
    base: bytes | None
    truth: bytes
    runs: list[tuple[bytes, bytes]]
    facts: list[str]


@dataclass
class Content:
    """One benchmark's part of a page.

    Attributes:
        unit: what a row is called.
        groups: names of the parts that rows are filtered by, in order.
        group_title: what they are.
        rows: `key`, `caption` (texts) and `group` (lists of group numbers), one per row.
        runs: per run, columns of numbers for the page's own arithmetic.
        slider: how the page recomputes the headline; `None` where it can't be.
        errors: per run.
        ladders: of the runs.
        order: rows that are worth a picture, the most telling first.
    """

    unit: str
    groups: list[str]
    group_title: str
    rows: dict[str, list[Any]]
    runs: list[dict[str, Any]]
    slider: dict[str, Any] | None
    errors: list[Errors]
    ladders: list[Ladder]
    order: list[int]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The benchmark's error kinds."""
        return self.errors[0].kinds

    def masks_of_kinds(self, row_of: Sequence[Sequence[int]]) -> list[list[int]]:
        """Per run and row, the kinds it shows as bits.

        Args:
            row_of: per run, the page's row of each row of its errors; -1 for none.
        """
        found = []
        for errors, rows in zip(self.errors, row_of, strict=True):
            bits = [0] * len(self.rows["key"])
            for row, counts in zip(rows, errors.matrix().tolist(), strict=True):
                for k, count in enumerate(counts):
                    if count and row >= 0:
                        bits[row] |= 1 << k
            found.append(bits)
        return found


def telling(scores: Sequence[Sequence[float]], near: Sequence[float], kinds: Sequence[Sequence[int]]) -> list[int]:
    """An order in which rows are worth a picture: in turn the worst, the nearest to the threshold, those on which the
    runs differ most, and the first of each kind of error; then the rest.

    Args:
        scores: per run and row, from 0 to 1; negative where a row has none.
        near: per row, its distance from the threshold; infinite where it has none.
        kinds: per run and row, kinds as bits.

    Example:
        >>> telling([[0.9, 0.1, 0.5]], [0.4, 0.4, 0.0], [[0, 1, 0]])
        [1, 2, 0]
    """  # noqa: D205
    n = len(near)
    every = list(range(n))
    queues: list[list[int]] = []
    for run in scores:
        queues.append(sorted((i for i in every if run[i] >= 0), key=lambda i: (run[i], i)))
    queues.append(sorted(every, key=lambda i: (near[i], i)))
    if len(scores) > 1:
        span = [max(run[i] for run in scores) - min(run[i] for run in scores) for i in every]
        queues.append(sorted(every, key=lambda i: (-span[i], i)))
    bits = sorted({bit for run in kinds for value in run for bit in range(value.bit_length()) if value >> bit & 1})
    queues += [[i for i in every if any(run[i] >> bit & 1 for run in kinds)] for bit in bits]
    queues.append(every)
    order: dict[int, None] = {}
    places = [0] * len(queues)
    while len(order) < n:
        for q, queue in enumerate(queues):
            while places[q] < len(queue) and queue[places[q]] in order:
                places[q] += 1
            if places[q] < len(queue):
                order[queue[places[q]]] = None
    return list(order)


def lanes(
    results: Sequence[Mapping[str, Metric]], keys: Mapping[str, str], published: Mapping[str, Mapping[str, float]],
    apart: Sequence[str] = (),
) -> list[Lane]:  # fmt: skip
    """Lanes of some numbers.

    Args:
        results: each run's metrics.
        keys: metric key by the lane's name.
        published: percent by model and lane's name.
        apart: names of totals.
    """
    found = []
    for name, key in keys.items():
        metrics = [result.get(key) for result in results]
        if any(metric is not None and metric.n for metric in metrics):
            points = [Point(model, parts[name]) for model, parts in published.items() if name in parts]
            found.append(Lane(name, metrics, points, name in apart))
    return found
