"""Meanings of all columns of published datasets, in one sentence each, for the card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from datasets import ClassLabel, Features, Image, LargeList, List, Value

from bench_datasets.benchmark import get_benchmark

_ORIGIN = {
    "image": "The image file as the source has it.",
    "image_sha256": "SHA-256 of the image file's bytes; rows of one image have it in common.",
    "source_dataset": "Where the row was read from.",
    "source_revision": "The source's revision; null where it has none.",
    "source_split": "What the source calls the split.",
    "source_id": "The source's own id of the row.",
    "faults": "Codes of what is wrong with the source's row; mostly empty.",
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
    form = get_benchmark(benchmark).dataset_form()
    words = {**_ORIGIN, **form.columns, **(_PREVIEW if config == "preview" else {})}
    for name, feature in features.items():
        yield name, kind(feature), words[name] if form.complete else words.get(name, "As its builder gives it.")


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
