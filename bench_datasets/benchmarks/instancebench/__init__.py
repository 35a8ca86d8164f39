"""InstanceBench: target-centric expression sets with labels of referential logic."""
