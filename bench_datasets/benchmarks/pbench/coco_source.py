"""COCO annotations as ground truth of PBench: one row per image and category, or per caption."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from bench_datasets._util.atomic import whole_file
from bench_datasets._util.untrusted import read_regular, refuse_outside
from bench_datasets.benchmarks.pbench.schema import LEVELS
from bench_datasets.data.coco_annotations import CocoFile, Id, looks_exchanged, read_json
from bench_datasets.data.refer_annotations import read_refs
from bench_datasets.faults import BenchError, shorten
from bench_datasets.masks import MASK_TYPE

MAX_IMAGE = 1 << 28
"""Largest image file that is read: 256 MiB."""

MAX_TEXT = 10_000
"""Most characters of an expression."""

_IDS = ("annotation_ids", "ann_ids", "annotation_id", "ann_id")
_BOXES = ("boxes", "bbox")
_NEAR = 1.0  # pixels that a caption's box may differ from its annotation's
_BATCH = 64
_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("expression", pa.string()),
        ("masks", pa.list_(MASK_TYPE)),
        ("count", pa.int32()),
        ("image_id", pa.string()),
        ("file_name", pa.string()),
    ]
)
_IMAGE = pa.field("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())]))


@dataclass
class CocoConverted:
    """Result of a conversion: the written file and the rows left out.

    Attributes:
        path: the Parquet file.
        rows: rows written.
        masks: masks in them.
        left_out: numbers of rows that were not written, by reason.
        noted: numbers of annotations or images that deserve a look, by reason.
    """

    path: str
    rows: int = 0
    masks: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        """Format the left-out rows and the notes, one line each."""
        noted = [f"note: {n} {reason}" for reason, n in self.noted.items()]
        return [f"left out: {n} {reason}" for reason, n in self.left_out.items()] + noted


class _Wanted(NamedTuple):
    """One row to write: an expression, its image, and the annotations that it means."""

    expression: str
    image: Mapping[str, Any]
    annotations: Sequence[Mapping[str, Any]]


def coco_to_pbench(
    instances_json: str | os.PathLike[str],
    out_dir: str | os.PathLike[str],
    *,
    captions: str | os.PathLike[str] | None = None,
    split: str | None = None,
    images: str | os.PathLike[str] | None = None,
    level: str = LEVELS[0],
) -> CocoConverted:
    """Write ground truth in PBench's layout from a COCO annotation file.

    Without captions there is one row per image and category that occurs in it: the category's name is the expression,
    its annotations are the masks. With captions there is one row per caption. A caption must name what it means: by
    `annotation_ids` (or `ann_id`), or by `boxes` that are those of annotations of its image.

    A row is complete or left out: a missing mask would turn correct predictions into false positives. So a row is left
    out and counted where one of its annotations is a crowd region or has no valid mask of the image's size.

    Args:
        instances_json: COCO's `instances.json` (images, annotations, categories).
        out_dir: folder to write into; the file is `data/<level>-00000-of-00001.parquet` in it. `load_dataset("pbench",
            data_dir=out_dir, images=False)` reads it.
        captions: COCO's captions layout with `annotation_ids` or `boxes` per caption; or refs as RefCOCO and gRefCOCO
            have them (JSON or pickle), whose sentences are the expressions.
        split: the captions' split to take; all for None.
        images: folder of the images; their bytes become the column `image`. None leaves images out.
        level: name of PBench's level that the rows are written as.

    Returns:
        What was written and what was left out.

    Raises:
        BenchError: a file is missing or malformed, an id stands twice, a caption names an unknown image or annotation,
            or no row is left; the message names the file and the entry.

    Example:
        >>> import json, tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> square = {"id": 5, "image_id": 1, "category_id": 3, "segmentation": [[0, 0, 4, 0, 4, 4, 0, 4]]}
        >>> coco = {"images": [{"id": 1, "file_name": "1.jpg", "height": 10, "width": 20}],
        ...         "categories": [{"id": 3, "name": "car"}], "annotations": [square]}
        >>> _ = (folder / "instances.json").write_text(json.dumps(coco))
        >>> done = coco_to_pbench(folder / "instances.json", folder / "own")
        >>> done.rows, done.masks
        (1, 1)
    """
    if level not in LEVELS:
        raise BenchError(f"level: expected one of {', '.join(LEVELS)}, got {level!r}")
    if split is not None and captions is None:
        raise BenchError("split: captions have splits, COCO's annotations have none; leave it out or name captions")
    target = Path(out_dir) / "data" / f"{level}-00000-of-00001.parquet"
    done = CocoConverted(str(target))
    coco = CocoFile(instances_json)
    wanted = _categories(coco) if captions is None else _captions(coco, Path(captions), split, done)
    schema = _SCHEMA if images is None else _SCHEMA.append(_IMAGE)
    rows = _rows(coco, wanted, None if images is None else Path(images), done)
    with whole_file(target) as stream:
        with pq.ParquetWriter(stream, schema) as writer:
            while batch := list(islice(rows, _BATCH)):
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))
        if not done.rows:
            reasons = ", ".join(f"{n} {reason}" for reason, n in done.left_out.items()) or "the file holds none"
            raise BenchError(f"{captions or instances_json}: expected rows to write, found none ({reasons})")
    return done


def _rows(
    coco: CocoFile, wanted: Iterator[_Wanted], images: Path | None, done: CocoConverted
) -> Iterator[dict[str, Any]]:
    """The rows as the Parquet file has them, numbered from 0."""
    for expression, image, meant in wanted:
        height, width = coco.size(image)
        masks, problem = _masks(coco, meant, height, width, done)
        if problem:
            done.left_out[problem] += 1
            continue
        name = coco.file_name(image)
        row: dict[str, Any] = {
            "id": done.rows,
            "expression": expression,
            "masks": masks,
            "count": len(masks),
            "image_id": str(image["id"]),
            "file_name": name,
        }
        if images is not None:
            row["image"] = {"bytes": _image(images, name), "path": os.path.basename(name)}
        done.rows += 1
        done.masks += len(masks)
        yield row


def _masks(
    coco: CocoFile, annotations: Sequence[Mapping[str, Any]], height: int, width: int, done: CocoConverted
) -> tuple[list[dict[str, Any]], str]:
    """The masks of a row's annotations, or why the row is left out."""
    masks = []
    for annotation in annotations:
        if annotation.get("iscrowd"):
            return [], "rows with a crowd region, whose objects have no masks of their own"
        found = coco.instance(annotation, height, width)
        if looks_exchanged(annotation.get("segmentation"), height, width):
            done.noted["annotations that fit their image only if its height and width are exchanged"] += 1
        if found.mask is None:
            return [], f"rows with an annotation whose mask {found.problem}"
        if found.dropped:
            done.noted["annotations with a polygon of fewer than three points, which was left out"] += 1
        masks.append(found.mask)
    return masks, ""


