"""Validate and compress the candidates' masks of an InstanceBench set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from bench_datasets.benchmarks.instancebench.manifest import Tces
from bench_datasets.data.coco_annotations import looks_exchanged
from bench_datasets.faults import BenchError
from bench_datasets.masks import MaskColumn, parse_masks


class Candidates(NamedTuple):
    """A set's candidates that have a sound mask of the image's size.

    Attributes:
        ids: their instance ids, in the manifest's order.
        masks: their masks `{"size", "counts"}`.
        crowds: whether each is a crowd region; those stay in the list, and are no candidates for scoring.
        target: the target's position; -1 where it is not among them, or is a crowd region.
        faults: what was found, words by fault code.
    """

    ids: list[str]
    masks: list[dict[str, Any]]
    crowds: list[bool]
    target: int
    faults: dict[str, str]


class _Read(NamedTuple):
    """One candidate's mask as it was read.

    Attributes:
        mask: `{"size", "counts"}`, None where it is unsound.
        area: its pixels.
        wrong: what is wrong with it; empty where nothing is.
        dropped: which of its polygons were left out; empty where none were.
    """

    mask: dict[str, Any] | None
    area: int
    wrong: str
    dropped: str


def sound_candidates(sets: Sequence[Tces]) -> list[Candidates]:
    """Check the candidates of some sets.

    Left out are candidates without a valid mask or with an empty one (`candidate_without_mask`) and those of another
    size than the image (`size_mismatch`). An empty target stays (`target_empty`). A polygon of fewer than three points
    beside others is left out of its mask (`polygon_part_dropped`). Polygons that fit the image only if its height and
    width are exchanged are noted (`sides_exchanged`).

    Args:
        sets: n sets; the masks of those of one image size are read in one go.

    Returns:
        n sets of candidates.

    Raises:
        BenchError: two candidates of a set have one id.
    """
    by_size: dict[tuple[int, int], list[int]] = {}
    for k, tces in enumerate(sets):
        _unique([candidate.instance_id for candidate in tces.candidates], tces)
        by_size.setdefault((tces.height, tces.width), []).append(k)
    found: dict[int, Candidates] = {}
    for (height, width), members in by_size.items():
        values = [candidate.segmentation for k in members for candidate in sets[k].candidates]
        read = iter(_read(values, height, width))
        for k in members:
            found[k] = _checked(sets[k], list(islice(read, len(sets[k].candidates))))
    return [found[k] for k in range(len(sets))]


def _read(values: Sequence[object], height: int, width: int) -> list[_Read]:
    noted: dict[int, str] = {}
    parsed, wrong = parse_masks(values, height=height, width=width, noted=noted)
    sound = [i for i in range(len(values)) if i not in wrong]
    areas = [0] * len(values)
    if sound:
        column = MaskColumn.from_arrow(parsed.take(sound) if wrong else parsed)
        for i, area in zip(sound, column.areas().tolist(), strict=True):
            areas[i] = area
    masks = parsed.to_pylist()
    return [_Read(masks[i], areas[i], wrong.get(i, ""), noted.get(i, "")) for i in range(len(values))]


def _checked(tces: Tces, read: Sequence[_Read]) -> Candidates:
    """One set's candidates, whose masks have been read."""
    without, sizes, crowds, parts, exchanged = list[str](), list[str](), list[str](), list[str](), list[str]()
    kept = Candidates([], [], [], -1, {})
    target, empty = -1, False
    for candidate, (mask, area, wrong, dropped) in zip(tces.candidates, read, strict=True):
        name, is_target = candidate.instance_id, candidate.instance_id == tces.target
        if looks_exchanged(candidate.segmentation, tces.height, tces.width):
            exchanged.append(name)
        if dropped:
            parts.append(f"{name}: {dropped}")
        if mask is None:
            without.append(f"{name}: {wrong}")
        elif tuple(mask["size"]) != (tces.height, tces.width):
            height, width = mask["size"]
            swapped = " (height and width exchanged?)" if (width, height) == (tces.height, tces.width) else ""
            sizes.append(f"{name}: {height} x {width} where {tces.height} x {tces.width} was expected{swapped}")
        elif area == 0 and not is_target:
            without.append(f"{name}: the mask is empty")
        else:
            if candidate.iscrowd:
                crowds.append(name)
            elif is_target:
                target, empty = len(kept.ids), area == 0
            kept.ids.append(name)
            kept.masks.append(mask)
            kept.crowds.append(candidate.iscrowd)
    faults = kept.faults
    if target < 0:
        faults["target_missing"] = _why_missing(tces)
    if empty:
        faults["target_empty"] = f"the target {tces.target} has no pixel"
    for code, found in (
        ("candidate_without_mask", without),
        ("size_mismatch", sizes),
        ("crowd_candidate", crowds),
        ("polygon_part_dropped", parts),
        ("sides_exchanged", exchanged),
    ):
        if found:
            more = f" and {len(found) - 3} more" if len(found) > 3 else ""
            faults[code] = "candidates " + "; ".join(found[:3]) + more
    return kept._replace(target=target)


def _why_missing(tces: Tces) -> str:
    if tces.target is None:
        return "the target is null"
    for candidate in tces.candidates:
        if candidate.instance_id == tces.target:
            what = "is a crowd region" if candidate.iscrowd else "has no valid mask of the image's size"
            return f"the target {tces.target} {what}"
    return f"the target {tces.target} is not among the {len(tces.candidates)} candidates"


def _unique(ids: list[str], tces: Tces) -> None:
    if len(set(ids)) < len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise BenchError(
            f"{tces.place}: field 'candidates': expected instance ids that differ, found {twice!r} twice in "
            f"{tces.tces_id!r}; remove one of the two"
        )
