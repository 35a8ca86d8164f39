"""PBench's part of a report: rows by level, the F1 of every row at any threshold, masks over images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bench_datasets.benchmarks.pbench.batch import read_rows
from bench_datasets.benchmarks.pbench.protocol import get_protocol
from bench_datasets.benchmarks.pbench.schema import LEVELS
from bench_datasets.benchmarks.pbench.statistics import read_scores
from bench_datasets.masks import list_offsets, list_values, quotient
from bench_datasets.masks.ragged import MaskLists
from bench_datasets.report.embed import coded
from bench_datasets.report.inputs import Material
from bench_datasets.report.masks import mask_panels
from bench_datasets.report.page_data import Content, Ladder, Panel, lanes, telling
from bench_datasets.report.runs import Run
from bench_datasets.report.section import Section
from bench_datasets.results.error_kinds import find_errors
from bench_datasets.results.paper_results import published
from bench_datasets.results.result import Result

PAIRS = 8
"""Pairs of an opened row whose IoUs are told."""


def truth_key(key: str) -> str:
    """The truth row that a row of the page is about."""
    return key


def build(runs: Sequence[Run], material: Material | None) -> Content:
    """Build the page's content about PBench runs, without pictures."""
    first = runs[0].table
    keys, levels = first["key"].to_pylist(), first["level"].to_pylist()
    groups = [level for level in LEVELS if level in set(levels)]
    protocol = runs[0].protocol
    union = protocol.row_score == "union_hit"
    columns, scores = [], []
    for run in runs:
        found = read_scores(run.table, protocol)
        iou = _union_iou(found) if union else _pairs(run.table)
        scores.append(np.where(found.counted, found.row_score, -1.0))
        columns.append({
            "score": [round(value, 4) for value in scores[-1].tolist()],
            "iou": [coded(values) for values in iou],
            "masks": (found.kept + found.true).tolist(),
            "raw": found.raw.tolist(),
            "near": [float(np.abs(values - 0.5).min()) if len(values) else np.inf for values in iou],
        })  # fmt: skip
    slider = {
        "kind": "union" if union else "f1",
        "title": "Accuracy (levels 0 to 4)" if union else "Macro-F1, mean of the levels",
        "true": first["true_count"].to_pylist(),
        "left_out": protocol.without_truth == "left_out",
        "start": 50,
        **_band(runs[0].result, union=union),
        "pooled": [k for k, level in enumerate(groups) if level != "dense"] if union else None,
        "complete": len(groups) == len(LEVELS) or union,
    }
    errors = [
        find_errors("pbench", run.table, material.batches(i) if material and material.plans else None)
        for i, run in enumerate(runs)
    ]
    captions = dict(zip(material.keys, material.truth["expression"], strict=True)) if material else {}
    content = Content(
        "row", groups, "level",
        {"key": keys, "caption": [captions.get(key, "") for key in keys],
         "group": [[groups.index(level)] for level in levels]},
        columns, slider, errors, ladders([run.result for run in runs]), [],
    )  # fmt: skip
    place = {key: i for i, key in enumerate(keys)}
    bits = content.masks_of_kinds([[place.get(k, -1) for k in e.table["key"].to_pylist()] for e in errors])
    near = np.min([column.pop("near") for column in columns], axis=0).tolist()
    for column, own in zip(columns, bits, strict=True):
        column["kinds"] = own
    content.order = telling([run.tolist() for run in scores], near, bits)
    return content


def _band(result: Result, *, union: bool) -> dict[str, Any]:
    """The thresholds that the headline is the mean over, in hundredths, and the same in words."""
    protocol = get_protocol(result.protocol["name"])
    if union:
        return {"band": None, "note": "The headline is the value at .50."}
    own = result.settings.get("thresholds")
    found = sorted(own or protocol.thresholds)
    low, high = (round(100 * value) for value in (found[0], found[-1]))
    dense = "" if own else "; the dense part counts at .50 alone"
    return {
        "band": [low, high],
        "note": f"The headline is no value at one threshold: it is the mean over {len(found)} thresholds from"
        f" {found[0]:.2f} to {found[-1]:.2f} (shaded){dense}.",
    }


def _union_iou(scores: Any) -> list[Any]:
    iou = quotient(scores.shared, scores.left + scores.right - scores.shared)
    both = (scores.true == 0) & (scores.raw == 0)
    return [np.array([value]) for value in np.where(both, 1.0, iou)]


def _pairs(table: pa.Table) -> list[Any]:
    """Each row's IoUs of assigned pairs."""
    lists = table["matched_intersection"].combine_chunks()
    unions = list_values(table["matched_union"].combine_chunks()).to_numpy()
    iou = quotient(list_values(lists).to_numpy(), unions)
    offsets = list_offsets(lists)
    return [iou[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def ladders(results: Sequence[Result]) -> list[Ladder]:
    """The headline by level, with the published numbers of the same protocol."""
    protocol = get_protocol(results[0].protocol["name"])
    card = protocol.row_score == "union_hit"
    base_key, total = ("accuracy", "accuracy") if card else ("macro_f1", "average")
    keys = {level: f"{base_key}/{level}" for level in LEVELS}
    keys["overall" if card else "average"] = total
    table = published("pbench")
    others: Mapping[str, Mapping[str, float]] = table["models"] if table["protocol"] == protocol.name else {}
    title = f"{'Accuracy' if card else 'Macro-F1'} by level"
    found = lanes([result.metrics for result in results], keys, others, ("overall", "average"))
    return [Ladder(title, found, str(table["source"]) if others else "")]


def panels(runs: Sequence[Run], material: Material, keys: Sequence[str]) -> Iterator[tuple[str, list[Panel], str]]:
    """The pictures of some rows: key, one panel, no further drawing."""
    yield from mask_panels(runs, material, keys, _read, _facts)


def _read(table: pa.Table) -> tuple[list[str], MaskLists, MaskLists]:
    rows = read_rows(table, None)
    return rows.keys.to_pylist(), rows.true, rows.predicted


def _facts(row: Mapping[str, Any]) -> str:
    """A row's integers in words."""
    iou = [a / b for a, b in zip(row["matched_intersection"], row["matched_union"], strict=True)]
    found = sum(value >= 0.5 for value in iou)
    text = f"{row['true_count']} true, {row['raw_count']} predicted, {found} matched at IoU .5"
    if row["raw_count"] > row["nms_count"]:
        text += f", {row['raw_count'] - row['nms_count']} redundant"
    union = row["union_predicted"] + row["union_true"] - row["union_intersection"]
    if row["true_count"] and union:
        text += f"; union IoU {row['union_intersection'] / union:.3f}"
    return text + _matched(row, iou)


def _matched(row: Mapping[str, Any], iou: Sequence[float]) -> str:
    """The assigned pairs with their IoUs, as `explain` gives them, as far as there is room."""
    pairs = sorted(zip(row["matched_truth"], row["matched_prediction"], iou, strict=True))
    said = ", ".join(f"{true}–{given} {value:.3f}" for true, given, value in pairs[:PAIRS])
    more = f", and {len(pairs) - PAIRS} pairs more (see explain)" if len(pairs) > PAIRS else ""
    missed = sorted(set(range(row["true_count"])) - set(row["matched_truth"]))
    alone = ", ".join(map(str, missed[:PAIRS])) + (f", and {len(missed) - PAIRS} more" if len(missed) > PAIRS else "")
    text = f"\nIoU by ground truth–prediction: {said}{more}" if pairs else ""
    return text + (f"\nground truth without a prediction: {alone}" if missed else "")


SECTION = Section(build=build, ladders=ladders, panels=panels, truth_key=truth_key)
