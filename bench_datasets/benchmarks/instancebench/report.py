"""InstanceBench's part of a report: sets by operation, P@t and All@t at any threshold, one target's expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bench_datasets.benchmarks.instancebench.assignment import UNRESOLVED
from bench_datasets.benchmarks.instancebench.batch import Rows, read_rows
from bench_datasets.benchmarks.instancebench.expressions import Expressions, read_expressions
from bench_datasets.benchmarks.instancebench.schema import ORIGINAL
from bench_datasets.benchmarks.instancebench.vocabulary import OPERATIONS, TRACKS
from bench_datasets.masks import MaskColumn
from bench_datasets.report.embed import coded
from bench_datasets.report.inputs import Material
from bench_datasets.report.layers import Frame, base, dense, difference_layer, masks_layer
from bench_datasets.report.page_data import Content, Ladder, Panel, lanes, telling
from bench_datasets.report.runs import Run
from bench_datasets.report.section import Section
from bench_datasets.results.error_kinds import Errors, find_errors
from bench_datasets.results.paper_results import published
from bench_datasets.results.result import Result

OVERALL = {
    "mIoU": "miou", "P@0.7": "p@0.7", "All@0.7": "all@0.7", "worst path": "worst_path_iou",
    "All-target-ID": "all_target_id/dense", "retention": "retention/variant/matched",
}  # fmt: skip
"""Headline numbers that are shown together."""


def truth_key(key: str) -> str:
    """The truth row that a row of the page is about."""
    return key


def build(runs: Sequence[Run], material: Material | None) -> Content:
    """Build the page's content about InstanceBench runs, without pictures."""
    every = [_repeats(run) for run in runs]
    first = every[0][0]
    keys = first.keys.tolist()
    operations = [sorted(set(first.operation[first.row == i].tolist()), key=OPERATIONS.index) for i in range(len(keys))]
    groups = [name for name in OPERATIONS if any(name in of for of in operations)]
    columns, scores = [], []
    for repeats in every:
        texts = [[coded(e.q[(e.row == i) & e.core]) for i in range(len(keys))] for e in repeats]
        mean = np.mean([_core_means(e) for e in repeats], axis=0)
        scores.append(mean)
        columns.append({
            "score": [round(value, 4) for value in np.where(np.isfinite(mean), mean, -1).tolist()],
            "iou": texts[0], "repeats": texts,
        })  # fmt: skip
    masked = all(e.has_masks for repeats in every for e in repeats)
    slider = {
        "kind": "share", "title": "P@t: the share of core expressions whose IoU reaches t", "all": True, "start": 70,
        "complete": True, "band": None, "note": "The headline is another number, the mean IoU; the tables give P@0.7.",
    } if masked else None  # fmt: skip
    errors = [_original(find_errors("instancebench", run.table)) for run in runs]
    captions = _captions(material) if material else {}
    content = Content(
        "set", groups, "operation",
        {"key": keys, "caption": [captions.get(key, "") for key in keys],
         "group": [[groups.index(name) for name in of] for of in operations]},
        columns, slider, errors, ladders([run.result for run in runs]), [],
    )  # fmt: skip
    place = {key: i for i, key in enumerate(keys)}
    bits = content.masks_of_kinds([[place.get(k, -1) for k in e.table["key"].to_pylist()] for e in errors])
    tau = runs[0].protocol.tau
    near = np.full(len(keys), np.inf)
    for repeats in every:
        np.minimum.at(near, repeats[0].row, np.abs(repeats[0].q - tau))
    for column, own in zip(columns, bits, strict=True):
        column["kinds"] = own
    content.order = telling([np.where(np.isfinite(s), s, -1.0).tolist() for s in scores], near.tolist(), bits)
    return content


def _repeats(run: Run) -> list[Expressions]:
    """The expressions of each of a model's runs, as it was asked."""
    condition = np.array(run.table["condition"].to_pylist(), dtype=np.str_)
    repeat = np.array(run.table["run"].to_pylist(), dtype=np.str_)
    names = sorted(set(repeat[condition == ORIGINAL].tolist()))
    return [
        read_expressions(run.table, np.flatnonzero((repeat == name) & (condition == ORIGINAL)), run.protocol)
        for name in names
    ]


def _core_means(e: Expressions) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    count = np.bincount(e.row[e.core], minlength=len(e.keys))
    sums = np.bincount(e.row[e.core], e.q[e.core], minlength=len(e.keys))
    return np.asarray(np.divide(sums, count, out=np.full(len(e.keys), np.nan), where=count > 0), np.float64)


def _original(errors: Errors) -> Errors:
    table = errors.table.filter(pa.compute.equal(errors.table["condition"], ORIGINAL))
    return Errors(errors.kinds, errors.groups, table)


