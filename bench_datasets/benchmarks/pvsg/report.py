"""PVSG's part of a report: relations by predicate, R@K at any overlap and K, key frames and timelines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from bench_datasets.benchmarks.pvsg.protocol import DEFAULT_THRESHOLDS
from bench_datasets.benchmarks.pvsg.relation_matching import NEVER, Hits, flat, row_of, texts
from bench_datasets.benchmarks.pvsg.videos import Videos
from bench_datasets.report.embed import coded, hundredths
from bench_datasets.report.inputs import Material
from bench_datasets.report.page_data import Content, Ladder, Panel, lanes, telling
from bench_datasets.report.runs import Run
from bench_datasets.report.section import Section
from bench_datasets.results.error_kinds import find_errors
from bench_datasets.results.paper_results import published
from bench_datasets.results.result import Metric, Result

K = 20
"""The rank that the page speaks of; the first of a run's own where it is not among them."""

PREDICATES_SHOWN = 12
"""Predicates of a ladder, the commonest."""


def truth_key(key: str) -> str:
    """The truth row that a row of the page is about: a relation's video."""
    return key.rpartition("#")[0]


def build(runs: Sequence[Run], material: Material | None) -> Content:
    """Build the page's content about PVSG runs, without pictures."""
    del material  # everything but the pictures stands in the scores
    first, k = runs[0].table, rank_of(runs[0].result)
    predicates = texts(first, "relation_predicate").tolist()
    groups = sorted(set(predicates))
    protocol = runs[0].protocol
    columns, scores = [], []
    for run in runs:
        hits = Hits.read(run.table, protocol)
        overlap = hits.volume if protocol.overlap == "volume" else hits.recall
        best = np.zeros(hits.relations)
        np.maximum.at(best, hits.relation[hits.same], overlap[hits.same])
        scores.append(best)
        columns.append({
            "score": [round(value, 4) for value in best.tolist()], "iou": [coded(np.array([v])) for v in best.tolist()],
            "pairs": _pairs(hits, overlap),
        })  # fmt: skip
    slider = None if protocol.weak else {
        "kind": "recall", "title": "R@K: the share of relations that a triplet of the first K hits", "once":
        protocol.once, "start": 50, "rank": k, "complete": True, "band": None,
        "note": f"The headline is the value at 0.50 with K = {k}.",
    }  # fmt: skip
    errors = [find_errors("pvsg", run.table) for run in runs]
    content = Content(
        "relation", groups, "predicate",
        {"key": _keys(first), "caption": _captions(first), "group": [[groups.index(name)] for name in predicates]},
        columns, slider, errors, ladders([run.result for run in runs]), [],
    )  # fmt: skip
    bits = content.masks_of_kinds([range(len(predicates))] * len(runs))
    for column, own in zip(columns, bits, strict=True):
        column["kinds"] = own
    near = np.min([np.abs(values - DEFAULT_THRESHOLDS[0]) for values in scores], axis=0)
    content.order = telling([values.tolist() for values in scores], near.tolist(), bits)
    return content


def rank_of(result: Result) -> int:
    """The K of the headline number."""
    ranks = result.settings.get("k") or (K,)
    return K if K in ranks else int(ranks[0])


def _pairs(hits: Hits, overlap: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[list[int]]:
    """Relation, rank, triplet (of its video) and overlap in hundredths, in the order in which triplets take."""
    steps = hundredths(overlap)
    some = np.flatnonzero(hits.same & (steps >= 5))
    order = some[np.lexsort((hits.relation[some], -overlap[some], hits.triplet[some], hits.row[some]))]
    _, triplet = np.unique(hits.row * (int(hits.triplet.max(initial=0)) + 1) + hits.triplet, return_inverse=True)
    columns = (hits.relation[order], hits.rank[order], triplet[order], steps[order])
    return [list(values) for values in zip(*(column.tolist() for column in columns), strict=True)]


def _keys(table: pa.Table) -> list[str]:
    rows = row_of(table, "relation_visible")
    begin = np.searchsorted(rows, np.arange(len(table) + 1))
    keys = table["key"].to_pylist()
    return [f"{keys[row]}#{i - begin[row]}" for i, row in enumerate(rows.tolist())]


def _captions(table: pa.Table) -> list[str]:
    """Each relation in words."""
    rows, objects = row_of(table, "relation_visible"), row_of(table, "object_area")
    begin = np.searchsorted(objects, np.arange(len(table) + 1))
    ids, names = flat(table, "object_id").tolist(), texts(table, "object_category").tolist()
    ends = [flat(table, f"relation_{end}").tolist() for end in ("subject", "object")]

    def named(row: int, end: int) -> str:
        at = begin[row] + end
        return f"{names[at]} {ids[at]}" if end >= 0 else "unknown"

    predicates = texts(table, "relation_predicate").tolist()
    return [
        f"{named(row, s)} {predicate} {named(row, o)}"
        for row, s, predicate, o in zip(rows.tolist(), ends[0], predicates, ends[1], strict=True)
    ]


def ladders(results: Sequence[Result]) -> list[Ladder]:
    """Recalls, stages and predicates, with the published numbers of the same protocol."""
    name = results[0].protocol["name"]
    table = published("pvsg")
    models: Mapping[str, Mapping[str, float]] = table["models"] if name in (table["protocol"], "weak_official") else {}
    metrics = [result.metrics for result in results]
    found = []
    ranks = [key.partition("@")[2] for key in metrics[0] if key.partition("@")[0] in ("R", "weak_official/R")]
    recall = "weak_official/R" if name == "weak_official" else "R"
    keys = {f"{kind}@{at}": f"{recall.replace('R', kind)}@{at}" for kind in ("R", "mR") for at in ranks}
    others = {model: {k: values[key] for k, key in keys.items() if key in values} for model, values in models.items()}
    found.append(Ladder("Recall and mean recall", lanes(metrics, keys, others), str(table["source"]) if others else ""))
    k = rank_of(results[0])
    stages = {
        "tubes found": "tube_recall@0.5", "pairs, predicate aside": f"pair_recall@{k}/0.5",
        "triplets, times aside": f"timeless_recall@{k}/0.5", "relations": f"R@{k}/0.5",
    }  # fmt: skip
    found.append(Ladder(f"Stages at overlap 0.5, K = {k}", lanes(metrics, stages, {})))
    key = f"R@{k}/0.5"
    parts = [_by_predicate(result, key) for result in results]
    common = sorted(parts[0], key=lambda p: (-parts[0][p].n, p))[:PREDICATES_SHOWN]
    names = {predicate: predicate for predicate in common}
    found.append(Ladder(f"{key} by predicate, the commonest", lanes(parts, names, {})))
    return found


def _by_predicate(result: Result, key: str) -> dict[str, Metric]:
    return {part.value: part.metrics[key] for part in result.slices if part.by == "predicate" and key in part.metrics}


def panels(runs: Sequence[Run], material: Material, keys: Sequence[str]) -> Iterator[tuple[str, list[Panel], str]]:
    """The pictures of some relations: key, key frames with the tracked masks, and the relation over time."""
    videos = Videos(runs, material, sorted({truth_key(key) for key in keys}))
    for key in keys:
        yield key, *videos.relation(truth_key(key), int(key.rpartition("#")[2]), NEVER)


SECTION = Section(build=build, ladders=ladders, panels=panels, truth_key=truth_key)
