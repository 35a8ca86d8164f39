"""Areas, boxes, intersections, unions, suppression: against dense numpy, whatever the strings look like."""

from __future__ import annotations

import numpy as np
import pytest

from bench_datasets.masks import (
    MaskColumn,
    MaskError,
    engine_pycocotools,
    group_hits,
    group_intersections,
    intersections,
    iou,
    nms,
    nms_order,
    pair_intersections,
    pair_iou,
    tube_intersections,
    union_overlaps,
)
from bench_datasets.masks.engine import Engine

from ..support.slow_masks import Dense, coco_encode, dense_iou, greedy_nms, messy, random_mask, write_runs


def column_of(generator: np.random.Generator, masks: list[Dense]) -> MaskColumn:
    """The masks in plain and in strange spellings, mixed."""
    return MaskColumn.from_values(
        [coco_encode(mask) if generator.random() < 0.6 else messy(generator, mask) for mask in masks]
    )


def draw(generator: np.random.Generator, count: int, shape: tuple[int, int] | None = None) -> list[Dense]:
    shape = shape or (int(generator.integers(1, 9)), int(generator.integers(1, 9)))
    return [random_mask(generator, *shape) for _ in range(count)]


def dense_box(mask: Dense) -> list[int]:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return [0, 0, 0, 0]
    return [columns[0], rows[0], columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1]


