"""Likely causes of a PVSG score near zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from datasets import Features

from bench_datasets.scoring.hints import MaskPair, mask_causes

VIDEOS = 4
"""Videos that are looked at."""

FRAMES = 6
"""Frames per video whose masks are compared."""

Row = Mapping[str, Any]


def likely_causes(table: pa.Table, features: Features) -> list[str]:
    """Compare frames, masks, categories, predicates and spans of some videos with their predictions.

    Args:
        table: videos with the predicted tubes and triplets.
        features: of the ground truth, for the names of categories and predicates.

    Returns:
        One sentence per cause, the likeliest first.
    """
    step = max(1, len(table) // VIDEOS)
    rows = table.take(list(range(0, len(table), step))[:VIDEOS]).to_pylist()
    rows = [row for row in rows if row["tubes"] and (row["pred_tubes"] or row["pred_triplets"])]
    if not rows:
        return []
    causes = _frame_causes(rows) or mask_causes([pair for row in rows for pair in _frame_pairs(row)], "frames")
    return causes or _name_causes(rows, features)


def _frame_causes(rows: list[Row]) -> list[str]:
    true = [_extent(row["tubes"]) for row in rows]
    predicted = [_extent(row["pred_tubes"] or []) for row in rows]
    if all(t == (p[0] - 1, p[1] - 1) for t, p in zip(true, predicted, strict=True)) and predicted[0][0] == 1:
        return ["the frames of the predicted tubes look counted from 1; this benchmark counts them from 0"]
    return []


def _extent(tubes: Iterable[Row]) -> tuple[int, int]:
    """First and last frame of any tube; (0, -1) without frames."""
    frames = [frame for tube in tubes for frame in tube["frames"] or []]
    return (min(frames), max(frames)) if frames else (0, -1)


def _frame_pairs(row: Row) -> list[MaskPair]:
    """Ground truth and predicted masks of some frames."""
    true, predicted = _by_frame(row["tubes"]), _by_frame(row["pred_tubes"] or [])
    frames = sorted(true)
    chosen = frames[:: max(1, len(frames) // FRAMES)][:FRAMES]
    return [MaskPair(true[frame], predicted.get(frame, [])) for frame in chosen]


def _by_frame(tubes: Iterable[Row]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for tube in tubes:
        for frame, mask in zip(tube["frames"] or [], tube["masks"] or [], strict=False):
            found.setdefault(frame, []).append(mask)
    return found


def _name_causes(rows: list[Row], features: Features) -> list[str]:
    """Names and spans that fit nothing in the ground truth of their videos."""
    relations = [relation for row in rows for relation in row["relations"]]
    named = {
        "category of a tube": (
            {_name(features["objects"].feature["category"], o["category"]) for row in rows for o in row["objects"]},
            {tube["category"] for row in rows for tube in row["pred_tubes"] or []},
        ),
        "predicate": (
            {
                _name(features["relations"].feature["predicate"], r["predicate"])
                for row in rows
                for r in row["relations"]
            },
            {triplet["predicate"] for row in rows for triplet in row["pred_triplets"] or []},
        ),
    }
    causes = [
        f"no predicted {what} is one of the ground truth in {len(rows)} videos looked at"
        f" (predicted: {_some(predicted)}; ground truth: {_some(true)})"
        for what, (true, predicted) in named.items()
        if true and predicted and not true & predicted
    ]
    true_spans = [span for relation in relations for span in relation["spans"] or []]
    spans = [span for row in rows for triplet in row["pred_triplets"] or [] for span in triplet["spans"] or []]
    if true_spans and spans:
        last, true_last = max(span[1] for span in spans), max(span[1] for span in true_spans)
        if last < 0.2 * true_last:
            causes.append(
                f"predicted spans end at {last}, those of the ground truth at {true_last}: are spans in frames, not"
                " in seconds?"
            )
    return causes


def _name(feature: Any, value: Any) -> str:
    return str(feature.int2str(value)) if isinstance(value, int) and hasattr(feature, "int2str") else str(value)


def _some(names: Iterable[str]) -> str:
    """The first three names."""
    ordered = sorted(map(str, names))
    return ", ".join(ordered[:3]) + (", ..." if len(ordered) > 3 else "")
