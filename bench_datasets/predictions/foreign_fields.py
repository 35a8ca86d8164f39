"""Refuse predictions of another benchmark or of another tool, by the names of their fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bench_datasets.benchmark import BENCHMARKS
from bench_datasets.faults import BenchError, FaultError
from bench_datasets.predictions.coerce import show_fields
from bench_datasets.predictions.signature import Signature

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


def refuse_other_benchmark(names: Iterable[str], place: str, wanted: Signature) -> None:
    """Refuse rows of another benchmark and rows of ground truth, by the names of their fields.

    Args:
        names: the fields, or the record itself.
        place: where they stand.
        wanted: the form that is expected.

    Raises:
        FaultError: `wrong_benchmark`.
        BenchError: these are rows of ground truth, or of another tool.
    """
    fields = set(names)
    refuse_other_tools(names if isinstance(names, Mapping) else fields, place)
    forms = signatures()
    found = next((form for form in forms.values() if any(some <= fields for some in form.certain)), None)
    if found is None and not fields & wanted.own:
        found = next((form for form in forms.values() if form.row_names & fields), None)
        found = found or next((form for form in forms.values() if form.hints & fields), None)
    if found is not None and found is not wanted:
        raise _wrong(place, wanted, found, f"fields ({show_fields(fields)})")
    if wanted.truth and set(wanted.truth) <= fields and not wanted.beside & fields:
        text = f"expected predictions, found the truth's own fields ({', '.join(wanted.truth)})"
        raise BenchError(f"{place}: {text}; {wanted.truth_advice}")


def signatures() -> Mapping[str, Signature]:
    """The signatures of the benchmarks of this package, by name."""
    return {name: BENCHMARKS[name].prediction_form().signature for name in BENCHMARKS.own}


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


def wrong_benchmark(place: str, wanted: Signature, what: str, *, array: str = "", folder: str = "") -> FaultError:
    """The error about predictions of another benchmark.

    Args:
        place: where they were found.
        wanted: the form that is expected.
        what: what shows the other benchmark.
        array: the name of the array by which the other form is known.
        folder: the format of a folder by which it is known.
    """
    other = next(
        form
        for form in signatures().values()
        if form is not wanted and ((array and form.array == array) or folder in (form.folders or ()))
    )
    return _wrong(place, wanted, other, what)


def _wrong(place: str, wanted: Signature, found: Signature, what: str) -> FaultError:
    name = name_of(found)
    text = (
        f"wrong benchmark: expected {name_of(wanted)} predictions ({wanted.fields}), found {name} {what}; read them as "
    )
    return FaultError("wrong_benchmark", place, f"{text}{name!r}")


def name_of(form: Signature) -> str:
    """The benchmark of this package in whose form predictions are; an empty text for another package's own form."""
    return next((name for name, other in signatures().items() if other is form), "")
