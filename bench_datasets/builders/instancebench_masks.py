"""The candidates of an InstanceBench set: masks of any kind, checked and compressed, and what is wrong with some."""

from __future__ import annotations

from typing import Any, NamedTuple

from bench_datasets.builders.instancebench_lines import Tces
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


def sound_candidates(tces: Tces) -> Candidates:
    """Check a set's candidates.

    Left out are candidates without a valid mask or with an empty one (`candidate_without_mask`) and those of another
    size than the image (`size_mismatch`). An empty target stays (`target_empty`).

    Raises:
        BenchError: two candidates have one id.
    """
    given = tces.candidates
    _unique([candidate.instance_id for candidate in given], tces)
    parsed, wrong = parse_masks([candidate.segmentation for candidate in given], height=tces.height, width=tces.width)
    sound = [i for i in range(len(given)) if i not in wrong]
    masks = parsed.to_pylist()
    areas = dict(zip(sound, MaskColumn.from_arrow(parsed.take(sound)).areas().tolist(), strict=True)) if sound else {}
    without, sizes, crowds = list[str](), list[str](), list[str]()
    kept: list[int] = []
    target = -1
    empty = False
    for i, candidate in enumerate(given):
        name, is_target = candidate.instance_id, candidate.instance_id == tces.target
        if i in wrong:
            without.append(f"{name}: {wrong[i]}")
        elif tuple(masks[i]["size"]) != (tces.height, tces.width):
            height, width = masks[i]["size"]
            sizes.append(f"{name}: {height} x {width} where {tces.height} x {tces.width} was expected")
        elif areas[i] == 0 and not is_target:
            without.append(f"{name}: the mask is empty")
        else:
            if candidate.iscrowd:
                crowds.append(name)
            elif is_target:
                target, empty = len(kept), areas[i] == 0
            kept.append(i)
    faults: dict[str, str] = {}
    if target < 0:
        faults["target_missing"] = _why_missing(tces)
    if empty:
        faults["target_empty"] = f"the target {tces.target} has no pixel"
    for code, found in (("candidate_without_mask", without), ("size_mismatch", sizes), ("crowd_candidate", crowds)):
        if found:
            more = f" and {len(found) - 3} more" if len(found) > 3 else ""
            faults[code] = "candidates " + "; ".join(found[:3]) + more
    return Candidates(
        [given[i].instance_id for i in kept],
        [masks[i] for i in kept],
        [given[i].iscrowd for i in kept],
        target,
        faults,
    )


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
        twice = next(name for i, name in enumerate(ids) if name in ids[:i])
        raise BenchError(
            f"{tces.place}: field 'candidates': expected instance ids that differ, found {twice!r} twice in "
            f"{tces.tces_id!r}; remove one of the two"
        )
