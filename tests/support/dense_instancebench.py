"""Every number of InstanceBench from dense masks by plain loops, written from the definitions alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from .instancebench_sets import Answers, Ask, Dense, Tces

OPERATIONS = {
    "ordinal": "same_class_selection",
    "extremal": "same_class_selection",
    "relative_selection": "same_class_selection",
    "subgroup_based": "same_class_selection",
    "single_anchor_relation": "single_anchor_relation",
    "multi_anchor_relation": "multi_anchor_composition",
    "nested_grounding": "multi_anchor_composition",
    "target_evidence": "target_centric_visual_evidence",
    "negation_or_exclusion": "negation_or_exclusion",
}
SOURCES = ("coco", "openimages")
NAN = math.nan


@dataclass
class Said:
    """One expression with its answer."""

    tces: Tces
    ask: Ask
    mask: Dense
    given: bool
    q: float
    scores: list[float]
    target: int

    def means(self, least: float = 0.1, margin: float = 0.05) -> int | None:
        """The candidate it is assigned to."""
        best = max(self.scores)
        first = next(i for i, s in enumerate(self.scores) if s >= best - 1e-12)
        second = max((s for i, s in enumerate(self.scores) if i != first), default=0.0)
        return first if best > 0 and best >= least - 1e-12 and best - second >= margin - 1e-12 else None

    @property
    def right(self) -> bool:
        return self.means() == self.target


def iou(a: Dense, b: Dense) -> float:
    union = int((a | b).sum())
    return int((a & b).sum()) / union if union else 0.0


def cosine(a: Dense, b: Dense) -> float:
    return int((a & b).sum()) / math.sqrt(int(a.sum()) * int(b.sum())) if a.any() and b.any() else 0.0


def read(sets: Sequence[Tces], answers: Answers) -> list[list[Said]]:
    """Expressions set by set, the sets by key."""
    result = []
    for tces in sorted(sets, key=lambda tces: tces.key):
        kept = [k for k, thing in enumerate(tces.things) if not thing.crowd or k == tces.target]
        truth = tces.things[tces.target].mask
        said = []
        for ask in tces.asks:
            mask = answers.get(ask.name)
            mask = truth & False if mask is None else mask
            scores = [cosine(mask, tces.things[k].mask) for k in kept]
            said.append(Said(tces, ask, mask, ask.name in answers, iou(mask, truth), scores, kept.index(tces.target)))
        result.append(said)
    return result


def mean(items: Iterable[Any]) -> float:
    found = [float(item) for item in items]
    return math.fsum(found) / len(found) if found else NAN


def only(said: Sequence[Said], role: str) -> Said | None:
    return next((x for x in said if x.ask.role == role), None)


def numbers(sets: Sequence[Tces], answers: Mapping[str, Answers], tau: float = 0.7) -> dict[str, float]:
    """Every number, NaN where undefined."""
    by_set = read(sets, answers["original"])
    core_of = [[x for x in said if x.ask.role in ("minimal", "variant")] for said in by_set]
    core = [x for said in core_of for x in said]
    eligible = [k for k, said in enumerate(by_set) if len(said[0].scores) >= 2]
    result = {
        "miou": mean(x.q for x in core),
        "oiou": sum(int((x.mask & truth(x)).sum()) for x in core) / sum(int((x.mask | truth(x)).sum()) for x in core),
        "worst_path_iou": mean(min(x.q for x in said) for said in core_of),
        "all_target_id": mean(all(x.right for x in core_of[k]) for k in eligible),
        "all_target_id/dense": mean(all(x.right for x in by_set[k]) for k in eligible),
    }
    for t in (0.5, tau):
        result[f"p@{t:g}"] = mean(x.q >= t for x in core)
    for t in (tau, 0.9):
        result[f"all@{t:g}"] = mean(all(x.q >= t for x in said) for said in core_of)
    failing = [x for k in eligible for x in core_of[k] if x.q < tau]
    result |= {f"{name}@{tau:g}": value for name, value in failures(failing, lambda x: x.means()).items()}
    for least in (0.05, 0.1, 0.15):
        for margin in (0.0, 0.05, 0.1):

            def means(x: Said, least: float = least, margin: float = margin) -> int | None:
                return x.means(least, margin)

            prefix = f"sensitivity/{least:g}/{margin:g}"
            result[f"{prefix}/all_target_id"] = mean(all(means(x) == x.target for x in core_of[k]) for k in eligible)
            result |= {f"{prefix}/{name}": value for name, value in failures(failing, means).items()}
    result |= consistency(by_set, eligible, tau)
    result |= parts(by_set, core_of, core, tau)
    result |= {f"effect/{name}": effect(core, *pair) for name, pair in CONTRASTS.items()}
    return result | interventions(by_set, {c: read(sets, a) for c, a in answers.items() if c != "original"})


def truth(x: Said) -> Dense:
    return x.tces.things[x.tces.target].mask


def failures(failing: Sequence[Said], means: Callable[[Said], int | None]) -> dict[str, float]:
    return {
        "identity_error": mean(means(x) != x.target for x in failing),
        "same_class_switch": mean(means(x) not in (x.target, None) for x in failing),
        "unresolved": mean(means(x) is None for x in failing),
        "correct_id_poor_mask": mean(means(x) == x.target for x in failing),
    }


def consistency(by_set: list[list[Said]], eligible: list[int], tau: float) -> dict[str, float]:
    """Retention over its populations, TM, NCI, conditional mask IoU."""
    result: dict[str, float] = {}
    pairs = [(only(by_set[k], "minimal"), only(by_set[k], "variant")) for k in eligible]
    kept = [(m, v) for m, v in pairs if m is not None and v is not None and m.right]
    result["retention/variant"] = mean(v.right for _, v in kept)
    result["conditional_mask_iou"] = mean(iou(m.mask, v.mask) for m, v in kept if v.right)
    matched = [by_set[k] for k in eligible if only(by_set[k], "paraphrase") is not None]
    nci = {}
    for role in ("variant", "paraphrase"):
        both = [(only(said, "minimal").right, only(said, role).right) for said in matched]  # type: ignore[union-attr]
        result[f"retention/{role}/matched"] = mean(b for a, b in both if a)
        p_m, p_x, p_mx = mean(a for a, _ in both), mean(b for _, b in both), mean(a and b for a, b in both)
        bottom = min(p_m, p_x) - p_m * p_x if both else 0.0
        nci[role] = (p_mx - p_m * p_x) / bottom if bottom > 1e-15 else NAN
        result[f"nci/{role}"] = nci[role]
    result["delta_nci"] = nci["variant"] - nci["paraphrase"]
    for track in ("paraphrase", "same_target", "exclusion"):
        of_track = [
            (only(said, "minimal"), x)
            for said in by_set
            for x in said
            if x.ask.track == track and only(said, "minimal")
        ]
        result[f"retention/{track}/dense"] = mean(x.right for m, x in of_track if m.right)
        result[f"tm@{tau:g}/{track}/dense"] = mean(
            x.right and x.q >= tau for m, x in of_track if m.right and m.q >= tau
        )
    return result


def parts(by_set: list[list[Said]], core_of: list[list[Said]], core: list[Said], tau: float) -> dict[str, float]:
    """By operation, source and track; box and candidate numbers, which masks leave undefined."""
    result = {f"miou/operation/{op}": mean(x.q for x in core if x.ask.operation == op) for op in OPERATIONS}
    cells: dict[str, list[float]] = {}
    for source in SOURCES:
        of_source = [said for said in core_of if said[0].tces.source == source]
        result[f"miou/source/{source}"] = mean(x.q for said in of_source for x in said)
        result[f"all@{tau:g}/source/{source}"] = mean(all(x.q >= tau for x in said) for said in of_source)
        cells[source] = [mean(x.q for said in of_source for x in said if x.ask.operation == op) for op in OPERATIONS]
        result |= {f"miou/{source}/{op}": value for op, value in zip(OPERATIONS, cells[source], strict=True)}
    for name in ("miou", f"all@{tau:g}"):
        result[f"delta_source/{name}"] = result[f"{name}/source/openimages"] - result[f"{name}/source/coco"]
    common = [(a, b) for a, b in zip(*cells.values(), strict=True) if math.isfinite(a + b)]
    flat = len(common) < 2 or any(len({row[k] for row in common}) < 2 for k in (0, 1))
    result["spearman/source"] = NAN if flat else float(stats.spearmanr(*zip(*common, strict=True)).statistic)
    everything = [x for said in by_set for x in said]
    for track in ("minimal", "paraphrase", "same_target", "exclusion"):
        result[f"track/{track}/miou"] = mean(x.q for x in everything if x.ask.track == track)
    result["exclusion_drop"] = mean(
        only(said, "minimal").q - x.q for said in by_set for x in said if x.ask.track == "exclusion"
    )
    families = tuple(dict.fromkeys(OPERATIONS.values()))
    moves = [tuple(OPERATIONS[only(said, role).ask.operation] for role in ("minimal", "variant")) for said in by_set]
    result |= {f"transition/{a}/{b}": float(moves.count((a, b))) for a in families for b in families}
    undefined = ("expression_id", "minimal_id", "variant_id", "all_target_id", "retention")
    return result | {f"oracle/{name}": NAN for name in undefined} | {"box_acc@0.5": NAN}


CONTRASTS = {
    "ordinal-extremal": ("ordinal", "extremal", False),
    "multi_anchor-spatial": ("multi_anchor_relation", "single_anchor_relation", True),
    "nested-spatial": ("nested_grounding", "single_anchor_relation", True),
}


def effect(core: list[Said], treated: str, control: str, spatial: bool) -> float:
    """Mean difference to the nearest control of the same category and source; deviations pooled within groups."""
    one = [x for x in core if x.ask.operation == treated]
    other = [x for x in core if x.ask.operation == control and (not spatial or "spatial_relation" in x.ask.tags)]
    traits = [[describe(x) for x in group] for group in (one, other)]
    scale = []
    for k in range(3):
        spread = sum(
            statistics.variance([t[k] for t in group]) * (len(group) - 1) for group in traits if len(group) > 1
        )
        freedom = len(one) + len(other) - 2
        scale.append(math.sqrt(spread / freedom) if freedom > 0 else 0.0)
    gains = []
    for x in one:
        pool = [y for y in other if (y.tces.category, y.tces.source) == (x.tces.category, x.tces.source)]
        if pool:
            here = describe(x)

            def away(y: Said, here: tuple[float, ...] = here) -> float:
                pairs = zip(here, describe(y), scale, strict=True)
                return sum(((a - b) / s) ** 2 if s > 1e-12 else 0.0 for a, b, s in pairs)

            nearest = min(away(y) for y in pool)
            gains.append(x.q - next(y for y in pool if away(y) <= nearest + 1e-9).q)
    return mean(gains)


def describe(x: Said) -> tuple[float, float, float]:
    share = int(truth(x).sum()) / truth(x).size
    return math.log(share), math.log(len(x.scores)), float(len(x.ask.text.split()))


def interventions(by_set: list[list[Said]], conditions: Mapping[str, list[list[Said]]]) -> dict[str, float]:
    result: dict[str, float] = {}
    original = {x.ask.name: x for said in by_set for x in said}
    for condition, found in conditions.items():
        given = [x for said in found for x in said if x.given]
        if not given:
            continue
        prefix = f"intervention/{condition}"
        if condition == "category_only":
            result[f"{prefix}/miou"] = mean(x.q for x in given)
            asked = {x.tces.key for x in given}
            minimal = [only(said, "minimal").q for said in by_set if said[0].tces.key in asked]
            result[f"{prefix}/drop"] = mean(x.q for x in given) - mean(minimal)
        elif condition == "text_swap":
            swapped = [x for x in given if x.ask.donor is not None]
            result[f"{prefix}/donor_iou"] = mean(iou(x.mask, x.ask.donor) for x in swapped)
            result[f"{prefix}/donor_preference"] = mean(iou(x.mask, x.ask.donor) > x.q for x in swapped)
        else:
            result[f"{prefix}/delta_miou"] = mean(x.q - original[x.ask.name].q for x in given)
    return result
