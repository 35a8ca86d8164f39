"""Between Arrow's mask structs and plain buffers, without copying."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bench_datasets._util.arrow import joined
from bench_datasets.masks.status import MaskError

MaskBuffers = tuple[
    NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]
]


def mask_buffers(array: pa.Array | pa.ChunkedArray) -> MaskBuffers:
    """Data, offsets, heights, widths, present, counted of an array of mask structs (see `MaskColumn`)."""
    array = joined(array)
    if pa.types.is_null(array.type):
        n = len(array)
        none, zeros = np.zeros(n, np.bool_), np.zeros(n, np.int64)
        return np.zeros(0, np.uint8), np.zeros(n + 1, np.int64), zeros - 1, zeros - 1, none, none
    if not pa.types.is_struct(array.type) or {"size", "counts"} - {f.name for f in array.type}:
        raise MaskError(f"masks: expected structs of size and counts, found Arrow type {array.type}")
    present = _valid(array)
    heights, widths = _sizes(array.field("size"))
    counts = array.field("counts")
    if pa.types.is_null(counts.type):
        counts = counts.cast(pa.string())
    data, offsets = string_buffers(counts)
    return data, offsets, heights, widths, present, _valid(counts)


def string_buffers(array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of a string or binary array and its `(n + 1,) int64` offsets (a view where Arrow's are 64-bit)."""
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    if not (wide or pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        raise MaskError(f"masks: expected counts as string or binary, found Arrow type {array.type}")
    n = len(array)
    _, offset_buffer, data_buffer = array.buffers()
    if n == 0 or offset_buffer is None:
        return np.zeros(0, np.uint8), np.zeros(n + 1, np.int64)
    raw = np.frombuffer(offset_buffer, np.int64 if wide else np.int32)
    offsets = raw[array.offset : array.offset + n + 1].astype(np.int64, copy=False)
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    return data, offsets


def take_strings(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], index: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes and offsets of some strings.

    Args:
        data: bytes of n strings.
        offsets: `(n + 1,) int64`, where each begins in `data`.
        index: `(m,) int64`, which; negative ones count from the end.

    Example:
        >>> data, offsets = take_strings(np.frombuffer(b"abbccc", np.uint8), np.array([0, 1, 3, 6]), np.array([2, 0]))
        >>> data.tobytes(), offsets
        (b'ccca', array([0, 3, 4]))
    """
    count = len(offsets) - 1
    if not len(index):
        return data[:0], np.zeros(1, np.int64)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(data))]
    strings = pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, buffers)
    return string_buffers(strings.take(pa.array(np.where(index < 0, index + count, index))))


def string_array(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> pa.StringArray:
    """A string array over bytes and offsets; bytes that are no text become U+FFFD."""
    first, last = int(offsets[0]), int(offsets[-1])
    data = data[first:last]
    if (data > 127).any():
        texts = [bytes(data[a - first : b - first]).decode("utf-8", "replace") for a, b in _spans(offsets)]
        return pa.array(texts, pa.string())
    if last - first >= 2**31:
        raise MaskError("masks: more than 2 GiB of counts in one batch; use smaller batches")
    narrow = (offsets - first).astype(np.int32)
    return pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(narrow), pa.py_buffer(np.ascontiguousarray(data)), None
    )


def list_offsets(array: pa.Array) -> NDArray[np.int64]:
    """`(n + 1,) int64` offsets of a list array's rows from its first row on; a null row is empty.

    Goes with `list_values`.
    """
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def list_values(array: pa.Array) -> pa.Array:
    """The items of all rows of a list array, sliced or not; the items of null rows left out."""
    return array.flatten()


def _spans(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    return list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))


def _valid(array: pa.Array) -> NDArray[np.bool_]:
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    return array.is_valid().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _sizes(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Heights and widths; -1 where the size is null, not of two items, or holds a null."""
    n = len(array)
    if pa.types.is_null(array.type):
        return np.full(n, -1), np.full(n, -1)
    kind = array.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise MaskError(f"masks: expected size as a list of two integers, found Arrow type {kind}")
    if not pa.types.is_integer(kind.value_type):
        raise MaskError(f"masks: expected size as integers, found Arrow type {kind}")
    if array.null_count == 0 and _plain(kind.value_type) and (pc.list_value_length(array).to_numpy() == 2).all():
        values = array.flatten()
        if values.null_count == 0:
            pairs = values.to_numpy().reshape(n, 2)
            return pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
    sizes = np.full((n, 2), -1, np.int64)
    length = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    two = length == 2
    # Unsigned sizes beyond int64 turn negative here, and are refused as such.
    flat = pc.fill_null(array.flatten().cast(pa.int64(), safe=False), -1).to_numpy(zero_copy_only=False)
    if two.all():
        sizes[:] = flat.reshape(n, 2)
    else:
        sizes[two] = flat[np.repeat(two, length)].reshape(-1, 2)
    return sizes[:, 0], sizes[:, 1]


def _plain(kind: pa.DataType) -> bool:
    """Whether integers of a type fit int64 as they are."""
    return bool(pa.types.is_signed_integer(kind))
