"""Boundary IoU and boundary F against erosions and distance transforms of dense masks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage

from bench_datasets.masks import MaskColumn, MaskError, boundary_pairs, contours, union_masks, using_engine
from bench_datasets.masks.engine import available_engines
from bench_datasets.masks.rle import Runs

Dense = NDArray[np.bool_]


def region(mask: Dense) -> Dense:
    depth = max(1, round(0.02 * math.hypot(*mask.shape)))
    return mask & ~ndimage.binary_erosion(mask, np.ones((3, 3)), iterations=depth, border_value=0)


def contour(mask: Dense) -> Dense:
    found = np.zeros_like(mask)
    height, width = mask.shape
    for down, right in ((0, 1), (1, 0), (1, 1)):
        here, there = mask[: height - down, : width - right], mask[down:, right:]
        found[: height - down, : width - right] |= here != there
    return found


def near(line: Dense) -> Dense:
    tolerance = math.ceil(0.008 * math.hypot(*line.shape))
    return ndimage.distance_transform_edt(~line) <= tolerance if line.any() else line


def counted(a: Dense, b: Dense) -> list[int]:
    left, right, line_a, line_b = region(a), region(b), contour(a), contour(b)
    found = (left & right, left | right, line_a & near(line_b), line_a, line_b & near(line_a), line_b)
    return [int(part.sum()) for part in found]


def check(pairs: list[tuple[Dense, Dense]]) -> None:
    a, b = (MaskColumn.from_dense([pair[side] for pair in pairs]) for side in (0, 1))
    assert np.stack(boundary_pairs(a, b), axis=1).tolist() == [counted(*pair) for pair in pairs]


def full(height: int, width: int) -> Dense:
    return np.ones((height, width), bool)


def framed(height: int, width: int, top: int, left: int, bottom: int, right: int) -> Dense:
    mask = np.zeros((height, width), bool)
    mask[top:bottom, left:right] = True
    return mask


def disk(size: int, y: float, x: float, radius: float) -> Dense:
    rows, columns = np.ogrid[:size, :size]
    return np.asarray((rows - y) ** 2 + (columns - x) ** 2 <= radius**2)


CASES: dict[str, tuple[Dense, Dense]] = {
    "both empty": (~full(9, 7), ~full(9, 7)),
    "one empty": (full(60, 40), ~full(60, 40)),
    "both full": (full(60, 40), full(60, 40)),
    "one pixel": (framed(1, 1, 0, 0, 1, 1), framed(1, 1, 0, 0, 1, 1)),
    "a pixel in each corner": (framed(50, 50, 0, 0, 1, 1), framed(50, 50, 49, 49, 50, 50)),
    "a pixel beside a pixel": (framed(50, 50, 20, 20, 21, 21), framed(50, 50, 20, 21, 21, 22)),
    "one row": (framed(1, 300, 0, 20, 1, 90), framed(1, 300, 0, 25, 1, 100)),
    "one column": (framed(300, 1, 20, 0, 90, 1), framed(300, 1, 25, 0, 100, 1)),
    "at the left and right border": (framed(80, 60, 10, 0, 70, 60), framed(80, 60, 20, 30, 60, 60)),
    "at the top and bottom border": (framed(80, 60, 0, 10, 80, 50), framed(80, 60, 0, 12, 40, 48)),
    "within the tolerance": (disk(200, 100, 100, 60), disk(200, 100, 103, 60)),
    "beyond the tolerance": (disk(200, 100, 100, 60), disk(200, 100, 104, 40)),
    "a ring": (disk(200, 100, 100, 60) & ~disk(200, 100, 100, 40), disk(200, 100, 100, 60)),
    "stripes": (np.tile([True, False], (90, 50)), np.tile([[True], [False]], (45, 100))),
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("pair", CASES.values(), ids=list(CASES))
def test_counts_of_plain_shapes(pair: tuple[Dense, Dense]) -> None:
    check([pair, pair[::-1]])


@pytest.mark.usefixtures("engine")
def test_pairs_of_all_sizes_in_one_call() -> None:
    check([*CASES.values(), *(pair[::-1] for pair in CASES.values())])


@pytest.mark.usefixtures("engine")
def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench_datasets.masks import boundary

    monkeypatch.setattr(boundary, "CHUNK_RUNS", 40)
    monkeypatch.setattr(contours, "CHUNK_POINTS", 7)
    check(list(CASES.values()))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("shape", "most"), [((20, 30), 40), ((40, 3), 5), ((1, 60), 5), ((60, 1), 5)])
def test_boundary_pairs_of_one_mask_in_parts_counts_all_pixels(
    shape: tuple[int, int], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench_datasets.masks import boundary, intervals

    for module in (boundary, contours, intervals):
        monkeypatch.setattr(module, "PART", most)
    rng = np.random.default_rng(11)
    for share in (0.1, 0.5, 0.97):
        check([(rng.random(shape) < share, rng.random(shape) < 0.5)])
    check([(full(*shape), ~full(*shape))])


def test_columns_without_contour_are_jumped_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contours, "WIDE", 0)
    with using_engine("pycocotools"):
        check(list(CASES.values()))
        check([(framed(1, 4000, 0, 300, 1, 305), framed(1, 4000, 0, 330, 1, 360))])


@pytest.mark.usefixtures("engine")
def test_numbers_by_hand() -> None:
    # 4 x 4 squares in 8 x 8, a pixel apart: depth 1, tolerance 1. Regions are the rings of 12; they share 6.
    a, b = framed(8, 8, 2, 2, 6, 6), framed(8, 8, 2, 3, 6, 7)
    counts = boundary_pairs(MaskColumn.from_dense([a]), MaskColumn.from_dense([b]))
    assert (counts.iou_intersection[0], counts.iou_union[0]) == (6, 18)
    # A window of 2 x 2 meets a square at 5 x 5 places and lies inside it at 3 x 3; all are within a pixel of the other.
    assert [int(part[0]) for part in counts[2:]] == [16] * 4


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Dense, Dense]:
    height, width = draw(st.integers(1, 70)), draw(st.integers(1, 70))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def mask(kind: str) -> Dense:
        if kind == "noise":
            return np.asarray(rng.random((height, width)) < rng.random())
        if kind == "blobs":
            return np.asarray(ndimage.gaussian_filter(rng.random((height, width)), rng.uniform(1, 5)) > 0.5)
        top, left = int(rng.integers(height)), int(rng.integers(width))
        return framed(height, width, top, left, int(rng.integers(top, height + 1)), int(rng.integers(left, width + 1)))

    kinds = st.sampled_from(("noise", "blobs", "box"))
    a = mask(draw(kinds))
    return a, np.roll(a, draw(st.integers(-4, 4)), axis=1) if draw(st.booleans()) else mask(draw(kinds))


@settings(max_examples=60, deadline=None)
@given(st.lists(pairs(), min_size=1, max_size=4))
def test_any_masks(found: list[tuple[Dense, Dense]]) -> None:
    for name in available_engines():
        with using_engine(name):
            check(found)


@pytest.mark.usefixtures("engine")
def test_a_large_mask() -> None:
    rng = np.random.default_rng(3)
    a = ndimage.gaussian_filter(rng.random((700, 900)), 20) > 0.5
    b = ndimage.gaussian_filter(rng.random((700, 900)), 20) > 0.5
    check([(a, np.roll(a, 5, axis=0)), (a, b), (a ^ (rng.random(a.shape) < 0.05), a)])


@pytest.mark.usefixtures("engine")
def test_no_pairs() -> None:
    none = MaskColumn.from_values([])
    assert [len(part) for part in boundary_pairs(none, none)] == [0] * 6


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("height", "width"), [(1, 2**31 - 1), (2**31 - 1, 1), (46340, 46340)], ids=["row", "column", "square"]
)
def test_a_mask_that_claims_a_huge_image(height: int, width: int) -> None:
    """It takes no more memory than its runs and columns; a 2 GB array would end this test."""
    runs = Runs(np.array([0, height * width]), np.array([0, 2]))
    whole = MaskColumn.from_runs(runs, [height], [width])
    counts = [int(part[0]) for part in boundary_pairs(whole, whole)]
    depth = round(0.02 * math.hypot(height, width))
    inner = max(height - 2 * depth, 0) * max(width - 2 * depth, 0)
    assert counts == [height * width - inner] * 2 + [0] * 4


def test_masks_of_different_sizes_are_refused() -> None:
    a, b = MaskColumn.from_dense([full(2, 3), full(4, 4)]), MaskColumn.from_dense([full(2, 3), full(4, 5)])
    with pytest.raises(MaskError, match=r"mask 1: expected the size 4 x 5 .* found 4 x 4"):
        boundary_pairs(a, b)
    with pytest.raises(MaskError, match="as many masks on both sides, got 2 and 1"):
        boundary_pairs(a, b.take([0]))


def test_unsound_masks_are_refused() -> None:
    bad = MaskColumn.from_values([{"size": [10, 10], "counts": "d0n0"}])
    with pytest.raises(MaskError, match="mask 0: the runs do not sum"):
        boundary_pairs(bad, bad)
    with pytest.raises(MaskError, match="mask 0: the runs do not sum"):
        union_masks(bad, [0, 1], [10], [10])


# ---------------------------------------------------------------------- unions


@pytest.mark.usefixtures("engine")
def test_unions_of_groups() -> None:
    rng = np.random.default_rng(5)
    groups: list[list[Dense]] = []
    for n in (0, 1, 5, 0, 30, 2):
        size = rng.integers(1, 30, 2)
        groups.append([rng.random(size) < rng.random() * 0.3 for _ in range(n)])
    groups.append([full(4, 5), ~full(4, 5)])
    groups.append([framed(3, 3, 0, 0, 3, 1), framed(3, 3, 0, 1, 3, 2)])
    sizes = np.array([group[0].shape if group else (7, 8) for group in groups])
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    column = MaskColumn.from_dense([mask for group in groups for mask in group])
    union = union_masks(column, offsets, sizes[:, 0], sizes[:, 1])
    expected = [np.any(group, axis=0) if group else np.zeros((7, 8), bool) for group in groups]
    assert [union.decode(i).tolist() for i in range(len(union))] == [mask.tolist() for mask in expected]
    # The strings say the same as what was kept of the runs.
    assert union.to_pylist() == MaskColumn.from_dense(expected).to_pylist()
    assert MaskColumn.from_arrow(union.to_arrow()).areas().tolist() == union.areas().tolist()


@pytest.mark.usefixtures("engine")
def test_union_of_no_group() -> None:
    assert len(union_masks(MaskColumn.from_values([]), [0], [], [])) == 0
    empty = union_masks(MaskColumn.from_values([]), [0, 0], [2], [3])
    assert empty.to_pylist() == MaskColumn.from_dense([~full(2, 3)]).to_pylist()


@pytest.mark.parametrize(
    ("groups", "heights", "words"),
    [
        ([0, 1], [2, 2], "expected 3 rising offsets"),
        ([0, 2, 1], [2, 2], "rising offsets from 0 to 1"),
        ([0, 1, 1], [3, 2], "mask 0: expected the size 3 x 3 .* found 2 x 3"),
    ],
)
def test_unions_of_what_does_not_fit(groups: list[int], heights: list[int], words: str) -> None:
    column: Any = MaskColumn.from_dense([full(2, 3)])
    with pytest.raises(MaskError, match=words):
        union_masks(column, groups, heights, [3] * len(heights))


@pytest.mark.parametrize("runs", [1, 500, 3000])
def test_union_masks_in_parts_equal_to_pixels(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_datasets.masks.boundary.CHUNK_RUNS", runs)
    dense = np.random.default_rng(0).random((30, 20, 33)) < 0.3
    union = union_masks(MaskColumn.from_dense(dense), [0, 12, 12, 30], [20] * 3, [33] * 3)
    expected = [dense[:12].any(axis=0), np.zeros((20, 33), bool), dense[12:].any(axis=0)]
    assert union.to_pylist() == MaskColumn.from_dense(expected).to_pylist()
