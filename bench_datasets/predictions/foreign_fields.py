"""Whose fields these are: what is stopped before one benchmark's predictions are scored as another's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bench_datasets.faults import BenchError, FaultError
from bench_datasets.predictions.coerce import show_fields

FIELDS = {
    "pbench": "key or id, and masks",
    "instancebench": "expression_id, and mask, box or candidate_id",
    "pvsg": "video_id, tubes and triplets",
}
"""What a prediction of each benchmark consists of, for messages."""

_PBENCH = {"masks", "pred_masks", "instances"}
_TUBES = {"tubes", "pred_tubes", "triplets", "pred_triplets"}
_NAMES = {"id", "key", "image_id", "expression_id", "ref_id", "video_id", "image", "image_path"}
_WRAPPERS = ("predictions", "results", "annotations", "data")
_RECORDS = "df.to_json(path, orient='records', lines=True)"
_TOOLS: tuple[tuple[set[str], str, str], ...] = (
    (
        {"images", "annotations"},
        "a COCO annotation file (images, annotations)",
        "give the results as a list [{image_id, segmentation, score}, ...], which is what the key annotations holds",
    ),
    ({"schema", "data"}, "a pandas table (schema, data)", f"write {_RECORDS}"),
    ({"columns", "data"}, "a pandas table (columns, data)", f"write {_RECORDS}"),
    (
        {"version", "results"},
        "VidVRD's results (version, results)",
        "they hold boxes, but no masks; write one line per video with tubes and triplets",
    ),
    (
        {"video_id", "segmentations"},
        "a YouTube-VIS result (video_id, segmentations)",
        "write one line per video, each result as a tube {tube_id, category, frames, masks}; leave out frames "
        "without a mask; PVSG needs triplets, too",
    ),
    ({"sequences"}, "a BURST file (sequences)", "write one line per video with tubes and triplets"),
    ({"shapes", "imagePath"}, "a LabelMe file (shapes, imagePath)", "write the polygons as masks"),
    (
        {"box", "confidence", "class"},
        "what Ultralytics' Results.to_json writes (box, confidence, class)",
        "write the masks of result.masks.data; model.val(save_json=True) writes a predictions.json that is read",
    ),
    (
        {"x_min", "y_min", "x_max", "y_max"},
        "what supervision's JSONSink writes (x_min, y_min, x_max, y_max)",
        "it holds boxes, but no masks; write the masks of detections.mask",
    ),
    (
        {"segments_info"},
        "a segmentation map of Transformers (segments_info)",
        "write one mask per segment, encode_dense(segmentation == segment['id'])",
    ),
)
"""Files of other tools that are not read: the fields by which each is known, what it is, what to do."""

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
    refuse_other_tools(names if isinstance(names, Mapping) else fields, place)
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


def refuse_other_tools(names: Iterable[str], place: str) -> None:
    """Stop at a file that another tool wrote and that is not read, by the names of its fields.

    Args:
        names: the fields, or the record itself.
        place: where they stand.

    Raises:
        BenchError: it is such a file; the message says what it is and how to convert it.
    """
    fields = set(names)
    for known, what, advice in _TOOLS:
        if known <= fields:
            raise BenchError(f"{place}: expected predictions, found {what}; {advice}")
    wrapper = next((name for name in _WRAPPERS if name in fields), None)
    if wrapper is not None and not fields & _NAMES:
        found = f"found one object with the fields {show_fields(fields)}"
        raise BenchError(f"{place}: expected one object per prediction, {found}; write the list {wrapper!r} alone")
    column = next((names[name] for name in sorted(fields & _NAMES)), None) if isinstance(names, Mapping) else None
    if isinstance(column, Mapping) and column and all(str(name).isdigit() for name in column):
        found = f"found columns, as pandas' to_json writes them ({show_fields(fields)})"
        raise BenchError(f"{place}: expected one object per prediction, {found}; write {_RECORDS}")


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
