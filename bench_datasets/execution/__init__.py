"""Scoring at scale: in parts that survive a crash, as shards on several machines, on a cluster."""

from bench_datasets.execution.local import score_in_parts, score_shard, scoring_in_parts
from bench_datasets.execution.merge_shards import merge

__all__ = ["merge", "score_in_parts", "score_shard", "scoring_in_parts"]
