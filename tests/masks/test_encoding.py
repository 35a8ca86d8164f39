"""Writing masks: the same strings as pycocotools writes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bench_datasets.masks import MaskColumn, MaskError, encode_dense, encode_label_map, parse_masks
from bench_datasets.masks.rle import Runs, encode_counts

from ..support.slow_masks import coco_encode, dense_runs, random_mask, write_runs

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9))


@settings(max_examples=150, deadline=None)
@given(mask=SHAPES.flatmap(lambda shape: arrays.arrays(bool, shape)))
def test_small_masks(mask: np.ndarray) -> None:
    expected = coco_encode(mask)
    assert encode_dense(mask) == expected
    assert encode_dense(mask.astype(np.int64) * 7) == expected
    assert parse_masks([{"size": list(mask.shape), "counts": dense_runs(mask)}])[0].to_pylist() == [expected]
    np.testing.assert_array_equal(MaskColumn.from_values([expected]).decode(0), mask)


def test_large_masks() -> None:
    generator = np.random.default_rng(3)
    for shape in ((1, 5000), (5000, 1), (480, 640), (1000, 1000)):
        for _ in range(4):
            mask = random_mask(generator, *shape)
            assert encode_dense(mask) == coco_encode(mask)
            assert encode_dense(np.asfortranarray(mask)) == coco_encode(mask)
            np.testing.assert_array_equal(MaskColumn.from_dense([mask]).decode(0), mask)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=8), max_size=4))
def test_runs_of_any_length(masks: list[list[int]]) -> None:
    flat = np.array([run for runs in masks for run in runs], np.int64)
    data, offsets = encode_counts(Runs(flat, np.cumsum([0, *map(len, masks)])))
    found = [data[a:b].tobytes() for a, b in pairwise(offsets.tolist())]
    assert found == [write_runs(runs) for runs in masks]


@settings(max_examples=100, deadline=None)
@given(
    labels=SHAPES.flatmap(
        lambda shape: arrays.arrays(np.int64, shape, elements=st.sampled_from([0, 1, 2, 255, -1, 2**40]))
    ),
    dtype=st.sampled_from([np.int64, np.int16, np.uint8, np.uint64]),
)
def test_label_maps(labels: np.ndarray, dtype: type) -> None:
    labels = labels.astype(dtype)
    found = encode_label_map(labels)
    names = sorted(int(name) for name in np.unique(labels) if name != 0)
    assert list(found) == names
    for name in names:
        assert found[name] == coco_encode(labels == name)


def test_what_is_no_label_map() -> None:
    for value in (np.zeros((2, 2)), np.zeros(3, int), np.zeros((0, 2), int)):
        with pytest.raises(MaskError, match="expected shape"):
            encode_label_map(value)
