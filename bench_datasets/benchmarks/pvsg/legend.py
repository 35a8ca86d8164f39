"""One line per metric of PVSG; K is the rank up to which triplets count, t the overlap that a hit needs."""

from __future__ import annotations

from bench_datasets.results.legend import Meaning

METRICS: dict[str, Meaning] = {
    "R@<K>/<t>": Meaning("share of ground truth relations that one of the first K triplets hits", True),
    "mR@<K>/<t>": Meaning("mean over predicates of R@K", True),
    "pair_recall@<K>/<t>": Meaning("R@K if a wrong predicate counts as right", True),
    "timeless_recall@<K>/<t>": Meaning("R@K if a wrong time span counts as right", True),
    "tube_recall@<t>": Meaning("share of ground truth tubes that a predicted tube of their class overlaps by t", True),
    "loss/first_stage@<K>/<t>": Meaning("share of relations lost because their tubes were not found", True),
    "loss/second_stage@<K>/<t>": Meaning("share of relations lost although their tubes were found", True),
    "weak_official/R@<K>": Meaning("recall as the released code counts it at 0.1", True),
    "weak_official/mR@<K>": Meaning("mean over predicates of that recall", True),
    "vpq": Meaning("video panoptic quality, mean over the windows", True, "VPQ"),
    "vpq/<window>": Meaning("video panoptic quality over windows of so many frames", True),
    "stq": Meaning("segmentation and tracking quality: root of stq/aq times stq/sq", True, "STQ"),
    "stq/aq": Meaning("association quality", True),
    "stq/sq": Meaning("segmentation quality", True),
    "boundary_<measure>/<metric>": Meaning("the metric with boundary IoU or boundary F", True),
}
"""Meanings by pattern of the key; `<...>` stands for a name or a number."""
