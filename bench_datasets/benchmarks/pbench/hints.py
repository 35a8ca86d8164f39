"""Likely causes of a PBench score near zero."""

from __future__ import annotations

import pyarrow as pa
from datasets import Features

from bench_datasets.scoring.hints import MaskPair, mask_causes


def likely_causes(table: pa.Table, features: Features) -> list[str]:
    """Compare the masks of some rows with their predictions.

    Args:
        table: ground truth rows with `masks` and `pred_masks`.
        features: of the ground truth; not needed here.

    Returns:
        One sentence per cause, the likeliest first.
    """
    del features
    rows = table.select(["masks", "pred_masks"]).to_pylist()
    return mask_causes([MaskPair(row["masks"] or [], row["pred_masks"] or []) for row in rows], "rows")
