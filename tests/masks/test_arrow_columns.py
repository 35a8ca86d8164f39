"""A column of masks over every Arrow layout that files and libraries come up with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench_datasets.masks import MASK_TYPE, MaskColumn, MaskError, intersections, list_offsets, list_values, parse_masks
from bench_datasets.masks.engine import Engine

from ..support.slow_masks import coco_encode, messy, random_mask

TEXTS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
INTEGERS = [pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()]
SIZES = [pa.list_(kind, 2) for kind in INTEGERS] + [pa.list_(kind) for kind in INTEGERS] + [pa.large_list(pa.int32())]


@pytest.fixture
def masks() -> list[np.ndarray]:
    generator = np.random.default_rng(11)
    return [random_mask(generator, *(int(side) for side in generator.integers(1, 12, size=2))) for _ in range(40)]


def array_of(masks: list[np.ndarray], text: pa.DataType, size: pa.DataType) -> pa.Array:
    generator = np.random.default_rng(5)
    rows: list[dict[str, Any]] = [
        coco_encode(mask) if k % 2 else messy(generator, mask) for k, mask in enumerate(masks)
    ]
    if pa.types.is_binary(text) or pa.types.is_large_binary(text):
        rows = [{**row, "counts": row["counts"].encode()} for row in rows]
    return pa.array(rows, pa.struct([("size", size), ("counts", text)]))


@pytest.mark.parametrize("text", TEXTS, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_types(engine: Engine, masks: list[np.ndarray], text: pa.DataType, size: pa.DataType) -> None:
    column = MaskColumn.from_arrow(array_of(masks, text, size))
    assert column.problems() == {}
    assert column.heights.tolist() == [mask.shape[0] for mask in masks]
    assert column.areas().tolist() == [int(mask.sum()) for mask in masks]


@pytest.mark.parametrize("text", TEXTS, ids=str)
@pytest.mark.parametrize("size", [pa.list_(pa.int32(), 2), pa.list_(pa.int64())], ids=str)
def test_slices_chunks_and_other_orders(
    engine: Engine, masks: list[np.ndarray], text: pa.DataType, size: pa.DataType
) -> None:
    array = array_of(masks, text, size)
    areas = [int(mask.sum()) for mask in masks]
    assert MaskColumn.from_arrow(array[7:29]).areas().tolist() == areas[7:29]
    assert MaskColumn.from_arrow(array[7:29][3:9]).areas().tolist() == areas[10:16]
    assert len(MaskColumn.from_arrow(array[5:5])) == 0
    chunked = pa.chunked_array([array[:3], array[3:3], array[3:20], array[25:]])
    assert MaskColumn.from_arrow(chunked).areas().tolist() == areas[:20] + areas[25:]
    assert len(MaskColumn.from_arrow(pa.chunked_array([], array.type))) == 0
    assert MaskColumn.from_arrow(pa.chunked_array([array[4:9]])).areas().tolist() == areas[4:9]
    order = np.random.default_rng(1).integers(0, 22, size=60)
    for column in (MaskColumn.from_arrow(array[7:29]), MaskColumn.from_arrow(array[7:29]).validate()):
        taken = column.take(order)
        assert taken.areas().tolist() == [areas[7 + k] for k in order]
        np.testing.assert_array_equal(taken.take([4, 4]).decode(1), masks[7 + order[4]])
        part = column.take(range(3, 9))
        assert part.areas().tolist() == areas[10:16]
        assert part.take([2]).areas().tolist() == [areas[12]]
        assert len(column.take([])) == 0
    own = intersections(MaskColumn.from_arrow(array[9:10]), MaskColumn.from_arrow(array[9:10]).take([0, 0]))
    assert own.tolist() == [[areas[9], areas[9]]]


@pytest.mark.parametrize("size", [pa.list_(pa.int32(), 2), pa.list_(pa.int64()), pa.large_list(pa.int16())], ids=str)
def test_nulls(engine: Engine, size: pa.DataType) -> None:
    good = {"size": [10, 10], "counts": "d0n0b1"}
    rows = [None, good, {"size": None, "counts": "d0n0b1"}, {"size": [10, 10], "counts": None}, good, None]
    rows.append({"size": [None, 10], "counts": "d0n0b1"})
    for array in (
        pa.array([good, *rows, good], pa.struct([("size", size), ("counts", pa.string())]))[1:-1],
        pa.chunked_array([pa.array(rows[:3], (kind := pa.struct([("size", size), ("counts", pa.string())]))),
                          pa.array(rows[3:], kind)]),
    ):  # fmt: skip
        column = MaskColumn.from_arrow(array)
        problems = column.problems()
        assert list(problems) == [0, 2, 3, 5, 6]
        assert "null" in problems[0]
        assert "size" in problems[2]
        assert "counts are null" in problems[3]
        assert column.to_arrow().is_valid().to_pylist() == [False, True, True, True, True, False, True]
        assert column.take([1, 4]).areas().tolist() == [30, 30]
        with pytest.raises(MaskError, match=r"mask 0: .*4 more"):
            column.areas()
    assert list(MaskColumn.from_arrow(pa.nulls(2)).problems()) == [0, 1]
    untyped = pa.array([{"size": [1, 1], "counts": None}], pa.struct([("size", size), ("counts", pa.null())]))
    assert "counts are null" in MaskColumn.from_arrow(untyped).problems()[0]


def test_sizes_of_other_lengths_and_beyond_int32(engine: Engine) -> None:
    sizes = [[10, 10], [10], [], [10, 10, 1], [2**40, 2**40], [2**32, 2**32], [2**32 + 10, 10], [-(2**62), 4], [10, 10]]
    kind = pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())])
    column = MaskColumn.from_arrow(pa.array([{"size": size, "counts": "d0n0b1"} for size in sizes], kind))
    assert list(column.problems()) == list(range(1, 8))
    assert column.take([0, 8]).areas().tolist() == [30, 30]
    column.to_arrow().validate(full=True)
    unsigned = pa.struct([("size", pa.list_(pa.uint64(), 2)), ("counts", pa.string())])
    huge = pa.array([{"size": [2**64 - 10, 2**64 - 10], "counts": "d0n0b1"}], unsigned)
    assert list(MaskColumn.from_arrow(huge).problems()) == [0]


@pytest.mark.parametrize(
    "kind",
    [
        pa.int64(),
        pa.string(),
        pa.list_(pa.int64()),
        pa.struct([("size", pa.list_(pa.int64()))]),
        pa.struct([("size", pa.list_(pa.float64())), ("counts", pa.string())]),
        pa.struct([("size", pa.string()), ("counts", pa.string())]),
        pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.list_(pa.int64()))]),
    ],
    ids=str,
)
def test_other_types_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(MaskError, match="expected"):
        MaskColumn.from_arrow(pa.nulls(1, kind))


def test_what_is_written_is_read(masks: list[np.ndarray]) -> None:
    column = MaskColumn.from_dense(masks)
    array = column.to_arrow()
    array.validate(full=True)
    assert array.type == MASK_TYPE
    assert array.to_pylist() == [coco_encode(mask) for mask in masks]
    assert column.to_pylist() == array.to_pylist()
    assert column.take(range(3, 8)).to_pylist() == array[3:8].to_pylist()
    assert parse_masks(array.to_pylist())[0].equals(array)
    assert MaskColumn.from_dense([]).to_arrow().type == MASK_TYPE


def test_lists_of_rows_with_null_and_sliced_rows() -> None:
    rows = [[1, 2], None, [], [3], None, [4, 5, 6]]
    for kind in (pa.list_(pa.int64()), pa.large_list(pa.int64())):
        array = pa.array([[9, 9, 9], *rows, [9]], kind)[1:-1]
        assert list_offsets(array).tolist() == [0, 2, 2, 2, 3, 3, 6]
        assert list_values(array).to_pylist() == [1, 2, 3, 4, 5, 6]
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 5]), pa.array([1, 2, 3, 4, 5]), mask=pa.array([False, True, False])
    )
    assert list_offsets(hidden).tolist() == [0, 2, 2, 3]
    assert list_values(hidden).to_pylist() == [1, 2, 5]
