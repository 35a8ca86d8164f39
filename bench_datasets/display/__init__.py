"""Rows as text and pictures."""
