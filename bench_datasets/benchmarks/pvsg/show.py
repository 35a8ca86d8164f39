"""A PVSG row as text and picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.display.overlay import overlay
from bench_datasets.display.show import Shown, read_masks, row_size, shorten_lines


def show_video(row: Mapping[str, Any], frame: int | None) -> Shown:
    """The objects of one frame, and the relations of the video.

    Args:
        row: the video.
        frame: the frame to draw; the one with most objects for `None`.

    Raises:
        BenchError: a mask is invalid.
    """
    key = str(row.get("key"))
    tubes = list(row["tubes"] or ())
    seen: dict[int, list[Any]] = {}
    for tube in tubes:
        for number, mask in zip(tube["frames"], tube["masks"], strict=True):
            seen.setdefault(int(number), []).append(mask)
    chosen = min(seen, key=lambda n: (-len(seen[n]), n)) if seen and frame is None else frame
    masks = read_masks(seen.get(chosen if chosen is not None else -1), "tubes", key)
    names = {item["object_id"]: f"{_name(item['category'], CATEGORIES)} {item['object_id']}" for item in row["objects"]}
    lines = [
        f"{key}: {len(tubes)} objects, {len(row.get('relations') or ())} relations, {len(seen)} frames with masks"
        f"{'' if chosen is None else f'; frame {chosen}'}"
    ]
    relations = []
    for item in row.get("relations") or ():
        spans = ", ".join(f"{a}-{b}" for a, b in item["spans"])
        ends = [names.get(item[end], f"unknown {item[end]}") for end in ("subject_id", "object_id")]
        relations.append(f"  {ends[0]} {_name(item['predicate'], PREDICATES)} {ends[1]}, frames {spans}")
    size = row_size(masks, row)
    return Shown(
        key, "\n".join(lines + shorten_lines(relations, "relations")), overlay(row.get("image"), size, masks, None)
    )


def _name(value: Any, names: Any) -> str:
    return str(names[value]) if isinstance(value, int) and 0 <= value < len(names) else str(value)
