"""COCO annotation files (`instances.json`): images, annotations and categories, by ids that differ."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench_datasets._util.untrusted import load_json, open_regular
from bench_datasets.faults import BenchError, shorten, shorten_text
from bench_datasets.masks import MaskColumn, parse_masks

MAX_FILE = 1 << 31
"""Largest annotation file that is read: 2 GiB."""

_PARTS = ("images", "annotations", "categories")

Id = int | str


class Instance(NamedTuple):
    """The mask of one annotation.

    Attributes:
        mask: `{"size": [height, width], "counts": str}`, None where it cannot be used.
        problem: why it cannot be used, in words that fit behind "whose mask ..."; empty where it can.
        dropped: which polygons of fewer than three points were left out; empty where none were.
    """

    mask: dict[str, Any] | None
    problem: str
    dropped: str


class CocoFile:
    """A COCO annotation file, checked.

    Args:
        path: the JSON file.

    Attributes:
        path: the file.
        images: images by id.
        annotations: annotations by id; each has an `image_id` and a `category_id`.
        categories: names by category id.
        alike: the annotations of each image and category, in the file's order.

    Raises:
        BenchError: the file is missing, no COCO annotation file, or holds an id twice; the message names the id.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        value = read_json(self.path)
        parts = [value.get(name) if isinstance(value, dict) else None for name in _PARTS]
        if not all(isinstance(part, list) and all(isinstance(item, dict) for item in part) for part in parts):
            raise BenchError(f"{path}: expected COCO instances with lists images, annotations and categories")
        self.images: dict[Id, Mapping[str, Any]] = dict(self._by_id("images", parts[0]))
        self.annotations: dict[Id, Mapping[str, Any]] = dict(self._by_id("annotations", parts[1]))
        categories = dict(self._by_id("categories", parts[2]))
        self.categories: dict[Id, str] = {}
        for number, category in categories.items():
            if not isinstance(category.get("name"), str) or not category["name"].strip():
                raise BenchError(
                    f"{path}: category {number}: field 'name': expected a text, found {shorten(category.get('name'))}"
                )
            self.categories[number] = category["name"].strip()
        self.alike: dict[tuple[Id, Id], list[Mapping[str, Any]]] = {}
        for number, annotation in self.annotations.items():
            names = [_id(annotation, name, f"{path}: annotation {number}") for name in ("image_id", "category_id")]
            self.alike.setdefault((names[0], names[1]), []).append(annotation)

    def _by_id(self, part: str, items: list[Mapping[str, Any]] | None) -> Iterator[tuple[Id, Mapping[str, Any]]]:
        places: dict[Id, int] = {}
        for place, item in enumerate(items or []):
            number = _id(item, "id", f"{self.path}: {part}[{place}]")
            if number in places:
                raise BenchError(
                    f"{self.path}: {part}[{places[number]}] and {part}[{place}]: expected ids that differ, found the "
                    f"id {shorten(number)} twice; remove one of the two or renumber them"
                )
            places[number] = place
            yield number, item

    def size(self, image: Mapping[str, Any]) -> tuple[int, int]:
        """Height and width of an image in pixels.

        Raises:
            BenchError: one is absent or no positive integer.
        """
        sides = []
        for name in ("height", "width"):
            side = image.get(name)
            if isinstance(side, float) and side.is_integer():
                side = int(side)
            if not isinstance(side, int) or isinstance(side, bool) or not 0 < side < 2**31:
                raise BenchError(
                    f"{self.path}: image {image['id']}: field {name!r}: expected a positive number of pixels, found "
                    f"{shorten(side)}"
                )
            sides.append(side)
        return sides[0], sides[1]

    def file_name(self, image: Mapping[str, Any]) -> str:
        """Name of an image's file.

        Raises:
            BenchError: it is absent or no text.
        """
        name = image.get("file_name")
        if not isinstance(name, str) or not name:
            raise BenchError(
                f"{self.path}: image {image['id']}: field 'file_name': expected a text, found {shorten(name)}"
            )
        return name

    def instance(self, annotation: Mapping[str, Any], height: int, width: int) -> Instance:
        """The mask of an annotation.

        Args:
            annotation: one of `annotations`.
            height: of its image, pixels.
            width: of its image, pixels.
        """
        noted: dict[int, str] = {}
        masks, wrong = parse_masks([annotation.get("segmentation")], height=height, width=width, noted=noted)
        if wrong:
            return Instance(None, "is not valid", wrong[0])
        mask: dict[str, Any] = masks[0].as_py()
        if mask["size"] != [height, width]:
            exchanged = " (height and width exchanged)" if mask["size"] == [width, height] else ""
            return Instance(None, f"has another size than the image{exchanged}", "")
        if not MaskColumn.from_arrow(masks).areas()[0]:
            return Instance(None, "is empty", "")
        return Instance(mask, "", noted.get(0, ""))


def looks_exchanged(segmentation: object, height: int, width: int) -> bool:
    """Whether polygons fit an image only if its height and width are exchanged.

    Args:
        segmentation: polygons `[[x0, y0, x1, y1, ...], ...]`; anything else gives False.
        height: of the image, pixels.
        width: of the image, pixels.

    Example:
        >>> looks_exchanged([[0, 0, 50, 0, 50, 30]], height=60, width=40)
        True
        >>> looks_exchanged([[0, 0, 50, 0, 50, 30]], height=40, width=60)
        False
    """
    if height == width or not isinstance(segmentation, list):
        return False
    reach = [-math.inf, -math.inf]
    for polygon in segmentation:
        if not isinstance(polygon, list) or not all(type(value) in (int, float) for value in polygon):
            return False
        for axis in (0, 1):
            reach[axis] = max([reach[axis], *polygon[axis::2]])
    x, y = reach
    # A corner may lie a little outside of its image: one pixel, or a hundredth of the longer side.
    margin = max(1.0, max(height, width) / 100)
    fits = x <= width + margin and y <= height + margin
    return not fits and x <= height + margin and y <= width + margin


def read_json(path: Path) -> Any:
    """A JSON file's value.

    Raises:
        BenchError: the file is missing, too large or no JSON, or an object in it holds one name twice.
    """
    return parse_json(read_bounded(path), path)


def read_bounded(path: Path) -> bytes:
    """A regular file's bytes, at most `MAX_FILE`.

    Raises:
        BenchError: the file is missing, no regular file, or larger.
    """
    if not path.is_file():
        raise BenchError(f"{path}: expected a file, found {'a folder or device' if path.exists() else 'nothing there'}")
    with open_regular(path) as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise BenchError(f"{path}: the file has more than {MAX_FILE} bytes; is it the annotation?")
    return data


def parse_json(data: bytes, path: Path) -> Any:
    """The value of a JSON text.

    Raises:
        BenchError: it is no JSON, or an object in it holds one name twice.
    """
    try:
        return load_json(data)
    except (ValueError, RecursionError) as error:
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BenchError(f"{path}: expected JSON, found {shorten_text(text, 120)}") from None


def _id(values: Mapping[str, Any], name: str, place: str) -> Id:
    value = values.get(name)
    if isinstance(value, str) and value and len(value) <= 1000:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return value
    found = shorten(value) if name in values else "no such field"
    raise BenchError(f"{place}: field {name!r}: expected an id (an integer or a short text), found {found}")
