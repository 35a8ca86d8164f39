"""PVSG's `evaluate` module: tubes, triplets and truth rows in, every number out, each mask validated first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from datasets import Features, List, Value

from bench_datasets.benchmarks.pvsg import BENCHMARK
from bench_datasets.benchmarks.pvsg.prediction_columns import read_prediction
from bench_datasets.benchmarks.pvsg.protocol import get_protocol
from bench_datasets.benchmarks.pvsg.tubes import TubeLists, read_tube_lists
from bench_datasets.benchmarks.pvsg.vocabulary import CATEGORIES, PREDICATES
from bench_datasets.faults import BenchError, FaultError, shorten, stops
from bench_datasets.hf_evaluate.row_metric import RowMetric, check_aligned, is_list
from bench_datasets.masks import MASK_FEATURE
from bench_datasets.results.result import Result
from bench_datasets.results.summarize import summarize
from bench_datasets.scoring.options import ScoreOptions

_INPUTS = """
Args:
    predictions: `{"tubes": [{tube_id, category, frames, masks}], "triplets": [{subject_id, object_id, predicate, score,
        spans}]}` a video; a mask is a COCO RLE `{"size": [height, width], "counts": str, bytes or runs}`, a span
        `[first, last]` in frames from 0 with both ends in.
    references: truth rows, as `load_dataset("pvsg")` gives them; categories and predicates by name or class label.
    ids: what errors call each video; its key, or its position, where not given.
    protocol: `official` (the default), `volume`, `card` or `weak_official`.
    k: ranks; 20, 50 and 100 by default.
    thresholds: overlaps; .5 and .1 by default.
    missing: `empty` counts a prediction of None as an empty prediction; `error`, the default, refuses it.
    on_fault: `skip-and-report` leaves a faulty video out; `count-as-wrong` counts a faulty or missing prediction as
        wrong; `stop`, the default, refuses it. For videos that are added before, give it to `add` or `add_batch`, too.
    oracle: `tubes` or `relations`; see the score options.

Returns:
    Values by metric key, such as `R@20/0.5`; fractions, NaN where undefined.
"""

_SPANS = List(List(Value("int64")))
_TUBE = {"frames": List(Value("int64")), "masks": List(MASK_FEATURE)}
_RELATION = {name: Value("string") for name in ("subject_id", "object_id", "predicate")} | {"spans": _SPANS}
_PREDICTION = {
    "answered": Value("bool"),
    "tubes": List({"tube_id": Value("string"), "category": Value("string"), **_TUBE}),
    "triplets": List({**_RELATION, "score": Value("float64")}),
    "faults": List({"code": Value("string"), "text": Value("string")}),
}
_REFERENCE = {
    "key": Value("string"),
    "source": Value("string"),
    **{name: Value("int64") for name in ("height", "width", "num_frames", "frames_present")},
    "objects": List({"object_id": Value("int64"), "category": Value("string"), "is_thing": Value("bool")}),
    "tubes": List(_TUBE),
    "relations": List(_RELATION),
    "faults": List(Value("string")),
}


class Pvsg(RowMetric):
    """PVSG's metrics over `compute`, `add_batch`, `add` and `combine`."""

    BENCHMARK = "pvsg"
    DESCRIPTION = "PVSG: panoptic video scene graphs, with the protocols of its released code and stricter ones."
    INPUTS = _INPUTS
    FEATURES = Features(predictions=_PREDICTION, references=_REFERENCE)
    OPTIONS = ("protocol", "k", "thresholds", "missing", "on_fault", "oracle")

    def _validated(
        self, predictions: Any, references: Any, ids: Any, *, strict: bool = True, **columns: Any
    ) -> dict[str, list[Any]]:
        check_aligned(predictions, references, ids, "one item a video")
        called = [_called(row, k, None if ids is None else ids[k]) for k, row in enumerate(references)]
        truth, predicted = [], []
        for row, item, who in zip(references, predictions, called, strict=True):
            truth.append(_reference(row, who, strict))  # of two faults in a row, this one is named
            predicted.append(_prediction(item, who, strict))
        return {"predictions": predicted, "references": truth}

    def _result(
        self,
        predictions: list[Any],
        references: list[Any],
        protocol: str | None = None,
        k: Sequence[int] = (20, 50, 100),
        thresholds: Sequence[float] | None = None,
        missing: str = "error",
        on_fault: str = "stop",
        oracle: str | None = None,
        **given: Any,
    ) -> Result:
        options = ScoreOptions(get_protocol(protocol).name, missing, on_fault, oracle=oracle)
        batch = {name: [row[name] for row in references] for name in _REFERENCE}
        keys = batch["key"]
        batch["key"] = [key if key not in keys[:i] else f"{key} (row {i})" for i, key in enumerate(keys)]
        for name in ("tubes", "triplets"):
            batch[f"pred_{name}"] = [row[name] if row["answered"] else None for row in predictions]
        batch["pred_faults"] = [row["faults"] for row in predictions]
        table = BENCHMARK.score_table(batch, options).cast(BENCHMARK.score_features().arrow_schema)
        return summarize("pvsg", table, k=tuple(k), thresholds=thresholds, draws=0)


