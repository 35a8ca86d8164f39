"""Adapters: each function turns the output of one model into one line of predictions.

Write the lines with `write`, then give the file to `bench-datasets check` and `bench-datasets score`. The package does
not need this file; copy what fits and change it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
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


def from_sam(key: str, masks: Any, scores: Any = None, *, threshold: float | None = None) -> dict[str, Any]:
    """SAM, torchvision, Hugging Face pipelines, supervision: arrays, tensors or images of masks.

    Values decide what is foreground. Of bool, or integers with 0 and one other value: everything that is not 0. Floats
    from 0 to 1 are probabilities and are cut at 0.5. Floats of which some are below 0 are logits and are cut at 0.

    Args:
        key: the row's.
        masks: `(n, height, width)` or `(n, 1, height, width)`, an array, a tensor (on any device, with or without
            gradients) or a list of n masks; None or an empty list where nothing was found. Of SAM's several masks per
            prompt, `(n, m, height, width)`, the one with the best score is taken.
        scores: `(n,)` or `(n, 1)`, or `(n, m)` for several masks per prompt; None, or a list with None, for no scores.
        threshold: cut floats there; foreground is above.

    Raises:
        ValueError: the values are no masks, or masks and scores do not fit together; the message says what to do.

    Example:
        >>> from_sam("level_0/7", np.ones((1, 1, 2, 3), bool), [[0.9]])
        {'key': 'level_0/7', 'masks': [{'size': [2, 3], 'counts': '06'}], 'scores': [0.9]}
        >>> from_sam("level_0/7", np.array([[[0.2, 0.4, 0.9]]]))["masks"]
        [{'size': [1, 3], 'counts': '21'}]
        >>> from_sam("level_0/7", None)
        {'key': 'level_0/7', 'masks': []}
    """
    array = _stack(masks)
    given = _stack(scores)
    if given.dtype == object or not given.size:  # no score at all, or some of them None
        given = None
    if array.ndim == 4 and array.shape[1] > 1:
        if given is None or given.shape != array.shape[:2]:
            raise ValueError(
                f"masks of shape {array.shape} are several per prompt: give their scores, {array.shape[:2]}, or ask the"
                " model for one (multimask_output=False)"
            )
        best = given.argmax(axis=1)
        array, given = array[np.arange(len(array)), best], given.max(axis=1)
    if array.size and array.ndim not in (3, 4):
        raise ValueError(f"expected masks (n, height, width), found shape {array.shape}; write masks[None] for one")
    found = _cut(array, threshold).reshape(-1, *array.shape[-2:]) if array.size else array[:0]
    line: dict[str, Any] = {"key": key, "masks": [encode_dense(one) for one in found]}
    if given is not None:
        if given.size != len(found):
            raise ValueError(f"expected one score per mask, found {given.size} scores for {len(found)} masks")
        line["scores"] = given.astype(np.float64).reshape(-1).tolist()
    return line


def _stack(values: Any) -> Any:
    """An array of an array, a tensor, an image, or a list of these; None is an empty one."""
    if values is None:
        return np.zeros(0)
    if isinstance(values, (list, tuple)) and any(not isinstance(one, (int, float, bool)) for one in values):
        parts = [one if one is None else _stack(one) for one in values]
        return np.array(parts, object) if any(one is None for one in parts) else np.stack(parts)
    if hasattr(values, "detach"):  # a tensor; NumPy has no bfloat16
        values = values.detach().cpu()
        return np.asarray(values.float() if values.is_floating_point() else values)
    return np.asarray(values)


def _cut(array: Any, threshold: float | None) -> Any:
    """Where masks are."""
    if array.dtype.kind == "f":
        low, high = array.min(), array.max()
        if not np.isfinite([low, high]).all():
            raise ValueError("expected finite values, found NaN or infinity among the masks")
        if threshold is None and low >= 0 and high > 1:
            raise ValueError(
                f"expected probabilities (0 to 1) or logits (some below 0), found values from {low:g} to {high:g}; say"
                " where to cut them: threshold="
            )
        return array > ((0.5 if low >= 0 else 0.0) if threshold is None else threshold)
    if array.dtype.kind not in "biu":
        raise ValueError(f"expected masks of bool, integers or floats, found {array.dtype}")
    if threshold is not None:
        return array > threshold
    if ((array != 0) & (array != array.max())).any():
        raise ValueError(
            f"expected 0 and one other value, found more, from {array.min()} to {array.max()}; say where to cut them:"
            " threshold="
        )
    return array != 0


def from_sa2va(folder: str | Path, threshold: int = 127) -> Iterable[dict[str, Any]]:
    """Sa2VA and similar models: one PNG per expression, `<expression_id>.png`, white on black.

    A folder of PNGs with two values is read as it is (`--format png`), and one with more values is refused there. This
    is for grey PNGs, which are cut, and for names that need a change.

    Args:
        folder: of the PNGs, 8 bits per channel.
        threshold: values above are foreground, in any of the channels; 0 to 254. A black PNG is an empty mask.
    """
    for file in sorted(Path(folder).glob("*.png")):
        with Image.open(file) as image:
            if image.mode.startswith("I"):
                raise ValueError(f"{file}: expected 8 bits per channel, found 16; cut the values yourself")
            pixels = np.asarray(image.convert("RGB"))
        yield {"expression_id": file.stem, "mask": encode_dense(pixels.max(axis=2) > threshold)}


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
