"""What models give, as what is read here: each function turns one output into one line of predictions.

Write the lines with `write`, then `bench-datasets check` and `bench-datasets score` take the file. Nothing here is
needed by the package; copy what fits and change it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from bench_datasets.masks import encode_dense


def write(lines: Iterable[Mapping[str, Any]], path: str | Path) -> Path:
    """Write JSON Lines."""
    target = Path(path)
    target.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return target


def from_falcon(key: str, instances: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Falcon Perception: instances with centre, size and RLE, in the order of generation, which is kept.

    Args:
        key: the row's.
        instances: `{"xy": {"x", "y"}, "hw": {"h", "w"}, "mask_rle": {"size", "counts"}}` each; `counts` may be bytes,
            as pycocotools gives them.

    Example:
        >>> mask = {"size": [2, 3], "counts": b"15"}
        >>> from_falcon("level_0/7", [{"xy": {"x": .5, "y": .5}, "hw": {"h": 1, "w": 1}, "mask_rle": mask}])["key"]
        'level_0/7'
    """

    def plain(mask: Mapping[str, Any]) -> dict[str, Any]:
        counts = mask["counts"]
        return {"size": list(mask["size"]), "counts": counts.decode("ascii") if isinstance(counts, bytes) else counts}

    return {"key": key, "instances": [{**one, "mask_rle": plain(one["mask_rle"])} for one in instances]}


def from_sam(key: str, masks: ArrayLike, scores: ArrayLike | None = None) -> dict[str, Any]:
    """SAM and its kin: boolean arrays.

    Args:
        key: the row's.
        masks: `(n, height, width)` or `(n, 1, height, width)`, bool, or logits of which those above 0 are the mask.
        scores: `(n,)` or `(n, 1)`, if there are any.

    Example:
        >>> from_sam("level_0/7", np.ones((1, 1, 2, 3), bool), [[0.9]])
        {'key': 'level_0/7', 'masks': [{'size': [2, 3], 'counts': '06'}], 'scores': [0.9]}
    """
    array = np.asarray(masks)
    array = array.reshape(-1, *array.shape[-2:])
    line: dict[str, Any] = {"key": key, "masks": [encode_dense(one > 0) for one in array]}
    if scores is not None:
        line["scores"] = np.asarray(scores, np.float64).reshape(-1).tolist()
    return line


def from_sa2va(folder: str | Path) -> Iterable[dict[str, Any]]:
    """Sa2VA and its kin: one PNG an expression, `<expression_id>.png`, white on black; a black one is an empty mask.

    A folder of these is read as it is, too (`--format png`); this is for names or values that need a change.
    """
    for file in sorted(Path(folder).glob("*.png")):
        with Image.open(file) as image:
            yield {"expression_id": file.stem, "mask": encode_dense(np.asarray(image.convert("L")) > 127)}


def from_boxes(expression_id: str, corners: Sequence[float] | None, size: tuple[int, int]) -> dict[str, Any]:
    """Box models (Qwen-VL and its kin): corners in thousandths of the image, as text models write them.

    Args:
        expression_id: the expression's.
        corners: x0, y0, x1, y1 in thousandths; None where nothing was found.
        size: height and width of the image in pixels.

    Example:
        >>> from_boxes("x-0", [100, 200, 600, 700], (400, 200))
        {'expression_id': 'x-0', 'box': [20.0, 80.0, 100.0, 200.0]}
    """
    if corners is None:
        return {"expression_id": expression_id, "mask": None}
    height, width = size
    x0, y0, x1, y1 = (float(value) / 1000 for value in corners)
    box = [x0 * width, y0 * height, (x1 - x0) * width, (y1 - y0) * height]
    return {"expression_id": expression_id, "box": [round(value, 3) for value in box]}
