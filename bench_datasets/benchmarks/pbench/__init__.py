"""PBench: referring segmentation by level, with dense scenes."""
