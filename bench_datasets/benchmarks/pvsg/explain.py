"""Relations of one PVSG video, and the triplets that match them, as text and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench_datasets.benchmarks.pvsg import BENCHMARK
from bench_datasets.benchmarks.pvsg.batch import Prediction, read_prediction, read_rows, read_truth
from bench_datasets.benchmarks.pvsg.protocol import DEFAULT_THRESHOLDS, WEAK_COUNTS, get_protocol
from bench_datasets.benchmarks.pvsg.relation_matching import NEVER, Hits
from bench_datasets.benchmarks.pvsg.timeline import Bar, draw
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.display.explain import Explanation, picked
from bench_datasets.scoring.options import ScoreOptions

K = 20
"""The rank that the words speak of."""


def explain(row: Mapping[str, Any], prediction: Any, protocol: str | None = None) -> Explanation:
    """See `bench_datasets.explain`.

    Args:
        row: a truth row.
        prediction: what `read_predictions` gave, a row of it, or `{"tubes": ..., "triplets": ...}`.
        protocol: a protocol's name; the default for `None`.

    Returns:
        Text and picture count ranks from 1, as K does; the ranks in `facts` count from 0, as the score table's do.
    """
    chosen = get_protocol(protocol)
    given = dict(picked(row, prediction, BENCHMARK, chosen.name) or {})
    batch = {name: [value] for name, value in row.items()}
    batch["pred_tubes"] = [given.get("pred_tubes", given.get("tubes"))]
    batch["pred_triplets"] = [given.get("pred_triplets", given.get("triplets"))]
    if given.get("pred_faults"):  # what a reader found wrong and left out
        batch["pred_faults"] = [given["pred_faults"]]
    table = BENCHMARK.score_table(batch, ScoreOptions(chosen.name))
    read = next(iter(read_rows(batch)))
    truth, found = read_truth(read), read_prediction(read)[0]
    hits = Hits.read(table, chosen)
    overlaps = hits.volume if chosen.overlap == "volume" else hits.recall
    low = min(DEFAULT_THRESHOLDS)
    first = {t: hits.first(t) for t in DEFAULT_THRESHOLDS}
    relations: list[dict[str, Any]] = []
    for r in range(hits.relations):
        pairs = np.flatnonzero((hits.relation == r) & hits.same)
        best = pairs[np.lexsort((hits.rank[pairs], -overlaps[pairs]))][:1]
        by = [None if first[t][r] == NEVER else int(first[t][r]) for t in DEFAULT_THRESHOLDS]
        relations.append({
            "subject": _named(truth.ids, truth.categories, int(truth.subjects[r])),
            "object": _named(truth.ids, truth.categories, int(truth.objects[r])),
            "predicate": PREDICATES[truth.predicates[r]],
            "spans": [[a, b - 1] for a, b in truth.spans.ranges(r)],
            "hit_rank": {f"{t:g}": rank for t, rank in zip(DEFAULT_THRESHOLDS, by, strict=True)},
            "best_rank": int(hits.triplet[best[0]]) if len(best) and overlaps[best[0]] > 0 else None,
            "overlap": float(overlaps[best[0]]) if len(best) else 0.0,
            "timeless": float(hits.best[r]),
        })  # fmt: skip
    facts = {
        "key": read.key, "protocol": chosen.name, "frames": truth.frames, "triplets": len(found.subjects),
        "relations": relations,
        "weak_count": int(hits.weak()[hits.rank < K].sum()) if chosen.weak else None,
    }  # fmt: skip
    bars = []
    for item in relations:
        best_rank = item["best_rank"]
        spans = [] if best_rank is None else [[a, b - 1] for a, b in found.spans.ranges(best_rank)]
        hit = item["hit_rank"][f"{low:g}"] is not None
        note = f"#{best_rank + 1} {item['overlap']:.2f}" if best_rank is not None else "no triplet"
        bars.append(Bar(_sentence(item), item["spans"], spans, hit, note))
    return Explanation(read.key, _words(facts, found), draw(bars, truth.frames), facts)


def _named(ids: Any, categories: Any, i: int) -> str:
    return "an unknown object" if i < 0 else f"{CATEGORIES[categories[i]]} {ids[i]}"


def _sentence(item: Mapping[str, Any]) -> str:
    return f"{item['subject']} {item['predicate']} {item['object']}"


def _words(facts: Mapping[str, Any], found: Prediction) -> str:
    relations = facts["relations"]
    lines = [
        f"{facts['key']} under {facts['protocol']}: {len(relations)} relations in {facts['frames']} frames,"
        f" {facts['triplets']} triplets"
    ]
    if facts["weak_count"] is not None:
        lines.append(f"counted from overlap {WEAK_COUNTS:g} until one reaches 0.5, K = {K}: {facts['weak_count']}")
    for t in DEFAULT_THRESHOLDS:
        ranks = [item["hit_rank"][f"{t:g}"] for item in relations]
        count = sum(rank is not None and rank < K for rank in ranks)
        lines.append(f"hit at overlap {t:g} within K = {K}: {count} of {len(relations)}")
    for item in relations:
        spans = ", ".join(f"{a}-{b}" for a, b in item["spans"]) or "none within the video"
        lines.append(f"  {_sentence(item)}, frames {spans}")
        if item["best_rank"] is None:
            what = "no triplet of its classes and predicate overlaps it"
        else:
            what = f"best triplet: rank {item['best_rank'] + 1} (score {found.scores[item['best_rank']]:g})"
            what += f", overlap {item['overlap']:.4f}"
        hit = [f"{t} by rank {rank + 1}" for t, rank in item["hit_rank"].items() if rank is not None]
        fate = f"hit at {', at '.join(hit)}" if hit else f"not hit; tubes alone reach {item['timeless']:.4f}"
        lines.append(f"    {what}; {fate}")
    return "\n".join(lines)
