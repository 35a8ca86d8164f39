"""Scoring at scale: in parts that survive a crash, as shards on several machines, on a cluster."""

from bench_datasets.engines.local import score_in_parts, score_shard, scoring_in_parts
from bench_datasets.engines.merging import merge

__all__ = ["merge", "score_in_parts", "score_shard", "scoring_in_parts"]