def _called(row: Any, position: int, name: Any) -> str:
    if name is not None:
        return str(name)
    key = row.get("key", row.get("video_id")) if isinstance(row, Mapping) else None
    return f"row {position}" if key is None else str(key)


def _prediction(item: Any, who: str, strict: bool) -> dict[str, Any]:
    """A prediction as it is kept, read as a line of a file is; of a faulty one its faults too."""
    if item is None:
        return {"answered": False, "tubes": [], "triplets": [], "faults": []}
    if not isinstance(item, Mapping):
        raise BenchError(f"{who}: predictions: expected {{'tubes': [...], 'triplets': [...]}}, found {_show(item)}")
    found = read_prediction({**item, "key": who, "video_id": None}, who)
    absent = any(fault["code"] == "missing_prediction" for fault in found["pred_faults"])
    for fault in () if absent else found["pred_faults"]:
        if strict and stops(fault["code"]):
            raise FaultError(fault["code"], who, f"predictions, {fault['text']}")
    return {
        "answered": not absent, "tubes": found["pred_tubes"], "triplets": found["pred_triplets"],
        "faults": found["pred_faults"],
    }  # fmt: skip


def _reference(row: Any, who: str, strict: bool) -> dict[str, Any]:
    needed = {"objects", "tubes", "relations"}
    if not isinstance(row, Mapping) or not needed <= set(row):
        raise BenchError(
            f"{who}: references: expected a truth row with {', '.join(sorted(needed))}, found {_show(row)}"
        )
    objects = [
        {
            "object_id": _integer(item["object_id"], who, "references, object_id"),
            "category": _text(item["category"], CATEGORIES),
            "is_thing": item.get("is_thing"),
        }
        for item in row["objects"]
    ]
    return {
        "key": who,
        **{name: row.get(name) for name in ("source", "height", "width", "num_frames", "frames_present")},
        "objects": objects,
        "tubes": _shapes(_tubes(row["tubes"], who, strict)),
        "relations": [_relation(item, who, "references, relations") for item in row["relations"]],
        "faults": list(row.get("faults") or []),
    }


def _tubes(tubes: Any, who: str, strict: bool) -> TubeLists:
    lists = read_tube_lists([_rows(tubes, who, "references, tubes")])
    for text in lists.problems().get(0, ()) if strict else ():
        raise FaultError("malformed_mask", who, f"references, {text}")
    return lists


def _shapes(lists: TubeLists) -> list[dict[str, Any]]:
    masks, frames, bounds = lists.masks.to_pylist(), lists.frames.tolist(), lists.tubes.tolist()
    return [{"frames": frames[a:b], "masks": masks[a:b]} for a, b in pairwise(bounds)]


def _rows(value: Any, who: str, what: str) -> Sequence[Any]:
    if not is_list(value):
        raise BenchError(f"{who}: {what}: expected a list, found {type(value).__name__}")
    return value  # type: ignore[no-any-return]


def _relation(item: Any, who: str, what: str) -> dict[str, Any]:
    needed = ("subject_id", "object_id", "predicate", "spans")
    if not isinstance(item, Mapping) or not set(needed) <= set(item):
        raise BenchError(f"{who}: {what}: expected {', '.join(needed)}, found {_show(item)}")
    spans = []
    for span in _rows([] if item["spans"] is None else item["spans"], who, f"{what}, spans"):
        if not is_list(span) or len(span) != 2 or not all(_is_whole(value) for value in span):
            raise BenchError(f"{who}: {what}, spans: expected [first, last] in whole frames, found {shorten(span)}")
        spans.append([int(value) for value in span])
    return {
        "subject_id": str(item["subject_id"]),
        "object_id": str(item["object_id"]),
        "predicate": _text(item["predicate"], PREDICATES),
        "spans": spans,
    }


def _is_whole(value: Any) -> bool:
    """Whether it is a whole number, be it a float, as files may hold it."""
    if isinstance(value, float):
        return value.is_integer() and abs(value) < 2**63
    return not isinstance(value, bool) and hasattr(value, "__index__") and -(2**63) <= int(value) < 2**63


def _integer(value: Any, who: str, what: str) -> int:
    if isinstance(value, float) or not _is_whole(value):
        raise BenchError(f"{who}: {what}: expected a whole number, found {value!r:.40}")
    return int(value)


def _text(value: Any, names: Sequence[str]) -> str:
    """The name of a class label; another value stays as it is and is refused by the scoring."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return str(value)
    return names[int(value)] if 0 <= int(value) < len(names) else str(value)


def _show(value: Any) -> str:
    return f"keys {sorted(map(str, value))[:8]}" if isinstance(value, Mapping) else type(value).__name__
