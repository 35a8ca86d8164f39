"""Rows of models and users as plain values: masks as COCO RLE, other arrays as lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench_datasets.masks.dense import as_array
from bench_datasets.masks.parse import parse_mask
from bench_datasets.masks.status import MaskError

_ONE = frozenset({"mask", "donor_mask", "segmentation"})
_SEVERAL = frozenset({"masks", "pred_masks"})
"""Names of the fields that hold one mask, and a list of masks."""


def plain(value: Any, *, height: int | None = None, width: int | None = None) -> Any:
    """A row, or a part of it, as values that Arrow takes.

    Masks are recognised by the name of their field: `mask`, `masks`, `pred_masks`, `donor_mask`, `segmentation`, at any
    depth. They may be RLE (with counts as text, bytes or runs), arrays, tensors, images or polygons, mixed in one list;
    a list of masks may be one array of `(n, height, width)`.

    Args:
        value: what a model gave, or a row of someone's own.
        height: of the image in pixels, for polygons.
        width: likewise.

    Returns:
        The same with every mask as `{"size": [height, width], "counts": str}` or `None`, every other array or tensor as
        a list, and every NumPy number as a Python number. RLE with counts of text stays as it is, sound or not.

    Raises:
        MaskError: a mask can't be encoded; the message names its field and place.

    Example:
        >>> plain({"pred_masks": np.ones((1, 2, 3), bool), "pred_scores": np.array([0.5])})
        {'pred_masks': [{'size': [2, 3], 'counts': '06'}], 'pred_scores': [0.5]}
    """
    if isinstance(value, Mapping):
        row = {}
        for name, item in value.items():
            if name in _ONE:
                row[name] = _mask(item, name, height, width)
            elif name in _SEVERAL:
                row[name] = _masks(item, name, height, width)
            else:
                row[name] = plain(item, height=height, width=width)
        return row
    if isinstance(value, (list, tuple, range)):
        return [plain(item, height=height, width=width) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    array = as_array(value)
    if array is not None:
        return plain(array.tolist(), height=height, width=width)
    return value.item() if hasattr(value, "detach") else value  # a tensor without dimensions


def _masks(value: Any, name: str, height: int | None, width: int | None) -> Any:
    """A list of masks; a value that is no list stays for the caller."""
    array = as_array(value)
    if array is not None:
        if array.dtype != object and array.ndim < 3 and array.size:
            raise MaskError(
                f"{name}: expected a list of masks, or an array of (n, height, width), found an array of shape"
                f" {array.shape}; put a single mask into a list"
            )
        value = list(array)
    if not isinstance(value, (list, tuple)):
        return value
    return [_mask(item, f"{name}, mask {i}", height, width) for i, item in enumerate(value)]


def _mask(value: Any, name: str, height: int | None, width: int | None) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping) and isinstance(value.get("counts"), str) and isinstance(value.get("size"), list):
        return value
    try:
        return parse_mask(value, height=height, width=width)
    except MaskError as error:
        raise MaskError(f"{name}: {error}") from error