def _image(folder: Path, name: str) -> bytes:
    path = folder / name
    refuse_outside(str(folder), str(path), name)
    try:
        return read_regular(path, MAX_IMAGE, name)
    except FileNotFoundError:
        raise BenchError(
            f"{path}: expected an image file, found none; name the images' folder, or leave it out"
        ) from None


# ---------------------------------------------------------------------- what is asked for


def _categories(coco: CocoFile) -> Iterator[_Wanted]:
    """One row per image and category, images in the file's order, then categories in theirs."""
    names = Counter(coco.categories.values())
    if twice := [name for name, n in names.items() if n > 1]:
        raise BenchError(
            f"{coco.path}: categories: expected names that differ, found {shorten(twice[0])} twice; rename one of them"
        )
    order = {category: place for place, category in enumerate(coco.categories)}
    by_image: dict[Id, list[Id]] = {}
    for image, category in coco.alike:
        for table, number, what in ((coco.images, image, "image"), (coco.categories, category, "category")):
            if number not in table:
                annotation = coco.alike[image, category][0]["id"]
                raise BenchError(
                    f"{coco.path}: annotation {annotation}: expected {what} {number} in the file, found none"
                )
        by_image.setdefault(image, []).append(category)
    for number, value in coco.images.items():
        for category in sorted(by_image.get(number, ()), key=order.__getitem__):
            yield _Wanted(coco.categories[category], value, coco.alike[number, category])


