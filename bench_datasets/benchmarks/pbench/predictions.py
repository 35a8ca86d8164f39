"""Form of PBench's predictions: a list of masks per row."""

from __future__ import annotations

from bench_datasets.predictions.mask_form import MASK_FORM

FORM = MASK_FORM