def _captions(material: Material) -> dict[str, str]:
    found = {}
    for key, expressions in zip(material.keys, material.truth["expressions"], strict=True):
        minimal = [item["text"] for item in expressions if item["role"] in (0, "minimal")]
        found[key] = minimal[0] if minimal else expressions[0]["text"] if expressions else ""
    return found


def ladders(results: Sequence[Result]) -> list[Ladder]:
    """The headline numbers, mIoU by operation and by track, with the published numbers."""
    table = published("instancebench")
    found = []
    for title, keys in (
        ("Overall", OVERALL),
        ("mIoU by track", {name.replace("_", " "): f"track/{name}/miou" for name in TRACKS}),
        ("mIoU by operation", {name.replace("_", " "): f"miou/operation/{name}" for name in OPERATIONS}),
    ):
        others: Mapping[str, Mapping[str, float]] = {
            model: {name: values[key] for name, key in keys.items() if values.get(key) is not None}
            for model, values in table["models"].items()
        }
        metrics = [result.metrics for result in results]
        found.append(Ladder(title, lanes(metrics, keys, others), str(table["source"])))
    return found


def panels(runs: Sequence[Run], material: Material, keys: Sequence[str]) -> Iterator[tuple[str, list[Panel], str]]:
    """The pictures of some sets: key, one panel an expression, no further drawing."""
    images = material.pictures(keys)
    read = []
    for i, run in enumerate(runs):
        rows = read_rows(pa.concat_tables(material.batches(i, set(keys))))
        first = min((r for r, c in zip(rows.runs, rows.conditions, strict=True) if c == ORIGINAL), default="0")
        wanted = {k: j for j, k in enumerate(rows.keys) if (rows.runs[j], rows.conditions[j]) == (first, ORIGINAL)}
        read.append((rows, wanted, _facts(run, first, set(keys))))
    for key in keys:
        yield key, _panels(key, read, images.get(key)), ""


def _panels(key: str, read: Sequence[tuple[Rows, dict[str, int], dict[str, str]]], image: Any) -> list[Panel]:
    rows, wanted, _ = read[0]
    k = wanted[key]
    begin = int(rows.candidates.groups[k])
    target = begin + int(rows.targets[k])
    span = np.arange(begin, int(rows.candidates.groups[k + 1]))
    sound = span[rows.candidates.masks.present[span]]
    true = rows.candidates.masks.take(np.array([target]))
    others = rows.candidates.masks.take(sound[sound != target])
    size = int(true.heights[0]), int(true.widths[0])
    same = (others.heights == size[0]) & (others.widths == size[1])
    frame = Frame.fit(size)
    truth, rest = dense(true, frame), dense(others.take(np.flatnonzero(same)), frame)
    picture = base(image, frame)
    layer = masks_layer(truth, frame, predicted=False, others=rest)
    found = []
    for x in range(int(rows.groups[k]), int(rows.groups[k + 1])):
        place = x - int(rows.groups[k])
        layers, facts = [], []
        for own, index, words in read:
            at = int(own.predicted.groups[index[key]]) + place
            answer = dense(_present(own.predicted.masks, at), frame)
            layers.append((masks_layer(answer, frame, predicted=True), difference_layer(truth, answer, frame)))
            facts.append(words.get(str(rows.expressions["expression_id"][x]), ""))
        caption = f"{rows.expressions['role'][x]}: {rows.expressions['text'][x]}"
        found.append(Panel(caption, (frame.height, frame.width), picture, layer, layers, facts))
    return found


def _present(masks: MaskColumn, at: int) -> MaskColumn:
    there = at < len(masks) and bool(masks.present[at])
    return masks.take(np.array([at] if there else [], np.int64))


def _facts(run: Run, repeat: str, keys: set[str]) -> dict[str, str]:
    """Facts about the prediction for each expression."""
    rows = np.flatnonzero([
        k in keys and r == repeat and c == ORIGINAL
        for k, r, c in zip(*(run.table[name].to_pylist() for name in ("key", "run", "condition")), strict=True)
    ])  # fmt: skip
    e = read_expressions(run.table, rows, run.protocol)
    names = run.table["candidate_ids"].take(pa.array(rows)).to_pylist()
    found = {}
    for x in range(len(e.row)):
        assigned = int(e.identity.assigned[x])
        if not e.areas[x]:
            words = "no mask"
        elif assigned == UNRESOLVED:
            words = f"IoU {e.q[x]:.3f}, matched no instance clearly"
        else:
            similarity = f"similarity {e.identity.score[x]:.2f}"
            other = f"the wrong instance (#{names[int(e.row[x])][assigned]}, {similarity})"
            words = f"IoU {e.q[x]:.3f}, matched {f'the target ({similarity})' if e.right[x] else other}"
        found[str(e.ids[x])] = f"{e.operation[x].replace('_', ' ')}; {words}"
    return found


SECTION = Section(build=build, ladders=ladders, panels=panels, truth_key=truth_key)
