"""Likely causes of an InstanceBench score near zero."""

from __future__ import annotations

import pyarrow as pa
from datasets import Features

from bench_datasets.scoring.hints import MaskPair, mask_causes


def likely_causes(table: pa.Table, features: Features) -> list[str]:
    """Compare target masks with the predicted masks of some expressions.

    Args:
        table: expression sets with `target`, `candidates` and the aligned `pred_masks`.
        features: of the ground truth; not needed here.

    Returns:
        One sentence per cause, the likeliest first.
    """
    del features
    names = [name for name in ("pred_boxes", "pred_candidate_ids") if name in table.column_names]
    pairs = []
    for row in table.select(["target", "candidates", "pred_masks", *names]).to_pylist():
        target, candidates = row["target"], row["candidates"] or []
        if target is None or not 0 <= target < len(candidates):
            continue
        others = [row[name] or [] for name in names]
        for i, mask in enumerate(row["pred_masks"] or []):
            if mask is None and any(values[i] is not None for values in others if i < len(values)):
                continue  # a box or a candidate id, which has no mask
            pairs.append(MaskPair([candidates[target]["mask"]], [mask] if mask else []))
    return mask_causes(pairs, "expressions")
