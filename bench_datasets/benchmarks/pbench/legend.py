"""One line per metric of PBench; each stands with `/<level>`."""

from __future__ import annotations

from bench_datasets.results.legend import Meaning

_BY_LEVEL: dict[str, Meaning] = {
    "macro_f1": Meaning("mean over rows of the F1 of the matched masks", True, "Macro-F1"),
    "accuracy": Meaning("share of rows with IoU of at least 0.5 of the unions of all masks", True, "accuracy"),
    "pmf1": Meaning("F1 pooled over rows, mean over IoU thresholds; rows with ground truth masks", True),
    "il_mcc": Meaning("Matthews correlation of \"something predicted\" and \"something there\"", True),
    "cgf1": Meaning("pmf1 times il_mcc", True),
    "giou": Meaning("mean over rows of the IoU of the unions of all masks", True),
    "ciou": Meaning("all intersections divided by all unions", True),
    "micro_f1@<t>": Meaning("F1 pooled over rows at IoU threshold t", True),
    "mask_redundancy_rate": Meaning("share of predicted masks that non-maximum suppression removes", True),
    "duplicates": Meaning("mean number per row of further predictions with IoU of at least 0.5 to the same mask", True),
    "count_error": Meaning("mean absolute difference of the numbers of predicted and ground truth masks", True),
    "collapse": Meaning("share of rows with ground truth masks for which nothing was predicted", True),
    "drift": Meaning("mean distance of the predicted centre from the mask, in diagonals of the image"),
    "il_tp": Meaning("rows with ground truth masks and predictions", True),
    "il_tn": Meaning("rows with neither", True),
    "il_fp": Meaning("rows with predictions only", True),
    "il_fn": Meaning("rows with ground truth masks only", True),
}  # fmt: skip

METRICS: dict[str, Meaning] = {
    "average": Meaning("mean of macro_f1 over the six parts", True, "Macro-F1 average"),
    **_BY_LEVEL,
    **{f"{name}/<level>": meaning for name, meaning in _BY_LEVEL.items()},
    "boundary_<measure>/<metric>": Meaning("the metric with boundary IoU or boundary F in place of IoU", True),
    "boundary_<measure>/<metric>/<level>": Meaning("the metric with boundary IoU or boundary F in place of IoU", True),
}
"""Meanings by pattern of the key; `<...>` stands for a name or a number."""
