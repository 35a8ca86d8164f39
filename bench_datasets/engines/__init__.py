"""Scoring at scale: in parts that survive a crash, as shards on several machines, on a cluster."""

from bench_datasets.engines.local import score_in_parts, score_shard
from bench_datasets.engines.parts import merge

__all__ = ["merge", "score_in_parts", "score_shard"]
