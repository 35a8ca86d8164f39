"""A report's part for benchmarks that bring none of their own: what any metric module tells of its rows.

A row's score is the headline number over that row alone, and its picture shows masks where truth and predictions have
columns `masks` and `pred_masks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench_datasets.masks.ragged import MaskLists, read_mask_lists
from bench_datasets.report.inputs import Material
from bench_datasets.report.masks import mask_panels
from bench_datasets.report.page_data import Content, Ladder, Panel, lanes, telling
from bench_datasets.report.runs import Run
from bench_datasets.report.section import Section
from bench_datasets.results.error_kinds import Errors, Kind
from bench_datasets.results.estimates import ALL
from bench_datasets.results.result import Result

KINDS = (
    Kind("nothing", "The row alone would get 0."),
    Kind("little", "The row alone would get more than 0 and less than a half."),
)
"""Kinds of error that can be told of any benchmark."""

TEXTS = ("expression", "text", "caption", "question")
"""Columns that say what a row is about, the likeliest first."""

MOST_GROUPS = 40
"""Values of a column by which rows are still grouped."""

MOST_LANES = 24
"""Numbers that the page draws."""

_OURS = ("key", "cluster", "protocol", "row_sha256")


def truth_key(key: str) -> str:
    """The truth row that a row of the page is about."""
    return key


def build(runs: Sequence[Run], material: Material | None) -> Content:
    """Build the page's content about the runs, without pictures."""
    first = runs[0].table
    keys = list(dict.fromkeys(first["key"].to_pylist()))
    place = {key: i for i, key in enumerate(keys)}
    column = _group_column(first)
    values = ["all"] * len(first) if column is None else [str(value) for value in first[column].to_pylist()]
    groups = sorted(set(values))
    group_of = dict(zip(first["key"].to_pylist(), values, strict=True))
    scores = [_scores(run, place) for run in runs]
    texts = {} if material is None else _captions(material)
    errors = [_errors(keys, [group_of[key] for key in keys], column or "all", own) for own in scores]
    content = Content(
        runs[0].metric.unit, groups, column or "part",
        {"key": keys, "caption": [texts.get(key, "") for key in keys],
         "group": [[groups.index(group_of[key])] for key in keys]},
        [{"score": [round(value, 4) for value in own.tolist()]} for own in scores],
        None, errors, ladders([run.result for run in runs]), [],
    )  # fmt: skip
    bits = content.masks_of_kinds([range(len(keys))] * len(runs))
    for shown, kinds in zip(content.runs, bits, strict=True):
        shown["kinds"] = kinds
    content.order = telling([own.tolist() for own in scores], [np.inf] * len(keys), bits)
    return content


def _group_column(table: pa.Table) -> str | None:
    """A column of names, few of them, by which rows can be parted."""
    for field in table.schema:
        if field.name in _OURS or not pa.types.is_string(field.type):
            continue
        if 0 < len(set(table[field.name].to_pylist())) <= MOST_GROUPS:
            return str(field.name)
    return None


def _scores(run: Run, place: Mapping[str, int]) -> NDArray[np.float64]:
    """`(rows,) float64`: the headline over each row alone, -1 where it has none or is no number from 0 to 1."""
    ranks = run.result.settings.get("k")
    gathered = run.metric.statistics(run.table, run.result.protocol["name"], k=ranks)
    found = gathered[ALL].get(run.result.headline or "")
    scores = np.full(len(place), -1.0)
    metric = run.result.metrics.get(run.result.headline or "")
    if found is None or not len(found.rows) or metric is None or not metric.higher_is_better:
        return scores
    with np.errstate(invalid="ignore", divide="ignore"):
        alone = np.asarray(found.of(found.columns.astype(np.float64)), np.float64)
    all_keys = run.table["key"].to_pylist()
    own = np.array([place[all_keys[row]] for row in found.rows.tolist()])
    good = np.isfinite(alone) & (alone >= 0) & (alone <= 1)
    count = np.bincount(own[good], minlength=len(place))
    sums = np.bincount(own[good], alone[good], minlength=len(place))
    return np.asarray(np.divide(sums, count, out=scores, where=count > 0), np.float64)


def _errors(keys: list[str], groups: list[str], column: str, scores: NDArray[np.float64]) -> Errors:
    nothing = scores == 0
    little = (scores > 0) & (scores < 0.5)
    table = pa.table({
        "key": keys, column: groups,
        KINDS[0].name: nothing.astype(np.int64), KINDS[1].name: little.astype(np.int64),
    })  # fmt: skip
    return Errors(KINDS, (column,), table)


def _captions(material: Material) -> dict[str, str]:
    column = next((name for name in TEXTS if name in material.truth.column_names), None)
    if column is None:
        return {}
    return {key: str(text) for key, text in zip(material.keys, material.truth[column], strict=True)}


def ladders(results: Sequence[Result]) -> list[Ladder]:
    """The numbers from 0 to 1, the headline first."""
    names = [results[0].headline or "", *results[0].metrics]
    keys = {
        name: name
        for name in dict.fromkeys(names)
        if all(name not in result.metrics or 0 <= result.metrics[name].value <= 1 for result in results)
    }
    chosen = dict(list(keys.items())[:MOST_LANES])
    return [Ladder("Numbers", lanes([result.metrics for result in results], chosen, {}))]


def panels(runs: Sequence[Run], material: Material, keys: Sequence[str]) -> Iterator[tuple[str, list[Panel], str]]:
    """The pictures of some rows: key, one panel, no further drawing; none where the rows hold no masks."""
    table = next(material.batches(0, set(keys[:1])), None)
    if table is not None and {"masks", "pred_masks"} <= set(table.column_names):
        yield from mask_panels(runs, material, keys, _read, _facts)


def _read(table: pa.Table) -> tuple[list[str], MaskLists, MaskLists]:
    return table["key"].to_pylist(), read_mask_lists(table["masks"]), read_mask_lists(table["pred_masks"])


def _facts(row: Mapping[str, Any]) -> str:
    """A row's whole numbers in words."""
    whole = {name: value for name, value in row.items() if isinstance(value, int) and not isinstance(value, bool)}
    return ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in whole.items())


SECTION = Section(build=build, ladders=ladders, panels=panels, truth_key=truth_key)
"""The section of benchmarks that bring none."""