def _captions(coco: CocoFile, path: Path, split: str | None, done: CocoConverted) -> Iterator[_Wanted]:
    """One row per caption, or per sentence of a ref."""
    of_image: dict[Id, list[Mapping[str, Any]]] = {}
    for (number, _), found in coco.alike.items():
        of_image.setdefault(number, []).extend(found)
    for place, entry in _entries(path):
        if split is not None and entry.get("split") != split:
            done.left_out[f"captions of other splits than {split}"] += 1
            continue
        image = coco.images.get(_hashable(entry.get("image_id")))
        if image is None:
            raise BenchError(
                f"{place}: field 'image_id': expected an image of {coco.path}, found {shorten(entry.get('image_id'))}"
            )
        meant = _meant(coco, entry, of_image.get(image["id"], []), place)
        texts = list(_texts(entry, place))
        if isinstance(meant, str):
            done.left_out[meant] += len(texts)
            continue
        for text in texts:
            if text:
                yield _Wanted(text, image, meant)
            else:
                done.left_out["captions without text"] += 1


def _entries(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The captions or refs of a file, and what messages call each."""
    name, value = "annotations", None
    if path.suffix == ".json":
        value = read_json(path)
    if not isinstance(value, dict):
        name, value = "refs", {"refs": value if isinstance(value, list) else read_refs(path)}
    items = value.get(name)
    if not isinstance(items, list):
        raise BenchError(f"{path}: expected COCO captions with a list annotations, or a list of refs, found neither")
    for k, item in enumerate(items):
        if not isinstance(item, dict):
            raise BenchError(f"{path}: {name}[{k}]: expected an object, found {type(item).__name__}")
        yield f"{path}: {name}[{k}]", item


def _texts(entry: Mapping[str, Any], place: str) -> Iterator[str]:
    """The expressions of a caption or ref, with single spaces; empty where there is no text."""
    values = [entry.get("caption")]
    if "sentences" in entry:
        sentences = entry["sentences"]
        if not isinstance(sentences, list) or not all(isinstance(one, dict) for one in sentences):
            raise BenchError(f"{place}: field 'sentences': expected a list of objects, found {shorten(sentences)}")
        values = [one.get("sent") or one.get("raw") or "" for one in sentences]
    for value in values:
        if not isinstance(value, str):
            raise BenchError(f"{place}: field 'caption': expected a text, found {shorten(value)}")
        if len(value) > MAX_TEXT:
            raise BenchError(f"{place}: field 'caption': expected at most {MAX_TEXT} characters, found {len(value)}")
        yield " ".join(value.split())


def _meant(
    coco: CocoFile, entry: Mapping[str, Any], own: Sequence[Mapping[str, Any]], place: str
) -> list[Mapping[str, Any]] | str:
    """The annotations that a caption means, each once; or why it is left out."""
    name = next((name for name in _IDS if name in entry), None)
    if name is not None:
        given = entry[name] if isinstance(entry[name], list) else [entry[name]]
        if entry.get("no_target") or given == [-1]:
            return []
        ids = {annotation["id"] for annotation in own}
        for number in given:
            if _hashable(number) not in ids:
                found = shorten(number)
                raise BenchError(
                    f"{place}: field {name!r}: expected annotations of its image in {coco.path}, found {found}"
                )
        return [coco.annotations[number] for number in dict.fromkeys(given)]
    name = next((name for name in _BOXES if name in entry), None)
    if name is None:
        return "captions that do not name their annotations (annotation_ids or boxes)"
    boxes = entry[name] if name == "boxes" else [entry[name]]
    if not isinstance(boxes, list) or not all(_is_box(box) for box in boxes):
        raise BenchError(
            f"{place}: field {name!r}: expected [x, y, width, height] in pixels, found {shorten(entry[name])}"
        )
    matched: dict[Id, Mapping[str, Any]] = {}
    for box in boxes:
        near = [one for one in own if _is_box(one.get("bbox")) and _close(one["bbox"], box)]
        if len(near) != 1:
            return "captions with a box that is not the box of exactly one annotation"
        matched[near[0]["id"]] = near[0]
    return list(matched.values())


def _hashable(value: Any) -> Any:
    return value if isinstance(value, (int, str)) and not isinstance(value, bool) else None


def _is_box(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 4 and all(type(side) in (int, float) for side in value)


def _close(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(abs(a - b) <= _NEAR for a, b in zip(one, other, strict=True))