@pytest.fixture(params=range(3))
def generator(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


def test_areas_boxes_and_pixels(engine: Engine, generator: np.random.Generator) -> None:
    masks = [mask for _ in range(120) for mask in draw(generator, 3)]
    masks += draw(generator, 20, (60, 50)) + draw(generator, 20, (1, 400)) + draw(generator, 20, (400, 1))
    assert len(masks) > 256
    column = column_of(generator, masks)
    assert column.areas().tolist() == [int(mask.sum()) for mask in masks]
    assert column.boxes().tolist() == [dense_box(mask) for mask in masks]
    for k in range(0, len(masks), 7):
        np.testing.assert_array_equal(column.decode(k), masks[k])
    ends = column.runs.offsets
    assert ends.tolist() == np.cumsum([0, *(len(MaskColumn.from_dense([m]).runs.lengths) for m in masks)]).tolist()
    assert (column.runs.lengths > 0).sum() + sum(mask[0, 0] for mask in masks) == len(column.runs.lengths)


def test_suppression_of_one_mask_again_and_again(engine: Engine) -> None:
    again = MaskColumn.from_values([{"size": [2, 3], "counts": write_runs([1, 4, 1])}] * 301)
    assert np.flatnonzero(nms(again, [0, 300, 301])).tolist() == [299, 300]
    apart = MaskColumn.from_values([{"size": [1, 301], "counts": write_runs([k, 1, 300 - k])} for k in range(300)])
    assert nms(apart, [0, 300], 0).all()


def test_many_small_groups(engine: Engine, generator: np.random.Generator) -> None:
    """Of neighbours of one size and of others, none to a few masks on either side, and now and then many."""
    dense: list[tuple[list[Dense], list[Dense]]] = []
    for k in range(150):
        shape = (5, 6) if k % 3 else tuple(generator.integers(1, 9, size=2).tolist())
        most = 40 if k % 40 == 7 else 4
        counts = generator.integers(0, most, size=2).tolist()
        dense.append((draw(generator, counts[0], shape), draw(generator, counts[1], shape)))
    a, b = (column_of(generator, [mask for sides in dense for mask in sides[k]]) for k in range(2))
    offsets = [np.cumsum([0, *(len(sides[k]) for sides in dense)]) for k in range(2)]
    expected = [int((left & right).sum()) for sides in dense for left in sides[0] for right in sides[1]]
    assert group_intersections(a, offsets[0], b, offsets[1]).tolist() == expected


def test_pairs_of_the_largest_masks_that_share_a_call(engine: Engine) -> None:
    sides = [(2**29, 1), (1, 2**29), (2**15, 2**14), (1, 1)]
    runs = [[h * w - 7, 7] if h * w > 7 else [0, 1] for h, w in sides]
    values = [{"size": list(size), "counts": write_runs(own)} for size, own in zip(sides, runs, strict=True)]
    column = MaskColumn.from_values(values * 3)
    areas = [min(7, h * w) for h, w in sides] * 3
    assert pair_intersections(column, MaskColumn.from_values(values * 3)).tolist() == areas
    groups = np.arange(len(column) + 1)
    assert group_intersections(column, groups, column, groups).tolist() == areas


def test_pairs(engine: Engine, generator: np.random.Generator) -> None:
    pairs = [draw(generator, 2) for _ in range(400)] + [draw(generator, 2, (40, 30)) for _ in range(30)]
    a, b = (column_of(generator, [pair[k] for pair in pairs]) for k in range(2))
    expected = [int((left & right).sum()) for left, right in pairs]
    assert pair_intersections(a, b).tolist() == expected
    assert pair_intersections(b, a).tolist() == expected
    assert pair_iou(a, b).tolist() == [dense_iou(left, right) for left, right in pairs]
    assert pair_intersections(a.take([]), b.take([])).tolist() == []
    empty = MaskColumn.from_dense([np.zeros((3, 3), bool)] * 2)
    assert pair_iou(empty, empty).tolist() == [0.0, 0.0]


def test_every_pair_of_a_group(engine: Engine, generator: np.random.Generator) -> None:
    left: list[list[Dense]] = []
    right: list[list[Dense]] = []
    for _ in range(60):
        shape = (int(generator.integers(1, 9)), int(generator.integers(1, 9)))
        left.append(draw(generator, int(generator.integers(0, 5)), shape))
        right.append(draw(generator, int(generator.integers(0, 5)), shape))
    a, b = (column_of(generator, [mask for group in side for mask in group]) for side in (left, right))
    bounds = [np.cumsum([0, *map(len, side)]) for side in (left, right)]
    expected = [int((p & t).sum()) for i, j in zip(left, right, strict=True) for p in i for t in j]
    assert group_intersections(a, bounds[0], b, bounds[1]).tolist() == expected
    hits = [
        [i + bounds[0][k], j + bounds[1][k], int((p & t).sum())]
        for k in range(60)
        for i, p in enumerate(left[k])
        for j, t in enumerate(right[k])
        if (p & t).any()
    ]
    assert np.stack(group_hits(a, bounds[0], b, bounds[1]), axis=1).tolist() == hits
    k = next(k for k in range(60) if left[k] and right[k])
    one = (
        a.take(range(bounds[0][k], bounds[0][k + 1])),
        b.take(range(bounds[1][k], bounds[1][k + 1])),
    )
    assert intersections(*one).tolist() == [[int((p & t).sum()) for t in right[k]] for p in left[k]]
    assert iou(*one).tolist() == [[dense_iou(p, t) for t in right[k]] for p in left[k]]
    none = MaskColumn.from_dense([])
    assert iou(none, one[1]).shape == (0, len(right[k]))
    assert iou(one[0], none).shape == (len(left[k]), 0)
    assert iou(none, none).shape == (0, 0)


def test_more_than_256_masks_at_once(engine: Engine) -> None:
    generator = np.random.default_rng(8)
    masks = draw(generator, 300, (7, 6))
    column = column_of(generator, masks)
    flat = np.stack([mask.ravel() for mask in masks]).astype(np.int64)
    np.testing.assert_array_equal(intersections(column, column), flat @ flat.T)
    assert nms(column, [0, 300]).tolist() == greedy_nms(masks)


@pytest.mark.parametrize(("most", "runs"), [(2, None), (5, None), (5, 7), (5, 100)], ids=str)
def test_unions(
    engine: Engine, generator: np.random.Generator, monkeypatch: pytest.MonkeyPatch, most: int, runs: int | None
) -> None:
    """Few masks a group and many, all groups at once and a few at a time."""
    if runs is not None:
        monkeypatch.setattr(engine_pycocotools, "UNITED_RUNS", runs)
    count = 80
    sides: list[list[Dense]] = [[], []]
    groups: list[list[int]] = [[], []]
    unions: list[list[Dense]] = [[], []]
    for group in range(count):
        shape = (int(generator.integers(1, 9)), int(generator.integers(1, 9)))
        for side in range(2):
            masks = draw(generator, int(generator.integers(0, most)), shape)
            unions[side].append(np.any([np.zeros(shape, bool), *masks], axis=0))
            for mask in masks:
                outside = generator.random() < 0.1
                if outside:  # a mask of no group does not count, whatever its size
                    sides[side].append(draw(generator, 1)[0])
                    groups[side].append(-1)
                sides[side].append(mask)
                groups[side].append(group)
    parts = []
    for side in range(2):
        parts.append((column_of(generator, sides[side]), np.array(groups[side])))
    shared, left, right = union_overlaps(count, *parts)
    assert left.tolist() == [int(u.sum()) for u in unions[0]]
    assert right.tolist() == [int(u.sum()) for u in unions[1]]
    assert shared.tolist() == [int((a & b).sum()) for a, b in zip(*unions, strict=True)]


def test_tubes(engine: Engine, generator: np.random.Generator) -> None:
    frames, shape = 12, (6, 5)
    columns, bounds, tubes, dense = [], [], [], []
    for count in (4, 3):
        masks: list[Dense] = []
        member: list[int] = []
        sizes = []
        cube = np.zeros((count, frames, *shape), bool)
        for frame in range(frames):
            there = np.flatnonzero(generator.random(count) < 0.6)
            sizes.append(len(there))
            for tube in there:
                mask = random_mask(generator, *shape)
                cube[tube, frame] = mask
                masks.append(mask)
                member.append(int(tube))
        columns.append(column_of(generator, masks))
        bounds.append(np.cumsum([0, *sizes]))
        tubes.append(np.array(member))
        dense.append(cube.reshape(count, -1).astype(np.int64))
    found = tube_intersections(columns[0], bounds[0], tubes[0], columns[1], bounds[1], tubes[1])
    expected = dense[0] @ dense[1].T
    np.testing.assert_array_equal(found, expected[: found.shape[0], : found.shape[1]])
    assert expected[found.shape[0] :].sum() + expected[:, found.shape[1] :].sum() == 0


def test_suppression(engine: Engine, generator: np.random.Generator) -> None:
    rows = [draw(generator, int(generator.integers(0, 9))) for _ in range(150)]
    rows += [draw(generator, 12, (1, 6)) for _ in range(50)]  # many equal areas and IoUs of exactly one half
    column = column_of(generator, [mask for row in rows for mask in row])
    bounds = np.cumsum([0, *map(len, rows)])
    for threshold in (0.5, 0.3, 0.0, 1.0):
        expected = [keep for row in rows for keep in greedy_nms(row, threshold)]
        assert nms(column, bounds, threshold).tolist() == expected


def test_suppression_at_one_half_and_at_equal_areas(engine: Engine) -> None:
    def runs(*parts: int) -> Dense:
        return np.repeat(np.arange(len(parts)) % 2 == 1, parts)[None]

    half = MaskColumn.from_dense([runs(0, 40, 60), runs(0, 20, 80)])
    assert nms(half, [0, 2]).tolist() == [True, True]  # IoU .5 is not above .5
    above = MaskColumn.from_dense([runs(0, 40, 60), runs(0, 21, 79)])
    assert nms(above, [0, 2]).tolist() == [True, False]
    equal = MaskColumn.from_dense([runs(0, 30, 70), runs(5, 30, 65), runs(0, 30, 70)])
    assert nms(equal, [0, 3]).tolist() == [False, False, True]
    empty = MaskColumn.from_dense([runs(100), runs(100), runs(0, 1, 99)])
    assert nms(empty, [0, 3]).tolist() == [True, True, True]
    assert nms_order(np.array([3, 5, 5, 1, 5])).tolist() == [4, 2, 1, 0, 3]


def test_sizes_that_differ_are_an_error(engine: Engine) -> None:
    """pycocotools answers 0 or -1, silently."""
    tall = MaskColumn.from_dense([np.ones((4, 3), bool)] * 2)
    wide = MaskColumn.from_dense([np.ones((3, 4), bool)] * 2)
    both = MaskColumn.from_values(tall.to_pylist() + wide.to_pylist())
    with pytest.raises(MaskError, match=r"3 x 4.*4 x 3"):
        pair_intersections(tall, wide)
    with pytest.raises(MaskError, match="size"):
        intersections(tall, wide)
    with pytest.raises(MaskError, match="size"):
        group_intersections(both, [0, 2, 4], both, [0, 3, 4])
    with pytest.raises(MaskError, match="size"):
        group_hits(both, [0, 2, 4], both, [0, 3, 4])
    with pytest.raises(MaskError, match="size"):
        nms(both, [0, 4])
    with pytest.raises(MaskError, match="size"):
        union_overlaps(1, (tall, np.array([0, 0])), (wide, np.array([0, 0])))
    with pytest.raises(MaskError, match="size"):
        union_overlaps(1, (both, np.array([0, 0, 0, 0])), (wide, np.array([-1, -1])))
    with pytest.raises(MaskError, match="rise"):
        union_overlaps(2, (tall, np.array([1, 0])), (tall, np.array([0, 1])))
    assert nms(both, [0, 2, 4]).tolist() == [False, True, False, True]
    with pytest.raises(MaskError, match="as many masks"):
        pair_intersections(tall, tall.take([0]))


@pytest.mark.parametrize("groups", [[], [0], [0, 1], [0, 3], [1, 2], [0, 2, 1, 2], [[0, 2]], [-1, 2]])
def test_groups_that_are_none(engine: Engine, groups: list[int]) -> None:
    column = MaskColumn.from_dense([np.ones((2, 2), bool)] * 2)
    with pytest.raises(MaskError, match="groups"):
        nms(column, groups)
    with pytest.raises(MaskError, match="groups"):
        group_intersections(column, groups, column, groups)
    with pytest.raises(MaskError, match="groups"):
        group_hits(column, groups, column, groups)


@pytest.mark.parametrize("threshold", [-0.1, 1.5, float("nan")])
def test_thresholds_that_are_no_iou(engine: Engine, threshold: float) -> None:
    with pytest.raises(MaskError, match="threshold"):
        nms(MaskColumn.from_dense([np.ones((2, 2), bool)]), [0, 1], threshold)
