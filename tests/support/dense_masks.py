"""Dense masks, and pycocotools as the independent way to write and read them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco

Dense = list[NDArray[np.bool_]]


def encode(mask: NDArray[np.bool_]) -> dict[str, Any]:
    """COCO RLE by pycocotools, counts as text."""
    rle = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"size": [int(side) for side in rle["size"]], "counts": rle["counts"].decode("ascii")}


def decode(mask: dict[str, Any]) -> NDArray[np.bool_]:
    """Back, by pycocotools."""
    return coco.decode({"size": list(mask["size"]), "counts": mask["counts"].encode("ascii")}).astype(bool)


def runs(mask: NDArray[np.bool_]) -> list[int]:
    """Uncompressed run lengths, counted pixel by pixel."""
    lengths, value = [0], False
    for pixel in mask.ravel(order="F").tolist():
        if pixel != value:
            lengths.append(0)
            value = pixel
        lengths[-1] += 1
    return lengths


def assert_masks(found: list[dict[str, Any]], expected: Dense) -> None:
    """The masks read are the dense ones, in order."""
    assert len(found) == len(expected)
    for mask, dense in zip(found, expected, strict=True):
        np.testing.assert_array_equal(decode(mask), dense)
