"""`Section`: the part of a report page that a benchmark adds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench_datasets.report.inputs import Material
from bench_datasets.report.page_data import Content, Ladder, Panel
from bench_datasets.report.runs import Run
from bench_datasets.results.result import Result


@dataclass(frozen=True)
class Section:
    """The part of a report page that a benchmark adds.

    Attributes:
        build: the page's rows and numbers of some runs, without pictures.
        ladders: the numbers of some results, beside published ones.
        panels: the pictures of some rows: key, panels, and a further drawing as SVG.
        truth_key: the key of the ground truth row that a row of the page is about.
    """

    build: Callable[[Sequence[Run], Material | None], Content]
    ladders: Callable[[Sequence[Result]], list[Ladder]]
    panels: Callable[[Sequence[Run], Material, Sequence[str]], Iterator[tuple[str, list[Panel], str]]]
    truth_key: Callable[[str], str]
