"""One PBench row's matching in words and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench_datasets.benchmarks.pbench import BENCHMARK
from bench_datasets.benchmarks.pbench.batch import read_rows
from bench_datasets.benchmarks.pbench.measure import NMS_IOU
from bench_datasets.benchmarks.pbench.protocol import PBenchProtocol, get_protocol
from bench_datasets.benchmarks.pbench.statistics import read_scores
from bench_datasets.display.explain import Explanation, picked
from bench_datasets.display.overlay import overlay
from bench_datasets.masks import MaskColumn, nms_order, quotient, resize
from bench_datasets.masks import iou as pairwise_iou
from bench_datasets.scoring.options import ScoreOptions


def explain(row: Mapping[str, Any], prediction: Any, protocol: str | None = None) -> Explanation:
    """See `bench_datasets.explain`."""
    chosen = get_protocol(protocol)
    masks = prediction = picked(row, prediction, BENCHMARK, chosen.name)
    if isinstance(prediction, Mapping):
        masks = prediction.get("pred_masks", prediction.get("masks"))
    batch = {name: [row[name]] for name in ("key", "id", "level", "expression", "masks", "faults") if name in row}
    batch.setdefault("id", [0])
    batch["pred_masks"] = [masks]
    if isinstance(prediction, Mapping) and prediction.get("pred_faults"):  # they say why a mask is null
        batch["pred_faults"] = [prediction["pred_faults"]]
    table = BENCHMARK.score_table(batch, ScoreOptions(chosen.name))
    rows = read_rows(batch, None)
    scores = read_scores(table, chosen)
    scored = table.to_pylist()[0]
    truth, given = rows.true.masks, rows.predicted.masks
    size = (int(truth.heights[0]), int(truth.widths[0])) if len(truth) else None
    predicted = given if size is None else resize(given, np.full(len(given), size[0]), np.full(len(given), size[1]))
    score = float(scores.row_score[0]) if scores.counted[0] else None
    facts = {
        "key": rows.key(0), "protocol": chosen.name, "score": score,
        "true": len(truth), "predicted": len(given), "scored": scored["kept_count"],
        "predictions": _fates(predicted, given, truth, scored, chosen) if size else [],
        "union_iou": float(quotient(scored["union_intersection"], _union(scored))) if size else None,
    }  # fmt: skip
    missed = sorted(set(range(len(truth))) - set(scored["matched_truth"]))
    facts["missed"] = missed
    return Explanation(
        rows.key(0),
        _words(facts, chosen, rows.levels[0].as_py()),
        overlay(row.get("image"), size, truth, predicted if size else None),
        facts,
    )


def _union(scored: Mapping[str, Any]) -> int:
    return int(scored["union_predicted"] + scored["union_true"] - scored["union_intersection"])


def _fates(
    predicted: MaskColumn, given: MaskColumn, truth: MaskColumn, scored: Mapping[str, Any], protocol: PBenchProtocol
) -> list[dict[str, Any]]:
    """The outcome of each prediction, in the order given."""
    areas = predicted.areas()
    between, against_truth = pairwise_iou(predicted, predicted), pairwise_iou(predicted, truth)
    nearest = against_truth.argmax(axis=1).tolist() if len(truth) else []
    partner = dict(zip(scored["matched_prediction"], scored["matched_truth"], strict=True))
    shared = dict(
        zip(
            scored["matched_prediction"],
            zip(scored["matched_intersection"], scored["matched_union"], strict=True),
            strict=True,
        )
    )
    kept: list[int] = []
    dropped: dict[int, tuple[int, float]] = {}
    for i in nms_order(areas).tolist() if protocol.nms is not None else []:
        against = next((j for j in kept if between[i, j] > NMS_IOU), None)
        if against is None:
            kept.append(i)
        else:
            dropped[i] = (against, float(between[i, against]))
    foreign = (given.heights != truth.heights[0]) | (given.widths != truth.widths[0])
    return [
        {
            "prediction": i,
            "area": int(areas[i]),
            "resized_from": [int(given.heights[i]), int(given.widths[i])] if foreign[i] else None,
            "dropped_for": dropped.get(i),
            "truth": partner.get(i),
            "iou": float(quotient(*shared[i])) if i in shared else None,
            "nearest": [nearest[i], float(against_truth[i, nearest[i]])] if against_truth[i].any() else None,
        }
        for i in range(len(predicted))
    ]


def _words(facts: Mapping[str, Any], protocol: PBenchProtocol, level: str) -> str:
    thresholds = protocol.dense_thresholds if level == "dense" else protocol.thresholds
    score = "left out (no ground truth)" if facts["score"] is None else f"score {facts['score']:.4f}"
    many = "" if facts["true"] == 1 else "s"
    lines = [
        f"{facts['key']} under {facts['protocol']}: {score}",
        f"{facts['true']} ground truth mask{many}, {facts['predicted']} predicted, {facts['scored']} scored",
    ]
    for item in facts["predictions"]:
        at = f"  prediction {item['prediction']} ({item['area']} px"
        at += f", resized from {item['resized_from'][0]} x {item['resized_from'][1]})" if item["resized_from"] else ")"
        if item["dropped_for"]:
            lines.append(f"{at}: dropped, IoU {item['dropped_for'][1]:.4f} with prediction {item['dropped_for'][0]}")
        elif item["truth"] is None:
            lines.append(f"{at}: {_unpaired(item['nearest'], facts['missed'])}")
        else:
            reached = [t for t in thresholds if item["iou"] >= t]
            reach = f"counts up to threshold {max(reached):.2f}" if reached else "below every threshold"
            lines.append(f"{at}: ground truth {item['truth']}, IoU {item['iou']:.4f}, {reach}")
    if facts["missed"]:
        lines.append(f"  without a prediction: ground truth {', '.join(map(str, facts['missed']))}")
    if facts["union_iou"] is not None:
        lines.append(f"union IoU {facts['union_iou']:.4f}")
    return "\n".join(lines)


def _unpaired(nearest: list[Any] | None, missed: Sequence[int]) -> str:
    """Why a prediction has no ground truth mask."""
    if nearest is None:
        return "overlaps no ground truth mask"
    truth, iou = nearest
    left = "is left without a prediction" if truth in missed else "went to another prediction"
    return f"no ground truth left for it; ground truth {truth}, which it overlaps most (IoU {iou:.4f}), {left}"
