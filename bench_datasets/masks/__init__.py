"""Masks: a column of RLE masks over Arrow, validated before anything computes with it."""

from bench_datasets._util.arrow import joined
from bench_datasets.masks.arrow import list_offsets, list_values
from bench_datasets.masks.boundary import BoundaryCounts, boundary_pairs, union_masks
from bench_datasets.masks.column import MASK_TYPE, MaskColumn
from bench_datasets.masks.decoded import Decoded
from bench_datasets.masks.dense import encode_dense, encode_label_map
from bench_datasets.masks.engine import (
    Hits,
    available_engines,
    engine_problem,
    get_engine,
    nms_order,
    quotient,
    using_engine,
)
from bench_datasets.masks.features import MASK_FEATURE
from bench_datasets.masks.ops import (
    group_hits,
    group_intersections,
    intersections,
    iou,
    nms,
    pair_intersections,
    pair_iou,
    tube_intersections,
    union_overlaps,
)
from bench_datasets.masks.parse import parse_mask, parse_masks
from bench_datasets.masks.plain import plain
from bench_datasets.masks.resize import resize
from bench_datasets.masks.status import MaskError, Status

__all__ = [
    "MASK_FEATURE",
    "MASK_TYPE",
    "BoundaryCounts",
    "Decoded",
    "Hits",
    "MaskColumn",
    "MaskError",
    "Status",
    "available_engines",
    "boundary_pairs",
    "encode_dense",
    "encode_label_map",
    "engine_problem",
    "get_engine",
    "group_hits",
    "group_intersections",
    "intersections",
    "iou",
    "joined",
    "list_offsets",
    "list_values",
    "nms",
    "nms_order",
    "pair_intersections",
    "pair_iou",
    "parse_mask",
    "parse_masks",
    "plain",
    "quotient",
    "resize",
    "tube_intersections",
    "union_masks",
    "union_overlaps",
    "using_engine",
]
