"""Meanings of metric keys: one line per kind of key, for tables, `info` and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench_datasets.benchmark import BENCHMARKS


@dataclass(frozen=True)
class Meaning:
    """Meaning of a kind of metric key.

    Attributes:
        text: one line for a reader who does not know the benchmark.
        main: whether the main table of a result shows it.
        label: the metric's usual name in a sentence; empty for the key itself.
    """

    text: str
    main: bool = False
    label: str = ""


def meanings(benchmark: str) -> Mapping[str, Meaning]:
    """The metrics of a benchmark by pattern, such as `p@<t>`; empty for a benchmark without a legend.

    Args:
        benchmark: its name.

    Example:
        >>> meanings("instancebench")["miou"].label
        'mIoU'
    """
    entry = BENCHMARKS.get(benchmark)
    return entry.legend if entry is not None else {}


def find(benchmark: str, key: str) -> tuple[str, Meaning] | None:
    """The pattern that a metric key matches, with its meaning; `None` for a key without one.

    Example:
        >>> find("instancebench", "p@0.7")[0]
        'p@<t>'
    """
    for pattern, meaning in meanings(benchmark).items():
        if re.fullmatch(re.sub(r"<\w+>", "[^/]+", re.sub(r"([.|+()])", r"\\\1", pattern)), key):
            return pattern, meaning
    return None


def legend(benchmark: str, keys: Iterable[str]) -> dict[str, str]:
    """The meanings that a reader of some metric keys needs, by pattern.

    Args:
        benchmark: its name.
        keys: metric keys.

    Example:
        >>> list(legend("instancebench", ["all@0.7", "all@0.9", "miou"]))
        ['all@<t>', 'miou']
    """
    found = (find(benchmark, key) for key in keys)
    return {item[0]: item[1].text for item in found if item is not None}


def label(benchmark: str, key: str) -> str:
    """A metric's name for a sentence.

    Example:
        >>> label("instancebench", "miou"), label("pvsg", "R@20/0.5")
        ('mIoU', 'R@20/0.5')
    """
    found = find(benchmark, key)
    return (found[1].label if found else "") or key


def is_main(benchmark: str, key: str) -> bool:
    """Whether the main table of a result shows a metric; all of them for a plug-in that does not say.

    Example:
        >>> is_main("instancebench", "miou"), is_main("instancebench", "exclusion_drop")
        (True, False)
    """
    found = find(benchmark, key)
    return found[1].main if found is not None else not meanings(benchmark)
