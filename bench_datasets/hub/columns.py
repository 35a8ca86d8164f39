"""What every column of a published dataset means, in one sentence each: for the card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from datasets import ClassLabel, Features, Image, LargeList, List, Value

from bench_datasets.benchmark import get_benchmark

_MASK = "COCO compressed RLE: `size` [height, width] and `counts`"

_ORIGIN = {
    "image": "The image file as the source has it.",
    "image_sha256": "SHA-256 of the image file's bytes; rows of one image have it in common.",
    "source_dataset": "Where the row was read from.",
    "source_revision": "The source's revision; null where it has none.",
    "source_split": "What the source calls the split.",
    "source_id": "The source's own id of the row.",
    "faults": "Codes of what is wrong with the source's row; mostly empty.",
}

_PBENCH = {
    "key": "The row's name, `<level>/<id>`, with `#2`, `#3`, ... behind an id that the level has had before.",
    "id": "The source's id.",
    "level": "The level, or `dense`.",
    "expression": "The text that says what to find.",
    "masks": f"The mask of everything that the expression names; {_MASK}.",
    "count": "How many masks the source says there are.",
    "height": "Height of the image in pixels; null where there are neither masks nor an image.",
    "width": "Width of the image in pixels; null where there are neither masks nor an image.",
}

_INSTANCEBENCH = {
    "key": "The set's id.",
    "image_id": "The source's id of the image; sets of one image have it in common.",
    "source": "Which family of images it is from, `coco` or `openimages`.",
    "category": "The category of the target and of the other candidates.",
    "height": "Height of the image in pixels.",
    "width": "Width of the image in pixels.",
    "target": "Position of the target in `candidates`, from 0.",
    "candidates": f"The category's instances in the image, the target among them; a mask is a {_MASK}.",
    "expressions": "The expressions that all mean the target, each by another path.",
    "expression_id": "The expression's id.",
    "text": "The expression itself.",
    "role": "What the expression is in its set; `minimal` and `variant` are the core roles.",
    "operation": "The operation of referential logic that the expression asks for; null where it is unknown.",
    "family": "The operation's family.",
    "track": "What has changed between the expression and the minimal one.",
    "tags": "Finer names of the operation, such as `spatial_relation`.",
    "donor_mask": "Mask of the target of the expression that a text swap asks for instead; mostly null.",
}

_PVSG = {
    "key": "The video's id.",
    "source": "Where the video is from: `vidor`, `epic_kitchen` or `ego4d`.",
    "height": "Height of the frames in pixels.",
    "width": "Width of the frames in pixels.",
    "fps": "Frames a second.",
    "num_frames": "Frames that the annotation declares.",
    "frames_present": "Frames that have a mask file.",
    "objects": "The annotated objects, visible or not.",
    "tubes": f"For each of `objects` the frames (from 0) where it is visible and its mask in each; {_MASK}.",
    "relations": "Who does what to whom and when; `spans` are [first, last] in frames from 0, both ends in.",
    "relations_left_out": "Relations that no metric counts, as the source has them, each with the reason.",
    "captions": "Descriptions of parts of the video.",
    "qa_pairs": "Questions about the video with their answers.",
    "summary": "What happens, in a few sentences.",
    "video": "The video file's place below the source's root; null where it is not there.",
    "video_id": "The video's id.",
    "frame": "The frame's number in the video, from 0.",
    "object_ids": "The objects visible in the frame.",
    "categories": "The category of each of them.",
    "masks": f"The mask of each of them; {_MASK}.",
}

_PREVIEW = {
    "overlay": "The masks, each in a colour of its own, drawn over the image, or over a plain ground where the pixels "
    "may not be passed on.",
    "text": "What the row says; null where it says nothing.",
    "count": "How many masks are drawn.",
    "candidates": "How many instances of the category are drawn; the target is the orange one.",
    "expressions": "The texts that all mean the target, the core roles first.",
    "frame": "The frame that is drawn, from 0.",
    "objects": "The categories of the objects that are drawn.",
    "relations": "Relations that hold in the frame, in words.",
}

_COMMON = {
    "key": "The row's name.",
    "id": "The source's id.",
    "split": "The split that the row is in.",
    "expression": "The text that says what to find.",
    "masks": f"The row's masks; {_MASK}.",
    "height": "Height in pixels.",
    "width": "Width in pixels.",
}

COLUMNS = {"pbench": _PBENCH, "instancebench": _INSTANCEBENCH, "pvsg": _PVSG}


def describe(benchmark: str, config: str, features: Features) -> Iterator[tuple[str, str, str]]:
    """Name, type and meaning of each column of a config.

    Args:
        benchmark: its name.
        config: of the published dataset; `preview` has columns of its own.
        features: the columns.

    Example:
        >>> list(describe("pbench", "default", Features({"id": Value("int64")})))
        [('id', 'int64', "The source's id.")]
    """
    own = COLUMNS[benchmark] if benchmark in COLUMNS else {**_COMMON, **get_benchmark(benchmark).columns}
    words = {**_ORIGIN, **own, **(_PREVIEW if config == "preview" else {})}
    for name, feature in features.items():
        yield name, kind(feature), words[name] if benchmark in COLUMNS else words.get(name, "As its builder gives it.")


def kind(feature: Any) -> str:
    """A feature's type in a few words.

    Example:
        >>> kind(List(List(Value("int32"), length=2))), kind(ClassLabel(names=["a", "b"]))
        ('list of list of 2 int32', 'class (2 names)')
    """
    if isinstance(feature, ClassLabel):
        return f"class ({feature.num_classes} names)"
    if isinstance(feature, Value):
        return str(feature.dtype)
    if isinstance(feature, Image):
        return "image"
    if isinstance(feature, (List, LargeList)):
        length = getattr(feature, "length", -1)
        return f"list of {f'{length} ' if length > 0 else ''}{kind(feature.feature)}"
    if isinstance(feature, dict):
        return "mask" if set(feature) == {"size", "counts"} else "{" + ", ".join(feature) + "}"
    return type(feature).__name__
