"""A row to look at: what it asks for, in words and as a picture, whatever the benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench_datasets.benchmarks.instancebench.vocabulary import ROLES
from bench_datasets.benchmarks.pbench.schema import LEVELS as PBENCH_LEVELS
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.display.overlay import Seen, overlay
from bench_datasets.faults import BenchError
from bench_datasets.masks import MaskColumn
from bench_datasets.masks.ragged import read_mask_lists

MOST = 12
"""Lines about one row; the rest is counted."""


@dataclass(frozen=True)
class Shown(Seen):
    """A row to look at.

    Attributes:
        key: the row's key.
        text: what it asks for, line by line.
        picture: its masks over the image, or over a plain ground where the row has none.
    """


def show(row: Mapping[str, Any], *, frame: int | None = None) -> Shown:
    """A truth row of any benchmark, with its predictions where it has some, to look at.

    Args:
        row: as the builder gives it, with or without its image; `pred_masks` (PBench, InstanceBench) is drawn over it.
        frame: PVSG: the frame to draw; by default the one in which most objects are seen.

    Returns:
        Words and a picture; truth is blue with stripes that rise, predictions are orange with stripes that fall.

    Raises:
        BenchError: it is no row of a benchmark, or its masks are unsound.

    Example:
        >>> print(show({"id": 7, "level": "level_0", "expression": "dog", "masks": [{"size": [2, 3], "counts": "15"}]}))
        level_0/7: 'dog'
        1 mask, 2 x 3 pixels
          mask 0: 5 pixels
    """
    if not isinstance(row, Mapping):
        raise BenchError(f"show: expected one row, a mapping of its columns, got {type(row).__name__}")
    if "tubes" in row:
        return _video(row, frame)
    if "candidates" in row:
        return _set(row)
    if "masks" in row:
        return _image(row)
    raise BenchError(f"show: expected a row with masks, candidates or tubes, found {', '.join(map(str, row))[:200]}")


def _masks(values: Any, what: str, key: str) -> MaskColumn:
    """Masks of a row, null ones left out.

    Raises:
        BenchError: one is unsound.
    """
    lists = read_mask_lists([[mask for mask in values or () if mask is not None]])
    wrong = lists.problems().get(0)
    if wrong:
        raise BenchError(f"{key}: {what}: {wrong[0]}; mend it, or look at another row")
    sizes = set(zip(lists.masks.heights.tolist(), lists.masks.widths.tolist(), strict=True))
    if len(sizes) > 1 and what != "pred_masks":
        raise BenchError(f"{key}: {what}: expected masks of one size, found {sorted(sizes)}")
    return lists.masks


def _size(masks: MaskColumn, row: Mapping[str, Any]) -> tuple[int, int] | None:
    if len(masks):
        return int(masks.heights[0]), int(masks.widths[0])
    height, width = row.get("height"), row.get("width")
    return (int(height), int(width)) if height and width else None


def _lines(lines: list[str], what: str) -> list[str]:
    return lines[:MOST] + ([f"  and {len(lines) - MOST} {what} more"] if len(lines) > MOST else [])


def _image(row: Mapping[str, Any]) -> Shown:
    level = row.get("level")
    named = PBENCH_LEVELS[level] if isinstance(level, int) and 0 <= level < len(PBENCH_LEVELS) else level
    key = str(row.get("key") or f"{named}/{row.get('id')}")
    true = _masks(row["masks"], "masks", key)
    given = _masks(row["pred_masks"], "pred_masks", key) if row.get("pred_masks") is not None else None
    size = _size(true, row)
    shape = f", {size[0]} x {size[1]} pixels" if size else ""
    lines = [f"{key}: {row.get('expression')!r}", f"{len(true)} mask{'' if len(true) == 1 else 's'}{shape}"]
    if given is not None:
        lines.append(f"{len(given)} predicted")
    lines += _lines([f"  mask {i}: {area:,} pixels" for i, area in enumerate(true.areas().tolist())], "masks")
    return Shown(key, "\n".join(lines), overlay(row.get("image"), size, true, given if size else None))


def _set(row: Mapping[str, Any]) -> Shown:
    key, target = str(row.get("key")), int(row["target"])
    candidates = list(row["candidates"] or ())
    if not 0 <= target < len(candidates):
        raise BenchError(f"{key}: target: expected one of {len(candidates)} candidates, found {target}")
    true = _masks([candidates[target]["mask"]], "candidates", key)
    given = _masks(row["pred_masks"], "pred_masks", key) if row.get("pred_masks") is not None else None
    lines = [
        f"{key}: {row.get('category')}, target {candidates[target]['instance_id']} of {len(candidates)} candidates"
    ]
    asked = [f"  {_name(e['role'], ROLES)}: {e['text']!r}" for e in row.get("expressions") or ()]
    lines += _lines(asked, "expressions")
    return Shown(key, "\n".join(lines), overlay(row.get("image"), _size(true, row), true, given))


def _video(row: Mapping[str, Any], frame: int | None) -> Shown:
    key = str(row.get("key"))
    tubes = list(row["tubes"] or ())
    seen: dict[int, list[Any]] = {}
    for tube in tubes:
        for number, mask in zip(tube["frames"], tube["masks"], strict=True):
            seen.setdefault(int(number), []).append(mask)
    chosen = min(seen, key=lambda n: (-len(seen[n]), n)) if seen and frame is None else frame
    masks = _masks(seen.get(chosen if chosen is not None else -1), "tubes", key)
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
    size = _size(masks, row)
    return Shown(key, "\n".join(lines + _lines(relations, "relations")), overlay(row.get("image"), size, masks, None))


def _name(value: Any, names: Any) -> str:
    return str(names[value]) if isinstance(value, int) and 0 <= value < len(names) else str(value)
