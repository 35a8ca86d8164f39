"""Scoring: pair ground truth and predictions, validate them, and write one score row per unit."""
