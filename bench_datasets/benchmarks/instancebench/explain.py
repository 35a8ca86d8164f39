"""One TCES's identities in words and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench_datasets.benchmarks.instancebench import BENCHMARK
from bench_datasets.benchmarks.instancebench.assignment import UNRESOLVED
from bench_datasets.benchmarks.instancebench.batch import read_rows
from bench_datasets.benchmarks.instancebench.expressions import read_expressions
from bench_datasets.benchmarks.instancebench.inputs import answers_of
from bench_datasets.benchmarks.instancebench.protocol import get_protocol
from bench_datasets.display.explain import Explanation
from bench_datasets.display.overlay import overlay
from bench_datasets.scoring.options import ScoreOptions


def explain(row: Mapping[str, Any], prediction: Any, protocol: str | None = None) -> Explanation:
    """See `bench_datasets.explain`; the prediction is of all expressions of the row, in any form of `answers_of`."""
    chosen = get_protocol(protocol)
    batch = {name: [value] for name, value in row.items() if name not in ("image", "image_sha256")}
    batch |= {name: [value] for name, value in answers_of(row, prediction).items()}
    table = BENCHMARK.score_table(batch, ScoreOptions(chosen.name))
    rows = read_rows(batch)
    e = read_expressions(table, np.array([0]), chosen)
    scored = table.to_pylist()[0]
    names = scored["candidate_ids"]
    facts: dict[str, Any] = {
        "key": rows.keys[0],
        "protocol": chosen.name,
        "target": names[scored["target"]],
        "candidates": names,
        "expressions": [
            {
                "expression_id": str(e.ids[k]),
                "role": str(e.role[k]),
                "text": rows.expressions["text"][k],
                "iou": float(e.q[k]),
                "assigned": None if e.identity.assigned[k] == UNRESOLVED else names[int(e.identity.assigned[k])],
                "score": float(e.identity.score[k]),
                "margin": float(e.identity.margin[k]),
            }
            for k in range(len(e.row))
        ],
    }
    lines = [f"{facts['key']} under {chosen.name}: target {facts['target']} among {len(names)} candidates"]
    for item in facts["expressions"]:
        matches = "no candidate (unresolved)" if item["assigned"] is None else f"candidate {item['assigned']}"
        right = "right" if item["assigned"] == facts["target"] else "wrong"
        lines.append(f"  {item['role']} {item['text']!r}: IoU {item['iou']:.4f}, matches {matches}, {right}")
        lines.append(f"    similarity {item['score']:.4f}, margin {item['margin']:.4f}")
    target = int(rows.candidates.groups[0] + rows.targets[0])
    truth = rows.candidates.masks.part(target, target + 1)
    size = (int(truth.heights[0]), int(truth.widths[0]))
    there = np.flatnonzero(rows.predicted.masks.present)
    picture = overlay(row.get("image"), size, truth, rows.predicted.masks.take(there))
    return Explanation(rows.keys[0], "\n".join(lines), picture, facts)
