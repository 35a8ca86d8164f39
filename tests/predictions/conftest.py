"""Rows of masks that every reader's tests write into files."""

from __future__ import annotations

import numpy as np
import pytest

from ..support.dense_masks import Dense


@pytest.fixture
def rows() -> dict[int, Dense]:
    """Five rows of random masks by id; one row has none, one has many."""
    random = np.random.default_rng(7)
    shapes = {3: (5, 8), 11: (4, 4), 12: (9, 3), 100: (6, 6), 2: (7, 5)}
    counts = {3: 2, 11: 0, 12: 1, 100: 12, 2: 3}
    return {name: [random.random(shape) < 0.4 for _ in range(counts[name])] for name, shape in shapes.items()}
