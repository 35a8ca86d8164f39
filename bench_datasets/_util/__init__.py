"""Helpers without any knowledge of masks, datasets or benchmarks."""
