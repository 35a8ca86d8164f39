"""Whose fields these are: what is stopped before one benchmark's predictions are scored as another's."""

from __future__ import annotations

from collections.abc import Iterable

from bench_datasets.faults import BenchError, FaultError
from bench_datasets.predictions.fields import show_fields

FIELDS = {
    "pbench": "key or id, and masks",
    "instancebench": "expression_id, and mask, box or candidate_id",
    "pvsg": "video_id, tubes and triplets",
}
"""What a prediction of each benchmark consists of, for messages."""

_PBENCH = {"masks", "pred_masks", "instances"}
_TUBES = {"tubes", "pred_tubes", "triplets", "pred_triplets"}
_OWN = {"pbench": _PBENCH, "instancebench": {"expression_id"}, "pvsg": _TUBES}


def refuse_other_benchmark(names: Iterable[str], place: str, wanted: str = "pbench") -> None:
    """Stop at what are rows of another benchmark, or truth, by the names of their fields.

    Args:
        names: the fields.
        place: where they stand.
        wanted: the benchmark whose predictions are expected.

    Raises:
        FaultError: `wrong_benchmark`.
        BenchError: these are rows of the truth.
    """
    fields = set(names)
    refuse_annotations(fields, place)
    found = _strong(fields) or (None if fields & _OWN[wanted] else _weak(fields))
    if found is not None and found != wanted:
        shown = show_fields(fields)
        raise wrong_benchmark(place, wanted, found, f"fields ({shown})")
    truth = _truth(fields, wanted)
    if truth:
        advice = "name what is predicted pred_... where both stand side by side"
        if wanted == "instancebench":
            advice = f"give a row an expression ({FIELDS[wanted]})"
        raise BenchError(f"{place}: expected predictions, found the truth's own fields ({', '.join(truth)}); {advice}")


def refuse_annotations(names: Iterable[str], place: str) -> None:
    """Stop at a COCO annotation file, by the names of its fields.

    Raises:
        BenchError: these are the fields of one.
    """
    if {"images", "annotations"} <= set(names):
        raise BenchError(
            f"{place}: expected predictions, found a COCO annotation file (images, annotations); give the results as a "
            "list [{image_id, segmentation, score}, ...], which is what the key annotations holds"
        )


def wrong_benchmark(place: str, wanted: str, found: str, what: str) -> FaultError:
    """The error that says so.

    Args:
        place: where it was found.
        wanted: the benchmark asked for.
        found: the benchmark that it is of.
        what: what tells so.
    """
    text = f"wrong benchmark: expected {wanted} predictions ({FIELDS[wanted]}), found {found} {what}; read them as "
    return FaultError("wrong_benchmark", place, f"{text}{found!r}")


def _strong(fields: set[str]) -> str | None:
    if {"candidates", "expressions"} <= fields:
        return "instancebench"
    return "pvsg" if _TUBES & fields else None


def _weak(fields: set[str]) -> str | None:
    if "expression_id" in fields:
        return "instancebench"
    if "video_id" in fields:
        return "pvsg"
    return "pbench" if (_PBENCH | {"segmentation"}) & fields else None


def _truth(fields: set[str], wanted: str) -> tuple[str, ...]:
    """The fields that only the truth has, if these are rows of it without predictions beside them."""
    if wanted == "pbench" and {"expression", "count", "masks"} <= fields:
        return () if {"pred_masks", "scores", "pred_scores"} & fields else ("expression", "count", "masks")
    if wanted == "instancebench" and {"candidates", "expressions"} <= fields:
        return ("candidates", "expressions")
    if wanted == "pvsg" and {"objects", "relations"} <= fields:
        return () if {"pred_tubes", "pred_triplets", "triplets"} & fields else ("objects", "relations")
    return ()
